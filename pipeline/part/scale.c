/* scale.c: the box filter: the reference, and sums of rows before sums of columns. */
#include "part/scale.h"
#include "base/avx2.h"

#include <stdlib.h>
#include <string.h>

void scale_size(uint32_t *scaled_width, uint32_t *scaled_height, uint32_t width, uint32_t height,
                uint32_t side)
{
    const uint32_t longer = width > height ? width : height;
    *scaled_width = width;
    *scaled_height = height;
    if (longer <= side)
        return;
    const uint64_t across = ((uint64_t)width * side + longer / 2) / longer;
    const uint64_t down = ((uint64_t)height * side + longer / 2) / longer;
    *scaled_width = across > 0 ? (uint32_t)across : 1;
    *scaled_height = down > 0 ? (uint32_t)down : 1;
}

/* What scaled column x of `scaled` shares with column i of `size`: 0 where they do not meet. */
static uint64_t weight(uint32_t x, uint32_t scaled, uint32_t i, uint32_t size)
{
    const uint64_t from = (uint64_t)x * size, to = from + size;
    const uint64_t left = (uint64_t)i * scaled, right = left + scaled;
    const uint64_t low = from > left ? from : left, high = to < right ? to : right;
    return high > low ? high - low : 0;
}

struct scale_turn scale_turn(uint32_t width, uint32_t height, uint8_t orientation)
{
    const bool turned = orientation >= 2 && orientation <= 8, swapped = turned && orientation >= 5;
    const bool left =
        turned && (orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8);
    const bool up =
        turned && (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7);
    const int32_t across = swapped ? (int32_t)(3 * height) : 3;
    const int32_t down = swapped ? 3 : (int32_t)(3 * width);
    return (struct scale_turn){.first = (left ? (width - 1) * (uint32_t)across : 0) +
                                        (up ? (height - 1) * (uint32_t)down : 0),
                               .column = left ? -across : across,
                               .row = up ? -down : down};
}

void scale_reference(uint8_t *scaled, uint32_t scaled_width, uint32_t scaled_height,
                     const uint8_t *pixels, size_t stride, uint32_t width, uint32_t height,
                     uint8_t orientation)
{
    const uint64_t area = (uint64_t)width * height;
    const struct scale_turn turn = scale_turn(scaled_width, scaled_height, orientation);
    for (uint32_t y = 0; y < scaled_height; y++) {
        for (uint32_t x = 0; x < scaled_width; x++) {
            uint64_t sum[3] = {0};
            const uint32_t top = (uint32_t)((uint64_t)y * height / scaled_height);
            const uint32_t left = (uint32_t)((uint64_t)x * width / scaled_width);
            for (uint32_t j = top; j < height && weight(y, scaled_height, j, height) > 0; j++) {
                for (uint32_t i = left; i < width && weight(x, scaled_width, i, width) > 0; i++) {
                    const uint64_t both =
                        weight(y, scaled_height, j, height) * weight(x, scaled_width, i, width);
                    for (unsigned c = 0; c < 3; c++)
                        sum[c] += both * pixels[j * stride + 3 * (size_t)i + c];
                }
            }
            for (unsigned c = 0; c < 3; c++)
                scaled[turn.first + (int64_t)y * turn.row + (int64_t)x * turn.column + c] =
                    (uint8_t)((sum[c] + area / 2) / area);
        }
    }
}

/* --- rows that come one after another --------------------------------------------------------- */

#define BLOCK      1536u     /* channels that are added up in the first-level cache */
#define WHOLE_MOST 257u      /* rows whose sum fits 16 bits */
#define AREA_MOST  16777215u /* pixels, 2^24 - 1: times 255, and half of it, it is below 2^32 */

typedef uint32_t four __attribute__((vector_size(16)));

/* Adds `count` rows, the first one times `first`, the last one times `last`, those between times
 * `scale`; at most WHOLE_MOST between. */
ALWAYS_INLINE void add_weighted(uint32_t *sums, const uint8_t *rows, size_t stride, uint32_t count,
                                size_t channels, uint32_t first, uint32_t scale, uint32_t last)
{
    for (size_t start = 0; start < channels; start += BLOCK) {
        const size_t size = channels - start < BLOCK ? channels - start : BLOCK;
        const uint8_t *top = rows + start, *bottom = top + (count - 1) * stride;
        uint16_t whole[BLOCK] = {0};
        for (uint32_t j = 1; j + 1 < count; j++)
            for (size_t i = 0; i < size; i++)
                whole[i] = (uint16_t)(whole[i] + top[j * stride + i]);
        if (count == 1) {
            for (size_t i = 0; i < size; i++)
                sums[start + i] += first * top[i];
            continue;
        }
        for (size_t i = 0; i < size; i++)
            sums[start + i] += first * top[i] + scale * whole[i] + last * bottom[i];
    }
}

