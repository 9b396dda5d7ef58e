/* test_thumbnail.c: thumbnails of drawn pictures, decoded by the library and compared with the
 * picture. */
#include "base/random.h"
#include "decode/dct.h"
#include "decode/dct_synthetic.h"
#include "decode/shrink.h"
#include "decode/thumbnail.h"
#include "runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

struct pixels {
    uint32_t width, height;
    uint8_t *rgb;
};

/* A smooth picture that differs in each corner and channel. */
static struct pixels draw(uint32_t width, uint32_t height)
{
    struct pixels out = {width, height, malloc((size_t)width * height * 3)};
    assert_non_null(out.rgb);
    for (uint32_t y = 0; y < height; y++) {
        for (uint32_t x = 0; x < width; x++) {
            uint8_t *at = out.rgb + ((size_t)y * width + x) * 3;
            at[0] = (uint8_t)(x * 255 / width);
            at[1] = (uint8_t)(y * 255 / height);
            at[2] = (uint8_t)((x * 2 < width) == (y * 3 < height) ? 60 : 200);
        }
    }
    return out;
}

static struct pixels decode(const uint8_t *jpeg, uint32_t bytes)
{
    struct jpeg_decompress_struct in;
    struct jpeg_error_mgr errors;
    struct pixels out;
    in.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&in);
    jpeg_mem_src(&in, jpeg, bytes);
    jpeg_read_header(&in, TRUE);
    in.out_color_space = JCS_RGB;
    jpeg_start_decompress(&in);
    out = (struct pixels){in.output_width, in.output_height,
                          malloc((size_t)in.output_width * in.output_height * 3)};
    while (in.output_scanline < in.output_height) {
        JSAMPROW row = out.rgb + (size_t)in.output_scanline * out.width * 3;
        jpeg_read_scanlines(&in, &row, 1);
    }
    jpeg_finish_decompress(&in);
    jpeg_destroy_decompress(&in);
    return out;
}

static uint8_t *make(uint32_t *bytes, const struct pixels *picture, uint8_t orientation,
                     uint32_t size, uint32_t strip)
{
    struct thumbnail_maker *maker = thumbnail_maker_new(size, false);
    assert_non_null(maker);
    const size_t stride = (size_t)picture->width * 3;
    thumbnail_begin(maker, picture->width, picture->height, orientation);
    for (uint32_t y = 0; y < picture->height; y += strip)
        thumbnail_rows(maker, picture->rgb + y * stride, stride,
                       picture->height - y < strip ? picture->height - y : strip);
    uint8_t *jpeg = thumbnail_finish(maker, bytes);
    thumbnail_maker_free(maker);
    return jpeg;
}

/* The mean squared difference between the thumbnail and the picture, sampled at the centre of each
 * thumbnail pixel. */
static double difference(const struct pixels *thumbnail, const struct pixels *picture)
{
    double sum = 0;
    for (uint32_t y = 0; y < thumbnail->height; y++) {
        for (uint32_t x = 0; x < thumbnail->width; x++) {
            /* One sample is sufficient because the picture is smooth except for two lines. */
            const uint32_t px = (2 * x + 1) * picture->width / (2 * thumbnail->width);
            const uint32_t py = (2 * y + 1) * picture->height / (2 * thumbnail->height);
            for (unsigned c = 0; c < 3; c++) {
                const int d = thumbnail->rgb[((size_t)y * thumbnail->width + x) * 3 + c] -
                              picture->rgb[((size_t)py * picture->width + px) * 3 + c];
                sum += d * d;
            }
        }
    }
    return sum / (3.0 * thumbnail->width * thumbnail->height);
}

static void test_size_and_pixels(void **state)
{
    (void)state;
    static const uint32_t sizes[][4] = {
        {500, 375, 160, 120}, {375, 500, 120, 160}, {160, 160, 160, 160}, {161, 90, 160, 89},
        {50, 20, 50, 20},     {4000, 300, 160, 12}, {3, 2000, 1, 160},    {1, 1, 1, 1},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct pixels picture = draw(sizes[i][0], sizes[i][1]);
        uint32_t bytes;
        uint8_t *jpeg = make(&bytes, &picture, 1, 160, 37);
        assert_non_null(jpeg);
        struct pixels thumbnail = decode(jpeg, bytes);
        assert_int_equal(thumbnail.width, sizes[i][2]);
        assert_int_equal(thumbnail.height, sizes[i][3]);
        if (sizes[i][2] > 8 && sizes[i][3] > 8)
            assert_true(difference(&thumbnail, &picture) < 150);
        free(jpeg);
        free(thumbnail.rgb);
        free(picture.rgb);
    }
}

