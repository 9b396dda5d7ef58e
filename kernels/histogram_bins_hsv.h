/* histogram_bins_hsv.h: HSV, a joint histogram of hue, saturation and value (histogram_bins_rgb.h says what a kind
 * defines). */
#ifndef CLPIPE_KERNELS_HISTOGRAM_BINS_HSV_H
#define CLPIPE_KERNELS_HISTOGRAM_BINS_HSV_H

/* a / b for a < 2^18 and 0 < b < 256. Between a + 0.5 over b and the nearest integer lies at least
 * 0.5 / b > 2^-9; that is more than float division with its 2.5 ulp can be wrong by, where the
 * quotient is below 2^11. Integer division takes several times as long on every device. */
static inline uint quotient(uint a, uint b)
{
    return (uint)(((float)a + 0.5f) / (float)b);
}

/* Hue in whole degrees. The numerator is moved up by 360 * d, so that truncation is the floor. */
static inline uint hsv_bin(uint r, uint g, uint b, uint n0, uint n1, uint n2)
{
    const uint most = max(max(r, g), b);
    const uint d = most - min(min(r, g), b);
    const uint s = most == 0 ? 0 : quotient(255u * d + most / 2u, most);
    uint hue = 0;
    if (d != 0) {
        const bool is_r = r == most, is_g = !is_r && g == most;
        const uint base = is_r ? 0u : is_g ? 120u : 240u;
        const int difference = is_r ? (int)g - (int)b : is_g ? (int)b - (int)r : (int)r - (int)g;
        hue = base + quotient((uint)(60 * difference + 360 * (int)d), d);
        hue -= hue >= 360u ? 360u : 0u; /* it was 300 to 660 */
    }
    return ((hue * n0 / 360u) * n1 + (s * n1 >> 8)) * n2 + (most * n2 >> 8);
}

#define FORM_HSV                        SINGLE
#define BIN_HSV(r, g, b, n0, n1, n2) hsv_bin(r, g, b, n0, n1, n2)

#endif