/* The rounded quotients of sums, to which half of the area has been added. A float misses a quotient
 * below 256 by one at most. */
ALWAYS_INLINE void divide_sums(uint8_t *means, const uint32_t *sums, size_t count, uint32_t area)
{
    const float inverse = 1.0f / (float)area;
    for (size_t i = 0; i < count; i++) {
        /* Halves have a sign bit of 0, which conversions of vectors want. */
        const float sum = (float)(int32_t)(sums[i] >> 1) * 2.0f + (float)(int32_t)(sums[i] & 1);
        uint32_t mean = (uint32_t)(int32_t)(sum * inverse);
        const int32_t rest = (int32_t)(sums[i] - mean * area);
        mean += (uint32_t)(rest >= (int32_t)area);
        mean -= (uint32_t)(rest < 0);
        means[i] = (uint8_t)mean;
    }
}

AVX2_LOOPS static void add_avx2(uint32_t *sums, const uint8_t *rows, size_t stride, uint32_t count,
                                size_t channels, uint32_t first, uint32_t scale, uint32_t last)
{
    add_weighted(sums, rows, stride, count, channels, first, scale, last);
}

AVX2_LOOPS static void divide_avx2(uint8_t *means, const uint32_t *sums, size_t count,
                                   uint32_t area)
{
    divide_sums(means, sums, count, area);
}

static void add_rows(const struct scaler *scaler, const uint8_t *rows, size_t stride,
                     uint32_t count, uint32_t first, uint32_t last)
{
    const size_t channels = 3 * (size_t)scaler->width;
    const uint32_t scale = scaler->scaled_height;
    if (scaler->deep) {
        uint64_t *sums = scaler->sums;
        for (uint32_t j = 0; j < count; j++)
            for (size_t i = 0; i < channels; i++)
                sums[i] += (uint64_t)(j == 0          ? first
                                      : j + 1 < count ? scale
                                                      : last) *
                           rows[j * stride + i];
        return;
    }
    if (cpu_has_avx2())
        add_avx2(scaler->sums, rows, stride, count, channels, first, scale, last);
    else
        add_weighted(scaler->sums, rows, stride, count, channels, first, scale, last);
}

/* A row of means to where it is in the upright image. */
static void place_row(const struct scaler *scaler, const uint8_t *means)
{
    const struct scale_turn *turn = &scaler->turn;
    uint8_t *out = scaler->pixels + turn->first + (int64_t)scaler->scaled_next * turn->row;
    if (turn->column == 3) {
        memcpy(out, means, 3 * (size_t)scaler->scaled_width);
        return;
    }
    for (uint32_t x = 0; x < scaler->scaled_width; x++, out += turn->column, means += 3)
        memcpy(out, means, 3);
}

/* Sums of up to AREA_MOST pixels. Scaled columns are no narrower than columns, so each has the rest
 * of its first one. */
static void add_columns(const struct scaler *scaler)
{
    const uint32_t width = scaler->width, scaled = scaler->scaled_width;
    const uint32_t area = width * scaler->height;
    const uint32_t *in = scaler->sums;
    uint32_t *totals = scaler->totals;
    uint32_t at = 0, left = 0; /* where the column `in` begins, in units of 1 / scaled */
    for (uint32_t x = 0; x < scaled; x++, totals += 3) {
        const uint32_t right = left + width;
        four sum, whole = {0}, column;
        memcpy(&column, in, sizeof column);
        sum = column * (at + scaled - left) + area / 2;
        at += scaled;
        for (in += 3; at + scaled <= right; at += scaled, in += 3) {
            memcpy(&column, in, sizeof column);
            whole += column;
        }
        sum += whole * scaled;
        if (at < right) {
            memcpy(&column, in, sizeof column);
            sum += column * (right - at);
        }
        memcpy(totals, &sum, sizeof sum);
        left = right;
    }
}

