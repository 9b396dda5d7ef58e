/* around.h: what the references of features of a pixel's surroundings share. Slow and obvious. */
#ifndef CLPIPE_FEATURES_AROUND_H
#define CLPIPE_FEATURES_AROUND_H

#include <stddef.h>
#include <stdint.h>

/* The sides of the surroundings: the border of such a kind is 2. */
#define AROUND_BORDER 2u
/* Their pictures are scaled to this, unless a SPEC says otherwise. */
#define AROUND_SCALE 256u

/* Luma of the pixel x to the right and y below `pixel`, an RGB pixel in rows of `stride` bytes. */
int around_luma(const uint8_t *pixel, size_t stride, uint32_t x, uint32_t y);

/* Central differences, and Sobel's, of the luma of the 3x3 pixels that begin at `pixel`. */
void around_difference(int *gx, int *gy, const uint8_t *pixel, size_t stride);
void around_sobel(int *gx, int *gy, const uint8_t *pixel, size_t stride);

/* The nearest of n directions, 8 or 18; 0 is to the right, the next ones towards below. */
uint32_t around_direction(int gx, int gy, uint32_t n);

#endif
