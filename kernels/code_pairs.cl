/* code_pairs: all pairs of codes within a distance, between a band of rows and all later columns.
 *
 * A code's bits become 64 and -64 in 8-bit integers, in two groups: those that mirroring preserves
 * and those that it inverts, each padded to whole words; the padding is 0 in rows. If E and O are
 * the two products of a pair over 64^2, its distance to the code or its mirror image is (256 - E -
 * |O|) / 2. A clear sign bit shows that some pair of the work-item is near enough.
 *
 * NVIDIA: tensor cores (mma.m16n8k32 of signed bytes). A warp keeps 16 * PAIR_TILES rows in
 * registers as operands and walks the columns, 8 at a time, reading their words one iteration
 * ahead. 64 and -64 differ only in the sign bits, so a shift and one logical operation turn a word
 * into four operand bytes. Which bit becomes which byte does not matter as long as rows and columns
 * agree. Elsewhere, -D PLAIN: a work-item takes row after row and counts bits.
 *
 * Pairs past `room` are counted but not written. */
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
    const uint begin = first_column + (uint)get_group_id(1) * PAIR_COLUMNS;
    const uint end = min(begin + PAIR_COLUMNS, count);
    for (uint part = (uint)get_local_id(0); part < PAIR_ROWS; part += PAIR_ITEMS) {
        const uint row = first_row + (uint)get_group_id(0) * PAIR_ROWS + part;
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
}

#else

#include "mma_bytes.h"

#define TILES PAIR_TILES
#define SQUARE 4096 /* product of two equal bits */

/* Maps bits 7 - s, 15 - s, 23 - s and 31 - s of a word shifted left by s: 0 to 64, 1 to -64. */
static uint expand(uint shifted)
{
    uint bytes;
    /* (shifted & 0x80808080) ^ 0x40404040, for which compilers emit two instructions */
    __asm__("lop3.b32 %0, %1, %2, %3, 0x6a;"
            : "=r"(bytes)
            : "r"(shifted), "r"(0x80808080u), "r"(0x40404040u));
    return bytes;
}

/* The same for a row's word, `used` bits of which belong to the code. */
static uint expand_row(uint word, uint shift, int used)
{
    const uint bits = used >= 32 ? 0xffffffffu : used <= 0 ? 0 : (1u << used) - 1;
    return expand(word << shift) & ((bits << shift & 0x80808080u) >> 7) * 0xff;
}

__kernel __attribute__((reqd_work_group_size(PAIR_ITEMS, 1, 1))) void
code_pairs(__global const uint *codes, uint count, uint first_row, uint first_column, uint limit,
           uint odd_bits, uint room, __global uint *found)
{
    const uint lane = (uint)get_local_id(0) & 31, warp = (uint)get_local_id(0) >> 5;
    const uint rows = first_row + (uint)get_group_id(0) * PAIR_ROWS + warp * (16 * TILES);
    const uint begin = first_column + (uint)get_group_id(1) * PAIR_COLUMNS;
    const uint group = lane >> 2, shift = lane & 3;
    const uint end = min(begin + PAIR_COLUMNS, (count + 7) / 8 * 8);
    uint a[TILES][PAIR_WORDS][4], next[PAIR_WORDS];
    if (end <= rows || rows >= count)
        return;
#pragma unroll
    for (uint t = 0; t < TILES; t++) {
        __global const uint *upper = codes + (ulong)(rows + 16 * t + group) * PAIR_WORDS;
        __global const uint *lower = upper + 8 * PAIR_WORDS;
#pragma unroll
        for (uint w = 0; w < PAIR_WORDS; w++) {
            const int used = w < PAIR_EVEN ? (int)(PAIR_BITS - odd_bits - 32 * w)
                                           : (int)(odd_bits - 32 * (w - PAIR_EVEN));
            a[t][w][0] = expand_row(upper[w], shift, used);
            a[t][w][1] = expand_row(lower[w], shift, used);
            a[t][w][2] = expand_row(upper[w], shift + 4, used);
            a[t][w][3] = expand_row(lower[w], shift + 4, used);
        }
    }
    const int least = (PAIR_BITS - 2 * (int)limit) * SQUARE;
    /* Starts at the first columns that are not before all rows. */
    const uint first = max(begin, rows / 8 * 8);
    __global const uint *other = codes + (ulong)(first + group) * PAIR_WORDS;
#pragma unroll
    for (uint w = 0; w < PAIR_WORDS; w++)
        next[w] = other[w];
    for (uint column = first; column < end; column += 8) {
        int even[TILES][4], odd[TILES][4];
        uint words[PAIR_WORDS];
        other += column + 8 < end ? 8 * PAIR_WORDS : 0;
#pragma unroll
        for (uint w = 0; w < PAIR_WORDS; w++) {
            words[w] = next[w] << shift;
            next[w] = other[w];
        }
#pragma unroll
        for (uint w = 0; w < PAIR_WORDS; w++) {
            const uint b0 = expand(words[w]), b1 = expand(words[w] << 4);
#pragma unroll
            for (uint t = 0; t < TILES; t++) {
                int *sum = w < PAIR_EVEN ? even[t] : odd[t];
                if (w == 0 || w == PAIR_EVEN)
                    multiply_first_codes(sum, a[t][w], b0, b1);
                else
                    multiply_codes(sum, a[t][w], b0, b1);
            }
        }
        int all = -1;
#pragma unroll
        for (uint t = 0; t < TILES; t++)
#pragma unroll
            for (uint i = 0; i < 4; i++)
                all &= even[t][i] - least + (int)abs(odd[t][i]);
        if (all < 0)
            continue;
#pragma unroll
        for (uint t = 0; t < TILES; t++)
#pragma unroll
            for (uint i = 0; i < 4; i++) {
                const int spare = even[t][i] - least + (int)abs(odd[t][i]);
                const uint row = rows + 16 * t + group + (i >> 1) * 8;
                const uint at = column + (lane & 3) * 2 + (i & 1);
                if (spare >= 0 && row < at && at < count)
                    put(found, room, row, at, limit - (uint)spare / (2 * SQUARE), odd[t][i] < 0);
            }
    }
}

#endif
