/* test_feature.c: feature specifications, grid cells of rotated pictures compared with a check of
 * each pixel, and stored values compared with their formula. */
#include "runner.h"

#include "features/feature.h"
#include "features/kind.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* --- specifications -------------------------------------------------------------------------- */

static void good_specs(void **state)
{
    (void)state;
    static const struct {
        const char *spec, *name, *canonical;
        const struct feature_kind *kind;
        uint32_t cell_bins, cells;
    } good[] = {
        {"rgb", "rgb_256", "rgb:bins=256,grid=1x1,normalize=l1", &feature_rgb, 768, 1},
        {"rgb:bins=8x8x8", "rgb_8x8x8", "rgb:bins=8x8x8,grid=1x1,normalize=l1", &feature_rgb_joint,
         512, 1},
        {"rgb:bins=12,grid=3x3", "rgb_12_3x3", "rgb:bins=12,grid=3x3,normalize=l1", &feature_rgb,
         36, 9},
        {"gray:bins=100,normalize=none", "gray_100", "gray:bins=100,grid=1x1,normalize=none",
         &feature_gray, 100, 1},
        {"hsv", "hsv_8x4x4", "hsv:bins=8x4x4,grid=1x1,normalize=l1", &feature_hsv, 128, 1},
        /* Options may follow a comma directly if there are no bins. */
        {"hsv,grid=2x5", "hsv_8x4x4_2x5", "hsv:bins=8x4x4,grid=2x5,normalize=l1", &feature_hsv, 128,
         10},
        {"My-name_1.x=gray:normalize=hellinger,grid=1x256,bins=1", "My-name_1.x",
         "gray:bins=1,grid=1x256,normalize=hellinger", &feature_gray, 1, 256},
        {"rgb:bins=1x1x1", "rgb_1x1x1", "rgb:bins=1x1x1,grid=1x1,normalize=l1", &feature_rgb_joint,
         1, 1},
        {"hsv:bins=256x64x1", "hsv_256x64x1", "hsv:bins=256x64x1,grid=1x1,normalize=l1",
         &feature_hsv, 16384, 1},
    };
    for (size_t i = 0; i < COUNT(good); i++) {
        struct feature_set set = {0};
        struct error err = ERROR_INIT;
        if (feature_set_add(&set, good[i].spec, NORMALIZE_L1, &err) != STATUS_OK)
            fail_msg("%s: %s", good[i].spec, err.sentence);
        const struct feature *feature = &set.feature[0];
        assert_int_equal(set.count, 1);
        assert_string_equal(feature->name, good[i].name);
        assert_string_equal(feature->spec, good[i].canonical);
        assert_ptr_equal(feature->kind, good[i].kind);
        assert_int_equal(feature->cell_bins, good[i].cell_bins);
        assert_int_equal(feature->grid_rows * feature->grid_columns, good[i].cells);
        assert_int_equal(feature->dimension, good[i].cell_bins * good[i].cells);
        assert_int_equal(set.counters, feature->dimension);
        /* The canonical form gives the same feature. */
        struct feature_set again = {0};
        assert_int_equal(feature_set_add(&again, feature->spec, NORMALIZE_NONE, &err), STATUS_OK);
        assert_ptr_equal(again.feature[0].kind, feature->kind);
        assert_memory_equal(again.feature[0].bins, feature->bins, sizeof feature->bins);
        assert_int_equal(again.feature[0].normalize, feature->normalize);
        assert_string_equal(again.feature[0].spec, feature->spec);
    }
}

/* The spec is refused with a sentence that contains it and `why`; the set does not change. */
static void check_refused(struct feature_set *set, const char *spec, const char *why)
{
    struct feature_set before = *set;
    struct error err = ERROR_INIT;
    if (feature_set_add(set, spec, NORMALIZE_L1, &err) != STATUS_USAGE)
        fail_msg("'%s' is accepted", spec);
    char start[64];
    snprintf(start, sizeof start, "feature '%.40s", spec);
    if (!strstr(err.sentence, start) || !strstr(err.sentence, why))
        fail_msg("'%s': %s", spec, err.sentence);
    assert_memory_equal(set, &before, sizeof before);
}

