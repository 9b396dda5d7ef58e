/* dct.c: from DCT coefficients to pixels in plain C.
 *
 * The transform is Loeffler, Ligtenberg and Moschytz, "Practical fast 1-D DCT algorithms with 11
 * multiplications" (ICASSP 1989), in the fixed-point form of libjpeg's jidctint.c. The order of
 * operations is that of jidctint-sse2.asm: sums of two inputs in 16 bits, products in 32, results
 * saturated to 16. Upsampling is the triangle filter of jdsample.c; colours are converted as in
 * jdcolor.c. */
#include "decode/dct.h"

#include <stdbool.h>

uint64_t dct_component_blocks(const struct dct_layout *layout, unsigned component)
{
    return (uint64_t)layout->blocks_across[component] * layout->blocks_down[component];
}

uint64_t dct_blocks(const struct dct_layout *layout)
{
    uint64_t blocks = 0;
    for (unsigned c = 0; c < DCT_COMPONENTS; c++)
        blocks += dct_component_blocks(layout, c);
    return blocks;
}

uint64_t dct_bytes(const struct dct_layout *layout)
{
    return DCT_TABLE_BYTES + dct_blocks(layout) * DCT_BLOCK * sizeof(int16_t);
}

/* --- the transform --------------------------------------------------------------------------- */

/* As 13-bit fixed point: 0.298631336, 0.390180644, ... */
#define F_0_298 2446
#define F_0_390 3196
#define F_0_541 4433
#define F_0_765 6270
#define F_0_899 7373
#define F_1_175 9633
#define F_1_501 12299
#define F_1_847 15137
#define F_1_961 16069
#define F_2_053 16819
#define F_2_562 20995
#define F_3_072 25172

#define FRACTION 13 /* fraction bits of the constants */
#define KEPT     2  /* additional bits kept by the first pass */

static int16_t wrap(int32_t v)
{
    return (int16_t)(uint16_t)v;
}

static int16_t saturate(int32_t v)
{
    return (int16_t)(v < INT16_MIN ? INT16_MIN : v > INT16_MAX ? INT16_MAX : v);
}

/* Transforms eight values, `step` apart, in place and rounds away `shift` bits. No sum overflows 32
 * bits, whatever the input. */
static void transform(int16_t *v, int step, int shift)
{
    const int32_t in0 = v[0], in1 = v[step], in2 = v[2 * step], in3 = v[3 * step];
    const int32_t in4 = v[4 * step], in5 = v[5 * step], in6 = v[6 * step], in7 = v[7 * step];
    const int32_t half = 1 << (shift - 1);

    const int32_t sum = wrap(in0 + in4) * (1 << FRACTION);
    const int32_t difference = wrap(in0 - in4) * (1 << FRACTION);
    const int32_t even2 = in2 * F_0_541 + in6 * (F_0_541 - F_1_847);
    const int32_t even3 = in2 * (F_0_541 + F_0_765) + in6 * F_0_541;
    const int32_t even[4] = {sum + even3, difference + even2, difference - even2, sum - even3};

    const int32_t z3 = wrap(in7 + in3), z4 = wrap(in5 + in1);
    const int32_t y3 = z3 * (F_1_175 - F_1_961) + z4 * F_1_175;
    const int32_t y4 = z3 * F_1_175 + z4 * (F_1_175 - F_0_390);
    const int32_t odd[4] = {
        in7 * -F_0_899 + in1 * (F_1_501 - F_0_899) + y4,
        in5 * -F_2_562 + in3 * (F_3_072 - F_2_562) + y3,
        in5 * (F_2_053 - F_2_562) + in3 * -F_2_562 + y4,
        in7 * (F_0_298 - F_0_899) + in1 * -F_0_899 + y3,
    };
    for (int i = 0; i < 4; i++) {
        v[i * step] = saturate((even[i] + odd[i] + half) >> shift);
        v[(7 - i) * step] = saturate((even[i] - odd[i] + half) >> shift);
    }
}

