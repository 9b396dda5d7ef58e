/* test_kind.c: a new feature kind needs only one file and one table row, and a kernel of its own if
 * necessary. This file has three kinds, whose table replaces that of kinds.c: one with neighbours,
 * one that makes values of its words, and one that learns a codebook. */
#include "runner.h"

#include "base/random.h"
#include "device/blur_step.h"
#include "device/histogram.h"
#include "device/selftest.h"
#include "features/codebook.h"
#include "features/kind.h"
#include "ingest/ingest.h"
#include "result/codebooks.h"
#include "result/identity.h"
#include "result/result.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static uint32_t luma(const uint8_t *p)
{
    return (77u * p[0] + 150u * p[1] + 29u * p[2] + 128) >> 8;
}

/* --- neighbours: counts the least luma of 3x3 pixels ------------------------------------------ */

static void count_minimum(uint32_t *words, const struct feature *feature, const uint8_t *pixel,
                          size_t stride)
{
    uint32_t least = 255;
    for (uint32_t n = 0; n < 9; n++) {
        const uint32_t here = luma(pixel + n / 3 * stride + 3 * (size_t)(n % 3));
        least = here < least ? here : least;
    }
    words[least * feature->bins[0] >> 8]++;
}

static const struct feature_kind minimum = {
    .name = "minimum",
    .bins = {256},
    .channels = 1,
    .border = 2,
    .macro = "MINIMUM",
    .header = "histogram_bins_gray.h",
    .kernel = "minimum",
    .count = count_minimum,
    .examples = {"minimum:bins=256", "m=minimum:bins=20,grid=3x2"},
};

/* --- values: the sum of all samples of each cell ---------------------------------------------- */

static void add_samples(uint32_t *words, const struct feature *feature, const uint8_t *pixel,
                        size_t stride)
{
    (void)feature;
    (void)stride;
    words[0] += (uint32_t)pixel[0] + pixel[1] + pixel[2];
}

static bool finish_total(void *values, const struct feature *feature, const uint32_t *words)
{
    for (uint32_t i = 0; i < feature->dimension; i++)
        ((float *)values)[i] = (float)words[i] / 0x1000000;
    return true;
}

static const struct feature_kind total = {
    .name = "total",
    .bins = {1},
    .macro = "CORNER",
    .kernel = "total",
    .count = add_samples,
    .finish = finish_total,
    .examples = {"total:grid=4x3"},
};

/* --- a codebook: counts pixels by the nearest of several lumas, minus 128 --------------------- */

static void count_nearest(uint32_t *words, const struct feature *feature, const uint8_t *pixel,
                          size_t stride)
{
    (void)stride;
    const struct feature_codebook *codebook = feature->codebook;
    const uint8_t here = (uint8_t)luma(pixel);
    int8_t projected;
    codebook_project(&projected, codebook, &here);
    words[codebook_nearest(codebook, &projected)]++;
}

/* The descriptor of a pixel is its luma. */
static void describe_luma(uint8_t *out, const struct descriptor_picture *picture, uint32_t x,
                          uint32_t y, uint32_t side)
{
    (void)side;
    *out = (uint8_t)luma(picture->pixels + y * picture->stride + 3 * (size_t)x);
}

static const struct descriptor lumas = {.name = "luma-1",
                                        .columns = 1,
                                        .projected = 1,
                                        .step = 1,
                                        .side = {1},
                                        .describe = describe_luma};

static const struct feature_kind nearest = {
    .name = "nearest",
    .count = count_nearest,
    .descriptor = &lumas,
};

/* Learns a codebook, but counts lumas in 4 bins whatever it has learned, to test how codebooks are
 * stored. */
static void count_lumas(uint32_t *words, const struct feature *feature, const uint8_t *pixel,
                        size_t stride)
{
    (void)feature;
    (void)stride;
    words[luma(pixel) * 4 >> 8]++;
}

static const struct feature_kind learned = {
    .name = "learned",
    .scale = 256,
    .bins = {4},
    .channels = 1,
    .macro = "GRAY",
    .header = "histogram_bins_gray.h",
    .count = count_lumas,
    .descriptor = &lumas,
};

const struct feature_kind *const feature_kinds[] = {
    &feature_rgb, &feature_gray, &minimum, &total, &nearest, &learned, NULL,
};

