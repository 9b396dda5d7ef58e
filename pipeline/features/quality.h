/* quality.h: the kind quality: 32-bit integers that describe the picture's quality, without a
 * codebook and not for comparing pictures. docs/features.md defines them. */
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
    QUALITY_DETAIL,     /* entropy without the most frequent tone; 0: under 1 in 50 pixels */
    QUALITY_SATURATION, /* mean difference between the largest and the smallest channel, hundredths */
    QUALITY_COLOURED,   /* coloured pixels per 10,000 */
    QUALITY_BLACK,      /* pixels per 10,000 with a luma of at most 1 */
    QUALITY_WHITE,      /* the same for at least 254 */
    QUALITY_EDGES,      /* places per 10,000 with an edge */
    QUALITY_SHARPNESS, /* thousandths: 250 for ramps, 1000 for steps; 0: too few edges */
    QUALITY_SHARPNESS_COARSE,
    QUALITY_LEFT, /* uniform borders, thousandths of the side */
    QUALITY_TOP,
    QUALITY_RIGHT,
    QUALITY_BOTTOM,
    QUALITY_VALUES,
};

/* Their names, in the order of the enum. */
extern const char *const quality_names[QUALITY_VALUES];

/* The C reference: computes the QUALITY_WORDS words of a whole picture in RGB rows, `stride` bytes
 * apart. */
void quality_reference(uint32_t *words, const uint8_t *pixels, size_t stride, uint32_t width,
                       uint32_t height);

#endif
