/* test_descriptor.c: sift and opsift by their formula, pixel by pixel, on pictures of noise, edges and slopes. */
#include "runner.h"

#include "base/random.h"
#include "features/around.h"
#include "features/descriptor.h"

#include <stdlib.h>

static int channel(const struct descriptor_picture *picture, int x, int y, unsigned c)
{
    const int width = (int)picture->width, height = (int)picture->height;
    x = x < 0 ? 0 : x < width ? x : width - 1;
    y = y < 0 ? 0 : y < height ? y : height - 1;
    const uint8_t *p = picture->pixels + (size_t)y * picture->stride + 3 * (size_t)x;
    return c == 0   ? pixel_luma(p)
           : c == 1 ? (p[0] - p[1] + 256) >> 1
                    : (p[0] + p[1] - 2 * p[2] + 512) >> 2;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Adds a pixel's gradient to the two nearest of 8 directions of the up to four cells around it. */
static void add_pixel(uint32_t sums[4][4][8], const struct descriptor_picture *picture, int px,
                      int py, unsigned c, int x, int y, int bin)
{
    const int dx = channel(picture, px + 1, py, c) - channel(picture, px - 1, py, c),
              dy = channel(picture, px, py + 1, c) - channel(picture, px, py - 1, c);
    const int across = abs(dx), down = abs(dy), less = least(across, down);
    const int straight = across >= down ? (dx < 0 ? 4 : 0) : (dy < 0 ? 6 : 2);
    const int slant = dy < 0 ? (dx < 0 ? 5 : 7) : (dx < 0 ? 3 : 1);
    for (int row = 0; row < 4; row++)
        for (int column = 0; column < 4; column++) {
            const int weight = (bin - least(abs(px - x - column * bin), bin)) *
                               (bin - least(abs(py - y - row * bin), bin));
            sums[row][column][straight] += (uint32_t)(weight * (across + down - 2 * less));
            sums[row][column][slant] += (uint32_t)(weight * least(181 * less >> 7, 255));
        }
}

/* 255 times the root of each sum's share, in the 16-bit arithmetic of docs/features.md. */
static void take_roots(uint8_t *out, const uint32_t *sums)
{
    uint64_t all = 0;
    for (unsigned i = 0; i < 128; i++)
        all += sums[i];
    int shift = 0;
    while (all >> shift > 0xffff)
        shift++;
    while (all > 0 && shift <= 0 && all << -shift < 0x8000)
        shift--;
    for (unsigned i = 0; i < 128; i++) {
        const uint64_t total = shift > 0 ? all >> shift : all << -shift,
                       sum = shift > 0 ? sums[i] >> shift : (uint64_t)sums[i] << -shift;
        uint64_t root = 0;
        while (all > 0 && (root + 1) * (root + 1) <= sum * ((65025u << 15) / total) >> 15)
            root++;
        out[i] = (uint8_t)root;
    }
}

static void check(const struct descriptor_picture *picture, const struct descriptor *descriptor,
                  unsigned channels)
{
    const uint32_t number = descriptor_number(descriptor, picture->width, picture->height);
    uint8_t found[384], wanted[384];
    uint32_t index = 0;
    for (unsigned s = 0; s < DESCRIPTOR_SIDES && descriptor->side[s]; s++) {
        const struct descriptor_grid grid =
            descriptor_grid(descriptor, s, picture->width, picture->height);
        const int bin = ((int)descriptor->side[s] - 1) / 3;
        for (uint32_t i = 0; i < grid.columns * grid.rows; i++, index++) {
            const int x = (int)(grid.left + i % grid.columns * descriptor->step),
                      y = (int)(grid.top + i / grid.columns * descriptor->step);
            for (unsigned c = 0; c < channels; c++) {
                uint32_t sums[4][4][8] = {{{0}}};
                for (int py = y - bin; py <= y + 4 * bin; py++)
                    for (int px = x - bin; px <= x + 4 * bin; px++)
                        if (px >= 0 && py >= 0 && px < (int)picture->width &&
                            py < (int)picture->height)
                            add_pixel(sums, picture, px, py, c, x, y, bin);
                take_roots(wanted + 128 * c, &sums[0][0][0]);
            }
            descriptor_describe(found, descriptor, picture, index, 1);
            assert_memory_equal(found, wanted, descriptor->columns);
        }
    }
    assert_int_equal(index, number);
}

static void by_their_formula(void **state)
{
    static const struct {
        uint32_t width, height;
    } sizes[] = {{10, 10}, {19, 37}, {38, 61}, {70, 23}};
    static uint8_t pixels[3 * 70 * 70];
    uint32_t random = RANDOM_START;
    (void)state;
    for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (unsigned kind = 0; kind < 3; kind++) {
            const uint32_t width = sizes[s].width, height = sizes[s].height;
            const struct descriptor_picture picture = {pixels, 3 * (size_t)width, width, height};
            for (uint32_t i = 0; i < 3 * width * height; i++) {
                random_next(&random);
                pixels[i] = kind == 0 ? (uint8_t)(random >> 24)
                            : kind == 1
                                ? (uint8_t)(random >> 31 ? 255 : 0)
                                : (uint8_t)(i / 3 % width * 2 + i / 3 / width * (1 + i % 3));
            }
            check(&picture, &descriptor_sift, 1);
            check(&picture, &descriptor_opsift, 3);
        }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(by_their_formula),
};

TEST_GROUP(descriptor, NULL, NULL)