static void bad_specs(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"", "no kind ''"},
        {"rg", "there are rgb, gray, hsv, lab, "},
        {"RGB", "no kind 'RGB'"},
        {"rgb ", "no kind 'rgb '"},
        {"=rgb", "'' is not a valid name"},
        {"a b=rgb", "'a b' is not a valid name"},
        {"a/b=rgb", "'a/b' is not a valid name"},
        {"..=rgb", "do not begin with a dot"},
        {"\xc3\xa4=rgb", "is not a valid name"},
        {"a=b=rgb", "no kind 'b=rgb'"},
        {"rgb:", "'' is not an option"},
        {"rgb:bins", "'bins' is not an option"},
        {"rgb:8x8x8", "'8x8x8' is not an option; did you mean bins=8x8x8?"},
        {"rgb_8x8x8", "that is the name of a feature; its SPEC is rgb:bins=8x8x8"},
        {"gray_12_3x2", "its SPEC is gray:bins=12,grid=3x2"},
        {"rgb_x_y", "no kind 'rgb_x_y'"},
        {"rgb:bins=8,", "'' is not an option"},
        {"rgb:bin=8", "'bin' is not an option"},
        {"rgb:bins=", "one number or AxBxC"},
        {"rgb:bins=0", "each 1 to 256"},
        {"rgb:bins=257", "each 1 to 256"},
        {"rgb:bins=-1", "each 1 to 256"},
        {"rgb:bins=8.0", "each 1 to 256"},
        {"rgb:bins=8x8", "AxBxC"},
        {"rgb:bins=8x8x", "AxBxC"},
        {"rgb:bins=8xx8", "AxBxC"},
        {"rgb:bins=8x8x8x8", "AxBxC"},
        {"rgb:bins=8x8x257", "each 1 to 256"},
        {"rgb:bins=8x0x8", "each 1 to 256"},
        {"rgb:bins=18446744073709551617", "each 1 to 256"},
        {"rgb:bins=00000000000000000000000000000000000000000000000000000000000000000008", "AxBxC"},
        {"rgb:bins=256x64x2", "32768 bins; a joint histogram has at most 16384"},
        {"rgb:bins=256x256x256", "16777216 bins"},
        {"hsv:bins=8", "hsv takes bins=AxBxC"},
        {"gray:bins=2x2x2", "gray takes one number"},
        {"rgb:grid=3", "ROWSxCOLUMNS"},
        {"rgb:grid=0x3", "ROWSxCOLUMNS"},
        {"rgb:grid=3x257", "each 1 to 256"},
        {"rgb:grid=3x3x3", "ROWSxCOLUMNS"},
        {"rgb:normalize=L1", "none, l1 or hellinger"},
        {"rgb:normalize=", "none, l1 or hellinger"},
        {"rgb:bins=8:grid=2x2", "one number or AxBxC"},
        /* One more value per image than allowed. */
        {"gray:bins=65,grid=256x256", "4259840 values per image; at most 4194304"},
        {"rgb:bins=256x64x1,grid=256x256", "1073741824 values per image"},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct feature_set set = {0};
        check_refused(&set, bad[i][0], bad[i][1]);
    }
}

