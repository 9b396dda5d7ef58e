/* around.h: shared by the references of features: luma, roots, a pixel's neighbours. Simple rather than
 * fast. */
#ifndef CLPIPE_FEATURES_AROUND_H
#define CLPIPE_FEATURES_AROUND_H

#include <stddef.h>
#include <stdint.h>

/* Such a kind has a border of 2: one pixel on each side. */
#define AROUND_BORDER 2u
/* Default scale of these kinds. */
#define AROUND_SCALE 256u

/* Luma of an RGB pixel. */
static inline int pixel_luma(const uint8_t *p)
{
    return (77 * p[0] + 150 * p[1] + 29 * p[2] + 128) >> 8;
}

/* floor(sqrt(value)). */
uint32_t whole_root(uint64_t value);

/* Luma of the pixel x to the right of and y below `pixel`, in RGB rows of `stride` bytes. */
int around_luma(const uint8_t *pixel, size_t stride, uint32_t x, uint32_t y);

/* Central differences, and Sobel's operator, of the luma of the 3x3 pixels starting at `pixel`. */
void around_difference(int *gx, int *gy, const uint8_t *pixel, size_t stride);
void around_sobel(int *gx, int *gy, const uint8_t *pixel, size_t stride);

/* The nearest of n directions, 8 or 18; 0 is to the right, then clockwise (y points down). */
uint32_t around_direction(int gx, int gy, uint32_t n);

#endif