/* --- specifications -------------------------------------------------------------------------- */

static void add(struct feature_set *set, const char *spec)
{
    struct error err = ERROR_INIT;
    if (feature_set_add(set, spec, NORMALIZE_L1, &err) != STATUS_OK)
        fail_msg("%s: %s", spec, err.sentence);
}

static void only_kinds_of_the_table_exist(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct feature_set set = {0};
    assert_int_equal(feature_set_add(&set, "hsv", NORMALIZE_L1, &err), STATUS_USAGE);
    assert_string_equal(err.sentence, "feature 'hsv': there is no kind 'hsv'; there are rgb, gray, "
                                      "minimum, total, nearest and learned");
    add(&set, "rgb");
    add(&set, "minimum:bins=7,grid=1x2");
    add(&set, "gray");
    add(&set, "total:grid=2x2,normalize=none");
    assert_string_equal(set.feature[1].name, "minimum_7_1x2");
    assert_string_equal(set.feature[1].spec, "minimum:bins=7,grid=1x2,normalize=l1");
    assert_int_equal(set.feature[1].dimension, 14);
    assert_string_equal(set.feature[3].spec, "total:bins=1,grid=2x2,normalize=none");
    /* The others are computed from the same image, which has no border. */
    const struct feature_image *image = &set.feature[0].image;
    assert_int_equal(image->border, 0);
    assert_int_equal(set.feature[1].image.border, 2);
    assert_true(feature_image_equal(image, &set.feature[3].image));
    assert_false(feature_image_equal(image, &set.feature[1].image));
    assert_int_equal(feature_histograms(&set.feature[0]), 3);
    assert_int_equal(feature_histograms(&set.feature[1]), 1);
    assert_int_equal(feature_histograms(&set.feature[3]), 0);
}

static void values_are_finished_by_their_kind(void **state)
{
    (void)state;
    struct feature_set set = {0};
    add(&set, "total:grid=1x3");
    add(&set, "raw=total:grid=1x3,normalize=none");
    const uint32_t words[3] = {0x800000, 0, 0xc00000};
    float values[3];
    uint32_t raw[3];
    feature_store_values(values, &set.feature[0], words);
    assert_true(values[0] == 0.5f && values[1] == 0 && values[2] == 0.75f);
    feature_store_values(raw, &set.feature[1], words);
    assert_memory_equal(raw, words, sizeof words);
}

/* --- on devices ------------------------------------------------------------------------------ */

#define WIDTH  301u /* counted; the picture has 2 more columns and rows, which the minimum needs */
#define HEIGHT 97u
#define BORDER 2u
#define STRIDE (3 * (WIDTH + BORDER))
#define TILES  4096u

struct device_test {
    struct ocl_devices devices;
    struct ocl_context *context;
    struct ocl_queue *queue;
    cl_mem pixels, tiles, counters;
    uint8_t picture[STRIDE * (HEIGHT + BORDER)];
};

/* Adds the words of one part, which is alone in the buffer. */
static void add_part(uint32_t *words, struct device_test *test, struct histogram *histogram,
                     const struct feature_set *features, struct cell_rect rect, uint8_t orientation)
{
    struct error err = ERROR_INIT;
    static struct histogram_tile tiles[TILES];
    static uint8_t pixels[sizeof test->picture];
    const uint32_t border = features->feature[0].image.border;
    const struct histogram_part part = {.width = WIDTH,
                                        .height = HEIGHT,
                                        .orientation = orientation,
                                        .rect = rect,
                                        .stride = 3 * (rect.x1 - rect.x0 + border)};
    const size_t bytes = features->counters * sizeof *words;
    uint32_t *got = malloc(bytes);
    assert_non_null(got);
    for (uint32_t y = rect.y0; y < rect.y1 + border; y++)
        memcpy(pixels + (size_t)(y - rect.y0) * part.stride,
               test->picture + (size_t)y * STRIDE + 3 * rect.x0, part.stride);
    assert_int_equal(ocl_enqueue_write(test->queue, "pixels", test->pixels, true, 0, sizeof pixels,
                                       pixels, OCL_NO_WAITS, NULL, &err),
                     STATUS_OK);
    assert_int_equal(ocl_enqueue_fill(test->queue, "zero", test->counters, 0, 0, bytes,
                                      OCL_NO_WAITS, NULL, &err),
                     STATUS_OK);
    for (unsigned p = 0; p < histogram->count; p++) {
        const uint32_t count = histogram_tiles(tiles, histogram, p, &part, 2048);
        assert_true(count <= TILES);
        assert_int_equal(ocl_enqueue_write(test->queue, "tiles", test->tiles, true, 0,
                                           count * sizeof *tiles, tiles, OCL_NO_WAITS, NULL, &err),
                         STATUS_OK);
        assert_int_equal(histogram_enqueue(histogram, p, test->queue, test->pixels, test->tiles, 0,
                                           count, test->counters, OCL_NO_WAITS, NULL, &err),
                         STATUS_OK);
        ocl_finish(test->queue);
    }
    assert_int_equal(ocl_enqueue_read(test->queue, "counters", test->counters, true, 0, bytes, got,
                                      OCL_NO_WAITS, NULL, &err),
                     STATUS_OK);
    for (uint32_t i = 0; i < features->counters; i++)
        words[i] += got[i];
    free(got);
}

