/* jpeg_pixels: turns planes of samples into rows of RGB for all pictures in a slot in one launch.
 *
 * A work-item takes eight pixels of a row. Chroma subsampled across, or across and down, goes
 * through libjpeg's triangle filter (jdsample.c): three quarters of the nearest sample and a
 * quarter of the next, with the outermost ones repeated and the library's rounding, followed by its
 * integer colour equations (jdcolor.c). decode/dct.c is the reference. Pictures that already are
 * pixels are copied, sixteen bytes per work-item, so that histograms find the whole slot in one
 * buffer. A group works on one picture. Its pixels are consecutive, but rows begin anywhere: they
 * are collected in local memory and stored sixteen bytes at a time. */
#include "find_part.h"
#include "jpeg_part.h"

#define SPAN  8                       /* pixels per work-item */
#define STAGE (3 * SPAN * JPEG_GROUP) /* bytes per group */

/* SPAN samples at an address that is a multiple of SPAN. */
static inline void load(int *out, __global const uchar *in)
{
    const uchar8 eight = *(__global const uchar8 *)in;
    out[0] = eight.s0;
    out[1] = eight.s1;
    out[2] = eight.s2;
    out[3] = eight.s3;
    out[4] = eight.s4;
    out[5] = eight.s5;
    out[6] = eight.s6;
    out[7] = eight.s7;
}

/* Chroma for SPAN pixels from x, a multiple of SPAN; y is the row of pixels. */
static inline void upsample(int *out, __global const uchar *plane, size_t stride, uint x, uint y,
                            uint across, uint down, uint width, uint height)
{
    if (across == 1) {
        load(out, plane + y * stride + x);
        return;
    }
    const uint near_y = down == 2 ? y / 2 : y;
    const uint far_y = down == 1 ? near_y
                       : y & 1   ? min(near_y + 1, height - 1)
                                 : near_y - min(near_y, 1u);
    __global const uchar *near = plane + near_y * stride, *far = plane + far_y * stride;
    /* The samples under the pixels and one on either side: weighted sums of two rows (3 : 1), or
     * those of a single row. */
    int sum[SPAN / 2 + 2];
    const int first = (int)(x / 2) - 1;
    for (int i = 0; i < SPAN / 2 + 2; i++) {
        const int column = clamp(first + i, 0, (int)width - 1);
        sum[i] = down == 2 ? 3 * near[column] + far[column] : near[column];
    }
    const int shift = down == 2 ? 4 : 2;
    const int left = down == 2 ? 8 : 1, right = down == 2 ? 7 : 2;
    for (int i = 0; i < SPAN / 2; i++) {
        out[2 * i] = (3 * sum[i + 1] + sum[i] + left) >> shift;
        out[2 * i + 1] = (3 * sum[i + 1] + sum[i + 2] + right) >> shift;
    }
}

/* Stores the pixels of a span in local memory; `in` has three values for each. */
static inline void stage(__local uchar *out, const int *first, const int *second, const int *third,
                         uint count, uint kind, bool words)
{
    uchar bytes[3 * SPAN];
#pragma unroll
    for (uint i = 0; i < SPAN; i++) {
        int r = first[i], g = first[i], b = first[i];
        if (kind == JPEG_YCC) {
            const int blue = second[i] - 128, red = third[i] - 128;
            r += (91881 * red + 32768) >> 16;
            g += (-22554 * blue - 46802 * red + 32768) >> 16;
            b += (116130 * blue + 32768) >> 16;
        } else if (kind == JPEG_RGB) {
            g = second[i];
            b = third[i];
        }
        bytes[3 * i] = (uchar)clamp(r, 0, 255);
        bytes[3 * i + 1] = (uchar)clamp(g, 0, 255);
        bytes[3 * i + 2] = (uchar)clamp(b, 0, 255);
    }
    if (words && count == SPAN) {
#pragma unroll
        for (uint i = 0; i < 3 * SPAN / 4; i++)
            ((__local uint *)out)[i] = (uint)bytes[4 * i] | (uint)bytes[4 * i + 1] << 8 |
                                       (uint)bytes[4 * i + 2] << 16 | (uint)bytes[4 * i + 3] << 24;
        return;
    }
#pragma unroll
    for (uint i = 0; i < 3 * SPAN; i++) {
        if (i < 3 * count)
            out[i] = bytes[i];
    }
}

__kernel __attribute__((reqd_work_group_size(JPEG_GROUP, 1, 1))) void
jpeg_pixels(__global const uchar *slot, __global const struct jpeg_part *parts, uint count,
            __global const uchar *samples, __global uchar *pixels)
{
    __local uint4 staged[STAGE / 16 + 2];
    const uint group = (uint)get_group_id(0), lane = (uint)get_local_id(0);
    FIND_PART(found, parts, count, group, first_pixels)
    __global const struct jpeg_part *part = parts + found;
    const uint first_item = (group - part->first_pixels) * JPEG_GROUP, item = first_item + lane;
    const uint kind = part->kind, width = part->width, height = part->height;
    const bool copies = kind == JPEG_COPY, draws = kind >= JPEG_GREY;
    if (copies && item < width)
        ((__global uchar16 *)(pixels + part->pixels))[item] =
            ((__global const uchar16 *)(slot + part->offset))[item];
    const uint spans = max((width + SPAN - 1) / SPAN, 1u);
    const uint items = draws ? spans * height : 0;
    /* The group's bytes of the picture, and the 16-byte vector that they begin in. */
    const uint first_y = first_item / spans, first_x = (first_item - first_y * spans) * SPAN;
    const uint begin = 3 * (first_y * width + first_x), base = begin & ~15u;
    const uint last_item = max(min(first_item + JPEG_GROUP, items), 1u) - 1;
    const uint last_y = last_item / spans, last_x = (last_item - last_y * spans) * SPAN;
    const uint end = 3 * (last_y * width + min(last_x + SPAN, width));

    if (item < items) {
        const uint y = item / spans, x = (item - y * spans) * SPAN;
        __global const uchar *plane = samples + part->offset / 2;
        const uint stride = 8 * part->blocks_across[0];
        int first[SPAN], second[SPAN], third[SPAN];
        load(first, plane + y * stride + x);
        for (uint i = 0; i < SPAN; i++)
            second[i] = third[i] = 0;
        if (kind != JPEG_GREY) {
            const uint across = part->across, down = part->down;
            const uint half_width = (width + across - 1) / across;
            const uint half_height = (height + down - 1) / down;
            plane += 64 * part->blocks_across[0] * part->blocks_down[0];
            upsample(second, plane, 8 * part->blocks_across[1], x, y, across, down, half_width,
                     half_height);
            plane += 64 * part->blocks_across[1] * part->blocks_down[1];
            upsample(third, plane, 8 * part->blocks_across[2], x, y, across, down, half_width,
                     half_height);
        }
        stage((__local uchar *)staged + 3 * (y * width + x) - base, first, second, third,
              min((uint)SPAN, width - x), kind, (width & 3) == 0);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (first_item >= items)
        return;
    __global uchar *out = pixels + part->pixels;
    for (uint at = base + 16 * lane; at < end; at += 16 * JPEG_GROUP) {
        if (at >= begin && at + 16 <= end) {
            *(__global uint4 *)(out + at) = staged[(at - base) / 16];
            continue;
        }
        for (uint i = max(at, begin); i < min(at + 16, end); i++)
            out[i] = ((__local const uchar *)staged)[i - base];
    }
}
