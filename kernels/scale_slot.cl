/* scale_slot: scales all pictures of a slot (pipeline/decode/scale.h) in one launch.
 *
 * If both axes shrink, a scaled pixel is the mean over the rectangle of the picture that it covers,
 * each pixel weighted by the overlapping area. In units of 1 / full_width pixels across and 1 /
 * full_height down everything is an integer: column i covers [i * full_width, (i + 1) *
 * full_width), scaled column x covers [x * width, (x + 1) * width). The weights of a scaled pixel
 * add up to width * height, and the quotient is rounded to the nearest, halves up. Up to AREA_MOST
 * pixels, sums fit 32 bits. Pixels are stored where they belong in the upright picture.
 *
 * On CPUs (-D CPU) a work-item takes two scaled rows, a stretch of columns at a time: it sums rows,
 * sixteen bytes at once, with equal weight for all but the first and last; then columns, of both
 * rows at once; then it divides. The first loop is bound by its loads, the second by its additions.
 * Elsewhere a work-item takes a scaled pixel, bound by its loads. */
#include "find_part.h"
#include "scale_part.h"

#define AREA_MOST 16777215u /* 2^24 - 1: 255.5 times this is below 2^32 */

/* Weight of pixel i of `size` in pixel x of `scaled`, along an axis. */
static inline ulong weight(uint x, uint scaled, uint i, uint size)
{
    if (scaled > size) {
        const long unit = 2 * (long)scaled;
        const long at = clamp((2 * (long)x + 1) * size - scaled, 0l, unit * (size - 1));
        return (ulong)max(unit - (long)abs(at - unit * i), 0l);
    }
    return min((ulong)(x + 1) * size, (ulong)(i + 1) * scaled) -
           max((ulong)x * size, (ulong)i * scaled);
}

/* Pixels with a weight: the first, and one past the last. */
static inline uint2 reach(uint x, uint scaled, uint size)
{
    if (scaled > size) {
        const long unit = 2 * (long)scaled;
        const long at = clamp((2 * (long)x + 1) * size - scaled, 0l, unit * (size - 1));
        return (uint2)((uint)(at / unit), (uint)((at + unit - 1) / unit) + 1);
    }
    const ulong from = (ulong)x * size;
    return (uint2)((uint)(from / scaled), (uint)((from + size + scaled - 1) / scaled));
}

static inline ulong sum_of_weights(uint scaled, uint size)
{
    return scaled > size ? 2 * (ulong)scaled : size;
}

/* Computes pixel (x, y) of the scaled picture in 64 bits, for any size. */
static inline void scale_pixel(__global uchar *out, __global const uchar *pixels,
                               const __private struct scale_part *part, uint x, uint y)
{
    const uint2 columns = reach(x, part->full_width, part->width);
    const uint2 rows = reach(y, part->full_height, part->height);
    ulong red = 0, green = 0, blue = 0;
    for (uint j = rows.x; j < rows.y; j++) {
        __global const uchar *in = pixels + 3 * ((size_t)j * part->width + columns.x);
        ulong r = 0, g = 0, b = 0;
        for (uint i = columns.x; i < columns.y; i++, in += 3) {
            const ulong a = weight(x, part->full_width, i, part->width);
            r += a * in[0];
            g += a * in[1];
            b += a * in[2];
        }
        const ulong down = weight(y, part->full_height, j, part->height);
        red += down * r;
        green += down * g;
        blue += down * b;
    }
    const ulong area = sum_of_weights(part->full_width, part->width) *
                       sum_of_weights(part->full_height, part->height);
    out[0] = (uchar)((red + area / 2) / area);
    out[1] = (uchar)((green + area / 2) / area);
    out[2] = (uchar)((blue + area / 2) / area);
}

/* Do both axes shrink, and do 32 bits suffice? */
static inline bool is_small(const __private struct scale_part *part)
{
    return part->full_width <= part->width && part->full_height <= part->height &&
           (ulong)part->width * part->height <= AREA_MOST &&
           (ulong)part->full_width * part->width <= INT_MAX &&
           (ulong)part->full_height * part->height <= INT_MAX;
}

#ifdef CPU

#define STRETCH 512 /* columns of the picture */
#define WHOLE   256 /* rows of 255 whose sum fits 16 bits */
/* Sums of a row, plus what add_columns reads and divide writes past the end. */
#define ROW (3 * STRETCH + 16)

/* Sixteen bytes at any address. In OpenCL C 2.0 vload16 takes a generic pointer, which Oclgrind
 * 21.10 does not support. */
struct __attribute__((packed)) sixteen {
    uchar16 bytes;
};

/* Four words at any multiple of 4 bytes. */
struct __attribute__((packed)) four {
    uint4 words;
};

static inline ushort16 load(__global const uchar *in)
{
    return convert_ushort16(((__global const struct sixteen *)in)->bytes);
}

/* Sums of `bytes` columns of bytes: one row times `first`, `whole` rows times `scale`, one row
 * times `last`; rows are `stride` bytes apart. */