/* A picture in strips, one of them in pieces of rows: the words of all parts add up to those of the
 * reference. */
static void check_parts(struct device_test *test, const struct feature_set *features,
                        uint8_t orientation)
{
    static const struct cell_rect parts[] = {{0, 0, WIDTH, 30},
                                             {0, 30, WIDTH, 31},
                                             {0, 31, 100, 60},
                                             {100, 31, WIDTH, 60},
                                             {0, 60, WIDTH, HEIGHT}};
    struct error err = ERROR_INIT;
    struct histogram *histogram;
    const struct histogram_config config = {.features = features, .launch_bytes = 1 << 20};
    uint32_t *words = calloc(features->counters, sizeof *words);
    uint32_t *want = calloc(features->counters, sizeof *want);
    assert_true(words && want);
    assert_int_equal(histogram_open(&histogram, test->context, &config, &err), STATUS_OK);
    if (histogram_build(histogram, &err) != STATUS_OK)
        fail_msg("%s", err.sentence);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        add_part(words, test, histogram, features, parts[i], orientation);
    for (unsigned f = 0; f < features->count; f++)
        feature_count_reference(want + features->feature[f].offset, &features->feature[f],
                                test->picture, STRIDE, WIDTH, HEIGHT, orientation);
    assert_memory_equal(words, want, features->counters * sizeof *words);
    histogram_close(&histogram);
    free(want);
    free(words);
}

static void neighbours_are_seen_across_parts(void **state)
{
    struct feature_set features = {0};
    add(&features, "minimum:bins=256");
    add(&features, "minimum:bins=9,grid=3x2");
    add(&features, "m=minimum:bins=33");
    check_parts(*state, &features, 1);
    check_parts(*state, &features, 6);
}

static void values_are_added_across_parts(void **state)
{
    struct feature_set features = {0};
    add(&features, "total:grid=5x4");
    add(&features, "total:grid=97x1");
    add(&features, "gray:bins=50,grid=5x4"); /* the same grid, counted by another kernel */
    check_parts(*state, &features, 1);
    check_parts(*state, &features, 7);
}

/* There is one plan per image; counters keep their positions. */
static void plans_are_for_one_image(void **state)
{
    struct device_test *test = *state;
    struct error err = ERROR_INIT;
    struct feature_set set = {0};
    struct histogram *histogram;
    add(&set, "gray");
    add(&set, "minimum");
    add(&set, "rgb");
    const struct feature_image *const image[] = {&set.feature[0].image, &set.feature[1].image};
    for (unsigned i = 0; i < 2; i++) {
        const struct histogram_config config = {
            .features = &set, .image = image[i], .launch_bytes = 1 << 20};
        unsigned planned = 0;
        assert_int_equal(histogram_open(&histogram, test->context, &config, &err), STATUS_OK);
        for (unsigned p = 0; p < histogram->count; p++) {
            const struct histogram_pass *pass = &histogram->pass[p];
            planned += pass->count;
            for (unsigned f = 0; f < pass->count; f++)
                assert_true(feature_image_equal(&set.feature[pass->feature[f]].image, image[i]));
            assert_true((strcmp(histogram_kernel(histogram, pass), "minimum") == 0) == (i == 1));
        }
        assert_int_equal(planned, i == 0 ? 2 : 1);
        histogram_close(&histogram);
    }
}