/* The same, and the means, of any number of pixels. */
static void divide_columns(const struct scaler *scaler)
{
    const uint32_t width = scaler->width, scaled = scaler->scaled_width;
    const uint64_t area = (uint64_t)width * scaler->height;
    const double inverse = 1.0 / (double)area;
    const uint32_t *sums = scaler->sums;
    const uint64_t *deep = scaler->sums;
    uint64_t at = 0, next = scaled; /* in units of 1 / scaled columns */
    size_t i = 0;
    for (uint32_t x = 0; x < scaled; x++) {
        const uint64_t end = ((uint64_t)x + 1) * width;
        uint64_t sum[3] = {area / 2, area / 2, area / 2};
        while (at < end) {
            const uint64_t until = next < end ? next : end;
            for (unsigned c = 0; c < 3; c++)
                sum[c] += (until - at) * (scaler->deep ? deep[i + c] : sums[i + c]);
            at = until;
            if (at == next) {
                next += scaled;
                i += 3;
            }
        }
        for (unsigned c = 0; c < 3; c++) {
            /* The quotient is at most 255; a double misses it by one at most. */
            uint64_t mean = (uint64_t)((double)sum[c] * inverse);
            mean -= mean * area > sum[c];
            mean += (mean + 1) * area <= sum[c];
            scaler->means[3 * (size_t)x + c] = (uint8_t)mean;
        }
    }
}

/* A row of the scaled image from complete sums, which begin anew. */
static void write_row(struct scaler *scaler)
{
    const size_t count = 3 * (size_t)scaler->scaled_width;
    const uint64_t area = (uint64_t)scaler->width * scaler->height;
    if (scaler->deep || area > AREA_MOST) {
        divide_columns(scaler);
    } else {
        add_columns(scaler);
        if (cpu_has_avx2())
            divide_avx2(scaler->means, scaler->totals, count, (uint32_t)area);
        else
            divide_sums(scaler->means, scaler->totals, count, (uint32_t)area);
    }
    place_row(scaler, scaler->means);
    memset(scaler->sums, 0, 3 * (size_t)scaler->width * (scaler->deep ? 8 : 4));
    scaler->scaled_next++;
}

static bool is_deep(uint32_t height)
{
    return height > UINT32_MAX / 255;
}

/* Sums, with what a load of four reads behind the last; totals; means. */
static size_t work_bytes(uint32_t width, uint32_t height, uint32_t scaled_width)
{
    return (3 * (size_t)width + 1) * (is_deep(height) ? 8 : 4) +
           (3 * (size_t)scaled_width + 1) * sizeof(uint32_t) + 3 * (size_t)scaled_width;
}

uint64_t scaler_bytes(uint32_t width, uint32_t height, uint32_t side)
{
    uint32_t scaled_width, scaled_height;
    scale_size(&scaled_width, &scaled_height, width, height, side);
    return work_bytes(width, height, scaled_width) + 3 * (uint64_t)scaled_width * scaled_height;
}

bool scaler_begin(struct scaler *scaler, uint32_t width, uint32_t height, uint32_t side,
                  uint8_t orientation)
{
    *scaler = (struct scaler){.width = width, .height = height, .deep = is_deep(height)};
    scale_size(&scaler->scaled_width, &scaler->scaled_height, width, height, side);
    scaler->turn = scale_turn(scaler->scaled_width, scaler->scaled_height, orientation);
    scaler->sums = calloc(1, work_bytes(width, height, scaler->scaled_width));
    scaler->pixels = malloc(3 * (size_t)scaler->scaled_width * scaler->scaled_height);
    if (!scaler->sums || !scaler->pixels) {
        scaler_clear(scaler);
        return false;
    }
    scaler->totals = (uint32_t *)(void *)((uint8_t *)scaler->sums +
                                          (3 * (size_t)width + 1) * (scaler->deep ? 8 : 4));
    scaler->means = (uint8_t *)(scaler->totals + 3 * (size_t)scaler->scaled_width + 1);
    return true;
}

void scaler_rows(struct scaler *scaler, const uint8_t *rgb, size_t stride, uint32_t rows)
{
    const uint64_t unit = scaler->scaled_height; /* a row, in units of 1 / scaled_height */
    const uint64_t below = ((uint64_t)scaler->next + rows) * unit;
    uint64_t at = (uint64_t)scaler->next * unit;
    while (at < below) {
        /* From here to the end of the scaled row, or of the rows. */
        const uint64_t end = ((uint64_t)scaler->scaled_next + 1) * scaler->height;
        uint64_t until = end < below ? end : below;
        if (until - at > WHOLE_MOST * unit)
            until = (at / unit + WHOLE_MOST) * unit;
        const uint64_t top = at / unit, bottom = (until - 1) / unit;
        const uint64_t first_end = (top + 1) * unit < until ? (top + 1) * unit : until;
        add_rows(scaler, rgb + (size_t)(top - scaler->next) * stride, stride,
                 (uint32_t)(bottom - top + 1), (uint32_t)(first_end - at),
                 (uint32_t)(until - bottom * unit));
        at = until;
        if (at == end)
            write_row(scaler);
    }
    scaler->next += rows;
}

void scaler_clear(struct scaler *scaler)
{
    free(scaler->sums);
    free(scaler->pixels);
    *scaler = (struct scaler){0};
}
