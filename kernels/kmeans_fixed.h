/* kmeans_fixed.h: converts float32 values to fixed point, for kernels that sum rows.
 *
 * -D WEIGHTED=0|1   whether they are multiplied by weights
 * -D DOUBLES=0|1    through float64, on devices that have it and keep subnormal float32 values:
 *                   fewer instructions (without weights) */
#ifndef CLPIPE_KMEANS_FIXED_H
#define CLPIPE_KMEANS_FIXED_H

#if DOUBLES
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

/* The result of fixed_point, `unit` being 2^scale. The product is exact. Below 2^51 so is adding
 * one half; beyond 2^24 values are integers already, which rounding that sum leaves unchanged. */
static inline long fixed_point_double(int bits, double unit)
{
    const double value = convert_double(as_float(bits)) * unit;
    return convert_long_rtz(value + copysign(0.5, value));
}

static inline double unit_of(int scale)
{
    return as_double(convert_long(scale + 1023) << 52);
}
#endif

#if !WEIGHTED
/* Converts a float32 value's bits to fixed point, branch-free, like canonical_fixed() on the
 * host. */
static inline long fixed_point(int bits, int scale)
{
    int exponent = (bits >> 23) & 255;
    int normal = min(exponent, 1);
    int fraction = (bits & 0x7fffff) | (normal << 23);
    int shift = exponent + (1 - normal) - 150 + scale;
    long magnitude = fraction;
    long left = clamp(shift, 0, 63);
    long right = clamp(-shift, 0, 26);
    /* Half a unit of the last place kept; 0 if nothing is shifted out. */
    long round = (1L << right) >> 1;
    long value = ((magnitude << left) + round) >> right;
    /* All ones for negative numbers. */
    long sign = bits >> 31;
    return (value ^ sign) - sign;
}
#else
/* Converts a float32 value times a weight, both given by their bits, to fixed point, branch-free,
 * like canonical_fixed() on the host. The product of two fractions has 48 bits, so it is exact. */
static inline long fixed_point_weighted(int bits, int weight, int scale)
{
    const int weight_exponent = weight >> 23;
    const int weight_normal = min(weight_exponent, 1);
    const long weight_fraction = (weight & 0x7fffff) | (weight_normal << 23);
    int exponent = (bits >> 23) & 255;
    int normal = min(exponent, 1);
    int fraction = (bits & 0x7fffff) | (normal << 23);
    int shift =
        exponent + (1 - normal) - 300 + scale + (weight_exponent + 1 - weight_normal);
    long magnitude = fraction * weight_fraction;
    long left = clamp(shift, 0, 63);
    long right = clamp(-shift, 0, 50);
    long round = (1L << right) >> 1;
    long value = ((magnitude << left) + round) >> right;
    long sign = bits >> 31;
    return (value ^ sign) - sign;
}
#endif

#endif
