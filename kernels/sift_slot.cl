/* sift_slot: 4x4 cells of gradients in 8 directions, and the roots of their shares, for all
 * pictures in a slot in one launch.
 *
 * A cell weights gradients by their distance from its centre, falling linearly to 0 at the next
 * centres, in both directions. A work-group takes SIFT_TILE adjacent descriptors: it first sums the
 * columns that they cover, for each of the four rows of cells, in local memory; then for each
 * descriptor all of its cells at once, and then each of its rows of cells, divided by that.
 *
 * Between two centres, `bin` pixels apart, pixel t has weight bin - t for the first and t for the
 * second. With A = sum of v[t] and S = sum of (t + 1) v[t] the sums are bin A + A - S and S - A;
 * going from the last pixel to the first, S is the sum of the running A: no multiplications. Sums
 * of columns are below 2^16 and those of a descriptor below 2^29.
 *
 * The host defines CHANNELS, BINS (a list of bin sizes), STEP, and BIN_MOST, the largest bin. */
#include "descriptor_place.h"
#include "sift_shape.h"

#if !defined CHANNELS || !defined BINS || !defined STEP || !defined BIN_MOST
#error CHANNELS, BINS, STEP or BIN_MOST is not defined
#endif

#define COLUMNS_MOST ((SIFT_TILE - 1) * STEP + 5 * BIN_MOST - 1)

/* 4 rows of cells of one column: sums gradients of `height` rows, `pitch` apart; `top` is the row
 * of the first centre. */
static inline void add_column(__private ushort8 *cells, __global const uchar8 *column, size_t pitch, int top,
                              int height, int bin)
{
    ushort8 upper = 0;
    for (int segment = -1; segment < 4; segment++) {
        const int begin = top + segment * bin;
        const int first = max(begin, 0), last = min(begin + bin, height) - 1;
        ushort8 a = 0, s = 0;
        int t = last - begin;
        __global const uchar8 *p = column + (size_t)max(last, 0) * pitch;
        for (; t >= first - begin; t--, p -= pitch) {
            a += convert_ushort8(*p);
            s += a;
        }
        /* The running sums stopped at pixel t + 1: adds t + 1 times each. */
        s += a * (ushort)max(t + 1, 0);
        const ushort8 second = s - a;
        if (segment >= 0)
            cells[segment] = upper + a * (ushort)bin - second;
        upper = second;
    }
}

/* 4 cells of one row of cells. */
static inline void add_row(__private uint8 *cells, __local const ushort8 *row, int bin)
{
    uint8 upper = 0;
    for (int segment = -1; segment < 4; segment++) {
        __local const ushort8 *p = row + (segment + 1) * bin;
        uint8 a = 0, s = 0;
        /* The row begins bin - 1 pixels before the first centre: pixel 0 of that segment has weight
         * 0 and is absent. */
        for (int t = bin - 1; t >= (segment < 0 ? 1 : 0); t--) {
            a += convert_uint8(p[t - 1]);
            s += a;
        }
        if (segment < 0)
            s += a;
        const uint8 second = s - a;
        if (segment >= 0)
            cells[segment] = upper + a * (uint)bin - second;
        upper = second;
    }
}

static inline uint add_up(__private const ushort8 *cells)
{
    const uint8 v = convert_uint8(cells[0]) + convert_uint8(cells[1]) + convert_uint8(cells[2]) +
                    convert_uint8(cells[3]);
    const uint4 a = v.lo + v.hi;
    const uint2 b = a.lo + a.hi;
    return b.x + b.y;
}

/* The sum of a descriptor's cells, from the sums of its columns: a column between two centres has
 * weights in both cells, which add up to `bin`; before the first centre and after the last, in one. */
static inline uint add_descriptor(__local const uint *column, int bin)
{
    uint sum = 0;
    for (int i = 0; i < 5 * bin - 1; i++)
        sum += (uint)min(min(i + 1, 5 * bin - 1 - i), bin) * column[i];
    return sum;
}

/* 255 times the roots of the shares that 4 cells have of `all`. */
static inline void store_roots(__global uchar *to, __private const uint8 *cells, uint all)
{
    const int shift = 16 - (int)clz(all); /* scales the sum into [2^15, 2^16) */
    const uint right = (uint)max(shift, 0), left = (uint)max(-shift, 0) & 31;
    const uint inverse = all > 0 ? (65025u << 15) / (all >> right << left) : 0;
    for (int i = 0; i < 4; i++) {
        const uint8 share = (cells[i] >> right << left) * inverse >> 15u;
        ((__global struct eight_bytes *)to)[i].bytes = convert_uchar8(ROOT(convert_float8(share)));
    }
}

__kernel void sift_slot(__global const uchar *pixels, __global const struct descriptor_part *parts,
                        uint count, uint all, __global uchar *out, __global const ulong *scratch)
{
    __local ushort8 columns[4][COLUMNS_MOST];
    __local uint sums[COLUMNS_MOST], all_cells[SIFT_TILE];
    const int bins[] = {BINS};
    const uint item = (uint)get_group_id(0);
    if (item >= all)
        return;
    FIND_PART(found, parts, count, item, first[1])
    const struct descriptor_part part = parts[found];

    /* The tile, and its bin size. */
    uint index = item - part.first[1], before = 0, across = 0, tiles = 1;
    int bin = 0;
    for (uint i = 0; i < sizeof bins / sizeof *bins; i++) {
        const uint side = (uint)(3 * bins[i] + 1);
        const uint n = squares(part.width, side, STEP), m = squares(part.height, side, STEP);
        const uint own = n == 0 ? 0 : (n + SIFT_TILE - 1) / SIFT_TILE * m;
        if (index < own) {
            bin = bins[i];
            across = n;
            tiles = (n + SIFT_TILE - 1) / SIFT_TILE;
            break;
        }
        index -= own;
        before += n * m;
    }
    const uint side = (uint)(3 * bin + 1);
    const uint row = index / tiles, first = (index - row * tiles) * SIFT_TILE;
    const uint number = bin == 0 ? 0 : min((uint)SIFT_TILE, across - first);
    const int top = bin == 0 ? 0 : (int)(margin(part.height, side, STEP) + row * STEP);
    const int left =
        bin == 0 ? 0 : (int)(margin(part.width, side, STEP) + first * STEP) - bin + 1;
    const int needed = number == 0 ? 0 : (int)(number - 1) * STEP + 5 * bin - 1;
    const uint lane = (uint)get_local_id(0), lanes = (uint)get_local_size(0);

    for (uint c = 0; c < CHANNELS; c++) {
        __global const uchar8 *plane =
            (__global const uchar8 *)(scratch + (size_t)part.scratch * CHANNELS +
                                      (size_t)c * part.height * part.width);
        for (int i = (int)lane; i < needed; i += (int)lanes) {
            const int x = left + i;
            ushort8 cells[4] = {0, 0, 0, 0};
            if (x >= 0 && x < (int)part.width)
                add_column(cells, plane + x, part.width, top, (int)part.height, bin);
            for (int j = 0; j < 4; j++)
                columns[j][i] = cells[j];
            sums[i] = add_up(cells);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint d = lane; d < number; d += lanes)
            all_cells[d] = add_descriptor(sums + d * STEP, bin);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint i = lane; i < 4 * number; i += lanes) {
            const uint j = i / number, d = i - j * number;
            uint8 cells[4];
            add_row(cells, columns[j] + d * STEP, bin);
            store_roots(out + part.out + 32 * j +
                            128 * (CHANNELS * (size_t)(before + row * across + first + d) + c),
                        cells, all_cells[d]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