static void long_texts(void **state)
{
    (void)state;
    struct feature_set set = {0};
    struct error err = ERROR_INIT;
    char spec[5000], longest[FEATURE_NAME_MAX];
    memset(longest, 'n', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    snprintf(spec, sizeof spec, "%s=rgb", longest);
    assert_int_equal(feature_set_add(&set, spec, NORMALIZE_L1, &err), STATUS_OK);
    assert_string_equal(set.feature[0].name, longest);
    snprintf(spec, sizeof spec, "n%s=rgb", longest);
    check_refused(&set, spec, "names have 1 to 63");
    memset(spec, 'r', sizeof spec);
    spec[sizeof spec - 1] = '\0';
    check_refused(&set, spec, "too long");
}

/* The levels of a pyramid are sums of the cells that are counted. */
static void levels_are_sums_of_cells(void **state)
{
    (void)state;
    static const uint32_t levels[] = {1, 2, 3};
    static const uint32_t sizes[][2] = {{1, 1}, {2, 5}, {12, 7}, {31, 64}};
    struct error err = ERROR_INIT;
    struct feature_set set = {0};
    assert_int_equal(feature_set_add(&set, "gray:bins=3,levels=1+2+3", NORMALIZE_NONE, &err),
                     STATUS_OK);
    const struct feature *feature = &set.feature[0];
    assert_string_equal(feature->name, "gray_3_1-2-3");
    assert_string_equal(feature->spec, "gray:bins=3,levels=1+2+3,normalize=none");
    assert_int_equal(feature->grid_rows, 4);
    assert_int_equal(feature->words, 16 * 3);
    assert_int_equal(feature->dimension, 14 * 3);
    assert_int_equal(set.counters, 16 * 3);
    assert_int_equal(set.values, 14 * 3);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        const uint32_t width = sizes[i][0], height = sizes[i][1];
        uint8_t pixels[3 * 31 * 64];
        uint32_t words[48] = {0}, stored[42];
        for (size_t b = 0; b < sizeof pixels; b++)
            pixels[b] = (uint8_t)(b * b >> 3);
        for (uint8_t orientation = 1; orientation <= 8; orientation++) {
            const uint32_t *at = stored;
            memset(words, 0, sizeof words);
            feature_count_reference(words, feature, pixels, 3 * width, width, height, orientation);
            assert_true(feature_store_values(stored, feature, words));
            for (size_t l = 0; l < COUNT(levels); l++) {
                struct feature_set one = {0};
                uint32_t wanted[27] = {0};
                char spec[64];
                snprintf(spec, sizeof spec, "gray:bins=3,grid=%ux%u", levels[l], levels[l]);
                assert_int_equal(feature_set_add(&one, spec, NORMALIZE_NONE, &err), STATUS_OK);
                feature_count_reference(wanted, &one.feature[0], pixels, 3 * width, width, height,
                                        orientation);
                assert_memory_equal(at, wanted, one.feature[0].words * sizeof *wanted);
                at += one.feature[0].words;
            }
        }
    }
}

static void several_features(void **state)
{
    (void)state;
    struct feature_set set = {0};
    struct error err = ERROR_INIT;
    uint32_t counters = 0;
    for (unsigned i = 0; i < FEATURE_MAX; i++) {
        char spec[32];
        snprintf(spec, sizeof spec, "gray:bins=%u,grid=2x%u", 10 + i, i + 1);
        assert_int_equal(feature_set_add(&set, spec, NORMALIZE_HELLINGER, &err), STATUS_OK);
        assert_int_equal(set.feature[i].normalize, NORMALIZE_HELLINGER);
        assert_int_equal(set.feature[i].offset, counters);
        counters += (10 + i) * 2 * (i + 1);
        assert_int_equal(set.counters, counters);
    }
    check_refused(&set, "rgb", "more than 16 features");

    /* Names are dataset names: no two may be equal, whether given or derived. */
    memset(&set, 0, sizeof set);
    assert_int_equal(feature_set_add(&set, "rgb:bins=8", NORMALIZE_L1, &err), STATUS_OK);
    check_refused(&set, "rgb:bins=8,normalize=none", "the name rgb_8 is taken");
    check_refused(&set, "rgb_8=hsv", "the name rgb_8 is taken; give it another as NAME=hsv");
    assert_int_equal(feature_set_add(&set, "counts=rgb:bins=8,normalize=none", NORMALIZE_L1, &err),
                     STATUS_OK);

    /* The maximum number of values per image, for one feature and for all together. */
    memset(&set, 0, sizeof set);
    assert_int_equal(feature_set_add(&set, "gray:bins=64,grid=256x256", NORMALIZE_L1, &err),
                     STATUS_OK);
    assert_int_equal(set.counters, FEATURE_DIMENSION_MAX);
    check_refused(&set, "gray:bins=1", "all features together");
}

static void words(void **state)
{
    (void)state;
    enum feature_normalize normalize = NORMALIZE_NONE;
    for (int i = 0; i < 3; i++) {
        assert_true(
            feature_normalize_parse(&normalize, feature_normalize_name((enum feature_normalize)i)));
        assert_int_equal(normalize, i);
    }
    assert_false(feature_normalize_parse(&normalize, "l2"));
    assert_int_equal(normalize, NORMALIZE_HELLINGER);
    char text[16];
    struct feature feature = {.bins = {256, 64, 1}};
    assert_string_equal(feature_bins_text(text, sizeof text, &feature), "256x64x1");
}

/* --- cells ----------------------------------------------------------------------------------- */

