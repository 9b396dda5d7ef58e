/* descriptor.c: positions of descriptors, and their C references. */
#include "features/descriptor.h"

#include "base/avx2.h"
#include "features/around.h"

#include <stdlib.h>
#include <string.h>

/* --- geometry -------------------------------------------------------------------------------- */

struct descriptor_grid descriptor_grid(const struct descriptor *descriptor, unsigned side,
                                       uint32_t width, uint32_t height)
{
    const uint32_t size = descriptor->side[side], step = descriptor->step;
    if (width < size || height < size)
        return (struct descriptor_grid){0, 0, 0, 0};
    return (struct descriptor_grid){(width - size) / step + 1, (height - size) / step + 1,
                                    (width - size) % step / 2, (height - size) % step / 2};
}

uint32_t descriptor_number(const struct descriptor *descriptor, uint32_t width, uint32_t height)
{
    uint32_t number = 0;
    for (unsigned i = 0; i < DESCRIPTOR_SIDES && descriptor->side[i]; i++) {
        const struct descriptor_grid grid = descriptor_grid(descriptor, i, width, height);
        number += grid.columns * grid.rows;
    }
    return number;
}

void descriptor_describe(uint8_t *out, const struct descriptor *descriptor,
                         const struct descriptor_picture *picture, uint32_t first, uint32_t count)
{
    uint32_t before = 0;
    for (unsigned i = 0; i < DESCRIPTOR_SIDES && descriptor->side[i]; i++) {
        const struct descriptor_grid grid =
            descriptor_grid(descriptor, i, picture->width, picture->height);
        const uint32_t number = grid.columns * grid.rows;
        for (; count > 0 && first < before + number; first++, count--) {
            const uint32_t index = first - before;
            descriptor->describe(out, picture, grid.left + index % grid.columns * descriptor->step,
                                 grid.top + index / grid.columns * descriptor->step,
                                 descriptor->side[i]);
            out += descriptor->columns;
        }
        before += number;
    }
}

static const uint8_t *pixel(const struct descriptor_picture *picture, uint32_t x, uint32_t y)
{
    return picture->pixels + y * picture->stride + 3 * (size_t)x;
}

/* --- dct: the lowest frequencies of 8x8 pixels ----------------------------------------------- */

/* 512 cos((2 i + 1) u pi / 16) / 2, for u = 0 divided by sqrt(2), rounded. */
static const int32_t basis[4][8] = {{181, 181, 181, 181, 181, 181, 181, 181},
                                    {251, 213, 142, 50, -50, -142, -213, -251},
                                    {237, 98, -98, -237, -237, -98, 98, 237},
                                    {213, -50, -251, -142, 142, 251, 50, -213}};

/* Vertical and horizontal frequencies in zigzag order. */
static const uint8_t frequency[10][2] = {{0, 0}, {0, 1}, {1, 0}, {2, 0}, {1, 1},
                                         {0, 2}, {0, 3}, {1, 2}, {2, 1}, {3, 0}};

static void describe_dct(uint8_t *out, const struct descriptor_picture *picture, uint32_t x,
                         uint32_t y, uint32_t side)
{
    static const unsigned kept[3] = {10, 3, 3};
    int32_t plane[3][64];
    for (uint32_t i = 0; i < side * side; i++) {
        const uint8_t *p = pixel(picture, x + i % side, y + i / side);
        const int32_t grey = pixel_luma(p);
        plane[0][i] = grey - 128;
        plane[1][i] = p[2] - grey;
        plane[2][i] = p[0] - grey;
    }
    for (unsigned c = 0; c < 3; c++) {
        for (unsigned f = 0; f < kept[c]; f++) {
            const int32_t *down = basis[frequency[f][0]], *across = basis[frequency[f][1]];
            int32_t sum = 0;
            for (uint32_t i = 0; i < side * side; i++)
                sum += down[i / side] * across[i % side] * plane[c][i];
            const uint32_t size = whole_root((uint32_t)abs(sum) >> 14);
            const int32_t most = size > 127 ? 127 : (int32_t)size;
            *out++ = (uint8_t)(128 + (sum < 0 ? -most : most));
        }
    }
}

const struct descriptor descriptor_dct = {
    .name = "dct-1",
    .columns = 16,
    .projected = 16,
    .whiten = 0.5,
    .step = 8,
    .side = {8},
    .describe = describe_dct,
};