static inline void add_rows(__private uint *sums, __global const uchar *in, uint bytes, uint stride,
                            uint first, uint whole, uint scale, uint last)
{
    uint i = 0;
    for (; i + 16 <= bytes; i += 16) {
        __global const uchar *at = in + i;
        uint16 sum = convert_uint16(load(at)) * first;
        at += stride;
        if (whole > 0) {
            ushort16 rows = load(at);
            for (uint j = 1; j < whole; j++)
                rows += load(at + j * stride);
            sum += convert_uint16(rows) * scale;
            at += whole * stride;
        }
        if (last > 0)
            sum += convert_uint16(load(at)) * last;
        *(__private uint16 *)(sums + i) = sum;
    }
    for (; i < bytes; i++) {
        uint rows = 0;
        for (uint j = 0; j < whole; j++)
            rows += in[i + (1 + j) * stride];
        sums[i] = in[i] * first + rows * scale + (last ? in[i + (1 + whole) * stride] * last : 0);
    }
}

/* The words at index `i` of two rows of sums. */
static inline uint8 load_pair(const __private uint *sums, uint i)
{
    return (uint8)(((const __private struct four *)(sums + i))->words,
                   ((const __private struct four *)(sums + ROW + i))->words);
}

/* Scaled columns [x, end) of two rows whose sums begin at column `base`; adds half of the area. A
 * scaled column takes the rest of its first column, at least `least` whole ones, and parts of two
 * more, so that no branch depends on its position. */
static inline void add_columns(__private uint *out, const __private uint *sums, uint x, uint end,
                               uint base, uint width, uint scaled, uint half_area)
{
    const uint least = width / scaled - 1;
    uint i = x * width / scaled;
    uint begin = (i + 1) * scaled - x * width; /* weight of the first one */
    i = 3 * (i - base);
    for (; x < end; x++, out += 3) {
        uint8 sum = load_pair(sums, i) * begin + half_area;
        if (least > 0) {
            uint8 whole = load_pair(sums, i += 3);
            for (uint k = 1; k < least; k++)
                whole += load_pair(sums, i += 3);
            sum += whole * scaled;
        }
        const uint rest = width - least * scaled - begin, next = min(rest, scaled);
        sum += load_pair(sums, i + 3) * next;
        sum += load_pair(sums, i + 6) * (rest - next);
        ((__private struct four *)out)->words = sum.lo;
        ((__private struct four *)(out + ROW))->words = sum.hi;
        const bool over = rest >= scaled;
        i += over ? 6 : 3;
        begin = scaled - (over ? rest - scaled : rest);
    }
}

/* Divides `count` sums; out is a row of bytes. */
static inline void divide(__private uchar *out, const __private uint *sums, uint count, uint area)
{
    const float inverse = 2.0f / (float)area;
    for (uint i = 0; i < count; i += 16) {
        const uint16 sum = *(const __private uint16 *)(sums + i);
        /* Off by at most one, since the area is larger than 4. Signed, as vectors only convert
         * signed integers. */
        uint16 mean = as_uint16(convert_int16(convert_float16(as_int16(sum >> 1)) * inverse));
        /* Uses signs: Oclgrind gets vector comparisons wrong. */
        const uint16 rest = sum - mean * area;
        mean += 1 ^ (rest - area) >> 31;
        mean -= rest >> 31;
        *(__private uchar16 *)(out + i) = convert_uchar16(mean);
    }
}

/* Copies a row of a picture that need not shrink. */
static inline void copy_row(__global uchar *out, __global const uchar *in, uint width, int column)
{
    uint i = 0;
    for (; column == 3 && i + 16 <= 3 * width; i += 16)
        ((__global struct sixteen *)(out + i))->bytes =
            ((__global const struct sixteen *)(in + i))->bytes;
    for (; column == 3 && i < 3 * width; i++)
        out[i] = in[i];
    for (; column != 3 && i < width; i++, in += 3, out += column) {
        out[0] = in[0];
        out[1] = in[1];
        out[2] = in[2];
    }
}

/* Sums what scaled row y covers of the columns [base, behind). */
static inline void add_row(__private uint *sums, __global const uchar *pixels,
                           const __private struct scale_part *part, uint y, uint base, uint behind)
{
    const uint height = part->height, down = part->full_height, stride = 3 * part->width;
    const uint top = y * height, bottom = top + height;
    const uint j = top / down, last_j = (bottom - 1) / down; /* rows */
    const uint first = min((j + 1) * down, bottom) - top;
    const uint last = last_j > j ? bottom - last_j * down : 0;
    const uint whole = last_j > j ? last_j - j - 1 : 0;
    add_rows(sums, pixels + j * stride + 3 * base, 3 * (behind - base), stride, first, whole, down,
             last);
    for (uint i = 0; i < 8; i++)
        sums[3 * (behind - base) + i] = 0;
}