/* Computes where a stored pixel is in the upright picture. EXIF 2.32, "Orientation", says at which
 * edges of the upright picture row 0 and column 0 of the stored one are. */
static void upright(uint32_t *ux, uint32_t *uy, uint32_t x, uint32_t y, uint32_t width,
                    uint32_t height, uint8_t orientation)
{
    uint32_t right = width - 1 - x, bottom = height - 1 - y;
    const uint32_t to[9][2] = {
        {x, y},          /* not set */
        {x, y},          /* 1: row 0 top, column 0 left */
        {right, y},      /* 2: top, right */
        {right, bottom}, /* 3: bottom, right */
        {x, bottom},     /* 4: bottom, left */
        {y, x},          /* 5: left, top */
        {bottom, x},     /* 6: right, top */
        {bottom, right}, /* 7: right, bottom */
        {y, right},      /* 8: left, bottom */
    };
    *ux = to[orientation][0];
    *uy = to[orientation][1];
}

/* Each pixel is in exactly one cell, the one that the formula gives. */
static void check_cells(uint32_t width, uint32_t height, uint32_t rows, uint32_t columns,
                        uint8_t orientation)
{
    struct feature feature = {.grid_rows = rows, .grid_columns = columns};
    bool swapped = orientation >= 5;
    uint32_t upright_width = swapped ? height : width, upright_height = swapped ? width : height;
    uint64_t area = 0;
    for (uint32_t cell = 0; cell < rows * columns; cell++) {
        struct cell_rect rect =
            feature_cell_rect(&feature, cell / columns, cell % columns, width, height, orientation);
        assert_true(rect.x0 <= rect.x1 && rect.x1 <= width);
        assert_true(rect.y0 <= rect.y1 && rect.y1 <= height);
        area += (uint64_t)(rect.x1 - rect.x0) * (rect.y1 - rect.y0);
    }
    assert_int_equal(area, width * height);
    for (uint32_t y = 0; y < height; y++) {
        for (uint32_t x = 0; x < width; x++) {
            uint32_t ux, uy;
            upright(&ux, &uy, x, y, width, height, orientation);
            struct cell_rect rect =
                feature_cell_rect(&feature, uy * rows / upright_height,
                                  ux * columns / upright_width, width, height, orientation);
            if (x < rect.x0 || x >= rect.x1 || y < rect.y0 || y >= rect.y1)
                fail_msg("%u x %u, grid %u x %u, orientation %u: pixel (%u, %u) is not in its cell",
                         width, height, rows, columns, orientation, x, y);
        }
    }
}

static void cells_of_rotated_pictures(void **state)
{
    (void)state;
    static const uint32_t size[][2] = {{1, 1}, {1, 13}, {7, 1}, {5, 3}, {13, 7}, {17, 31}, {32, 9}};
    static const uint32_t grid[][2] = {{1, 1}, {2, 2}, {3, 3}, {2, 5},
                                       {7, 1}, {1, 4}, {9, 8}, {256, 255}};
    for (uint8_t orientation = 1; orientation <= 8; orientation++)
        for (size_t s = 0; s < COUNT(size); s++)
            for (size_t g = 0; g < COUNT(grid); g++)
                check_cells(size[s][0], size[s][1], grid[g][0], grid[g][1], orientation);
}

static void cells_of_the_largest_pictures(void **state)
{
    (void)state;
    struct feature feature = {.grid_rows = 256, .grid_columns = 3};
    uint32_t side = UINT32_MAX;
    for (uint8_t orientation = 1; orientation <= 8; orientation++) {
        uint64_t rows = 0;
        for (uint32_t row = 0; row < 256; row++) {
            struct cell_rect rect = feature_cell_rect(&feature, row, 1, side, side, orientation);
            bool swapped = orientation >= 5;
            uint32_t along = swapped ? rect.x1 - rect.x0 : rect.y1 - rect.y0;
            uint32_t across = swapped ? rect.y1 - rect.y0 : rect.x1 - rect.x0;
            assert_int_equal(across, side / 3);
            assert_true(along == side / 256 || along == side / 256 + 1);
            rows += along;
        }
        assert_int_equal(rows, side);
    }
}

/* --- values ---------------------------------------------------------------------------------- */

static uint32_t bits(float value)
{
    uint32_t word;
    memcpy(&word, &value, sizeof word);
    return word;
}