/* --- sift: directions of gradients in 4x4 cells, and their square roots ----------------------- */

#define BIN_MOST 12
#define SPAN     (5 * BIN_MOST + 1) /* pixels with a weight and their neighbours, in each direction */

/* Luma, or one of two opponent colours. */
ALWAYS_INLINE int16_t channel(const uint8_t *p, unsigned c)
{
    return (int16_t)(c == 0   ? pixel_luma(p)
                     : c == 1 ? (p[0] - p[1] + 256) >> 1
                              : (p[0] + p[1] - 2 * p[2] + 512) >> 2);
}

/* The channel's values of pixels left to left + size - 1, clamped to the row's `width`. */
ALWAYS_INLINE void load_values(int16_t value[SPAN], const uint8_t *row, int32_t left, int32_t size,
                               int32_t width, unsigned c)
{
    const int32_t before = left < 0 ? -left : 0;
    const int32_t end = left + size > width ? width - left : size;
    for (int32_t i = before; i < end; i++)
        value[i] = channel(row + 3 * (left + i), c);
    for (int32_t i = 0; i < before; i++)
        value[i] = value[before];
    for (int32_t i = end; i < size; i++)
        value[i] = value[end - 1];
}

/* Gradients of a row of pixels, split into components along the two nearest of 8 directions. */
struct gradients {
    uint32_t straight[SPAN], slant[SPAN]; /* directions */
    uint32_t along[2][SPAN];              /* components */
};

ALWAYS_INLINE void split_gradients(struct gradients *out, const int16_t *above,
                                   const int16_t *value, const int16_t *below, int32_t first,
                                   int32_t end)
{
    for (int32_t i = first; i < end; i++) {
        const int32_t dx = value[i + 1] - value[i - 1], dy = below[i] - above[i];
        const int32_t across = dx > -dx ? dx : -dx, down = dy > -dy ? dy : -dy;
        const int32_t more = across > down ? across : down, less = across > down ? down : across;
        const int32_t diagonal = 181 * less >> 7; /* multiplied by sqrt(2) */
        const uint32_t level = dx < 0 ? 4 : 0, steep = dy < 0 ? 6 : 2;
        const uint32_t slant_down = dx < 0 ? 3 : 1, slant_up = dx < 0 ? 5 : 7;
        out->straight[i] = across >= down ? level : steep;
        out->slant[i] = dy < 0 ? slant_up : slant_down;
        out->along[0][i] = (uint32_t)(more - less);
        out->along[1][i] = (uint32_t)(diagonal > 255 ? 255 : diagonal);
    }
}

/* Adds the sums of the pixels between four centres of cells, left and right of `above` and `below`.
 * column: of each column of pixels and direction the sum, and 2^32 times the sum weighted by the
 * distance to the centres above. */
ALWAYS_INLINE void add_columns(uint32_t above[16], uint32_t below[16], const uint64_t *column,
                               uint32_t bin)
{
    uint64_t sum[8] = {0}, right[8] = {0}; /* right: weighted by the distance to the left */
    for (size_t i = bin; i-- > 1;)
        for (size_t d = 0; d < 8; d++) {
            sum[d] += column[8 * i + d];
            right[d] += sum[d];
        }
    for (size_t d = 0; d < 8; d++) {
        sum[d] += column[d];
        const uint32_t all = (uint32_t)sum[d], lower = (uint32_t)(sum[d] >> 32),
                       far = (uint32_t)right[d], both = (uint32_t)(right[d] >> 32);
        above[d] += bin * (bin * all - lower - far) + both;
        above[8 + d] += bin * far - both;
        below[d] += bin * lower - both;
        below[8 + d] += both;
    }
}

/* The 128 sums of a channel. Centres of cells are `bin` pixels apart; weights fall linearly to 0 at
 * the neighbouring centres. */
