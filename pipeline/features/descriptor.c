/* descriptor.c: positions of descriptors, and their C references. */
#include "features/descriptor.h"

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

/* Luma, and two opponent colours. */
static int32_t channel(const uint8_t *p, unsigned c)
{
    return c == 0   ? pixel_luma(p)
           : c == 1 ? (p[0] - p[1] + 256) >> 1
                    : (p[0] + p[1] - 2 * p[2] + 512) >> 2;
}

/* A gradient, split into components along the two nearest of 8 directions. */
struct gradient {
    unsigned straight, slant; /* directions */
    uint32_t along[2];        /* components */
};

static struct gradient split_gradient(int32_t dx, int32_t dy)
{
    static const uint8_t slant[2][2] = {{1, 7}, {3, 5}};
    const uint32_t back = dx < 0, up = dy < 0;
    const int32_t across = abs(dx), down = abs(dy);
    const int32_t more = across > down ? across : down, less = across > down ? down : across;
    const int32_t diagonal = 181 * less >> 7; /* multiplied by sqrt(2) */
    return (struct gradient){
        .straight = across >= down ? 4 * back : 2 + 4 * up,
        .slant = slant[back][up],
        .along = {(uint32_t)(more - less), (uint32_t)(diagonal > 255 ? 255 : diagonal)}};
}

#define BIN_MOST 12

/* The index from 0 to count - 1 that is nearest to `at`. */
static uint32_t clamp(int32_t at, int32_t count)
{
    return at < 0 ? 0 : (uint32_t)(at < count ? at : count - 1);
}

/* The 128 sums of a channel. Centres of cells are `bin` pixels apart; weights fall linearly to 0 at
 * the neighbouring centres. */
static void sum_cells(uint32_t sums[128], const struct descriptor_picture *picture, unsigned c,
                      int32_t x, int32_t y, int32_t bin)
{
    /* The channel's values of all pixels with a weight and of their neighbours: (i, j) is pixel (x
     * - bin + i, y - bin + j), clamped to the image. */
    int16_t value[5 * BIN_MOST + 1][5 * BIN_MOST + 1];
    const int32_t width = (int32_t)picture->width, height = (int32_t)picture->height;
    const int32_t size = 5 * bin + 1, left = x - bin, top = y - bin;
    uint32_t column[5 * BIN_MOST + 1];
    for (int32_t i = 0; i < size; i++)
        column[i] = clamp(left + i, width);
    for (int32_t j = 0; j < size; j++) {
        const uint32_t v = clamp(top + j, height);
        for (int32_t i = 0; i < size; i++)
            value[j][i] = (int16_t)channel(pixel(picture, column[i], v), c);
    }
    memset(sums, 0, 128 * sizeof *sums);
    const int32_t first = left < 0 ? -left : 1, end = left + size > width ? width - left : size - 1;
    for (int32_t j = 1; j < size - 1; j++) {
        if (top + j < 0 || top + j >= height)
            continue;
        uint32_t row[6][8] = {{0}}; /* columns -1 to 4 of cells; 0 to 3 are used */
        uint32_t cell = (uint32_t)first / (uint32_t)bin, far = (uint32_t)first % (uint32_t)bin;
        for (int32_t i = first; i < end; i++) {
            const struct gradient gradient = split_gradient(value[j][i + 1] - value[j][i - 1],
                                                            value[j + 1][i] - value[j - 1][i]);
            /* Distance from the centre to the left; the rest is to the right. */
            const uint32_t near = (uint32_t)bin - far;
            row[cell][gradient.straight] += near * gradient.along[0];
            row[cell][gradient.slant] += near * gradient.along[1];
            row[cell + 1][gradient.straight] += far * gradient.along[0];
            row[cell + 1][gradient.slant] += far * gradient.along[1];
            if (++far == (uint32_t)bin) {
                far = 0;
                cell++;
            }
        }
        for (int32_t k = 0; k < 2; k++) { /* the rows of cells above and below */
            const int32_t cells = j / bin - 1 + k;
            const uint32_t weight = (uint32_t)(k == 0 ? bin - j % bin : j % bin);
            for (int32_t i = 0; i < 32 && cells >= 0 && cells < 4; i++)
                sums[32 * cells + i] += weight * row[1 + i / 8][i % 8];
        }
    }
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

static void describe_sift(uint8_t *out, const struct descriptor_picture *picture, uint32_t x,
                          uint32_t y, uint32_t side)
{
    uint32_t sums[128];
    sum_cells(sums, picture, 0, (int32_t)x, (int32_t)y, (int32_t)(side - 1) / 3);
    take_roots(out, sums);
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
    for (unsigned c = 0; c < 3; c++) {
        uint32_t sums[128];
        sum_cells(sums, picture, c, (int32_t)x, (int32_t)y, (int32_t)(side - 1) / 3);
        take_roots(out + 128 * c, sums);
    }
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
