/* reduced.c: inverse transforms of 1, 2, 4 and 8 points, and colours. */
#include "thumbs/reduced.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Bits behind the point of the transform's factors. */
#define BITS 12

/* factor[x][u]: the value at x of the u-th of n cosines, such that a block keeps its mean. */
static void make_factors(int32_t factor[8][8], unsigned n)
{
    const double pi = 3.14159265358979323846;
    for (unsigned x = 0; x < n; x++)
        for (unsigned u = 0; u < n; u++)
            factor[x][u] = (int32_t)lround((1 << BITS) * (u ? sqrt(2.0) : 1.0) *
                                           cos((2 * x + 1) * u * pi / (2 * n)) / sqrt(8.0));
}

static uint8_t clamp(int64_t value)
{
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* One block to n rows of n samples. In 64 bits: hostile coefficients are large. */
static void block(uint8_t *samples, size_t stride, const int16_t *coefficient,
                  const uint16_t *quantization, unsigned n, int32_t factor[8][8])
{
    int64_t rows[8][8];
    for (unsigned v = 0; v < n; v++) {
        for (unsigned x = 0; x < n; x++) {
            rows[v][x] = 0;
            for (unsigned u = 0; u < n; u++)
                rows[v][x] +=
                    (int64_t)coefficient[8 * v + u] * quantization[8 * v + u] * factor[x][u];
        }
    }
    for (unsigned y = 0; y < n; y++) {
        for (unsigned x = 0; x < n; x++) {
            int64_t sum = (int64_t)1 << (2 * BITS - 1);
            for (unsigned v = 0; v < n; v++)
                sum += rows[v][x] * factor[y][v];
            samples[y * stride + x] = clamp((sum >> 2 * BITS) + 128);
        }
    }
}

/* The block's mean alone. */
static uint8_t mean(const int16_t *coefficient, const uint16_t *quantization)
{
    const int32_t value = coefficient[0] * (int32_t)quantization[0];
    return clamp(((value + 4) >> 3) + 128);
}

/* All blocks of a component, n x n samples each. */
static void component(uint8_t *samples, const int16_t *blocks, const uint16_t *quantization,
                      uint32_t across, uint32_t down, unsigned n)
{
    const size_t stride = (size_t)across * n;
    int32_t factor[8][8];
    make_factors(factor, n);
    for (uint32_t y = 0; y < down; y++) {
        uint8_t *row = samples + (size_t)y * n * stride;
        for (uint32_t x = 0; x < across; x++, blocks += DCT_BLOCK) {
            if (n == 1)
                row[x] = mean(blocks, quantization);
            else
                block(row + (size_t)x * n, stride, blocks, quantization, n, factor);
        }
    }
}

/* ITU-R BT.601, full range, as JFIF has it. */
static void to_rgb(uint8_t *out, int32_t y, int32_t cb, int32_t cr)
{
    cb -= 128;
    cr -= 128;
    out[0] = clamp(y + ((91881 * cr + 32768) >> 16));
    out[1] = clamp(y - ((22554 * cb + 46802 * cr + 32768) >> 16));
    out[2] = clamp(y + ((116130 * cb + 32768) >> 16));
}

const uint8_t *reduced_pixels(struct reduced *reduced, uint32_t *width, uint32_t *height,
                              const void *coefficients, const struct dct_layout *layout,
                              uint32_t least_width, uint32_t least_height)
{
    unsigned n = 1;
    while (n < 8 && ((uint64_t)layout->width * n / 8 < least_width ||
                     (uint64_t)layout->height * n / 8 < least_height))
        n *= 2;
    /* Subsampled components stay so: thumbnails are. */
    const unsigned shift_x = layout->across - 1u, shift_y = layout->down - 1u;
    *width = (uint32_t)(((uint64_t)layout->width * n + 7) / 8);
    *height = (uint32_t)(((uint64_t)layout->height * n + 7) / 8);
    const size_t pixels = (size_t)*width * *height * 3;
    size_t plane[DCT_COMPONENTS], samples = 0;
    for (unsigned c = 0; c < DCT_COMPONENTS; c++) {
        plane[c] = samples;
        samples += (size_t)(dct_component_blocks(layout, c) * n * n);
    }
    if (pixels + samples > reduced->room) {
        free(reduced->bytes);
        reduced->bytes = malloc(pixels + samples);
        reduced->room = reduced->bytes ? pixels + samples : 0;
        if (!reduced->bytes)
            return NULL;
    }
    uint8_t *sample = reduced->bytes + pixels;
    const uint16_t *table = coefficients;
    const int16_t *blocks = (const int16_t *)(table + DCT_COMPONENTS * DCT_BLOCK);
    for (unsigned c = 0; c < DCT_COMPONENTS; c++) {
        if (layout->blocks_across[c] > 0)
            component(sample + plane[c], blocks, table + c * DCT_BLOCK, layout->blocks_across[c],
                      layout->blocks_down[c], n);
        blocks += dct_component_blocks(layout, c) * DCT_BLOCK;
    }
    uint8_t *out = reduced->bytes;
    for (uint32_t y = 0; y < *height; y++) {
        const uint8_t *row[DCT_COMPONENTS];
        for (unsigned c = 0; c < DCT_COMPONENTS; c++)
            row[c] =
                sample + plane[c] + (size_t)(c ? y >> shift_y : y) * layout->blocks_across[c] * n;
        for (uint32_t x = 0; x < *width; x++, out += 3) {
            if (layout->colour == DCT_GREY)
                out[0] = out[1] = out[2] = row[0][x];
            else if (layout->colour == DCT_RGB)
                for (unsigned c = 0; c < DCT_COMPONENTS; c++)
                    out[c] = row[c][c ? x >> shift_x : x];
            else
                to_rgb(out, row[0][x], row[1][x >> shift_x], row[2][x >> shift_x]);
        }
    }
    return reduced->bytes;
}

void reduced_clear(struct reduced *reduced)
{
    free(reduced->bytes);
    *reduced = (struct reduced){NULL, 0};
}
