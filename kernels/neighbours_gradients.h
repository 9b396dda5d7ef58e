/* neighbours_gradients.h: HOG, GRADIENT and COLEDGE, histograms of luma gradients
 * (neighbours_planes.h defines the interface). */
#ifndef CLPIPE_KERNELS_NEIGHBOURS_GRADIENTS_H
#define CLPIPE_KERNELS_NEIGHBOURS_GRADIENTS_H

#include "neighbours_planes.h"

/* floor(sqrt(gx gx + gy gy)) for components up to 255. The reciprocal root is found by halving the
 * exponent in the bits of a float and one Newton step, since compilers do not vectorise calls; the
 * root is therefore too small by less than one, which the next square corrects. */
static inline uint magnitude(int gx, int gy)
{
    const int n = gx * gx + gy * gy;
    const float x = (float)n;
    float y = as_float(0x5f375a86u - (as_uint(x) >> 1));
    y *= 1.5f - 0.5f * x * y * y;
    const int root = (int)(x * y);
    const int next = n - 2 * root - root * root; /* negative if (root + 1) squared is at most n */
    return (uint)root + ((uint)-next >> 31);
}

/* Five magnitudes, each starting at twice the previous one, in 8 directions; 40: flat. */
static inline uint gradient_bin(int gx, int gy)
{
    const int n = gx * gx + gy * gy;
    const uint k = (uint)(at_least(n, 8 * 8) + at_least(n, 16 * 16) + at_least(n, 32 * 32) +
                          at_least(n, 64 * 64) + at_least(n, 128 * 128));
    return (uint)choose(-at_least((int)k, 1), (int)(8 * (k - 1) + direction_8(gx, gy)), 40);
}

/* Flat, or two magnitudes in 4 unsigned directions. */
static inline uint coledge_bin(int gx, int gy, uint zone)
{
    const int n = gx * gx + gy * gy;
    const uint edge =
        n < 32 * 32 ? 0 : 1 + 4 * (uint)at_least(n, 96 * 96) + (direction_8(gx, gy) & 3);
    return 9 * zone + edge;
}

#define ONE_CHANNEL(DO, table, KIND) DO(table, KIND, 0, PLANE_LUMA)
#define SAME_CODE(code)              (code)
#define NO_FOLD(table)

#define PLANES_HOG   1 << PLANE_LUMA
#define CHANNELS_HOG 1
#define BINS_HOG     18
#define CHANNEL_LIST_HOG ONE_CHANNEL
#define BIN_HOG(above, here, below, zone)                                                          \
    direction_18((here)[2] - (here)[0], (below)[1] - (above)[1])
#define CLASS_HOG(code) ((code) == 18 ? 0 : (code))
#define TABLE_HOG    19
#define FOLD_HOG(table) (table)[0] += (table)[18]
#define WEIGHTED_HOG 1
#define WEIGHT_HOG(above, here, below) magnitude((here)[2] - (here)[0], (below)[1] - (above)[1])

#define PLANES_GRADIENT   1 << PLANE_LUMA
#define CHANNELS_GRADIENT 1
#define BINS_GRADIENT     41
#define CHANNEL_LIST_GRADIENT ONE_CHANNEL
#define BIN_GRADIENT(above, here, below, zone)                                                     \
    gradient_bin(sobel_x(above, here, below), sobel_y(above, below))
#define CLASS_GRADIENT    SAME_CODE
#define TABLE_GRADIENT    41
#define FOLD_GRADIENT     NO_FOLD
#define WEIGHTED_GRADIENT 0
#define WEIGHT_GRADIENT(above, here, below) 0

#define PLANES_COLEDGE   1 << PLANE_LUMA | 1 << PLANE_ZONE
#define CHANNELS_COLEDGE 1
#define BINS_COLEDGE     324
#define CHANNEL_LIST_COLEDGE ONE_CHANNEL
#define BIN_COLEDGE(above, here, below, zone)                                                      \
    coledge_bin(sobel_x(above, here, below), sobel_y(above, below), (uint)(zone))
#define CLASS_COLEDGE    SAME_CODE
#define TABLE_COLEDGE    324
#define FOLD_COLEDGE     NO_FOLD
#define WEIGHTED_COLEDGE 0
#define WEIGHT_COLEDGE(above, here, below) 0

#endif
