/* test_part.c: geometry of parts: strips and pieces cover each pixel of a picture exactly once. */
#include "runner.h"

#include "base/random.h"
#include "decode/part.h"
#include "decode/scale.h"

#include <stdlib.h>
#include <string.h>

#define SIDE 12

/* Counts how many parts own each pixel of the interior, which is smaller by `border`. */
static void check_strips(uint32_t width, uint32_t height, uint32_t rows, uint32_t columns,
                         uint32_t overlap, uint32_t border)
{
    uint8_t times[SIDE][SIDE] = {{0}};
    for (uint32_t y = 0, bottom = 0; bottom < height; y = bottom - overlap) {
        bottom = height - y > rows ? y + rows : height;
        for (uint32_t x = 0, right = 0; right < width; x = right - overlap) {
            right = width - x > columns ? x + columns : width;
            struct part_shape shape = {.width = width,
                                       .height = height,
                                       .rect = {x, y, right, bottom},
                                       .overlap = overlap};
            part_shrink(&shape, border);
            const struct cell_rect own = part_own(&shape);
            for (uint32_t j = own.y0; j < own.y1; j++)
                for (uint32_t i = own.x0; i < own.x1; i++)
                    times[j][i]++;
        }
    }
    for (uint32_t j = 0; j < SIDE; j++)
        for (uint32_t i = 0; i < SIDE; i++)
            assert_int_equal(times[j][i], i + border < width && j + border < height);
}

/* Parts that overlap by 3 own each pixel once, for borders from 0 to 3. Pictures with fewer pixels
 * than the border have no interior. */
static void test_each_pixel_has_one_owner(void **state)
{
    (void)state;
    for (uint32_t width = 1; width <= SIDE; width++)
        for (uint32_t height = 1; height <= SIDE; height++)
            for (uint32_t rows = 4; rows < 7; rows++)
                for (uint32_t border = 0; border <= 3; border++)
                    check_strips(width, height, rows, 10 - rows, 3, border);
}

/* Scaling rows that arrive in groups of any size gives the same result as scaling the whole
 * image. */
static void test_scaled_by_rows(void **state)
{
    (void)state;
    const struct {
        uint32_t width, height;
        scale_goal goal;
    } cases[] = {{1, 1, 16},
                 {16, 16, 16},
                 {17, 16, 16},
                 {33, 31, 16},
                 {640, 480, 64},
                 {3, 900, 17},
                 {900, 3, 17},
                 {257, 129, 128},
                 {5000, 3400, 64},
                 {20, 4000, 16},
                 {640, 480, scale_to(60, 50, 0)},
                 {640, 481, scale_to(60, 50, 875)},
                 {5000, 3400, scale_to(64, 64, 500)},
                 {30, 900, scale_to(32, 32, 0)},
                 {900, 30, scale_to(20, 32, 875)}};
    uint32_t random = test_seed();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint32_t width = cases[i].width, height = cases[i].height;
        if (test_brief() && i > 8 && width == 5000)
            continue;
        const size_t stride = 3 * (size_t)width + 5, bytes = stride * height;
        uint8_t *pixels = malloc(bytes), *wanted = malloc(bytes > 16384 ? bytes : 16384);
        struct scaler scaler;
        assert_true(pixels && wanted);
        for (size_t b = 0; b < bytes; b++)
            pixels[b] = b / 64 % 2 ? 255 : (uint8_t)(random_next(&random) >> 24);
        const uint8_t orientation = (uint8_t)(1 + i % 8);
        assert_true(scaler_begin(&scaler, width, height, orientation, cases[i].goal));
        for (uint32_t y = 0, rows; y < height; y += rows) {
            rows = 1 + (random_next(&random) >> 8) % (height - y);
            scaler_rows(&scaler, pixels + y * stride, stride, rows);
        }
        scale_reference(wanted, &scaler.window, pixels, stride, width, height, orientation);
        assert_memory_equal(scaler.pixels, wanted,
                            3 * (size_t)scaler.window.width * scaler.window.height);
        scaler_clear(&scaler);
        free(wanted);
        free(pixels);
    }
}

static void test_shapes(void **state)
{
    (void)state;
    struct part_shape shape = {.width = 5, .height = 7, .rect = {0, 2, 5, 6}, .overlap = 2};
    part_set_rgb(&shape);
    assert_int_equal(shape.payload, PAYLOAD_RGB);
    assert_int_equal(shape.stride, 15);
    assert_int_equal(shape.bytes, 60);
    assert_false(part_is_whole(&shape));
    const struct cell_rect own = part_own(&shape);
    assert_int_equal(own.y0, 2);
    assert_int_equal(own.y1, 4);
    assert_int_equal(own.x1, 5);
    shape.rect = (struct cell_rect){0, 0, 5, 7};
    assert_true(part_is_whole(&shape));
    part_shrink(&shape, 2);
    assert_int_equal(shape.width, 3);
    assert_int_equal(shape.height, 5);
    assert_int_equal(shape.overlap, 0);
    assert_int_equal(shape.stride, 15); /* the pixel layout is unchanged */
    part_shrink(&shape, 4);
    assert_int_equal(shape.width, 0);
    assert_int_equal(shape.rect.x1, 0);
    assert_int_equal(shape.rect.y1, 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_shapes),
    cmocka_unit_test(test_scaled_by_rows),
    cmocka_unit_test(test_each_pixel_has_one_owner),
};
TEST_GROUP(part, NULL, NULL)
