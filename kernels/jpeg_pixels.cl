/* jpeg_pixels: from planes of samples to rows of RGB, all pictures in a slot, one launch.
 *
 * A work-item takes eight pixels of a row. Chrominance of half the columns, or of half the columns
 * and rows, goes through libjpeg's triangle filter (jdsample.c): three quarters of the nearest sample
 * and a quarter of the next, the outermost ones repeated, in the library's roundings. Then its
 * integer colour equations (jdcolor.c). part/dct.c is the reference. Pictures that are pixels already
 * are copied, sixteen bytes a work-item, so that histograms find all of a slot in one buffer. A group
 * works on one picture. Bound by its stores, which are single bytes: rows begin anywhere.
 */
#include "jpeg_part.h"

#define SPAN 8 /* pixels of a work-item */

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

/* Chrominance under SPAN pixels from x, a multiple of SPAN; y is the pixel's row. */
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
    /* Sums of the two rows for the samples under the pixels and one at either side: 4 of each, or of
     * 1 row only. */
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

__kernel __attribute__((reqd_work_group_size(JPEG_GROUP, 1, 1))) void
jpeg_pixels(__global const uchar *slot, __global const struct jpeg_part *parts, uint count,
            __global const uchar *samples, __global uchar *pixels)
{
    const uint group = (uint)get_group_id(0);
    JPEG_FIND_PART(found, parts, count, group, first_pixels)
    __global const struct jpeg_part *part = parts + found;
    const uint item = (group - part->first_pixels) * JPEG_GROUP + (uint)get_local_id(0);
    const uint kind = part->kind, width = part->width, height = part->height;
    if (kind == JPEG_COPY) {
        if (item < width)
            ((__global uchar16 *)(pixels + part->pixels))[item] =
                ((__global const uchar16 *)(slot + part->offset))[item];
        return;
    }
    const uint spans = (width + SPAN - 1) / SPAN;
    const uint y = item / max(spans, 1u);
    if (kind == JPEG_NOTHING || y >= height)
        return;
    const uint x = (item - y * spans) * SPAN;

    __global const uchar *plane = samples + part->offset / 2;
    const uint stride = 8 * part->blocks_across[0];
    int first[SPAN], second[SPAN], third[SPAN];
    load(first, plane + y * stride + x);
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
    __global uchar *out = pixels + part->pixels + 3 * ((size_t)y * width + x);
    const uint most = min((uint)SPAN, width - x);
    for (uint i = 0; i < most; i++) {
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
        out[3 * i] = (uchar)clamp(r, 0, 255);
        out[3 * i + 1] = (uchar)clamp(g, 0, 255);
        out[3 * i + 2] = (uchar)clamp(b, 0, 255);
    }
}
