/* kmeans_half.h: rows and centroids rounded to float16. */
#ifndef CLPIPE_KMEANS_HALF_H
#define CLPIPE_KMEANS_HALF_H

/* The terms by which centroids are laid out: see lane_start. Values less the centre are multiplied
 * by both scales. */
struct kmeans_half_terms {
    double square_scale, unit, slope_length, rest_least, offset_plain, offset_square;
    float scale, scale_again, growth, tiny;
};

#ifdef __OPENCL_VERSION__
#include "kmeans_bounds.h"

#pragma OPENCL EXTENSION cl_khr_fp64 : enable

/* Values less the centre, scaled into (-1, 1) by two powers of two. Rows are zero-padded to a
 * multiple of 16 columns, float16 rows to one of DEPTH. */
static inline float8 scaled_values(__global const float *row, __global const float *centre, uint stride,
                            uint j, float scale, float scale_again)
{
    return j < stride ? (vload8(0, row + j) - vload8(0, centre + j)) * scale * scale_again
                      : (float8)(0.0f);
}

/* The squares of a value and of what rounding takes from it (exactly a float32) are added to `sum`
 * and `lost`; `rounded` gets the float16 values. */
static inline void round_values(float8 value, __global half *rounded, float8 *sum, float8 *lost)
{
    vstore_half8_rte(value, 0, rounded);
    const float8 rest = value - vload_half8(0, rounded);
    *sum = fma(value, value, *sum);
    *lost = fma(rest, rest, *lost);
}

static inline float sum_of(float8 values)
{
    const float4 half_sum = values.lo + values.hi;
    return half_sum.x + half_sum.y + half_sum.z + half_sum.w;
}

/* The start of a lane's sum (the square, less a squared distance `within`, less the offset) and the slope, both
 * divided by the unit, twice the scale between rows and centroids. Offset and slope are the bound's, as
 * docs/clustering.md derives them: sums of the given terms, which are the same for all centroids, times the
 * centroid's square (and `within`) and its length, or what rounding took from it (lost: the sum of its squares)
 * divided by `rest_least`, if that is more. */
static inline float2 lane_start(double square, double within, float lost,
                                struct kmeans_half_terms terms, __global float *slopes,
                                __global float *offsets)
{
    const double scaled = square * terms.square_scale;
    const double less = within * (1 + 0x1p-30) * terms.square_scale;
    const double rest = length_bound(lost, terms.growth, terms.tiny) / terms.rest_least;
    const double slope = convert_float_rtp(terms.slope_length * fmax(sqrt(scaled), rest));
    const double offset = convert_float_rtp(terms.offset_plain + terms.offset_square * (scaled + less));
    if (slopes) {
        *slopes = (float)slope;
        *offsets = (float)offset;
    }
    return (float2)((float)((scaled - less - offset) / terms.unit), (float)(slope / terms.unit));
}

#endif
#endif