static void print_broken(const char *line, void *context)
{
    (void)context;
    printf("# %s\n", line);
}

static void show(const char *text, void *user)
{
    (void)user;
    printf("# %s\n", text);
}

static void the_self_test_uses_the_table(void **state)
{
    struct device_test *test = *state;
    struct error err = ERROR_INIT;
    uint64_t wrong = 1;
    if (histogram_self_test(test->context, true, show, NULL, &wrong, &err) != STATUS_OK)
        fail_msg("%s", err.sentence);
    assert_int_equal(wrong, 0);
}

/* --- an ingest ------------------------------------------------------------------------------- */

/* Widths and heights: without an interior, with one pixel of interior, small, large enough for
 * several strips, and large enough for pieces of rows. */
static const uint32_t sizes[][2] = {{1, 1},   {2, 40},  {3, 3},     {17, 31},
                                    {90, 64}, {64, 90}, {901, 700}, {70001, 7}};
#define PICTURES (sizeof sizes / sizeof *sizes)

static const char *const specs[] = {
    "gray:bins=16",
    "minimum:bins=16,grid=3x2",
    "total:grid=4x5",
    "smooth=minimum:bins=32,blur=3",
    "g=gray:bins=8,grid=2x2,blur=3",
};
#define SPECS (sizeof specs / sizeof *specs)

static char directory[] = "/tmp/toy_kind.XXXXXX";

static uint8_t *make_picture(uint32_t width, uint32_t height)
{
    const size_t bytes = (size_t)3 * width * height;
    uint8_t *pixels = malloc(bytes);
    uint32_t random = RANDOM_START;
    assert_non_null(pixels);
    for (size_t i = 0; i < bytes; i++)
        pixels[i] = (uint8_t)(random_next(&random) >> 24);
    return pixels;
}

static void write_pictures(void)
{
    for (size_t i = 0; i < PICTURES; i++) {
        char path[64];
        snprintf(path, sizeof path, "%s/in/%zu.ppm", directory, i);
        uint8_t *pixels = make_picture(sizes[i][0], sizes[i][1]);
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        fprintf(file, "P6 %u %u 255\n", sizes[i][0], sizes[i][1]);
        fwrite(pixels, 3 * sizes[i][0], sizes[i][1], file);
        assert_int_equal(fclose(file), 0);
        free(pixels);
    }
}

/* Computes the words of a feature with the reference, blurred if necessary. */
static void reference(uint32_t *words, const struct feature *feature, const uint8_t *pixels,
                      uint32_t width, uint32_t height)
{
    const uint32_t blur = feature->image.blur ? BLUR_BORDER : 0;
    const uint32_t border = blur + feature->image.border;
    uint8_t *blurred = NULL;
    size_t stride = (size_t)3 * width;
    memset(words, 0, feature->dimension * sizeof *words);
    if (width <= border || height <= border)
        return;
    if (blur) {
        blurred = malloc(stride * height);
        assert_non_null(blurred);
        blur_reference(blurred, (size_t)3 * (width - blur), pixels, stride, width - blur,
                       height - blur);
        stride = (size_t)3 * (width - blur);
    }
    feature_count_reference(words, feature, blurred ? blurred : pixels, stride, width - border,
                            height - border, 1);
    free(blurred);
}

static enum status find_devices(void *context, struct ocl_selection *found, struct error *err)
{
    static const unsigned chosen = 0;
    (void)err;
    *found = (struct ocl_selection){.devices = context, .chosen = &chosen, .count = 1};
    return STATUS_OK;
}

