/* histogram_bins_hsv.h: HSV, a joint histogram of hue, saturation and value (histogram_bins_rgb.h says what a kind
 * defines). */
#ifndef CLPIPE_KERNELS_HISTOGRAM_BINS_HSV_H
#define CLPIPE_KERNELS_HISTOGRAM_BINS_HSV_H

/* a / b where `inverse` is 1 / b, of a relative error below 2^-21. Between a + 0.5 over b and the nearest
 * integer lies at least 0.5 / b, which is more than the product can be wrong by where the quotient is at
 * most 420 and b at most 360. Through int, which CPUs convert in one instruction. */
static inline uint quotient(uint a, float inverse)
{
    return (uint)(int)(((float)(int)a + 0.5f) * inverse);
}

/* Hue in whole degrees. The numerator is moved up by 360 * d, so that truncation is the floor. One division
 * (2.5 ulp) gives the inverses of both denominators. There are no branches: compilers take several pixels
 * at once. Where d is 0 the difference is, too, and so are both quotients. */
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
    hue -= hue >= 360u ? 360u : 0u; /* it was 300 to 660 */
    return (quotient(hue * n0, 1.0f / 360.0f) * n1 + (s * n1 >> 8)) * n2 + (most * n2 >> 8);
}

#define FORM_HSV                        SINGLE
#define BIN_HSV(r, g, b, n0, n1, n2) hsv_bin(r, g, b, n0, n1, n2)

#endif
