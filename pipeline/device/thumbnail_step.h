/* thumbnail_step.h: thumbnails from DCT coefficients as a step (decode/shrink.h has the reference).
 *
 * Thumbnails are part of the row of values, so a device that decodes entropy-coded data returns
 * them with the counters, and the host never needs the pixels. */
#ifndef CLPIPE_DEVICE_THUMBNAIL_STEP_H
#define CLPIPE_DEVICE_THUMBNAIL_STEP_H

#include "decode/shrink.h"
#include "device/step.h"

/* The node's config. */
struct thumbnail_config {
    uint32_t size;  /* longest side, pixels */
    uint32_t first; /* index of its words in a row; 3 bytes per pixel, as stored */
};

/* Words in a row for thumbnails of that size. */
uint32_t thumbnail_words(uint32_t size);

/* Accepts DCT coefficients. The node's parameter is that of jpeg_step.h. */
extern const struct step thumbnail_step;

#endif