/* Converts the coefficients of one block to 8 rows of samples, `stride` bytes apart. */
static void block_samples(uint8_t *samples, size_t stride, const int16_t *coefficients,
                          const uint16_t *quantization)
{
    int16_t v[DCT_BLOCK];
    bool flat = true; /* all columns have only a DC coefficient */
    for (unsigned i = 0; i < DCT_BLOCK; i++) {
        v[i] = wrap((int32_t)((uint32_t)(int32_t)coefficients[i] * quantization[i]));
        flat = flat && (i < 8 || coefficients[i] == 0);
    }
    for (int column = 0; column < 8; column++) {
        if (!flat) {
            transform(v + column, 8, FRACTION - KEPT);
            continue;
        }
        for (int row = 7; row >= 0; row--)
            v[8 * row + column] = wrap(v[column] * (1 << KEPT));
    }
    for (int row = 0; row < 8; row++) {
        transform(v + 8 * row, 1, FRACTION + KEPT + 3);
        for (int column = 0; column < 8; column++) {
            const int sample = v[8 * row + column];
            samples[row * stride + (size_t)column] = (uint8_t)((sample < -128  ? -128
                                                                : sample > 127 ? 127
                                                                               : sample) +
                                                               128);
        }
    }
}

/* --- upsampling and colours ------------------------------------------------------------------ */

struct plane {
    const uint8_t *samples;
    size_t stride;
    uint32_t width, height; /* visible samples */
};

static uint32_t nearer(uint32_t v, int step, uint32_t size)
{
    return step < 0 ? v - (v > 0) : v + (v + 1 < size);
}

/* The upsampled plane at a pixel: in each subsampled direction, 3/4 of the nearest sample and 1/4
 * of the next one. */
static int32_t upsampled(const struct plane *plane, uint32_t x, uint32_t y, unsigned across,
                         unsigned down)
{
    if (across == 1)
        return plane->samples[y * plane->stride + x];
    const uint32_t near_x = x / 2, far_x = nearer(near_x, x % 2 ? 1 : -1, plane->width);
    const uint32_t near_y = down == 2 ? y / 2 : y;
    const uint8_t *near = plane->samples + near_y * plane->stride;
    if (down == 1)
        return (3 * near[near_x] + near[far_x] + (x % 2 ? 2 : 1)) >> 2;
    const uint8_t *far =
        plane->samples + nearer(near_y, y % 2 ? 1 : -1, plane->height) * plane->stride;
    return (3 * (3 * near[near_x] + far[near_x]) + 3 * near[far_x] + far[far_x] +
            (x % 2 ? 7 : 8)) >>
           4;
}

static uint8_t limit(int32_t v)
{
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

static void put_pixel(uint8_t *pixel, enum dct_colour colour, int32_t a, int32_t b, int32_t c)
{
    if (colour == DCT_YCC) {
        b -= 128;
        c -= 128;
        pixel[0] = limit(a + ((91881 * c + 32768) >> 16));
        pixel[1] = limit(a + ((-22554 * b - 46802 * c + 32768) >> 16));
        pixel[2] = limit(a + ((116130 * b + 32768) >> 16));
        return;
    }
    pixel[0] = (uint8_t)a;
    pixel[1] = (uint8_t)b;
    pixel[2] = (uint8_t)c;
}

void dct_pixels(uint8_t *pixels, uint8_t *samples, const void *coefficients,
                const struct dct_layout *layout)
{
    const uint16_t *tables = coefficients;
    const int16_t *block = (const int16_t *)(tables + DCT_COMPONENTS * DCT_BLOCK);
    struct plane plane[DCT_COMPONENTS] = {{0}};
    for (unsigned c = 0; c < DCT_COMPONENTS; c++) {
        const uint32_t across = c ? layout->across : 1, down = c ? layout->down : 1;
        plane[c] = (struct plane){samples, 8 * (size_t)layout->blocks_across[c],
                                  (layout->width + across - 1) / across,
                                  (layout->height + down - 1) / down};
        for (uint32_t y = 0; y < layout->blocks_down[c]; y++) {
            for (uint32_t x = 0; x < layout->blocks_across[c]; x++, block += DCT_BLOCK)
                block_samples(samples + 8 * y * plane[c].stride + 8 * (size_t)x, plane[c].stride,
                              block, tables + c * DCT_BLOCK);
        }
        samples += DCT_BLOCK * dct_component_blocks(layout, c);
    }
    for (uint32_t y = 0; y < layout->height; y++) {
        for (uint32_t x = 0; x < layout->width; x++, pixels += 3) {
            const int32_t first = plane[0].samples[y * plane[0].stride + x];
            int32_t second = first, third = first;
            if (layout->colour != DCT_GREY) {
                second = upsampled(&plane[1], x, y, layout->across, layout->down);
                third = upsampled(&plane[2], x, y, layout->across, layout->down);
            }
            put_pixel(pixels, layout->colour, first, second, third);
        }
    }
}
