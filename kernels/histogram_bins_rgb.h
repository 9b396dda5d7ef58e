/* histogram_bins_rgb.h: RGB, one histogram per channel, and RGB_JOINT, one over all three.
 *
 * The header of a feature kind defines, for KIND, the bin of a pixel with 8-bit r, g and b, given
 * the bin counts n0, n1 and n2 of its spec, by the formulas of docs/features.md. Either
 *
 *   #define FORM_KIND SINGLE
 *   #define BIN_KIND(r, g, b, n0, n1, n2)    the one bin of a pixel
 *
 * or, if values of 0 to 255 are counted in one or more channels of n0 bins each, value v in bin v *
 * n0 >> 8 (kernels may then count values first and fold them into bins later):
 *
 *   #define FORM_KIND     CHANNELS
 *   #define CHANNELS_KIND the number of channels
 *   #define VALUES_KIND(DO, x, y, r, g, b)   DO(x, y, c, v) for each channel c and its value v
 *
 * The host prepends the headers of all kinds in the pass to the kernel. */
#ifndef CLPIPE_KERNELS_HISTOGRAM_BINS_RGB_H
#define CLPIPE_KERNELS_HISTOGRAM_BINS_RGB_H

#define FORM_RGB     CHANNELS
#define CHANNELS_RGB 3
#define VALUES_RGB(DO, x, y, r, g, b)                                                              \
    DO(x, y, 0, r)                                                                                 \
    DO(x, y, 1, g)                                                                                 \
    DO(x, y, 2, b)

static inline uint rgb_joint_bin(uint r, uint g, uint b, uint n0, uint n1, uint n2)
{
    return ((r * n0 >> 8) * n1 + (g * n1 >> 8)) * n2 + (b * n2 >> 8);
}

#define FORM_RGB_JOINT                        SINGLE
#define BIN_RGB_JOINT(r, g, b, n0, n1, n2)    rgb_joint_bin(r, g, b, n0, n1, n2)

#endif
