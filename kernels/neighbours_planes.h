/* neighbours_planes.h: planes, and the interface between kernel `neighbours` and its feature kinds.
 *
 * A kind's header defines for KIND:
 *
 *   #define PLANES_KIND   1 << PLANE_LUMA | ...  the planes that it needs
 *   #define CHANNELS_KIND its number of histograms, of BINS_KIND bins each
 *   #define CHANNEL_LIST_KIND(DO, table, KIND)   DO(table, KIND, c, PLANE_...) for each channel c
 *   #define BIN_KIND(above, here, below, zone)   the bin of a pixel, or a code for it; the pointers are
 *                                                to three values of the plane: left, middle, right
 *   #define CLASS_KIND(code)                     the bin of a code
 *   #define TABLE_KIND    the number of codes of all channels
 *   #define FOLD_KIND(table)                     turns a table of codes into one of bins
 *   #define WEIGHTED_KIND 1: adds WEIGHT_KIND(above, here, below); 0: adds 1 */
#ifndef CLPIPE_KERNELS_NEIGHBOURS_PLANES_H
#define CLPIPE_KERNELS_NEIGHBOURS_PLANES_H

#include "neighbours_directions.h"

#define PLANE_LUMA        0
#define PLANE_RED_GREEN   1 /* R - G */
#define PLANE_YELLOW_BLUE 2 /* R + G - 2 B */
#define PLANE_ZONE        3 /* the pixel's own colour zone, for coledge */
#define PLANES            4

/* Takes red times 77, green times 150 and blue times 29, whose sum fits 16 bits. */
#define LUMA(r77, g150, b29) (((r77) + (g150) + (b29) + (ushort)128) >> (ushort)8)

static inline uint luma_of(uint r, uint g, uint b)
{
    return LUMA(77 * r, 150 * g, 29 * b);
}

/* Branch-free select: `yes` if `mask` is -1, `no` if it is 0. */
static inline int choose(int mask, int yes, int no)
{
    return (yes & mask) | (no & ~mask);
}

/* n >= least, from the sign, since Oclgrind gets vector comparisons wrong. */
static inline int at_least(int n, int least)
{
    return (int)(1u ^ (uint)(n - least) >> 31);
}

/* Colour zones: black, three greys, and by hue, saturation and value. Compares products, which is
 * equivalent to the quotients of docs/features.md, and uses masks instead of branches, so that
 * compilers vectorise it. */
static inline int zone_of(int r, int g, int b)
{
    const int rg = r - g, gb = g - b, br = b - r;
    const int above = choose(-at_least(rg, 1), r, g), below = choose(-at_least(rg, 1), g, r);
    const int most = choose(-at_least(above, b), above, b);
    const int d = most - choose(-at_least(b, below), below, b);
    const int s = 255 * d + most / 2; /* saturation times most */
    const int is_r = -at_least(r, most), is_g = -at_least(g, most);
    /* Hue times d, plus 60 degrees so that it is not negative; a sector has 45 degrees. */
    const int hue = 60 * choose(is_r, gb, choose(is_g, br, rg)) +
                    choose(is_r, 60, choose(is_g, 180, 300)) * d;
    const int sector = at_least(hue, 105 * d) + at_least(hue, 150 * d) + at_least(hue, 195 * d) +
                       at_least(hue, 240 * d) + at_least(hue, 285 * d) + at_least(hue, 330 * d) +
                       (-at_least(60 * d, hue + 1) & (6 + at_least(hue, 15 * d)));
    const int coloured = 4 + sector * 4 + 2 * at_least(s, 128 * most) + at_least(most, 153);
    const int grey = 1 + at_least(most, 107) + at_least(most, 182);
    return choose(-at_least(most, 32), choose(-at_least(s, 51 * most), coloured, grey), 0);
}

static inline int sobel_x(const short *above, const short *here, const short *below)
{
    return above[2] - above[0] + 2 * (here[2] - here[0]) + below[2] - below[0];
}

static inline int sobel_y(const short *above, const short *below)
{
    return below[0] - above[0] + 2 * (below[1] - above[1]) + below[2] - above[2];
}

/* 1 in the lower half (below, or to the left), whose directions are those of the upper half turned
 * by 180 degrees. Uses signs, not branches. */
static inline int is_lower(int gx, int gy)
{
    return (int)((uint)(2 * gy + (gx >> 31)) >> 31);
}

#define BEHIND(bx, by) +((uint)((by)*x - (bx)*y - 1) >> 31) /* sign bit, no comparison */

/* floor(a * c / 65536) of 16-bit numbers: a single vector instruction. */
static inline ushort high(ushort a, ushort c)
{
    return (ushort)((uint)a * c >> 16);
}

/* a > b of numbers below 2^15, from the sign. */
static inline ushort exceeds(ushort a, ushort b)
{
    return (ushort)((ushort)(b - a) >> 15);
}

/* For components up to 255; may return 18 instead of 0. The lower half is the upper one turned, and
 * its left quadrant mirrors the right one. A quadrant has four borders: two where y passes x times
 * the tangent of 10 and 30 degrees and, x and y being symmetric, two more. */
static inline ushort direction_18(short gx, short gy)
{
    const ushort lower = (ushort)((ushort)(2 * gy + (gx >> 15)) >> 15);
    const short turn = (short)-lower;
    const short x = (short)((gx ^ turn) - turn), y = (short)((gy ^ turn) - turn);
    const short left = (short)(x - 1) >> 15; /* -1 also if x is 0: 90 degrees is on the left */
    const ushort along = (ushort)((x ^ left) - left), up = (ushort)y;
    const ushort k = (ushort)(exceeds(up, high(along, TANGENT_10)) +
                              exceeds(up, high(along, TANGENT_30)) + 2 -
                              exceeds(along, high(up, TANGENT_40)) -
                              exceeds(along, high(up, TANGENT_20)));
    return (ushort)((k ^ left) - left + (9 & left) + 9 * lower);
}

static inline uint direction_8(int gx, int gy)
{
    const int lower = is_lower(gx, gy);
    const int x = choose(-lower, -gx, gx), y = choose(-lower, -gy, gy);
    return (4u * (uint)lower BORDERS_8(BEHIND)) & 7u;
}

#endif