static void all_kinds_in_one_ingest(void **state)
{
    struct device_test *test = *state;
    struct error err = ERROR_INIT;
    struct ingest_report report;
    struct result *result;
    char in[64], out[64];
    snprintf(in, sizeof in, "%s/in", directory);
    snprintf(out, sizeof out, "%s/out.h5", directory);
    assert_int_equal(mkdir(in, 0777), 0);
    write_pictures();
    const char *sources[] = {in};
    struct ingest_config config = {.walk = {.sources = sources, .source_count = 1},
                                   .store = {.output = out, .content = {.parameters = "{}"}},
                                   .command_line = "test",
                                   .find_devices = find_devices,
                                   .find_devices_context = &test->devices,
                                   .threads = 2,
                                   .memory = 64u << 20,
                                   .slot_bytes = 1u << 20,
                                   .slot_count = 2};
    decode_options_default(&config.decode);
    for (size_t i = 0; i < SPECS; i++)
        assert_int_equal(feature_set_add(&config.features, specs[i], NORMALIZE_NONE, &err), 0);
    if (ingest_run(&report, &config, &err) != STATUS_OK)
        fail_msg("%s", err.sentence);
    assert_int_equal(report.images_ok, PICTURES);
    if (result_open(&result, out, &err) != STATUS_OK)
        fail_msg("%s", err.sentence);
    for (size_t i = 0; i < PICTURES; i++) {
        uint8_t *pixels = make_picture(sizes[i][0], sizes[i][1]);
        for (size_t f = 0; f < SPECS; f++) {
            const struct feature *feature = &config.features.feature[f];
            uint32_t got[128], want[128];
            assert_in_range(feature->dimension, 1, 128);
            reference(want, feature, pixels, sizes[i][0], sizes[i][1]);
            assert_int_equal(result_feature_read_counts(result_feature_find(result, feature->name),
                                                        i, 1, got, &err),
                             STATUS_OK);
            if (memcmp(got, want, feature->dimension * sizeof *got) != 0)
                fail_msg("%s of %u x %u differs", feature->spec, sizes[i][0], sizes[i][1]);
        }
        free(pixels);
    }
    result_close(&result);
}

/* --- codebooks ------------------------------------------------------------------------------- */

/* Makes a codebook of two words. */
static void make_codebook(struct feature_codebook *codebook, const char *descriptor)
{
    struct error err = ERROR_INIT;
    assert_int_equal(feature_codebook_allocate(codebook, descriptor, 1, 1, 2, &err), STATUS_OK);
    codebook->matrix[0] = 2;
    codebook->offset[0] = -256;
    codebook->shift = 1;
    for (unsigned w = 0; w < 2; w++) {
        codebook->word[w] = w == 0 ? -118 : 82;
        codebook->mean[w] = codebook->word[w];
        codebook->deviation[w] = 1;
        codebook->share[w] = 0.5;
    }
}

static void codebooks_are_part_of_the_spec(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct feature_set set = {0}, again = {0};
    struct feature_codebook codebook, other;
    add(&set, "nearest:words=2");
    struct feature *feature = &set.feature[0];
    make_codebook(&codebook, "luma-1");
    assert_int_equal(feature_bind_codebook(feature, &codebook, &err), STATUS_OK);
    assert_ptr_equal(feature->codebook, &codebook);
    const char spec[] = "nearest:words=2,grid=1x1,normalize=l1,codebook=";
    assert_memory_equal(feature->spec, spec, sizeof spec - 1);
    assert_int_equal(strlen(feature->spec), sizeof spec - 1 + FEATURE_DIGEST - 1);

    const uint8_t pixels[9] = {109, 109, 109, 111, 111, 111, 255, 255, 255};
    uint32_t words[2] = {0};
    feature_count_reference(words, feature, pixels, 9, 3, 1, 1);
    assert_int_equal(words[0], 1);
    assert_int_equal(words[1], 2);

    /* The spec of the feature names this codebook and accepts no other. */
    add(&again, feature->spec);
    assert_string_equal(again.feature[0].spec, feature->spec);
    assert_null(again.feature[0].codebook);
    assert_int_equal(feature_bind_codebook(&again.feature[0], &codebook, &err), STATUS_OK);
    make_codebook(&other, "luma-1");
    other.word[1]++;
    assert_int_equal(feature_bind_codebook(&again.feature[0], &other, &err), STATUS_FAILED);
    assert_ptr_equal(again.feature[0].codebook, &codebook);
    feature_codebook_clear(&other);
    feature_codebook_clear(&codebook);
    feature_codebook_clear(&codebook);
}

