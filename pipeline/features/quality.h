/* quality.h: the kind quality: whole numbers about the picture, each 32 bits, without a codebook and not to
 * compare pictures by. docs/features.md defines them. */
#ifndef CLPIPE_FEATURES_QUALITY_H
#define CLPIPE_FEATURES_QUALITY_H

#include "quality_part.h"
#include <stddef.h>
#include <stdint.h>

enum quality_value {
    QUALITY_P1, /* percentiles of luma */
    QUALITY_P5,
    QUALITY_P50,
    QUALITY_P95,
    QUALITY_P99,
    QUALITY_CONTRAST,   /* standard deviation of luma, hundredths */
    QUALITY_ENTROPY,    /* of luma, thousandths of a bit */
    QUALITY_DETAIL, /* the same of the pixels beside the most frequent tone; 0: fewer than 1 in 50 are */
    QUALITY_SATURATION, /* mean difference between the largest and the smallest channel, hundredths */
    QUALITY_COLOURED,   /* of 10,000 pixels, those with colour */
    QUALITY_BLACK,      /* of 10,000, those with a luma of at most 1 */
    QUALITY_WHITE,      /* at least 254 */
    QUALITY_EDGES,      /* of 10,000 places, those with an edge */
    QUALITY_SHARPNESS,  /* thousandths: 250 a ramp, 1000 a step; 0: too few edges */
    QUALITY_SHARPNESS_COARSE,
    QUALITY_LEFT, /* uniform borders, thousandths of the side */
    QUALITY_TOP,
    QUALITY_RIGHT,
    QUALITY_BOTTOM,
    QUALITY_VALUES,
};

/* Their names, in that order. */
extern const char *const quality_names[QUALITY_VALUES];

/* The C reference: the QUALITY_WORDS words of a whole picture of RGB rows, `stride` bytes apart. */
void quality_reference(uint32_t *words, const uint8_t *pixels, size_t stride, uint32_t width,
                       uint32_t height);

#endif
