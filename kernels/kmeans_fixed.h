/* kmeans_fixed.h: float32 values as fixed point, for kernels that sum rows.
 *
 * -D VECTOR=1|16    values at a time
 * -D WEIGHTED=0|1   whether they are multiplied by weights (not given: they are not)
 * -D DOUBLES=0|1    by float64, on devices that have it and keep subnormal float32 values: fewer
 *                   instructions (without weights) */
#ifndef CLPIPE_KMEANS_FIXED_H
#define CLPIPE_KMEANS_FIXED_H

#if VECTOR == 16
typedef int16 ints;
typedef long16 longs;
#define TO_LONGS(v) convert_long16(v)
#define TO_DOUBLES(v) convert_double16(as_float16(v))
#define ROUND_TO_ZERO(v) convert_long16_rtz(v)
#elif VECTOR == 1
typedef int ints;
typedef long longs;
#define TO_LONGS(v) convert_long(v)
#define TO_DOUBLES(v) convert_double(as_float(v))
#define ROUND_TO_ZERO(v) convert_long_rtz(v)
#else
#error "VECTOR is 1 or 16"
#endif

#if DOUBLES
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#if VECTOR == 16
typedef double16 doubles;
#define BITS_TO_DOUBLES(v) as_double16(v)
#else
typedef double doubles;
#define BITS_TO_DOUBLES(v) as_double(v)
#endif

/* What fixed_point gives, `unit` being 2^scale. The product is exact. Below 2^51 so is the sum with a
 * half, and beyond 2^24 values are integers already, which rounding that sum does not change. */
static inline longs fixed_point_double(ints bits, doubles unit)
{
    const doubles value = TO_DOUBLES(bits) * unit;
    return ROUND_TO_ZERO(value + copysign((doubles)(0.5), value));
}

static inline doubles unit_of(ints scale)
{
    return BITS_TO_DOUBLES(TO_LONGS(scale + 1023) << 52);
}
#endif

#if !WEIGHTED
/* The bits of float32 values as fixed point: canonical_fixed() of the host, without branches. */
static inline longs fixed_point(ints bits, ints scale)
{
    ints exponent = (bits >> 23) & 255;
    ints normal = min(exponent, (ints)(1));
    ints fraction = (bits & 0x7fffff) | (normal << 23);
    ints shift = exponent + ((ints)(1) - normal) - 150 + scale;
    longs magnitude = TO_LONGS(fraction);
    longs left = TO_LONGS(clamp(shift, (ints)(0), (ints)(63)));
    longs right = TO_LONGS(clamp(-shift, (ints)(0), (ints)(26)));
    /* Half a unit of the places shifted out; 0 where none are. */
    longs round = ((longs)(1) << right) >> 1;
    longs value = ((magnitude << left) + round) >> right;
    /* All ones for negative numbers. */
    longs sign = TO_LONGS(bits >> 31);
    return (value ^ sign) - sign;
}
#else
/* The bits of float32 values times a weight, given by its own bits, as fixed point, without
 * branches: canonical_fixed_weighted() of the host. The product of two fractions has 48 bits, and
 * so is exact. */
static inline longs fixed_point_weighted(ints bits, int weight, ints scale)
{
    const int weight_exponent = weight >> 23;
    const int weight_normal = min(weight_exponent, 1);
    const long weight_fraction = (weight & 0x7fffff) | (weight_normal << 23);
    ints exponent = (bits >> 23) & 255;
    ints normal = min(exponent, (ints)(1));
    ints fraction = (bits & 0x7fffff) | (normal << 23);
    ints shift = exponent + ((ints)(1) - normal) - 300 + scale +
                 (ints)(weight_exponent + 1 - weight_normal);
    longs magnitude = TO_LONGS(fraction) * (longs)(weight_fraction);
    longs left = TO_LONGS(clamp(shift, (ints)(0), (ints)(63)));
    longs right = TO_LONGS(clamp(-shift, (ints)(0), (ints)(50)));
    longs round = ((longs)(1) << right) >> 1;
    longs value = ((magnitude << left) + round) >> right;
    longs sign = TO_LONGS(bits >> 31);
    return (value ^ sign) - sign;
}
#endif

#endif
