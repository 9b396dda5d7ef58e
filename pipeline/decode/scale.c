/* scale.c: the reference of scaling, and an implementation that adds up rows before columns. */
#include "decode/scale.h"
#include "base/avx2.h"
#include "decode/shrink.h"

#include <stdlib.h>
#include <string.h>

static struct scale_window window_of_side(uint32_t width, uint32_t height, uint32_t side)
{
    shrink_dimensions(&width, &height, side);
    return (struct scale_window){
        .full_width = width, .full_height = height, .width = width, .height = height};
}

/* The length of an axis of which `kept` pixels in the middle remain: `size` * over / under. */
static uint32_t full_axis(uint32_t kept, uint32_t size, uint64_t over, uint64_t under)
{
    const uint64_t scaled = (2 * size * over + under) / (2 * under);
    uint32_t full = scaled < SCALE_FULL_MAX ? (uint32_t)scaled : SCALE_FULL_MAX;
    full = full > kept ? full : kept;
    return full + ((full - kept) & 1);
}

struct scale_window scale_window(uint32_t width, uint32_t height, uint8_t orientation,
                                 scale_goal goal)
{
    if (goal >> 63 == 0)
        return window_of_side(width, height, (uint32_t)goal);
    const bool swapped = orientation >= 5 && orientation <= 8;
    const uint32_t across = goal >> 16 & 0xffff, down = goal & 0xffff, crop = goal >> 32 & 0xffff;
    struct scale_window window = {.width = swapped ? down : across,
                                  .height = swapped ? across : down};
    window.full_width = window.width;
    window.full_height = window.height;
    if (crop > 0) {
        const bool by_width = (uint64_t)window.width * height >= (uint64_t)window.height * width;
        const uint64_t over = 1000 * (uint64_t)(by_width ? window.width : window.height);
        const uint64_t under = (uint64_t)crop * (by_width ? width : height);
        window.full_width = full_axis(window.width, width, over, under);
        window.full_height = full_axis(window.height, height, over, under);
    }
    window.left = (window.full_width - window.width) / 2;
    window.top = (window.full_height - window.height) / 2;
    return window;
}

uint64_t scale_most(scale_goal goal)
{
    return goal >> 63 ? (goal >> 16 & 0xffff) * (goal & 0xffff) : goal * goal;
}

