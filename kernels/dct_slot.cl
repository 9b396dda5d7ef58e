/* dct_slot: the lowest frequencies of each 8x8 block of all pictures in a slot in one launch.
 *
 * A work-item takes a block, row by row from the outside to the middle: the sum of two opposite
 * rows contributes to the even frequencies, the difference to the odd ones. Each vertical frequency
 * has a vector of the eight columns; the horizontal frequencies are inner products with it. All
 * sums are below 2^31; docs/features.md has the formula. */
#include "descriptor_place.h"

#define SIDE 8

struct __attribute__((packed)) twentyfour {
    uchar8 first, second, third;
};

struct planes {
    short8 y, u, v;
};

static inline struct planes load_row(__global const uchar *in)
{
    const struct twentyfour all = *(__global const struct twentyfour *)in;
    const uchar8 p = all.first, q = all.second, s = all.third;
    const uchar8 r = (uchar8)(p.s0, p.s3, p.s6, q.s1, q.s4, q.s7, s.s2, s.s5);
    const uchar8 g = (uchar8)(p.s1, p.s4, p.s7, q.s2, q.s5, s.s0, s.s3, s.s6);
    const uchar8 b = (uchar8)(p.s2, p.s5, q.s0, q.s3, q.s6, s.s1, s.s4, s.s7);
    const ushort8 red = convert_ushort8(r), blue = convert_ushort8(b);
    const short8 y = convert_short8(
        ((ushort)77 * red + (ushort)150 * convert_ushort8(g) + (ushort)29 * blue + (ushort)128) >>
        (ushort)8);
    struct planes planes;
    planes.y = y - (short)128;
    planes.u = convert_short8(blue) - y;
    planes.v = convert_short8(red) - y;
    return planes;
}

static inline int sum(int8 v)
{
    const int4 a = v.lo + v.hi;
    const int2 b = a.lo + a.hi;
    return b.x + b.y;
}

__kernel void dct_slot(__global const uchar *pixels, __global const struct descriptor_part *parts,
                       uint count, uint all, __global uchar *out)
{
    FIND_SQUARE(SIDE, SIDE)
    const int one[4] = {251, 213, 142, 50}, two[4] = {237, 98, -98, -237},
              three[4] = {213, -50, -251, -142};
    int8 y0 = 0, y1 = 0, y2 = 0, y3 = 0, u0 = 0, u1 = 0, v0 = 0, v1 = 0;
    for (int j = 0; j < 4; j++) {
        const struct planes a = load_row(in + j * stride);
        const struct planes b = load_row(in + (7 - j) * stride);
        const int8 even = convert_int8(a.y + b.y), odd = convert_int8(a.y - b.y);
        y0 += even;
        y1 += one[j] * odd;
        y2 += two[j] * even;
        y3 += three[j] * odd;
        u0 += convert_int8(a.u + b.u);
        u1 += one[j] * convert_int8(a.u - b.u);
        v0 += convert_int8(a.v + b.v);
        v1 += one[j] * convert_int8(a.v - b.v);
    }
    const int8 cos1 = (int8)(251, 213, 142, 50, -50, -142, -213, -251);
    const int8 cos2 = (int8)(237, 98, -98, -237, -237, -98, 98, 237);
    const int8 cos3 = (int8)(213, -50, -251, -142, 142, 251, 50, -213);
    const int16 value =
        (int16)(32761 * sum(y0), 181 * sum(cos1 * y0), 181 * sum(y1), 181 * sum(y2), sum(cos1 * y1),
                181 * sum(cos2 * y0), 181 * sum(cos3 * y0), sum(cos2 * y1), sum(cos1 * y2),
                181 * sum(y3), 32761 * sum(u0), 181 * sum(cos1 * u0), 181 * sum(u1),
                32761 * sum(v0), 181 * sum(cos1 * v0), 181 * sum(v1));
    const int16 sign = value >> 31; /* -1 or 0 */
    const int16 square = ((value ^ sign) - sign) >> 14;
    const int16 size = min(convert_int16(ROOT(convert_float16(square))), (int16)127);
    ((__global struct sixteen_bytes *)(out + part.out))[index].bytes =
        convert_uchar16(128 + ((size ^ sign) - sign));
}
