/* scale_step.h: a box filter that makes pictures smaller, on whole numbers.
 *
 * The longer side of the picture becomes `side` pixels, the shorter one keeps the proportion, rounded
 * to the nearest, at least 1. A picture that is no larger stays as it is. Of w x h pixels from W x H,
 * channel c of pixel (x, y) is
 *
 *     (sum over i, j of a(x, i) b(y, j) p_c(i, j)  +  floor(W H / 2)) / (W H), rounded down, where
 *     a(x, i) = max(0, min((i + 1) w, (x + 1) W) - max(i w, x W)), b(y, j) likewise of h and H:
 *
 * the mean over what the pixel covers, rounded to the nearest, halves up. The weights are symmetric,
 * so a picture that is turned or mirrored and then scaled has the same pixels as one that is scaled
 * first: the step works on stored pixels.
 */
#ifndef CLPIPE_STEPS_SCALE_STEP_H
#define CLPIPE_STEPS_SCALE_STEP_H

#include "staging/step.h"

#define SCALE_SIDE_MAX 65535u

/* The size to which a picture is scaled. */
void scale_size(uint32_t *scaled_width, uint32_t *scaled_height, uint32_t width, uint32_t height,
                uint32_t side);

/* The plain C reference; strides in bytes. */
void scale_reference(uint8_t *scaled, size_t scaled_stride, uint32_t scaled_width,
                     uint32_t scaled_height, const uint8_t *pixels, size_t stride, uint32_t width,
                     uint32_t height);

/* The step: whole pictures of RGB to scaled ones. The node's parameter is the side, at most
 * SCALE_SIDE_MAX. */
extern const struct step scale_step;

#endif