/* The weight of column i of `size` in scaled column x of `scaled`. */
static uint64_t weight(uint32_t x, uint32_t scaled, uint32_t i, uint32_t size)
{
    if (scaled > size) {
        const int64_t unit = 2 * (int64_t)scaled, most = unit * (size - 1);
        int64_t at = (2 * (int64_t)x + 1) * size - scaled;
        at = at < 0 ? 0 : at > most ? most : at;
        const int64_t apart = llabs(at - unit * i);
        return apart < unit ? (uint64_t)(unit - apart) : 0;
    }
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

/* The first column of `size` that can have a weight in scaled column x. */
static uint32_t first_of(uint32_t x, uint32_t scaled, uint32_t size)
{
    const uint64_t first =
        scaled > size && x > 0 ? ((uint64_t)x - 1) * size / scaled : (uint64_t)x * size / scaled;
    return first > 0 && scaled > size ? (uint32_t)first - 1 : (uint32_t)first;
}

static uint64_t sum_of_weights(uint32_t scaled, uint32_t size)
{
    return scaled > size ? 2 * (uint64_t)scaled : size;
}

void scale_reference(uint8_t *scaled, const struct scale_window *window, const uint8_t *pixels,
                     size_t stride, uint32_t width, uint32_t height, uint8_t orientation)
{
    const uint32_t across = window->full_width, down = window->full_height;
    const uint64_t area = sum_of_weights(across, width) * sum_of_weights(down, height);
    const struct scale_turn turn = scale_turn(window->width, window->height, orientation);
    for (uint32_t y = 0; y < window->height; y++) {
        for (uint32_t x = 0; x < window->width; x++) {
            uint64_t sum[3] = {0};
            const uint32_t column = window->left + x, row = window->top + y;
            for (uint32_t j = first_of(row, down, height); j < height; j++) {
                const uint64_t b = weight(row, down, j, height);
                for (uint32_t i = first_of(column, across, width); i < width && b > 0; i++) {
                    const uint64_t both = b * weight(column, across, i, width);
                    for (unsigned c = 0; c < 3; c++)
                        sum[c] += both * pixels[j * stride + 3 * (size_t)i + c];
                    if (both == 0 && (uint64_t)i * across > ((uint64_t)column + 1) * width)
                        break;
                }
                if (b == 0 && (uint64_t)j * down > ((uint64_t)row + 1) * height)
                    break;
            }
            for (unsigned c = 0; c < 3; c++)
                scaled[turn.first + (int64_t)y * turn.row + (int64_t)x * turn.column + c] =
                    (uint8_t)((sum[c] + area / 2) / area);
        }
    }
}

/* --- rows in order ---------------------------------------------------------------------------- */

#define BLOCK      1536u /* channels added up at a time, to stay in the first-level cache */
#define WHOLE_MOST 257u  /* rows whose sum fits 16 bits */
#define AREA_MOST                                                                                  \
    16777215u /* pixels, 2^24 - 1: 255 times as many, plus half of them, are below
                              * 2^32 */

typedef uint32_t four __attribute__((vector_size(16)));

/* Adds `count` rows: the first times `first`, the last times `last`, the others times `scale`; at
 * most WHOLE_MOST others. */
AVX2_TOO static void add_weighted(uint32_t *sums, const uint8_t *rows, size_t stride,
                                  uint32_t count, size_t channels, uint32_t first, uint32_t scale,
                                  uint32_t last)
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

/* Rounded quotients of sums that include half of the area. With float, a quotient below 256 is off
 * by at most one. */
AVX2_TOO static void divide_sums(uint8_t *means, const uint32_t *sums, size_t count, uint32_t area)
{
    const float inverse = 1.0f / (float)area;
    for (size_t i = 0; i < count; i++) {
        /* Split in two: vector conversions take signed integers only. */
        const float sum = (float)(int32_t)(sums[i] >> 1) * 2.0f + (float)(int32_t)(sums[i] & 1);
        uint32_t mean = (uint32_t)(int32_t)(sum * inverse);
        const int32_t rest = (int32_t)(sums[i] - mean * area);
        mean += (uint32_t)(rest >= (int32_t)area);
        mean -= (uint32_t)(rest < 0);
        means[i] = (uint8_t)mean;
    }
}

static void add_rows(const struct scaler *scaler, const uint8_t *rows, size_t stride,
                     uint32_t count, uint32_t first, uint32_t last)
{
    const size_t channels = 3 * (size_t)scaler->width;
    const uint32_t scale = scaler->window.full_height;
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
    add_weighted(scaler->sums, rows, stride, count, channels, first, scale, last);
}

/* Writes a row of means to its position in the upright image. */
static void place_row(const struct scaler *scaler, const uint8_t *means)
{
    const struct scale_turn *turn = &scaler->turn;
    const struct scale_window *window = &scaler->window;
    uint8_t *out =
        scaler->pixels + turn->first + ((int64_t)scaler->scaled_next - window->top) * turn->row;
    means += 3 * (size_t)window->left;
    if (turn->column == 3) {
        memcpy(out, means, 3 * (size_t)window->width);
        return;
    }
    for (uint32_t x = 0; x < window->width; x++, out += turn->column, means += 3)
        memcpy(out, means, 3);
}

/* Adds columns up to sums of at most AREA_MOST pixels. A scaled column is at least as wide as a
 * column, so each begins with the rest of the column before. */
static void add_columns(const struct scaler *scaler)
{
    const uint32_t width = scaler->width, scaled = scaler->window.full_width;
    const uint32_t area = width * scaler->height;
    const uint32_t *in = scaler->sums;
    uint32_t *totals = scaler->totals;
    uint32_t at = 0, left = 0; /* where column `in` begins, in units of 1 / scaled */
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

/* Adds columns and computes the means, for any number of pixels. */
static void divide_columns(const struct scaler *scaler)
{
    const uint32_t width = scaler->width, scaled = scaler->window.full_width;
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
            /* The quotient is at most 255; with double it is off by at most one. */
            uint64_t mean = (uint64_t)((double)sum[c] * inverse);
            mean -= mean * area > sum[c];
            mean += (mean + 1) * area <= sum[c];
            scaler->means[3 * (size_t)x + c] = (uint8_t)mean;
        }
    }
}