ALWAYS_INLINE void sum_cells(uint32_t sums[128], const struct descriptor_picture *picture,
                             unsigned c, int32_t x, int32_t y, int32_t bin)
{
    /* (i, j) is pixel (x - bin + i, y - bin + j), clamped to the image. */
    int16_t value[SPAN][SPAN];
    struct gradients gradients;
    uint32_t cells[6][48] = {{0}}; /* with those around the 4 x 4 */
    const int32_t width = (int32_t)picture->width, height = (int32_t)picture->height;
    const int32_t size = 5 * bin + 1, left = x - bin, top = y - bin;
    for (int32_t j = 0; j < size; j++) {
        const int32_t v = top + j < 0 ? 0 : top + j < height ? top + j : height - 1;
        load_values(value[j], picture->pixels + (size_t)v * picture->stride, left, size, width, c);
    }
    const int32_t first = left < 0 ? -left : 1, end = left + size > width ? width - left : size - 1;
    for (int32_t r = 0; r < 5; r++) {
        uint64_t column[8 * 5 * BIN_MOST];
        memset(column, 0, (size_t)(40 * bin) * sizeof *column);
        for (int32_t down = r == 0; down < bin; down++) {
            const int32_t j = r * bin + down;
            const uint64_t weights = (uint64_t)down << 32 | 1;
            if (top + j < 0 || top + j >= height)
                continue;
            split_gradients(&gradients, value[j - 1], value[j], value[j + 1], first, end);
            for (int32_t i = first; i < end; i++) {
                column[8 * (uint32_t)i + gradients.straight[i]] += weights * gradients.along[0][i];
                column[8 * (uint32_t)i + gradients.slant[i]] += weights * gradients.along[1][i];
            }
        }
        for (int32_t i = 0; i < 5; i++)
            add_columns(cells[r] + 8 * i, cells[r + 1] + 8 * i, column + 8 * bin * i,
                        (uint32_t)bin);
    }
    for (unsigned r = 0; r < 4; r++)
        memcpy(sums + 32 * r, cells[1 + r] + 8, 32 * sizeof *sums);
}

/* 255 times the square root of each sum's fraction of the total, in 16-bit arithmetic. */
static void take_roots(uint8_t out[128], const uint32_t sums[128])
{
    uint32_t all = 0;
    for (unsigned i = 0; i < 128; i++)
        all += sums[i];
    memset(out, 0, 128);
    if (all == 0)
        return;
    int shift = 0; /* normalises the sum to 2^15 to 2^16 - 1 */
    while (all >> shift > 0xffff)
        shift++;
    while (shift <= 0 && all << -shift < 0x8000)
        shift--;
    const uint32_t inverse = (65025u << 15) / (shift > 0 ? all >> shift : all << -shift);
    for (unsigned i = 0; i < 128; i++)
        out[i] =
            (uint8_t)whole_root((shift > 0 ? sums[i] >> shift : sums[i] << -shift) * inverse >> 15);
}

AVX2_TOO static void describe_channels(uint8_t *out, const struct descriptor_picture *picture,
                                       uint32_t x, uint32_t y, uint32_t side, unsigned channels)
{
    for (unsigned c = 0; c < channels; c++) {
        uint32_t sums[128];
        sum_cells(sums, picture, c, (int32_t)x, (int32_t)y, (int32_t)(side - 1) / 3);
        take_roots(out + 128 * c, sums);
    }
}

static void describe_sift(uint8_t *out, const struct descriptor_picture *picture, uint32_t x,
                          uint32_t y, uint32_t side)
{
    describe_channels(out, picture, x, y, side, 1);
}

const struct descriptor descriptor_sift = {
    .name = "sift-1",
    .columns = 128,
    .projected = 64,
    .whiten = 0.25,
    .step = 5,
    .side = {10, 16, 25, 37}, /* three bins of 3, 5, 8 and 12 pixels, plus one */
    .describe = describe_sift,
};

static void describe_opsift(uint8_t *out, const struct descriptor_picture *picture, uint32_t x,
                            uint32_t y, uint32_t side)
{
    describe_channels(out, picture, x, y, side, 3);
}

const struct descriptor descriptor_opsift = {
    .name = "opsift-1",
    .columns = 384,
    .projected = 64,
    .whiten = 0.25,
    .step = 7,
    .side = {19}, /* bins of 6 pixels */
    .describe = describe_opsift,
};

/* --- patch: the pixels themselves ------------------------------------------------------------ */

static void describe_patch(uint8_t *out, const struct descriptor_picture *picture, uint32_t x,
                           uint32_t y, uint32_t side)
{
    for (uint32_t j = 0; j < side; j++)
        for (uint32_t i = 0; i < side; i++, out += 3)
            memcpy(out, pixel(picture, x + i, y + j), 3);
}

const struct descriptor descriptor_patch = {
    .name = "patch-1",
    .columns = 108,
    .projected = 32,
    .whiten = 0.5,
    .step = 3,
    .side = {6},
    .describe = describe_patch,
};
