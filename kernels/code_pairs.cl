/* code_pairs: all pairs of codes of a band of rows with all later columns, within a distance.
 *
 * A code's bits are +1 and -1 in 8-bit integers, in two groups: those that mirroring leaves, filled up to
 * 160, and those that it inverts, to 128. If E and O are the two products of a pair, the groups differ
 * in (160 - E) / 2 and (128 - O) / 2 bits, and of the n odd bits mirroring inverts all, so the distance to
 * the code or its mirror image is at most t where E + |O - (128 - n)| >= 160 + n - 2 t. Sums begin at
 * these constants, and a pair costs three operations beside its products.
 *
 * NVIDIA: by tensor cores (mma.m16n8k32 of signed bytes). A warp keeps 32 rows in registers, as operands,
 * and passes over the columns, 8 at a time; bits become bytes by one product and one mask. Bound by
 * the tensor cores and by these expansions, about equally. Elsewhere, -D PLAIN: a work-item has a row
 * and counts bits.
 *
 * Pairs past `room` are counted and not written. */
#include "code_pairs_shape.h"

static void put(__global uint *found, uint room, uint row, uint column, uint distance,
                uint mirrored)
{
    const uint at = atomic_inc(found);
    if (at >= room)
        return;
    __global uint *pair = found + 1 + (ulong)at * PAIR_FOUND;
    pair[0] = row;
    pair[1] = column;
    pair[2] = distance | mirrored << 16;
}

#ifdef PLAIN

__kernel __attribute__((reqd_work_group_size(PAIR_ITEMS, 1, 1))) void
code_pairs(__global const uint *codes, uint count, uint first_row, uint first_column, uint limit,
           uint odd_bits, uint room, __global uint *found)
{
    const uint row = first_row + (uint)get_global_id(0);
    const uint begin = first_column + (uint)get_group_id(1) * PAIR_COLUMNS;
    const uint end = min(begin + PAIR_COLUMNS, count);
    if (row >= count)
        return;
    uint mine[PAIR_WORDS];
    for (uint w = 0; w < PAIR_WORDS; w++)
        mine[w] = codes[(ulong)row * PAIR_WORDS + w];
    for (uint column = max(begin, row + 1); column < end; column++) {
        __global const uint *other = codes + (ulong)column * PAIR_WORDS;
        uint even = 0, odd = 0;
        for (uint w = 0; w < PAIR_EVEN; w++)
            even += popcount(mine[w] ^ other[w]);
        for (uint w = PAIR_EVEN; w < PAIR_WORDS; w++)
            odd += popcount(mine[w] ^ other[w]);
        const uint turned = odd_bits - odd, distance = even + min(odd, turned);
        if (distance <= limit)
            put(found, room, row, column, distance, turned < odd);
    }
}

#else

#define TILES 2 /* of 16 rows */

/* Four bits as bytes: 1 for 0, -1 for 1. */
static uint expand(uint bits)
{
    return ((bits & 15) * 0x00204081u & 0x01010101u) * 0xfeu + 0x01010101u;
}

static void multiply(int *sum, const uint *a, uint b0, uint b1)
{
    __asm__ volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, "
                     "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__kernel __attribute__((reqd_work_group_size(PAIR_ITEMS, 1, 1))) void
code_pairs(__global const uint *codes, uint count, uint first_row, uint first_column, uint limit,
           uint odd_bits, uint room, __global uint *found)
{
    const uint lane = (uint)get_local_id(0) & 31, warp = (uint)get_local_id(0) >> 5;
    const uint rows = first_row + (uint)get_group_id(0) * PAIR_ROWS + warp * (16 * TILES);
    const uint begin = first_column + (uint)get_group_id(1) * PAIR_COLUMNS;
    const uint group = lane >> 2, shift = (lane & 3) * 4;
    const uint end = min(begin + PAIR_COLUMNS, (count + 7) / 8 * 8);
    uint a[TILES][PAIR_WORDS][4];
    if (end <= rows || rows >= count)
        return;
#pragma unroll
    for (uint t = 0; t < TILES; t++) {
        __global const uint *upper = codes + (ulong)(rows + 16 * t + group) * PAIR_WORDS;
        __global const uint *lower = upper + 8 * PAIR_WORDS;
#pragma unroll
        for (uint w = 0; w < PAIR_WORDS; w++) {
            a[t][w][0] = expand(upper[w] >> shift);
            a[t][w][1] = expand(lower[w] >> shift);
            a[t][w][2] = expand(upper[w] >> (shift + 16));
            a[t][w][3] = expand(lower[w] >> (shift + 16));
        }
    }
    const int even_start = 2 * (int)limit - 32 * PAIR_EVEN - (int)odd_bits;
    const int odd_start = (int)odd_bits - 32 * PAIR_ODD;
    /* From the first columns that are not before all of the rows. */
    for (uint column = max(begin, rows / 8 * 8); column < end; column += 8) {
        __global const uint *other = codes + (ulong)(column + group) * PAIR_WORDS;
        int even[TILES][4], odd[TILES][4];
#pragma unroll
        for (uint t = 0; t < TILES; t++)
#pragma unroll
            for (uint i = 0; i < 4; i++) {
                even[t][i] = even_start;
                odd[t][i] = odd_start;
            }
#pragma unroll
        for (uint w = 0; w < PAIR_WORDS; w++) {
            const uint bits = other[w] >> shift;
            const uint b0 = expand(bits), b1 = expand(bits >> 16);
#pragma unroll
            for (uint t = 0; t < TILES; t++)
                multiply(w < PAIR_EVEN ? even[t] : odd[t], a[t][w], b0, b1);
        }
        int most = -1;
#pragma unroll
        for (uint t = 0; t < TILES; t++)
#pragma unroll
            for (uint i = 0; i < 4; i++)
                most = max(most, even[t][i] + (int)abs(odd[t][i]));
        if (most < 0)
            continue;
#pragma unroll
        for (uint t = 0; t < TILES; t++)
#pragma unroll
            for (uint i = 0; i < 4; i++) {
                const int spare = even[t][i] + (int)abs(odd[t][i]);
                const uint row = rows + 16 * t + group + (i >> 1) * 8;
                const uint at = column + (lane & 3) * 2 + (i & 1);
                if (spare >= 0 && row < at && at < count)
                    put(found, room, row, at, limit - (uint)spare / 2, odd[t][i] < 0);
            }
    }
}

#endif
