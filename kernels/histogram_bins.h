/* histogram_bins.h: which bin a pixel falls into, by the formulas of docs/features.md, shared by all
 * histogram kernels.
 *
 * The host puts a prologue before the kernel that lists the features of the pass:
 *
 *   #define FEATURES(X) X(0, RGB, 256, 0, 0, 768, 0, 0) X(1, HSV, 8, 4, 4, 128, 768, 768)
 *
 * X(i, KIND, B0, B1, B2, CELL_BINS, OUT, TABLE): CELL_BINS counters a grid cell; OUT is where cell 0
 * begins in a picture's counters; TABLE where the feature begins in the table of the pass.
 * PASS_BINS is the sum of the CELL_BINS.
 */
#ifndef CLPIPE_KERNELS_HISTOGRAM_BINS_H
#define CLPIPE_KERNELS_HISTOGRAM_BINS_H

#include "histogram_tile.h"

#ifndef FEATURES
#error "the host defines FEATURES"
#endif
#ifndef PASS_BINS
#error "the host defines PASS_BINS"
#endif

/* For whatever is handed a pointer to a table in local memory. PoCL 3.1 gives a function that its
 * compiler leaves out of line, and has put the table's address into, another table than the kernel's:
 * what is counted there is lost. */
#define INLINE static inline __attribute__((always_inline))

static inline uint luma(uint r, uint g, uint b)
{
    return (77u * r + 150u * g + 29u * b + 128u) >> 8;
}

static inline uint rgb_joint_bin(uint r, uint g, uint b, uint n0, uint n1, uint n2)
{
    return ((r * n0 >> 8) * n1 + (g * n1 >> 8)) * n2 + (b * n2 >> 8);
}

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

#endif