/* Checks all cells of a feature bit for bit; returns how many values single precision would get
 * wrong. */
static unsigned check_values(const char *spec, const uint32_t *counters)
{
    struct feature_set set = {0};
    struct error err = ERROR_INIT;
    assert_int_equal(feature_set_add(&set, spec, NORMALIZE_L1, &err), STATUS_OK);
    const struct feature *feature = &set.feature[0];
    float *stored = calloc(feature->dimension, sizeof *stored);
    assert_non_null(stored);
    feature_store_values(stored, feature, counters);
    unsigned delicate = 0;
    uint32_t channels = feature->kind == &feature_rgb ? 3 : 1;
    for (uint32_t start = 0; start < feature->dimension; start += feature->cell_bins) {
        uint64_t pixels = 0; /* in the cell: each is counted once per channel */
        for (uint32_t i = 0; i < feature->cell_bins / channels; i++)
            pixels += counters[start + i];
        for (uint32_t i = start; i < start + feature->cell_bins; i++) {
            double share = pixels ? (double)counters[i] / (double)pixels : 0;
            float single = pixels ? (float)counters[i] / (float)pixels : 0;
            if (feature->normalize == NORMALIZE_HELLINGER) {
                share = sqrt(share);
                single = sqrtf(single);
            }
            if (bits(stored[i]) != bits((float)share))
                fail_msg("%s, value %u: %a instead of %a", spec, i, (double)stored[i],
                         (double)(float)share);
            delicate += bits(single) != bits((float)share);
        }
    }
    free(stored);
    return delicate;
}

static void shares_and_roots_are_rounded_once(void **state)
{
    (void)state;
    enum { BINS = 100, CELLS = 4 };
    uint32_t gray[CELLS * BINS], rgb[3 * CELLS * BINS];
    uint32_t seed = 1;
    unsigned delicate[2] = {0, 0};
    for (unsigned round = 0; round < 200; round++) {
        for (uint32_t cell = 0; cell < CELLS; cell++) {
            for (uint32_t i = 0; i < BINS; i++) {
                seed = seed * 1664525u + 1013904223u;
                /* Includes empty bins and cells, and counts that float32 cannot represent. */
                uint32_t count = cell == 3 ? 0 : seed >> 8 >> (seed % 25);
                gray[cell * BINS + i] = count;
                /* The other channels have the same number of pixels in other bins. */
                for (uint32_t channel = 0; channel < 3; channel++)
                    rgb[(cell * 3 + channel) * BINS + (i * (4 * channel + 3) + round) % BINS] =
                        count;
            }
        }
        delicate[0] += check_values("gray:bins=100,grid=2x2", gray);
        delicate[1] += check_values("gray:bins=100,grid=2x2,normalize=hellinger", gray);
        check_values("rgb:bins=100,grid=2x2", rgb);
        check_values("rgb:bins=100,grid=4x1,normalize=hellinger", rgb);
    }
    /* The data include values for which single precision would give another result. */
    assert_true(delicate[0] > 100 && delicate[1] > 100);
}

static void known_values(void **state)
{
    (void)state;
    struct feature_set set = {0};
    struct error err = ERROR_INIT;
    assert_int_equal(feature_set_add(&set, "gray:bins=3", NORMALIZE_L1, &err), STATUS_OK);
    assert_int_equal(feature_set_add(&set, "h=gray:bins=3", NORMALIZE_HELLINGER, &err), STATUS_OK);
    assert_int_equal(feature_set_add(&set, "n=gray:bins=3", NORMALIZE_NONE, &err), STATUS_OK);
    const uint32_t counts[3] = {1, 0, 2}, large[3] = {UINT32_MAX, UINT32_MAX, 2};
    float values[3];
    feature_store_values(values, &set.feature[0], counts);
    assert_int_equal(bits(values[0]), 0x3eaaaaab); /* 1/3 */
    assert_int_equal(bits(values[1]), 0);
    assert_int_equal(bits(values[2]), 0x3f2aaaab);
    feature_store_values(values, &set.feature[1], counts);
    assert_int_equal(bits(values[0]), 0x3f13cd3a); /* sqrt(1/3) */
    feature_store_values(values, &set.feature[0], large);
    assert_int_equal(bits(values[0]), 0x3f000000); /* 2^33 pixels do not overflow */
    uint32_t raw[3];
    feature_store_values(raw, &set.feature[2], large);
    assert_memory_equal(raw, large, sizeof raw);
}

