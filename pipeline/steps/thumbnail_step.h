/* thumbnail_step.h: the pixels of thumbnails from coefficients as a step (part/shrink.h is the reference).
 *
 * They are part of the row of values, so a device that decodes entropy code gives them back beside the
 * counters, and nothing of the picture has to be on the host.
 */
#ifndef CLPIPE_STEPS_THUMBNAIL_STEP_H
#define CLPIPE_STEPS_THUMBNAIL_STEP_H

#include "part/shrink.h"
#include "staging/step.h"

/* The node's config. */
struct thumbnail_config {
    uint32_t size;  /* longest side, pixels */
    uint32_t first; /* of its words in a row: 3 bytes a pixel, as stored */
};

/* Words of a row. */
uint32_t thumbnail_words(uint32_t size);

/* DCT coefficients to values. The node's parameter is that of jpeg_step.h. */
extern const struct step thumbnail_step;

#endif