static void other_codebooks_are_refused(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct feature_set set = {0};
    struct feature_codebook codebook;
    add(&set, "nearest:words=3");
    const struct feature before = set.feature[0];
    make_codebook(&codebook, "luma-1");
    assert_int_equal(feature_bind_codebook(&set.feature[0], &codebook, &err), STATUS_FAILED);
    assert_non_null(strstr(err.sentence, "needs a codebook of 3 words, and this one has 2"));
    feature_codebook_clear(&codebook);
    make_codebook(&codebook, "luma-2");
    assert_int_equal(feature_bind_codebook(&set.feature[0], &codebook, &err), STATUS_FAILED);
    assert_non_null(strstr(err.sentence, "for luma-1, and this is one for luma-2"));
    feature_codebook_clear(&codebook);
    assert_string_equal(set.feature[0].spec, before.spec);
    assert_null(set.feature[0].codebook);

    assert_int_equal(feature_set_add(&set, "nearest", NORMALIZE_L1, &err), STATUS_USAGE);
    assert_non_null(strstr(err.sentence, "nearest takes words=K or fisher=K"));
    assert_int_equal(feature_set_add(&set, "nearest:bins=2,words=2", NORMALIZE_L1, &err),
                     STATUS_USAGE);
    assert_int_equal(feature_set_add(&set, "nearest:words=1", NORMALIZE_L1, &err), STATUS_USAGE);
    /* Kinds without a codebook do not have these options. */
    char spec[64];
    snprintf(spec, sizeof spec, "rgb:codebook=%032d", 0);
    assert_int_equal(feature_set_add(&set, spec, NORMALIZE_L1, &err), STATUS_USAGE);
    assert_non_null(strstr(err.sentence, "'codebook' is not an option"));
    assert_int_equal(feature_set_add(&set, "rgb:words=8", NORMALIZE_L1, &err), STATUS_USAGE);
    assert_non_null(strstr(err.sentence, "'words' is not an option"));
}

/* --- learning -------------------------------------------------------------------------------- */

#define SAMPLE_PICTURES 90u

static void write_sample(const char *in, uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++) {
        char path[96];
        snprintf(path, sizeof path, "%s/%03u.ppm", in, i);
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        /* Some cannot be decoded, and no two have the same colours. */
        fprintf(file, i % 7 == 3 ? "P6 9999 9999 255\n" : "P6 8 5 255\n");
        for (uint32_t p = 0; p < 120; p++)
            fputc((int)((i * 37 + p * (i + 3)) & 0xff), file);
        assert_int_equal(fclose(file), 0);
    }
}

static void stop_at_images(void *context, const struct ingest_progress *progress)
{
    if (strcmp(progress->phase, "images") == 0)
        stop_request(context, STOP_SIGNAL);
}

struct learning_test {
    struct ingest_config config;
    struct ingest_report report;
    char in[64], out[80];
    const char *sources[1];
};

static void begin_learning(struct learning_test *t, struct device_test *test, const char *name)
{
    snprintf(t->in, sizeof t->in, "%s/%s", directory, name);
    snprintf(t->out, sizeof t->out, "%s/%s.h5", directory, name);
    assert_int_equal(mkdir(t->in, 0777), 0);
    t->sources[0] = t->in;
    t->config = (struct ingest_config){
        .walk = {.sources = t->sources, .source_count = 1},
        .store = {.output = t->out, .content = {.parameters = "{}"}},
        .command_line = "test",
        .find_devices = find_devices,
        .find_devices_context = &test->devices,
        .threads = 3,
        .memory = 64u << 20,
    };
    decode_options_default(&t->config.decode);
    add(&t->config.features, "learned:words=4");
    add(&t->config.features, "s=learned:words=8,scale=16");
}

static enum status learn(struct learning_test *t)
{
    struct error err = ERROR_INIT;
    const enum status status = ingest_run(&t->report, &t->config, &err);
    if (status != STATUS_OK && status != STATUS_INTERRUPTED)
        fail_msg("%s", err.sentence);
    return status;
}

static void identity_of(char hex[65], const char *path)
{
    struct error err = ERROR_INIT;
    struct result *result;
    uint64_t broken = 1;
    if (result_open(&result, path, &err) != STATUS_OK ||
        result_identity(result, hex, &err) != STATUS_OK ||
        result_verify(result, print_broken, NULL, &broken, &err) != STATUS_OK)
        fail_msg("%s", err.sentence);
    assert_int_equal(broken, 0);
    result_close(&result);
}