/* The bytes do not depend on how the rows are divided. */
static void test_strips(void **state)
{
    (void)state;
    struct pixels picture = draw(1111, 777);
    uint32_t bytes[3];
    uint8_t *jpeg[3];
    static const uint32_t strips[3] = {777, 1, 100};
    for (unsigned i = 0; i < 3; i++) {
        jpeg[i] = make(&bytes[i], &picture, 1, 64, strips[i]);
        assert_int_equal(bytes[i], bytes[0]);
        assert_memory_equal(jpeg[i], jpeg[0], bytes[0]);
    }
    for (unsigned i = 0; i < 3; i++)
        free(jpeg[i]);
    free(picture.rgb);
}

/* Computes where pixel (x, y) of the upright picture is stored. The orientation tag says at which
 * edges of the upright picture row 0 and column 0 of the stored one are. */
static void stored_place(uint32_t *row, uint32_t *column, uint8_t orientation, uint32_t x,
                         uint32_t y, uint32_t width, uint32_t height)
{
    const uint32_t right = width - 1 - x, bottom = height - 1 - y;
    static const struct {
        char row, column;
    } edges[9] = {{0, 0},     {'t', 'l'}, {'t', 'r'}, {'b', 'r'}, {'b', 'l'},
                  {'l', 't'}, {'r', 't'}, {'r', 'b'}, {'l', 'b'}};
    const char *names = "tblr";
    const uint32_t distance[4] = {y, bottom, x, right};
    *row = distance[strchr(names, edges[orientation].row) - names];
    *column = distance[strchr(names, edges[orientation].column) - names];
}

static void test_orientations(void **state)
{
    (void)state;
    struct pixels upright = draw(300, 200);
    for (uint8_t orientation = 1; orientation <= 8; orientation++) {
        const bool swapped = orientation >= 5;
        struct pixels stored = {swapped ? 200 : 300, swapped ? 300 : 200,
                                malloc((size_t)300 * 200 * 3)};
        for (uint32_t y = 0; y < 200; y++) {
            for (uint32_t x = 0; x < 300; x++) {
                uint32_t row, column;
                stored_place(&row, &column, orientation, x, y, 300, 200);
                memcpy(stored.rgb + ((size_t)row * stored.width + column) * 3,
                       upright.rgb + ((size_t)y * 300 + x) * 3, 3);
            }
        }
        uint32_t bytes;
        uint8_t *jpeg = make(&bytes, &stored, orientation, 96, 64);
        struct pixels thumbnail = decode(jpeg, bytes);
        assert_int_equal(thumbnail.width, 96);
        assert_int_equal(thumbnail.height, 64);
        assert_true(difference(&thumbnail, &upright) < 150);
        free(jpeg);
        free(thumbnail.rgb);
        free(stored.rgb);
    }
    free(upright.rgb);
}

static void test_incomplete_pictures_have_none(void **state)
{
    (void)state;
    struct thumbnail_maker *maker = thumbnail_maker_new(64, false);
    struct pixels picture = draw(100, 100);
    uint32_t bytes = 1;
    assert_null(thumbnail_finish(maker, &bytes));
    assert_int_equal(bytes, 0);
    thumbnail_begin(maker, 100, 100, 1);
    thumbnail_rows(maker, picture.rgb, 300, 99);
    assert_null(thumbnail_finish(maker, &bytes));
    /* The next thumbnail is unaffected, and rows beyond the last are ignored. */
    thumbnail_begin(maker, 100, 50, 1);
    thumbnail_rows(maker, picture.rgb, 300, 100);
    uint8_t *jpeg = thumbnail_finish(maker, &bytes);
    assert_non_null(jpeg);
    free(jpeg);
    thumbnail_maker_free(maker);
    thumbnail_begin(NULL, 1, 1, 1);
    thumbnail_rows(NULL, picture.rgb, 300, 1);
    assert_null(thumbnail_finish(NULL, &bytes));
    thumbnail_maker_free(NULL);
    free(picture.rgb);
}

/* --- coefficients ---------------------------------------------------------------------------- */

/* The largest difference between the reduced picture and means of f x f pixels of the full
 * picture. */
