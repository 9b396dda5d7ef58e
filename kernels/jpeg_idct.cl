/* jpeg_idct: turns the blocks of all JPEG pictures in a slot from coefficients into samples in one
 * launch.
 *
 * A work-item takes a block: 64 products with the quantization table, eight transforms of columns,
 * eight of rows, 64 samples stored in the component's plane. The transform is that of Loeffler,
 * Ligtenberg and Moschytz in libjpeg's fixed point, arranged like that library's SIMD code: sums of
 * two inputs in 16 bits, products in 32, results saturated to 16, so that coefficients of any size
 * give the same samples (decode/dct.c is the reference, and lists the sources). A group works on one
 * picture, which all its work-items find by the same bisection. Bound by reading the coefficients:
 * a work-item reads its own 128 bytes, one cache line. */
#include "find_part.h"
#include "jpeg_part.h"

#define F_0_298 2446
#define F_0_390 3196
#define F_0_541 4433
#define F_0_765 6270
#define F_0_899 7373
#define F_1_175 9633
#define F_1_501 12299
#define F_1_847 15137
#define F_1_961 16069
#define F_2_053 16819
#define F_2_562 20995
#define F_3_072 25172

#define FRACTION 13
#define KEPT     2

static inline int wrap(int v)
{
    return (int)(short)v;
}

/* One scalar at a time, and stored that way: Oclgrind 21.10 clamps vectors between scalars
 * incorrectly and reports vectors loaded from private memory as uninitialised. */
static inline uchar sample(int v)
{
    return (uchar)(clamp(v, -128, 127) + 128);
}

/* Transforms eight values, `step` apart, in place; rounds away `shift` bits. */
static inline void transform(int *v, uint step, int shift)
{
    const int in0 = v[0], in1 = v[step], in2 = v[2 * step], in3 = v[3 * step];
    const int in4 = v[4 * step], in5 = v[5 * step], in6 = v[6 * step], in7 = v[7 * step];
    const int rounding = 1 << (shift - 1);

    const int sum = wrap(in0 + in4) * (1 << FRACTION);
    const int difference = wrap(in0 - in4) * (1 << FRACTION);
    const int even2 = in2 * F_0_541 + in6 * (F_0_541 - F_1_847);
    const int even3 = in2 * (F_0_541 + F_0_765) + in6 * F_0_541;
    const int even[4] = {sum + even3, difference + even2, difference - even2, sum - even3};

    const int z3 = wrap(in7 + in3), z4 = wrap(in5 + in1);
    const int y3 = z3 * (F_1_175 - F_1_961) + z4 * F_1_175;
    const int y4 = z3 * F_1_175 + z4 * (F_1_175 - F_0_390);
    const int odd[4] = {
        in7 * -F_0_899 + in1 * (F_1_501 - F_0_899) + y4,
        in5 * -F_2_562 + in3 * (F_3_072 - F_2_562) + y3,
        in5 * (F_2_053 - F_2_562) + in3 * -F_2_562 + y4,
        in7 * (F_0_298 - F_0_899) + in1 * -F_0_899 + y3,
    };
    for (uint i = 0; i < 4; i++) {
        v[i * step] = clamp((even[i] + odd[i] + rounding) >> shift, -32768, 32767);
        v[(7 - i) * step] = clamp((even[i] - odd[i] + rounding) >> shift, -32768, 32767);
    }
}

/* Turns coefficients into samples, in place. */
static inline void idct(int *v, bool flat)
{
#pragma unroll
    for (uint column = 0; column < 8; column++) {
        if (!flat) {
            transform(v + column, 8, FRACTION - KEPT);
            continue;
        }
        v[column] = wrap(v[column] << KEPT);
        for (uint row = 1; row < 8; row++)
            v[8 * row + column] = v[column];
    }
#pragma unroll
    for (uint row = 0; row < 8; row++)
        transform(v + 8 * row, 1, FRACTION + KEPT + 3);
}

__kernel __attribute__((reqd_work_group_size(JPEG_GROUP, 1, 1))) void
jpeg_idct(__global const uchar *slot, __global const struct jpeg_part *parts, uint count,
          __global uchar *samples)
{
    const uint group = (uint)get_group_id(0);
    FIND_PART(found, parts, count, group, first_blocks)
    __global const struct jpeg_part *part = parts + found;
    uint block = (group - part->first_blocks) * JPEG_GROUP + (uint)get_local_id(0);
    __global const short8 *in =
        (__global const short8 *)(slot + part->offset + JPEG_TABLES) + 8 * (size_t)block;
    __global uchar *out = samples + part->offset / 2;
    uint component = 0;
    for (; component < 3; component++) {
        const uint blocks = part->blocks_across[component] * part->blocks_down[component];
        if (block < blocks)
            break;
        block -= blocks;
        out += 64 * blocks;
    }
    if (component == 3 || part->kind < JPEG_GREY)
        return;

    __global const ushort8 *table =
        (__global const ushort8 *)(slot + part->offset) + 8 * component;
    int v[64];
    short8 below = (short8)(0);
#pragma unroll
    for (uint row = 0; row < 8; row++) {
        const short8 coefficients = in[row];
        const int8 products = convert_int8(coefficients) * convert_int8(table[row]);
        if (row > 0)
            below |= coefficients;
        v[8 * row] = wrap(products.s0);
        v[8 * row + 1] = wrap(products.s1);
        v[8 * row + 2] = wrap(products.s2);
        v[8 * row + 3] = wrap(products.s3);
        v[8 * row + 4] = wrap(products.s4);
        v[8 * row + 5] = wrap(products.s5);
        v[8 * row + 6] = wrap(products.s6);
        v[8 * row + 7] = wrap(products.s7);
    }
    idct(v, !any(below != (short8)(0)));

    const uint across = part->blocks_across[component];
    const uint down = block / across;
    out += 64 * down * across + 8 * (block - down * across);
#pragma unroll
    for (uint row = 0; row < 8; row++) {
        __private const int *from = v + 8 * row;
        uchar8 eight;
        eight.s0 = sample(from[0]);
        eight.s1 = sample(from[1]);
        eight.s2 = sample(from[2]);
        eight.s3 = sample(from[3]);
        eight.s4 = sample(from[4]);
        eight.s5 = sample(from[5]);
        eight.s6 = sample(from[6]);
        eight.s7 = sample(from[7]);
        vstore8(eight, 0, out + 8 * row * across);
    }
}