/* The codebooks of a file are those of its features and depend only on the files. */
static void codebooks_are_learned_from_the_files_alone(void **state)
{
    struct error err = ERROR_INIT;
    struct learning_test t;
    struct result *result;
    struct codebooks codebooks;
    char identity[2][65];
    begin_learning(&t, *state, "alone");
    write_sample(t.in, 0, SAMPLE_PICTURES);
    assert_int_equal(learn(&t), STATUS_OK);
    assert_int_equal(t.report.sample, SAMPLE_PICTURES - 13);
    identity_of(identity[0], t.out);
    assert_int_equal(result_open(&result, t.out, &err), STATUS_OK);
    assert_int_equal(codebooks_read(&codebooks, result, NULL, &err), STATUS_OK);
    assert_int_equal(codebooks.count, 2);
    assert_string_equal(codebooks.stored[0].name, "learned_words4");
    assert_int_equal(codebooks.stored[1].codebook.words, 8);
    for (unsigned i = 0; i < 2; i++) {
        char digest[FEATURE_DIGEST];
        feature_codebook_digest(digest, &codebooks.stored[i].codebook);
        assert_non_null(strstr(result->features[i].spec, digest));
    }
    codebooks_clear(&codebooks);
    result_close(&result);

    t.config.threads = 1;
    t.config.slot_bytes = 1u << 20;
    t.config.slot_count = 2;
    t.config.store.fresh = true;
    assert_int_equal(learn(&t), STATUS_OK);
    identity_of(identity[1], t.out);
    assert_string_equal(identity[1], identity[0]);
}

/* An interrupted run continues with the codebooks that it has learned, even if it was interrupted
 * early. */
static void learned_codebooks_survive(void **state)
{
    struct error err = ERROR_INIT;
    struct learning_test t;
    struct stop stop = {0};
    struct codebooks before, after;
    struct result *result;
    char work[96], digest[2][FEATURE_DIGEST];
    begin_learning(&t, *state, "survive");
    write_sample(t.in, 0, SAMPLE_PICTURES);
    t.config.stop = &stop;
    t.config.progress = stop_at_images;
    t.config.progress_context = &stop;
    assert_int_equal(learn(&t), STATUS_INTERRUPTED);
    snprintf(work, sizeof work, "%s.partial", t.out);
    assert_int_equal(codebooks_read_log(&before, work, &err), STATUS_OK);
    assert_int_equal(before.count, 2);

    /* With these files, other codebooks would be learned now. */
    write_sample(t.in, SAMPLE_PICTURES, 60);
    t.config.stop = NULL;
    t.config.progress = NULL;
    assert_int_equal(learn(&t), STATUS_OK);
    assert_int_equal(t.report.sample, 0);
    assert_int_equal(result_open(&result, t.out, &err), STATUS_OK);
    assert_int_equal(codebooks_read(&after, result, NULL, &err), STATUS_OK);
    assert_int_equal(after.count, 2);
    for (unsigned i = 0; i < 2; i++) {
        feature_codebook_digest(digest[0], &before.stored[i].codebook);
        feature_codebook_digest(digest[1], &after.stored[i].codebook);
        assert_string_equal(digest[0], digest[1]);
    }
    codebooks_clear(&after);
    result_close(&result);

    t.config.store.fresh = true;
    assert_int_equal(learn(&t), STATUS_OK);
    assert_true(t.report.sample > 0);
    assert_int_equal(result_open(&result, t.out, &err), STATUS_OK);
    assert_int_equal(codebooks_read(&after, result, "learned_words4", &err), STATUS_OK);
    feature_codebook_digest(digest[0], &before.stored[0].codebook);
    feature_codebook_digest(digest[1], &after.stored[0].codebook);
    assert_string_not_equal(digest[0], digest[1]);
    codebooks_clear(&after);
    codebooks_clear(&before);
    result_close(&result);
}

