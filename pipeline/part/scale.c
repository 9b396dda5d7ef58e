/* scale.c: the box filter: the reference, and sums of rows before sums of columns. */
#include "part/scale.h"

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
    const bool left = turned && (orientation == 2 || orientation == 3 || orientation == 7 ||
                                 orientation == 8);
    const bool up = turned && (orientation == 3 || orientation == 4 || orientation == 6 ||
                               orientation == 7);
    const int32_t across = swapped ? (int32_t)(3 * height) : 3;
    const int32_t down = swapped ? 3 : (int32_t)(3 * width);
    return (struct scale_turn){
        .first = (left ? (width - 1) * (uint32_t)across : 0) + (up ? (height - 1) * (uint32_t)down : 0),
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

#define INLINE static inline __attribute__((always_inline))

INLINE void add_weighted(uint32_t *sums, const uint8_t *row, size_t count, uint32_t by)
{
    for (size_t i = 0; i < count; i++)
        sums[i] += by * row[i];
}

#if defined(__x86_64__)
__attribute__((target("avx2"), optimize("O3"))) static void
add_avx2(uint32_t *sums, const uint8_t *row, size_t count, uint32_t by)
{
    add_weighted(sums, row, count, by);
}
#endif

static void add_row(const struct scaler *scaler, const uint8_t *row, uint32_t by)
{
    const size_t count = 3 * (size_t)scaler->width;
    if (scaler->deep) {
        uint64_t *sums = scaler->sums;
        for (size_t i = 0; i < count; i++)
            sums[i] += (uint64_t)by * row[i];
        return;
    }
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        add_avx2(scaler->sums, row, count, by);
        return;
    }
#endif
    add_weighted(scaler->sums, row, count, by);
}

static uint64_t sum_at(const struct scaler *scaler, size_t i)
{
    return scaler->deep ? ((const uint64_t *)scaler->sums)[i]
                        : ((const uint32_t *)scaler->sums)[i];
}

/* A row of the scaled image from complete sums, which begin anew. */
static void write_row(struct scaler *scaler)
{
    const uint32_t width = scaler->width, scaled = scaler->scaled_width;
    const uint64_t area = (uint64_t)width * scaler->height;
    const double inverse = 1.0 / (double)area;
    uint8_t *out =
        scaler->pixels + scaler->turn.first + (int64_t)scaler->scaled_next * scaler->turn.row;
    uint64_t at = 0; /* where the scaled pixel begins, in units of 1 / scaled columns */
    for (uint32_t x = 0; x < scaled; x++, out += scaler->turn.column) {
        const uint64_t end = at + width;
        uint64_t sum[3] = {area / 2, area / 2, area / 2};
        while (at < end) {
            const uint64_t column = at / scaled, next = (column + 1) * scaled;
            const uint64_t by = (next < end ? next : end) - at;
            for (unsigned c = 0; c < 3; c++)
                sum[c] += by * sum_at(scaler, 3 * column + c);
            at += by;
        }
        for (unsigned c = 0; c < 3; c++) {
            /* The quotient is at most 255; a double misses it by one at most. */
            uint64_t mean = (uint64_t)((double)sum[c] * inverse);
            mean -= mean * area > sum[c];
            mean += (mean + 1) * area <= sum[c];
            out[c] = (uint8_t)mean;
        }
    }
    memset(scaler->sums, 0, 3 * (size_t)width * (scaler->deep ? 8 : 4));
    scaler->scaled_next++;
}

static bool is_deep(uint32_t height)
{
    return height > UINT32_MAX / 255;
}

uint64_t scaler_bytes(uint32_t width, uint32_t height, uint32_t side)
{
    uint32_t scaled_width, scaled_height;
    scale_size(&scaled_width, &scaled_height, width, height, side);
    return 3 * ((uint64_t)width * (is_deep(height) ? 8 : 4) +
                (uint64_t)scaled_width * scaled_height);
}

bool scaler_begin(struct scaler *scaler, uint32_t width, uint32_t height, uint32_t side,
                  uint8_t orientation)
{
    *scaler = (struct scaler){.width = width, .height = height, .deep = is_deep(height)};
    scale_size(&scaler->scaled_width, &scaler->scaled_height, width, height, side);
    scaler->turn = scale_turn(scaler->scaled_width, scaler->scaled_height, orientation);
    scaler->sums = calloc(3 * (size_t)width, scaler->deep ? 8 : 4);
    scaler->pixels = malloc(3 * (size_t)scaler->scaled_width * scaler->scaled_height);
    if (scaler->sums && scaler->pixels)
        return true;
    scaler_clear(scaler);
    return false;
}

void scaler_rows(struct scaler *scaler, const uint8_t *rgb, size_t stride, uint32_t rows)
{
    for (; rows > 0; rows--, rgb += stride, scaler->next++) {
        /* In units of 1 / scaled_height rows. */
        uint64_t at = (uint64_t)scaler->next * scaler->scaled_height;
        const uint64_t below = at + scaler->scaled_height;
        while (at < below) {
            const uint64_t end = ((uint64_t)scaler->scaled_next + 1) * scaler->height;
            const uint64_t until = end < below ? end : below;
            add_row(scaler, rgb, (uint32_t)(until - at));
            at = until;
            if (at == end)
                write_row(scaler);
        }
    }
}

void scaler_clear(struct scaler *scaler)
{
    free(scaler->sums);
    free(scaler->pixels);
    *scaler = (struct scaler){0};
}
