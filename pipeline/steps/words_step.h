/* words_step.h: what a codebook makes of an image's descriptors: the number of those nearest to each
 * word (words=K), or their sums around it (fisher=K). */
#ifndef CLPIPE_STEPS_WORDS_STEP_H
#define CLPIPE_STEPS_WORDS_STEP_H

#include "features/feature.h"
#include "staging/step.h"

/* Descriptors to the words of a row. The node's config is the struct feature, to which a codebook is
 * bound when the step is opened. */
extern const struct step words_step;

/* The plain C reference: adds `number` descriptors to the words of the feature. */
void words_reference(uint32_t *words, const struct feature *feature, const uint8_t *descriptors,
                     uint32_t number);

#endif