/* Codebooks beside a log are used only if they are intact. */
static void damaged_codebooks_of_a_log_are_refused(void **state)
{
    struct error err = ERROR_INIT;
    struct learning_test t;
    struct stop stop = {0};
    char path[96];
    begin_learning(&t, *state, "damaged");
    write_sample(t.in, 0, 20);
    t.config.stop = &stop;
    t.config.progress = stop_at_images;
    t.config.progress_context = &stop;
    assert_int_equal(learn(&t), STATUS_INTERRUPTED);
    snprintf(path, sizeof path, "%s.partial/learned", t.out);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    /* Everything after the superblock. */
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    const long size = ftell(file);
    assert_int_equal(fseek(file, 96, SEEK_SET), 0);
    for (long i = 96; i < size; i++)
        assert_int_equal(fputc(0x55, file), 0x55);
    assert_int_equal(fclose(file), 0);
    t.config.stop = NULL;
    t.config.progress = NULL;
    assert_int_equal(ingest_run(&t.report, &t.config, &err), STATUS_FAILED);
    assert_non_null(strstr(err.sentence, "damaged"));
    assert_int_equal(err.remedy, REMEDY_START_OVER);
}

/* With too few images, the other features are used. */
static void few_images_get_other_features(void **state)
{
    struct error err = ERROR_INIT;
    struct learning_test t;
    struct result *result;
    struct ingest_few few = {.parameters = "{}", .preset = "{\"name\": \"few\"}"};
    begin_learning(&t, *state, "few");
    write_sample(t.in, 0, 40);
    add(&few.features, "gray:bins=5");
    t.config.few = &few;
    assert_int_equal(learn(&t), STATUS_OK);
    assert_true(t.report.few);
    assert_int_equal(result_open(&result, t.out, &err), STATUS_OK);
    assert_int_equal(result->feature_count, 1);
    assert_non_null(result_feature_find(result, "gray_5"));
    assert_string_equal(result->preset, few.preset);
    result_close(&result);
    /* Without alternative features, 20 images are sufficient. */
    t.config.few = NULL;
    t.config.store.fresh = true;
    assert_int_equal(learn(&t), STATUS_OK);
    assert_int_equal(t.report.sample, 34);
}

static int setup(void **state)
{
    struct error err = ERROR_INIT;
    struct device_test *test = calloc(1, sizeof *test);
    if (!test || ocl_devices_open(&test->devices, 2, &err) != STATUS_OK || test->devices.count == 0)
        return -1;
    uint32_t random = RANDOM_START;
    for (size_t i = 0; i < sizeof test->picture; i++) {
        random_next(&random);
        test->picture[i] = (uint8_t)(random >> 24);
    }
    *state = test;
    if (!mkdtemp(directory))
        return -1;
    return ocl_context_open(&test->context, &test->devices.device[0], NULL, &err) != STATUS_OK ||
           ocl_queue_open(&test->queue, test->context, "test", &err) != STATUS_OK ||
           ocl_buffer(&test->pixels, test->context, CL_MEM_READ_ONLY, sizeof test->picture, NULL,
                      "pixels", &err) != STATUS_OK ||
           ocl_buffer(&test->tiles, test->context, CL_MEM_READ_ONLY,
                      TILES * sizeof(struct histogram_tile), NULL, "tiles", &err) != STATUS_OK ||
           ocl_buffer(&test->counters, test->context, CL_MEM_READ_WRITE, 1 << 16, NULL, "counters",
                      &err) != STATUS_OK;
}

static int teardown(void **state)
{
    struct device_test *test = *state;
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", directory);
    const int status = system(command);
    ocl_buffer_release(&test->counters);
    ocl_buffer_release(&test->tiles);
    ocl_buffer_release(&test->pixels);
    ocl_queue_close(&test->queue);
    ocl_context_close(&test->context);
    ocl_devices_close(&test->devices);
    free(test);
    return status;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(only_kinds_of_the_table_exist),
    cmocka_unit_test(values_are_finished_by_their_kind),
    cmocka_unit_test(neighbours_are_seen_across_parts),
    cmocka_unit_test(values_are_added_across_parts),
    cmocka_unit_test(plans_are_for_one_image),
    cmocka_unit_test(the_self_test_uses_the_table),
    cmocka_unit_test(all_kinds_in_one_ingest),
    cmocka_unit_test(codebooks_are_part_of_the_spec),
    cmocka_unit_test(other_codebooks_are_refused),
    cmocka_unit_test(codebooks_are_learned_from_the_files_alone),
    cmocka_unit_test(learned_codebooks_survive),
    cmocka_unit_test(damaged_codebooks_of_a_log_are_refused),
    cmocka_unit_test(few_images_get_other_features),
};
TEST_GROUP_WITHIN(300, kind, setup, teardown)
