/* test_pages_palette.c: palettes of centroids and of pixels. */
#include "runner.h"

#include "report/pages_palette.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct palette_cells cells;

static int clear_cells(void **state)
{
    (void)state;
    memset(&cells, 0, sizeof cells);
    return 0;
}

static void assert_colour(const struct palette *palette, unsigned i, int r, int g, int b,
                          double share)
{
    assert_true(i < palette->count);
    const uint8_t *rgb = palette->colour[i].rgb;
    if (abs(rgb[0] - r) > 1 || abs(rgb[1] - g) > 1 || abs(rgb[2] - b) > 1 ||
        fabs((double)palette->colour[i].share - share) > 1e-3)
        fail_msg("colour %u is %u %u %u at %.4f", i, rgb[0], rgb[1], rgb[2],
                 (double)palette->colour[i].share);
}

static void colours_by_weight(void **state)
{
    (void)state;
    struct palette palette;
    palette_find(&palette, &cells);
    assert_int_equal(palette.count, 0);
    palette_add(&cells, 200, 10, 10, 3);
    palette_add(&cells, 10, 10, 200, 1);
    palette_add(&cells, 0, 255, 0, 0.01); /* less than 2 % */
    palette_find(&palette, &cells);
    assert_int_equal(palette.count, 2);
    assert_colour(&palette, 0, 200, 10, 10, 0.75);
    assert_colour(&palette, 1, 10, 10, 200, 0.25);
}

static void centroids_of_rgb(void **state)
{
    (void)state;
    struct palette palette;
    struct result_feature feature = {.kind = "rgb", .bins = "2x2x2", .normalize = "l1"};
    /* Red 0.64 and blue 0.36 in the space of square roots. */
    const float centroid[8] = {0, 0.6F, 0, 0, 0.8F};
    assert_true(palette_add_centroid(&cells, &feature, "hellinger", centroid, 8));
    palette_find(&palette, &cells);
    assert_int_equal(palette.count, 2);
    assert_colour(&palette, 0, 191, 64, 64, 0.64);
    assert_colour(&palette, 1, 64, 64, 191, 0.36);
    /* The two cells of the grid are added. */
    clear_cells(NULL);
    strcpy(feature.grid, "1x2");
    const float twice[16] = {[4] = 0.25F, [12] = 0.75F};
    assert_true(palette_add_centroid(&cells, &feature, "euclidean", twice, 16));
    palette_find(&palette, &cells);
    assert_int_equal(palette.count, 1);
    assert_colour(&palette, 0, 191, 64, 64, 1);
}

static void centroids_of_hsv(void **state)
{
    (void)state;
    struct palette palette;
    const struct result_feature feature = {.kind = "hsv", .bins = "6x1x1", .normalize = "l1"};
    const float centroid[6] = {[2] = 1}; /* hue 150, half saturated, half bright */
    assert_true(palette_add_centroid(&cells, &feature, "euclidean", centroid, 6));
    palette_find(&palette, &cells);
    assert_int_equal(palette.count, 1);
    assert_colour(&palette, 0, 64, 128, 96, 1);
}

static void other_features_have_no_colours(void **state)
{
    (void)state;
    const float values[768] = {1};
    const struct result_feature three = {.kind = "rgb", .bins = "256", .normalize = "l1"};
    const struct result_feature grey = {.kind = "gray", .bins = "256", .normalize = "l1"};
    const struct result_feature wrong = {.kind = "rgb", .bins = "8x8x8", .normalize = "l1"};
    assert_false(palette_add_centroid(&cells, &three, "euclidean", values, 768));
    assert_false(palette_add_centroid(&cells, &grey, "euclidean", values, 256));
    assert_false(palette_add_centroid(&cells, &wrong, "euclidean", values, 511));
    const struct decode_options options = {.max_pixels = UINT64_MAX, .scale = 4};
    struct decode *decode;
    assert_int_equal(decode_open(&decode, &options, NULL), STATUS_OK);
    palette_add_jpeg(&cells, decode, (const uint8_t *)"\xff\xd8\xff no picture", 14);
    decode_close(&decode);
    struct palette palette;
    palette_find(&palette, &cells);
    assert_int_equal(palette.count, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(colours_by_weight, clear_cells),
    cmocka_unit_test_setup(centroids_of_rgb, clear_cells),
    cmocka_unit_test_setup(centroids_of_hsv, clear_cells),
    cmocka_unit_test_setup(other_features_have_no_colours, clear_cells),
};

TEST_GROUP(pages_palette, NULL, NULL)
