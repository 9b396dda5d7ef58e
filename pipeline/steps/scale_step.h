/* scale_step.h: a box filter that shrinks images, in integer arithmetic.
 *
 * The longer side of the image becomes `side` pixels, the shorter one keeps the proportion, rounded
 * to the nearest, at least 1. An image that is not larger is unchanged. For w x h pixels from W x
 * H, channel c of pixel (x, y) is
 *
 *     (sum over i, j of a(x, i) b(y, j) p_c(i, j)  +  floor(W H / 2)) / (W H), rounded down, where
 *     a(x, i) = max(0, min((i + 1) w, (x + 1) W) - max(i w, x W)), b(y, j) likewise of h and H:
 *
 * the mean over the area of the pixel, rounded to the nearest, halves up. The weights are
 * symmetric, so rotating or mirroring before or after scaling gives the same pixels: the step works
 * on stored pixels.
 */
#ifndef CLPIPE_STEPS_SCALE_STEP_H
#define CLPIPE_STEPS_SCALE_STEP_H

#include "staging/step.h"

#define SCALE_SIDE_MAX 65535u

/* The size of the scaled image. */
void scale_size(uint32_t *scaled_width, uint32_t *scaled_height, uint32_t width, uint32_t height,
                uint32_t side);

/* The plain C reference; strides in bytes. */
void scale_reference(uint8_t *scaled, size_t scaled_stride, uint32_t scaled_width,
                     uint32_t scaled_height, const uint8_t *pixels, size_t stride, uint32_t width,
                     uint32_t height);

/* The step: whole RGB images to scaled ones. The node's parameter is the side, at most
 * SCALE_SIDE_MAX. */
extern const struct step scale_step;

#endif
