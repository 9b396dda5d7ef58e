/* histogram_bins_hsv.h: HSV, a joint histogram of hue, saturation and value (histogram_bins_rgb.h
 * defines the interface). */
#ifndef CLPIPE_KERNELS_HISTOGRAM_BINS_HSV_H
#define CLPIPE_KERNELS_HISTOGRAM_BINS_HSV_H

/* floor(a / b), where `inverse` is 1 / b with a relative error below 2^-21. (a + 0.5) / b is at
 * least 0.5 / b away from any integer, which exceeds the error of the product for quotients up to
 * 420 and b up to 360. Goes through int, which CPUs convert in one instruction. */
static inline uint quotient(uint a, float inverse)
{
    return (uint)(int)(((float)(int)a + 0.5f) * inverse);
}

/* Hue in whole degrees. Adding 360 * d to the numerator makes truncation the floor. A single
 * division (2.5 ulp) yields the inverses of both denominators. Branch-free, so that compilers
 * vectorise over pixels. If d is 0, so are the difference and both quotients. */
static inline uint hsv_bin(uint r, uint g, uint b, uint n0, uint n1, uint n2)
{
    const uint most = max(max(r, g), b);
    const uint d = most - min(min(r, g), b);
    const float most_least_1 = (float)(int)max(most, 1u), d_least_1 = (float)(int)max(d, 1u);
    const float inverse = 1.0f / (most_least_1 * d_least_1);
    const uint s = quotient(255u * d + most / 2u, inverse * d_least_1);
    const bool is_r = r == most, is_g = g == most;
    const uint base = is_r ? 0u : is_g ? 120u : 240u;
    const int difference = is_r ? (int)g - (int)b : is_g ? (int)b - (int)r : (int)r - (int)g;
    uint hue = base + quotient((uint)(60 * difference + 360 * (int)d), inverse * most_least_1);
    hue -= hue >= 360u ? 360u : 0u; /* was in [300, 660] */
    return (quotient(hue * n0, 1.0f / 360.0f) * n1 + (s * n1 >> 8)) * n2 + (most * n2 >> 8);
}

#define FORM_HSV                        SINGLE
#define BIN_HSV(r, g, b, n0, n1, n2) hsv_bin(r, g, b, n0, n1, n2)

#endif