/* --- the reference --------------------------------------------------------------------------- */

/* The bin of one pixel: the index of the only nonzero counter. */
static uint32_t bin_of(const char *spec, uint8_t r, uint8_t g, uint8_t b)
{
    struct feature_set set = {0};
    struct error err = ERROR_INIT;
    static uint32_t counters[16384];
    const uint8_t pixel[3] = {r, g, b};
    assert_int_equal(feature_set_add(&set, spec, NORMALIZE_NONE, &err), STATUS_OK);
    memset(counters, 0, sizeof counters);
    feature_count_reference(counters, &set.feature[0], pixel, 3, 1, 1, 1);
    uint32_t found = UINT32_MAX;
    for (uint32_t i = 0; i < set.counters; i++) {
        if (counters[i] == 0)
            continue;
        assert_int_equal(counters[i], 1);
        assert_int_equal(found, UINT32_MAX);
        found = i;
    }
    assert_int_not_equal(found, UINT32_MAX);
    return found;
}

/* Computed by hand from the formulas. */
static void bins_of_single_pixels(void **state)
{
    (void)state;
    assert_int_equal(bin_of("rgb:bins=8x4x2", 255, 128, 127), (7 * 4 + 2) * 2 + 0);
    assert_int_equal(bin_of("gray:bins=256", 255, 255, 255), 255);
    assert_int_equal(bin_of("gray:bins=256", 1, 0, 1), 0);  /* 234 >> 8 */
    assert_int_equal(bin_of("gray:bins=256", 1, 1, 0), 1);  /* 355 >> 8 */
    assert_int_equal(bin_of("gray:bins=10", 0, 255, 0), 5); /* 149 * 10 >> 8 */
    /* Hue from 0 to 359 in 180 bins, with one bin each for saturation and value. */
    assert_int_equal(bin_of("hsv:bins=180x1x1", 255, 0, 0), 0);
    assert_int_equal(bin_of("hsv:bins=180x1x1", 0, 255, 0), 60);
    assert_int_equal(bin_of("hsv:bins=180x1x1", 0, 0, 255), 120);
    assert_int_equal(bin_of("hsv:bins=180x1x1", 255, 0, 1), 179);   /* floor(-60 / 255) = -1 */
    assert_int_equal(bin_of("hsv:bins=180x1x1", 255, 0, 255), 150); /* R is first of the largest */
    assert_int_equal(bin_of("hsv:bins=180x1x1", 0, 255, 255), 90);  /* G is first: 180 */
    assert_int_equal(bin_of("hsv:bins=180x1x1", 254, 255, 0), 30);  /* 120 + floor(-59.8) = 60 */
    /* Values where rounding down and truncation give different bins, for each largest channel. */
    assert_int_equal(bin_of("hsv:bins=180x1x1", 255, 0, 10), 178); /* 360 + floor(-2.35) = 357 */
    assert_int_equal(bin_of("hsv:bins=180x1x1", 1, 255, 0), 59);   /* 120 + floor(-0.24) = 119 */
    assert_int_equal(bin_of("hsv:bins=180x1x1", 0, 1, 255), 119);  /* 240 + floor(-0.24) = 239 */
    assert_int_equal(bin_of("hsv:bins=180x1x1", 77, 77, 77), 0);
    assert_int_equal(bin_of("hsv:bins=1x256x1", 0, 0, 0), 0);
    assert_int_equal(bin_of("hsv:bins=1x256x1", 200, 100, 133), 128); /* (25500 + 100) / 200 */
    assert_int_equal(bin_of("hsv:bins=1x1x256", 3, 200, 100), 200);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(good_specs),
    cmocka_unit_test(bad_specs),
    cmocka_unit_test(long_texts),
    cmocka_unit_test(several_features),
    cmocka_unit_test(levels_are_sums_of_cells),
    cmocka_unit_test(words),
    cmocka_unit_test(cells_of_rotated_pictures),
    cmocka_unit_test(cells_of_the_largest_pictures),
    cmocka_unit_test(shares_and_roots_are_rounded_once),
    cmocka_unit_test(known_values),
    cmocka_unit_test(bins_of_single_pixels),
};
TEST_GROUP(feature, NULL, NULL)