static double reduced_difference(const struct dct_layout *layout, const void *coefficients,
                                 uint32_t f)
{
    struct reduced reduced = {NULL, 0};
    uint32_t width, height;
    uint8_t *full = malloc((size_t)layout->width * layout->height * 3);
    uint8_t *samples = malloc(64 * dct_blocks(layout));
    dct_pixels(full, samples, coefficients, layout);
    const uint8_t *small = reduced_pixels(&reduced, &width, &height, coefficients, layout,
                                          layout->width / f, layout->height / f);
    assert_non_null(small);
    assert_int_equal(width, (layout->width + f - 1) / f);
    assert_int_equal(height, (layout->height + f - 1) / f);
    double worst = 0;
    for (uint32_t y = 0; y < layout->height / f; y++) {
        for (uint32_t x = 0; x < layout->width / f; x++) {
            for (unsigned c = 0; c < 3; c++) {
                double sum = 0;
                for (uint32_t j = 0; j < f * f; j++)
                    sum += full[((size_t)(y * f + j / f) * layout->width + x * f + j % f) * 3 + c];
                const double d = sum / (f * f) - small[((size_t)y * width + x) * 3 + c];
                worst = d > worst ? d : -d > worst ? -d : worst;
            }
        }
    }
    reduced_clear(&reduced);
    free(full);
    free(samples);
    return worst;
}

/* Only the lowest frequencies have coefficients, small enough that no value is clamped. */
static void test_reduced_pixels(void **state)
{
    (void)state;
    static const enum dct_colour colours[] = {DCT_GREY, DCT_YCC, DCT_RGB};
    uint32_t random = RANDOM_START + test_seed();
    for (unsigned k = 0; k < 3; k++) {
        struct dct_layout layout = {
            .colour = colours[k], .width = 61, .height = 45, .across = 1, .down = 1};
        dct_synthetic_blocks(&layout);
        uint16_t *table = aligned_alloc(128, (dct_bytes(&layout) + 127) / 128 * 128);
        assert_non_null(table);
        memset(table, 0, dct_bytes(&layout));
        for (unsigned i = 0; i < DCT_COMPONENTS * DCT_BLOCK; i++)
            table[i] = 3;
        int16_t *block = (int16_t *)(table + DCT_COMPONENTS * DCT_BLOCK);
        for (uint64_t b = 0; b < dct_blocks(&layout); b++, block += DCT_BLOCK) {
            block[0] = (int16_t)((int)(random_next(&random) >> 8 & 127) - 64);
            block[1] = (int16_t)((int)(random_next(&random) >> 8 & 15) - 8);
            block[8] = (int16_t)((int)(random_next(&random) >> 8 & 15) - 8);
        }
        /* At full size, two roundings differ; reduced, an 8-point cosine also differs from a
         * 4-point one. */
        assert_true(reduced_difference(&layout, table, 1) <= 2);
        assert_true(reduced_difference(&layout, table, 2) <= 4);
        assert_true(reduced_difference(&layout, table, 4) <= 5);
        assert_true(reduced_difference(&layout, table, 8) <= 2);
        free(table);
    }
}

/* Coefficients of any magnitude, subsampled or not, are harmless and give a thumbnail of the right
 * size. */
static void test_hostile_coefficients(void **state)
{
    (void)state;
    uint32_t random = RANDOM_START + test_seed();
    for (uint8_t across = 1; across <= 2; across++) {
        struct dct_layout layout = {
            .colour = DCT_YCC, .width = 301, .height = 77, .across = across, .down = across};
        dct_synthetic_blocks(&layout);
        uint16_t *table = aligned_alloc(128, (dct_bytes(&layout) + 127) / 128 * 128);
        assert_non_null(table);
        for (size_t i = 0; i < dct_bytes(&layout) / 2; i++)
            table[i] = (uint16_t)(random_next(&random) >> 8);
        for (uint32_t size = 16; size <= 1024; size *= 4) {
            struct thumbnail_maker *maker = thumbnail_maker_new(size, false);
            uint32_t bytes, width = 77, height = 301;
            thumbnail_begin(maker, 301, 77, 6);
            thumbnail_coefficients(maker, table, &layout);
            uint8_t *jpeg = thumbnail_finish(maker, &bytes);
            assert_non_null(jpeg);
            struct pixels thumbnail = decode(jpeg, bytes);
            shrink_dimensions(&width, &height, size);
            assert_int_equal(thumbnail.width, width);
            assert_int_equal(thumbnail.height, height);
            free(thumbnail.rgb);
            free(jpeg);
            thumbnail_maker_free(maker);
        }
        free(table);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_size_and_pixels), cmocka_unit_test(test_strips),
    cmocka_unit_test(test_orientations),    cmocka_unit_test(test_incomplete_pictures_have_none),
    cmocka_unit_test(test_reduced_pixels),  cmocka_unit_test(test_hostile_coefficients),
};
TEST_GROUP(thumbnail, NULL, NULL)
