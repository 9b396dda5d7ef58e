/* test_tiles.c: counting tiles by rows and columns of a grid agrees with the tiles that are made
 * cell by cell. */
#include "runner.h"
#include "test_devices.h"

#include "base/random.h"
#include "device/histogram.h"

#define TRIES 300

static uint32_t below(uint32_t most, uint32_t *state)
{
    return (random_next(state) >> 8) % most;
}

static void check_parts(const struct histogram *histogram, uint32_t *state)
{
    for (unsigned i = 0; i < TRIES; i++) {
        struct histogram_part part = {.width = 1 + below(i % 2 ? 40 : 3000, state),
                                      .height = 1 + below(i % 2 ? 40 : 3000, state),
                                      .orientation = (uint8_t)(1 + i % 8)};
        part.rect.x0 = i % 3 ? 0 : below(part.width, state);
        part.rect.x1 = i % 3 ? part.width : part.rect.x0 + below(part.width, state) % 50;
        part.rect.y0 = below(part.height, state);
        part.rect.y1 = part.rect.y0 + below(part.height, state);
        part.rect.y1 = part.rect.y1 < part.height ? part.rect.y1 : part.height;
        part.rect.x1 = part.rect.x1 < part.width ? part.rect.x1 : part.width;
        part.stride = 3 * (part.rect.x1 - part.rect.x0) + (i % 5 == 0) * 6;
        for (unsigned p = 0; p < histogram->count; p++)
            assert_int_equal(histogram_tile_count(histogram, p, &part),
                             histogram_tiles(NULL, histogram, p, &part, 0));
    }
}

static void test_counts_agree(void **state)
{
    static const char *const specs[] = {"gray",           "a=gray:grid=2x3",   "b=gray:grid=7x7",
                                        "c=rgb:grid=1x5", "d=gray:grid=50x40", "e=gray:grid=256x2"};
    const struct ocl_devices *devices = *state;
    struct error err = ERROR_INIT;
    struct ocl_context *context;
    struct feature_set features = {0};
    struct histogram *histogram;
    uint32_t random = test_seed();
    for (unsigned i = 0; i < sizeof specs / sizeof *specs; i++)
        assert_int_equal(feature_set_add(&features, specs[i], NORMALIZE_NONE, &err), STATUS_OK);
    assert_int_equal(ocl_context_open(&context, &devices->device[0], NULL, &err), STATUS_OK);
    const enum histogram_variant variants[] = {HISTOGRAM_PRIVATE, HISTOGRAM_GLOBAL};
    for (unsigned v = 0; v < 2; v++) {
        const struct histogram_config config = {
            .features = &features, .variant = variants[v], .launch_bytes = 8u << 20};
        if (histogram_open(&histogram, context, &config, &err) != STATUS_OK)
            fail_msg("%s", err.sentence);
        check_parts(histogram, &random);
        histogram_close(&histogram);
    }
    ocl_context_close(&context);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_counts_agree)};
TEST_GROUP(tiles, test_devices_open, test_devices_close)