/* Stores the means of scaled columns [x, end) of a row. */
static inline void write_row(__global uchar *out, __private uint *means, int column, uint x, uint end,
                             uint area)
{
    uchar bytes[ROW] __attribute__((aligned(64)));
    const uint count = 3 * (end - x);
    for (uint i = 0; i < 16; i++)
        means[count + i] = 0;
    divide(bytes, means, count, area);
    if (column == 3) {
        uint i = 0;
        for (; i + 16 <= count; i += 16)
            ((__global struct sixteen *)(out + 3 * x + i))->bytes =
                *(const __private uchar16 *)(bytes + i);
        for (; i < count; i++)
            out[3 * x + i] = bytes[i];
        return;
    }
    __global uchar *to = out + (int)x * column;
    for (uint i = 0; i < end - x; i++, to += column) {
        to[0] = bytes[3 * i];
        to[1] = bytes[3 * i + 1];
        to[2] = bytes[3 * i + 2];
    }
}

/* Row y of the window and the row below, if any. */
static inline void scale_rows(__global uchar *out, __global const uchar *pixels,
                              const __private struct scale_part *part, uint y)
{
    uint sums[2 * ROW] __attribute__((aligned(64)));
    uint means[2 * ROW] __attribute__((aligned(64)));
    const uint width = part->width, scaled = part->full_width, area = width * part->height;
    const uint below = min(y + 1, part->scaled_height - 1);
    const uint step = max((STRETCH - 2) / ((width + scaled - 1) / scaled), 1u);
    const uint left = part->left, right = left + part->scaled_width;
    for (uint x = left; x < right; x += step) {
        const uint end = min(x + step, right);
        const uint base = x * width / scaled, behind = (end * width + scaled - 1) / scaled;
        add_row(sums, pixels, part, part->top + y, base, behind);
        add_row(sums + ROW, pixels, part, part->top + below, base, behind);
        add_columns(means, sums, x, end, base, width, scaled, area / 2);
        write_row(out + (int)y * part->row, means, part->column, x - left, end - left, area);
        write_row(out + (int)below * part->row, means + ROW, part->column, x - left, end - left,
                  area);
    }
}

#else

/* The rounded quotient of a sum that already includes half the area. */
static inline uint mean_of(uint sum, uint area, float inverse)
{
    uint mean = (uint)((float)sum * inverse); /* off by at most one, as it is below 256 */
    const int rest = (int)(sum - mean * area);
    mean += (uint)(rest >= (int)area);
    mean -= (uint)(rest < 0);
    return mean;
}

#endif

__kernel void scale_slot(__global const uchar *pixels,
                         __global const struct scale_part *parts, uint count, uint all,
                         __global uchar *scaled)
{
    const uint item = (uint)get_global_id(0);
    if (item >= all)
        return;
    FIND_PART(found, parts, count, item, first)
    const struct scale_part part = parts[found];
    const uint index = item - part.first;
    pixels += part.offset;
    scaled += part.scaled;
#ifdef CPU
    const uint y = 2 * index;
    if (y >= part.scaled_height)
        return;
    const bool same = part.width == part.full_width && part.height == part.full_height;
    if (!same && is_small(&part) && part.width * part.height > 4 &&
        part.width / part.full_width < STRETCH / 2 && part.height / part.full_height < WHOLE) {
        scale_rows(scaled, pixels, &part, y);
        return;
    }
    for (uint i = y; i < min(y + 2, part.scaled_height); i++) {
        __global uchar *out = scaled + (int)i * part.row;
        if (same) {
            copy_row(out, pixels + 3 * ((part.top + i) * part.width + part.left), part.scaled_width,
                     part.column);
            continue;
        }
        for (uint x = 0; x < part.scaled_width; x++)
            scale_pixel(out + (int)x * part.column, pixels, &part, part.left + x, part.top + i);
    }
#else
    uint y = index / part.scaled_width, x = index - y * part.scaled_width;
    if (y >= part.scaled_height)
        return;
    __global uchar *out = scaled + (int)y * part.row + (int)x * part.column;
    x += part.left;
    y += part.top;
    if (!is_small(&part)) {
        scale_pixel(out, pixels, &part, x, y);
        return;
    }
    const uint area = part.width * part.height;
    const uint left = x * part.width, right = left + part.width;
    const uint top = y * part.height, bottom = top + part.height;
    const uint first = left / part.full_width;
    uint red = area / 2, green = area / 2, blue = area / 2;
    for (uint j = top / part.full_height, at = j * part.full_height; at < bottom;
         j++, at += part.full_height) {
        __global const uchar *in = pixels + 3 * (j * part.width + first);
        uint r = 0, g = 0, b = 0;
        for (uint from = first * part.full_width; from < right; from += part.full_width, in += 3) {
            const uint a = min(from + part.full_width, right) - max(from, left);
            r += a * in[0];
            g += a * in[1];
            b += a * in[2];
        }
        const uint down = min(at + part.full_height, bottom) - max(at, top);
        red += down * r;
        green += down * g;
        blue += down * b;
    }
    const float inverse = 1.0f / (float)area;
    out[0] = (uchar)mean_of(red, area, inverse);
    out[1] = (uchar)mean_of(green, area, inverse);
    out[2] = (uchar)mean_of(blue, area, inverse);
#endif
}
