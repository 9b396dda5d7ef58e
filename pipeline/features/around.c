/* around.c: luma, gradients and their directions. */
#include "features/around.h"

#include <math.h>
#include <stdbool.h>

int around_luma(const uint8_t *pixel, size_t stride, uint32_t x, uint32_t y)
{
    return pixel_luma(pixel + y * stride + 3 * (size_t)x);
}

uint32_t whole_root(uint64_t value)
{
    /* The double is the root rounded; from 2^52 on it can be one too large or too small. */
    uint64_t root = (uint64_t)sqrt((double)value);
    if (root > UINT32_MAX || root * root > value)
        root--;
    return (uint32_t)(root + (root < UINT32_MAX && (root + 1) * (root + 1) <= value));
}

void around_difference(int *gx, int *gy, const uint8_t *pixel, size_t stride)
{
    *gx = around_luma(pixel, stride, 2, 1) - around_luma(pixel, stride, 0, 1);
    *gy = around_luma(pixel, stride, 1, 2) - around_luma(pixel, stride, 1, 0);
}

void around_sobel(int *gx, int *gy, const uint8_t *pixel, size_t stride)
{
    static const int weight[3] = {1, 2, 1};
    *gx = *gy = 0;
    for (uint32_t i = 0; i < 3; i++) {
        *gx += weight[i] * (around_luma(pixel, stride, 2, i) - around_luma(pixel, stride, 0, i));
        *gy += weight[i] * (around_luma(pixel, stride, i, 2) - around_luma(pixel, stride, i, 0));
    }
}

/* Borders between directions in the upper half, as points on lines: rational approximations of the
 * tangents, so close that every gradient is on the same side of both
 * (kernels/neighbours_directions.h). */
static const int border_8[][2] = {{13860, 5741}, {5741, 13860}, {-5741, 13860}, {-13860, 5741}};
static const int border_18[][2] = {{12698, 2239}, {13775, 7953},  {2013, 2399},
                                   {3766, 10347}, {0, 1},         {-3766, 10347},
                                   {-2013, 2399}, {-13775, 7953}, {-12698, 2239}};

uint32_t around_direction(int gx, int gy, uint32_t n)
{
    const int(*border)[2] = n == 8 ? border_8 : border_18;
    const bool lower = gy < 0 || (gy == 0 && gx < 0);
    uint32_t direction = lower ? n / 2 : 0;
    if (lower) {
        gx = -gx;
        gy = -gy;
    }
    for (uint32_t i = 0; i < n / 2; i++)
        direction += border[i][0] * gy >= border[i][1] * gx;
    return direction % n;
}
