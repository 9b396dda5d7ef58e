/* reduced.c: inverse transforms of 1, 2, 4 and 8 points, and colour conversion. */
#include "decode/reduced.h"

#include <math.h>
#include <stdlib.h>

/* Fraction bits of the transform's factors. */
#define BITS 12

/* factor[x][u]: the u-th of n cosines at x, scaled so that a block keeps its mean. */
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

/* An inverse transform of n points. Cosines of even u are symmetric in x and n - 1 - x, those of
 * odd u antisymmetric. 64 bits: hostile coefficients are large. */
static inline __attribute__((always_inline)) void inverse(int64_t *out, const int64_t *in,
                                                          int32_t factor[8][8], unsigned n)
{
    for (unsigned x = 0; x < n / 2; x++) {
        int64_t even = 0, odd = 0;
        for (unsigned u = 0; u < n; u += 2) {
            even += in[u] * factor[x][u];
            odd += in[u + 1] * factor[x][u + 1];
        }
        out[x] = even + odd;
        out[n - 1 - x] = even - odd;
    }
}

/* One block to n rows of n samples. */
static inline __attribute__((always_inline)) void block(uint8_t *samples, size_t stride,
                                                        const int16_t *coefficient,
                                                        const uint16_t *quantization,
                                                        int32_t factor[8][8], unsigned n)
{
    int64_t columns[8][8], in[8], out[8]; /* columns: rows after the first pass */
    for (unsigned v = 0; v < n; v++) {
        for (unsigned u = 0; u < n; u++)
            in[u] = (int64_t)coefficient[8 * v + u] * quantization[8 * v + u];
        inverse(out, in, factor, n);
        for (unsigned x = 0; x < n; x++)
            columns[x][v] = out[x];
    }
    for (unsigned x = 0; x < n; x++) {
        inverse(out, columns[x], factor, n);
        for (unsigned y = 0; y < n; y++)
            samples[y * stride + x] =
                clamp(((out[y] + ((int64_t)1 << (2 * BITS - 1))) >> 2 * BITS) + 128);
    }
}

/* The block's mean alone. */
static uint8_t mean(const int16_t *coefficient, const uint16_t *quantization)
{
    const int32_t value = coefficient[0] * (int32_t)quantization[0];
    return clamp(((value + 4) >> 3) + 128);
}

/* A row of blocks, n x n samples each. Compiled separately for each n, so loops have constant
 * length. */
static void row_of_blocks(uint8_t *samples, const int16_t *blocks, const uint16_t *quantization,
                          uint32_t across, unsigned n, int32_t factor[8][8])
{
    const size_t stride = (size_t)across * n;
    for (uint32_t x = 0; x < across; x++, blocks += DCT_BLOCK, samples += n) {
        if (n == 1)
            samples[0] = mean(blocks, quantization);
        else if (n == 2)
            block(samples, stride, blocks, quantization, factor, 2);
        else if (n == 4)
            block(samples, stride, blocks, quantization, factor, 4);
        else
            block(samples, stride, blocks, quantization, factor, 8);
    }
}

/* All blocks of a component. */
static void component(uint8_t *samples, const int16_t *blocks, const uint16_t *quantization,
                      uint32_t across, uint32_t down, unsigned n)
{
    int32_t factor[8][8];
    make_factors(factor, n);
    for (uint32_t y = 0; y < down; y++)
        row_of_blocks(samples + (size_t)y * n * across * n, blocks + (size_t)y * across * DCT_BLOCK,
                      quantization, across, n, factor);
}

/* ITU-R BT.601, full range, as in JFIF. */
static void to_rgb(uint8_t *out, int32_t y, int32_t cb, int32_t cr)
{
    cb -= 128;
    cr -= 128;
    out[0] = clamp(y + ((91881 * cr + 32768) >> 16));
    out[1] = clamp(y - ((22554 * cb + 46802 * cr + 32768) >> 16));
    out[2] = clamp(y + ((116130 * cb + 32768) >> 16));
}

unsigned reduced_side(uint32_t *width, uint32_t *height, const struct dct_layout *layout,
                      uint32_t least_width, uint32_t least_height)
{
    unsigned n = 1;
    while (n < 8 && ((uint64_t)layout->width * n / 8 < least_width ||
                     (uint64_t)layout->height * n / 8 < least_height))
        n *= 2;
    *width = (uint32_t)(((uint64_t)layout->width * n + 7) / 8);
    *height = (uint32_t)(((uint64_t)layout->height * n + 7) / 8);
    return n;
}

const uint8_t *reduced_pixels(struct reduced *reduced, uint32_t *width, uint32_t *height,
                              const void *coefficients, const struct dct_layout *layout,
                              uint32_t least_width, uint32_t least_height)
{
    const unsigned n = reduced_side(width, height, layout, least_width, least_height);
    /* Subsampled components are not interpolated: the result is a thumbnail. */
    const unsigned shift_x = layout->across - 1u, shift_y = layout->down - 1u;
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
