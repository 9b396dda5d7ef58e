/* histogram_bins_rgb.h: RGB, a histogram of each channel, and RGB_JOINT, one over all three.
 *
 * A feature kind's header says for KIND which bin a pixel falls into, with 8-bit r, g and b and the
 * bins n0, n1 and n2 of its spec, by the formulas of docs/features.md. Either
 *
 *   #define FORM_KIND SINGLE
 *   #define BIN_KIND(r, g, b, n0, n1, n2)    the one bin of a pixel
 *
 * or, where values of 0 to 255 are counted in one or more channels with n0 bins each, value v in bin
 * v * n0 >> 8 (kernels then may count values first and fold them to bins later):
 *
 *   #define FORM_KIND     CHANNELS
 *   #define CHANNELS_KIND how many
 *   #define VALUES_KIND(DO, x, y, r, g, b)   DO(x, y, c, v) for each channel c and its value v
 *
 * The host puts the headers of a pass's kinds before the kernel.
 */
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