/* Writes a row of the scaled image from complete sums and clears these. */
static void write_row(struct scaler *scaler)
{
    const struct scale_window *window = &scaler->window;
    const size_t count = 3 * (size_t)window->full_width;
    const uint64_t area = (uint64_t)scaler->width * scaler->height;
    const bool kept = scaler->scaled_next - window->top < window->height;
    if (kept && (scaler->deep || area > AREA_MOST)) {
        divide_columns(scaler);
    } else if (kept) {
        add_columns(scaler);
        divide_sums(scaler->means, scaler->totals, count, (uint32_t)area);
    }
    if (kept)
        place_row(scaler, scaler->means);
    memset(scaler->sums, 0, 3 * (size_t)scaler->width * (scaler->deep ? 8 : 4));
    scaler->scaled_next++;
}

static bool is_deep(uint32_t height)
{
    return height > UINT32_MAX / 255;
}

/* Bytes of sums (padded for loads of four past the end), totals and means. */
static size_t work_bytes(uint32_t width, uint32_t height, uint32_t scaled_width)
{
    return (3 * (size_t)width + 1) * (is_deep(height) ? 8 : 4) +
           (3 * (size_t)scaled_width + 1) * sizeof(uint32_t) + 3 * (size_t)scaled_width;
}

/* Does an axis grow? Then the whole image is buffered: it is short or narrow. */
static bool grows(const struct scale_window *window, uint32_t width, uint32_t height)
{
    return window->full_width > width || window->full_height > height;
}

static size_t sums_bytes(const struct scale_window *window, uint32_t width, uint32_t height)
{
    return grows(window, width, height) ? 3 * (size_t)width * height
                                        : work_bytes(width, height, window->full_width);
}

uint64_t scaler_bytes(uint32_t width, uint32_t height, uint8_t orientation, scale_goal goal)
{
    const struct scale_window window = scale_window(width, height, orientation, goal);
    return sums_bytes(&window, width, height) + 3 * (uint64_t)window.width * window.height;
}

bool scaler_begin(struct scaler *scaler, uint32_t width, uint32_t height, uint8_t orientation,
                  scale_goal goal)
{
    *scaler = (struct scaler){.width = width,
                              .height = height,
                              .window = scale_window(width, height, orientation, goal),
                              .orientation = orientation,
                              .deep = is_deep(height)};
    const struct scale_window *window = &scaler->window;
    scaler->turn = scale_turn(window->width, window->height, orientation);
    scaler->sums = calloc(1, sums_bytes(window, width, height));
    scaler->pixels = malloc(3 * (size_t)window->width * window->height);
    if (!scaler->sums || !scaler->pixels) {
        scaler_clear(scaler);
        return false;
    }
    if (grows(window, width, height)) {
        scaler->rows = scaler->sums;
        return true;
    }
    scaler->totals = (uint32_t *)(void *)((uint8_t *)scaler->sums +
                                          (3 * (size_t)width + 1) * (scaler->deep ? 8 : 4));
    scaler->means = (uint8_t *)(scaler->totals + 3 * (size_t)window->full_width + 1);
    return true;
}

static void keep_rows(struct scaler *scaler, const uint8_t *rgb, size_t stride, uint32_t rows)
{
    const size_t row = 3 * (size_t)scaler->width;
    for (uint32_t j = 0; j < rows; j++)
        memcpy(scaler->rows + (scaler->next + j) * row, rgb + j * stride, row);
    scaler->next += rows;
    if (scaler->next == scaler->height)
        scale_reference(scaler->pixels, &scaler->window, scaler->rows, row, scaler->width,
                        scaler->height, scaler->orientation);
}

void scaler_rows(struct scaler *scaler, const uint8_t *rgb, size_t stride, uint32_t rows)
{
    const uint64_t unit = scaler->window.full_height; /* one row, in units of 1 / full_height */
    if (scaler->rows) {
        keep_rows(scaler, rgb, stride, rows);
        return;
    }
    const uint64_t below = ((uint64_t)scaler->next + rows) * unit;
    uint64_t at = (uint64_t)scaler->next * unit;
    while (at < below) {
        /* From here to the end of the scaled row, or of the given rows. */
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
