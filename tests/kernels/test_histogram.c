/* test_histogram.c: the histogram kernels on all devices. Run it under Oclgrind, too. */
#include "runner.h"

#include "base/random.h"
#include "device/histogram.h"
#include "device/selftest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES   2097152u /* 2^21 */
#define WIDTH     2048u
#define TILES_MAX 1024u

static void show(const char *text, void *user)
{
    printf("  %s: %s\n", (const char *)user, text);
}

/* The simulator is a hundred times slower. */
static bool is_simulator(const struct ocl_device *device)
{
    return strstr(device->name, "Oclgrind");
}

static void test_every_variant_equals_the_reference(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct ocl_devices devices;
    assert_int_equal(ocl_devices_open(&devices, 2, &err), STATUS_OK);
    assert_true(devices.count > 0);
    for (unsigned i = 0; i < devices.count; i++) {
        if (!devices.device[i].usable)
            continue;
        struct ocl_context *context;
        uint64_t wrong = 1;
        assert_int_equal(ocl_context_open(&context, &devices.device[i], NULL, &err), STATUS_OK);
        const bool brief = is_simulator(&devices.device[i]) || test_brief();
        enum status status =
            histogram_self_test(context, brief, show, devices.device[i].name, &wrong, &err);
        if (status != STATUS_OK)
            fail_msg("%s", err.sentence);
        assert_int_equal(wrong, 0);
        ocl_context_close(&context);
    }
    ocl_devices_close(&devices);
}

/* Contents of the pixels. */
enum fill { FILL_RANDOM, FILL_CONSTANT, FILL_SORTED, FILL_SIXTEENS, FILLS };

/* Blocks of sixteen pixels with one colour, each with one wrong byte of 48, at a different position
 * in each block; then four alternating colours, which look like one colour if compared every 12
 * bytes; and some blocks without an error. */
static uint32_t sixteens(uint32_t pixel)
{
    const uint32_t flaw = pixel / 16 % 64, from = pixel % 16 * 3, colour = pixel / 256 & 1;
    uint32_t value = colour ? 0x20c85a : 0x11f3ff;
    if (flaw >= from && flaw < from + 3)
        value ^= 1u << 8 * (flaw - from);
    return flaw == 48 ? 0x30507 * (pixel % 4) : value;
}

static void fill_pixels(uint8_t *pixels, enum fill fill)
{
    uint32_t state = 88172645u;
    for (uint32_t i = 0; i < SAMPLES; i++) {
        random_next(&state);
        uint32_t sorted = i / (SAMPLES / 256) * 0x10101;
        uint32_t pixel = fill == FILL_RANDOM     ? state
                         : fill == FILL_CONSTANT ? 0xa0a0a0
                         : fill == FILL_SORTED   ? sorted
                                                 : sixteens(i);
        for (int c = 0; c < 3; c++)
            pixels[3 * i + c] = (uint8_t)(pixel >> 8 * c);
    }
}

/* Counts the first `rows` rows of a picture that is WIDTH pixels wide with one variant; for shape
 * see histogram_config. */
static void count_rows(uint32_t *counters, struct ocl_context *context,
                       const struct feature_set *features, enum histogram_variant variant,
                       const struct histogram_shape *shape, const uint8_t *pixels, uint32_t rows)
{
    struct error err = ERROR_INIT;
    struct histogram *histogram;
    struct ocl_queue *queue;
    cl_mem pixel_buffer, tile_buffer, counter_buffer;
    static struct histogram_tile tiles[TILES_MAX];
    size_t counter_bytes = features->counters * sizeof *counters;
    const struct histogram_part part = {
        .width = WIDTH,
        .height = rows,
        .orientation = 1,
        .rect = {0, 0, WIDTH, rows},
        .stride = WIDTH * 3,
    };
    memset(counters, 0, counter_bytes);
    assert_int_equal(ocl_queue_open(&queue, context, "test", &err), STATUS_OK);
    const struct histogram_config config = {
        .features = features, .variant = variant, .shape = shape, .launch_bytes = 3 * SAMPLES};
    assert_int_equal(histogram_open(&histogram, context, &config, &err), STATUS_OK);
    assert_int_equal(histogram_build(histogram, &err), STATUS_OK);
    assert_int_equal(ocl_buffer(&pixel_buffer, context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                                3 * SAMPLES, (void *)(uintptr_t)pixels, "pixels", &err),
                     STATUS_OK);
    assert_int_equal(
        ocl_buffer(&tile_buffer, context, CL_MEM_READ_ONLY, sizeof tiles, NULL, "tiles", &err),
        STATUS_OK);
    assert_int_equal(ocl_buffer(&counter_buffer, context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                counter_bytes, counters, "counters", &err),
                     STATUS_OK);
    for (unsigned p = 0; p < histogram->count; p++) {
        uint32_t count = histogram_tiles(NULL, histogram, p, &part, 0);
        assert_in_range(count, 1, TILES_MAX);
        histogram_tiles(tiles, histogram, p, &part, 0);
        assert_int_equal(ocl_enqueue_write(queue, "tiles", tile_buffer, true, 0,
                                           count * sizeof *tiles, tiles, OCL_NO_WAITS, NULL, &err),
                         STATUS_OK);
        assert_int_equal(histogram_enqueue(histogram, p, queue, pixel_buffer, tile_buffer, 0, count,
                                           counter_buffer, OCL_NO_WAITS, NULL, &err),
                         STATUS_OK);
        ocl_finish(queue); /* the next pass overwrites these tiles */
    }
    assert_int_equal(ocl_enqueue_read(queue, "counters", counter_buffer, true, 0, counter_bytes,
                                      counters, OCL_NO_WAITS, NULL, &err),
                     STATUS_OK);
    ocl_buffer_release(&counter_buffer);
    ocl_buffer_release(&tile_buffer);
    ocl_buffer_release(&pixel_buffer);
    histogram_close(&histogram);
    ocl_queue_close(&queue);
}

static uint64_t sum(const uint32_t *counters, uint32_t count)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < count; i++)
        total += counters[i];
    return total;
}

/* Includes cells that are far larger than kernels with small counters can count at once. */
static const char *const specs[] = {"gray:bins=256", "rgb:bins=8x8x8", "rgb:bins=256",
                                    "c=rgb:bins=100,grid=2x3"};
#define COUNTERS (256 + 512 + 768 + 6 * 300)

/* No pixel is lost or counted twice where tiles meet. */
static void check_counters(const uint32_t *counters, const struct feature_set *features,
                           const uint8_t *pixels)
{
    static uint32_t want[COUNTERS];
    memset(want, 0, sizeof want);
    for (unsigned f = 0; f < features->count; f++) {
        const struct feature *feature = &features->feature[f];
        const uint32_t channels = feature_histograms(feature);
        const uint32_t cells = feature->grid_rows * feature->grid_columns;
        for (uint32_t c = 0; c < channels && cells == 1; c++)
            assert_int_equal(sum(counters + feature->offset + c * feature->cell_bins / channels,
                                 feature->cell_bins / channels),
                             2097152);
        feature_count_reference(want + feature->offset, feature, pixels, WIDTH * 3, WIDTH,
                                SAMPLES / WIDTH, 1);
    }
    assert_memory_equal(counters, want, features->counters * sizeof *want);
}

/* Counts with all variants and fills, except for features that a variant does not support. */
static void count_on_device(const struct ocl_device *device, uint8_t *pixels)
{
    struct error err = ERROR_INIT;
    struct ocl_context *context;
    static uint32_t counters[COUNTERS];
    assert_int_equal(ocl_context_open(&context, device, NULL, &err), STATUS_OK);
    for (int v = HISTOGRAM_PRIVATE; v < HISTOGRAM_VARIANTS; v++) {
        const enum histogram_variant variant = (enum histogram_variant)v;
        struct feature_set features = {0};
        for (unsigned i = test_brief() ? 2 : 0;
             i < (test_brief() ? 3 : sizeof specs / sizeof *specs); i++) {
            struct feature_set one = {0};
            char reason[128];
            assert_int_equal(feature_set_add(&one, specs[i], NORMALIZE_NONE, &err), STATUS_OK);
            if (histogram_variant_takes(reason, sizeof reason, variant, &one.feature[0], device))
                feature_set_add(&features, specs[i], NORMALIZE_NONE, &err);
        }
        for (int fill = 0; fill < FILLS && features.count > 0; fill++) {
            printf("  %s: %s, fill %d\n", device->name, histogram_variant_name(variant), fill);
            fill_pixels(pixels, (enum fill)fill);
            count_rows(counters, context, &features, variant, NULL, pixels, SAMPLES / WIDTH);
            check_counters(counters, &features, pixels);
        }
    }
    ocl_context_close(&context);
}

static void test_2097152_samples_are_2097152_counts(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct ocl_devices devices;
    uint8_t *pixels = malloc(3 * SAMPLES);
    assert_non_null(pixels);
    assert_int_equal(ocl_devices_open(&devices, 2, &err), STATUS_OK);
    unsigned counted = 0;
    for (unsigned i = 0; i < devices.count; i++) {
        /* The simulator only runs the other test, which has smaller pictures. */
        if (!devices.device[i].usable || is_simulator(&devices.device[i]))
            continue;
        count_on_device(&devices.device[i], pixels);
        counted++;
    }
    ocl_devices_close(&devices);
    free(pixels);
    if (counted == 0)
        skip();
}

/* The largest tile that packed words allow, with all pixels in one counter: a single row, and
 * rectangles of the same size, which are counted in parts. */
static void fill_words(const struct ocl_device *device, uint32_t group, const char *spec,
                       uint8_t value, uint32_t rows, uint8_t *pixels)
{
    struct error err = ERROR_INIT;
    struct ocl_context *context;
    struct feature_set features = {0};
    static uint32_t counters[COUNTERS], want[COUNTERS];
    const struct histogram_shape shape = {.group = group, .copies = 1, .tile_pixels = 507904};
    struct histogram_shape longer = shape;
    longer.tile_pixels += 128;
    assert_int_equal(feature_set_add(&features, spec, NORMALIZE_NONE, &err), STATUS_OK);
    const struct feature *feature = &features.feature[0];
    if (!histogram_shape_fits(&shape, HISTOGRAM_PACKED, feature->cell_bins, device))
        return;
    assert_false(histogram_shape_fits(&longer, HISTOGRAM_PACKED, feature->cell_bins, device));
    printf("  %s: %s, work-groups of %u, %u\n", device->name, spec, group, value);
    memset(pixels, value, 3 * SAMPLES);
    assert_int_equal(ocl_context_open(&context, device, NULL, &err), STATUS_OK);
    count_rows(counters, context, &features, HISTOGRAM_PACKED, &shape, pixels, rows);
    ocl_context_close(&context);
    memset(want, 0, sizeof want);
    feature_count_reference(want, feature, pixels, WIDTH * 3, WIDTH, rows, 1);
    assert_memory_equal(counters, want, features.counters * sizeof *want);
}

static void test_packed_words_hold_the_longest_tile(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct ocl_devices devices;
    uint8_t *pixels = malloc(3 * SAMPLES);
    assert_non_null(pixels);
    assert_int_equal(ocl_devices_open(&devices, 2, &err), STATUS_OK);
    for (unsigned i = 0; i < devices.count; i++) {
        const struct ocl_device *device = &devices.device[i];
        for (uint32_t group = 256;
             group <= (test_brief() ? 256 : 1024) && device->usable && !is_simulator(device);
             group *= 2) {
            fill_words(device, group, "rgb:bins=256", 127, 507904 / WIDTH, pixels);
            fill_words(device, group, "rgb:bins=256", 255, 507904 / WIDTH, pixels);
            fill_words(device, group, "rgb:bins=100,grid=1x3", 255, SAMPLES / WIDTH, pixels);
        }
    }
    ocl_devices_close(&devices);
    free(pixels);
}

/* Hue in degrees, saturation and value, as defined in docs/features.md. */
static uint32_t hsv_of(int r, int g, int b)
{
    const int most = r > g ? (r > b ? r : b) : (g > b ? g : b);
    const int least = r < g ? (r < b ? r : b) : (g < b ? g : b);
    const int d = most - least, s = most == 0 ? 0 : (255 * d + most / 2) / most;
    const int base = r == most ? 0 : g == most ? 120 : 240;
    const int difference = r == most ? g - b : g == most ? b - r : r - g;
    /* Adding 60 makes the quotient positive, so that its integer part is the floor. */
    const int hue = d == 0 ? 0 : (base + (60 * difference + 60 * d) / d - 60 + 360) % 360;
    return ((uint32_t)hue * 256 + (uint32_t)s) * 256 + (uint32_t)most;
}

/* The kernels divide in float32, so all colours are tested, and all hues with all numbers of
 * bins. */
static void check_hsv(const struct ocl_device *device)
{
    static const char prologue[] =
        "#include \"histogram_bins_hsv.h\"\n"
        "#define PASS_BINS 128\n"
        "#define FEATURES(X) X(0, HSV, 8, 4, 4, 128, 0, 0)\n"
        "__kernel void every_colour(__global uint *out, uint first, uint step) {\n"
        "    const uint i = (uint)get_global_id(0), c = first + i * step;\n"
        "    out[i] = hsv_bin(c >> 16, c >> 8 & 255, c & 255, 360, 256, 256); }\n"
        "__kernel void every_hue(__global uint *out) {\n"
        "    const uint i = (uint)get_global_id(0);\n"
        "    out[i] = quotient(i / 256 * (i % 256 + 1), 1.0f / 360.0f); }\n";
    enum { PART = 1 << 16, HUES = 360 * 256 };
    const cl_uint step = is_simulator(device) ? 4093 : 1, parts = step == 1 ? 256 : 1;
    const size_t items = step == 1 ? PART : (1 << 24) / step, hues = step == 1 ? HUES : 1024;
    struct error err = ERROR_INIT;
    struct ocl_context *context;
    struct ocl_queue *queue = NULL;
    cl_program program = NULL;
    cl_kernel colours = NULL, hue = NULL;
    cl_mem buffer = NULL;
    uint32_t *out = malloc(HUES * sizeof *out);
    assert_int_equal(ocl_context_open(&context, device, NULL, &err), STATUS_OK);
    if (ocl_queue_open(&queue, context, "hsv", &err) != STATUS_OK ||
        ocl_program_build(&program, context, "histogram_global", prologue, "-DGROUP=64", &err) !=
            STATUS_OK ||
        ocl_kernel(&colours, program, "every_colour", &err) != STATUS_OK ||
        ocl_kernel(&hue, program, "every_hue", &err) != STATUS_OK ||
        ocl_buffer(&buffer, context, CL_MEM_READ_WRITE, HUES * sizeof *out, NULL, "bins", &err) !=
            STATUS_OK)
        fail_msg("%s", err.sentence);
    uint32_t wrong = 0;
    for (cl_uint part = 0; part < parts; part++) {
        const cl_uint first = part * PART;
        if (ocl_args(colours, &err, sizeof buffer, &buffer, sizeof first, &first, sizeof step,
                     &step, OCL_ARGS_END) != STATUS_OK ||
            ocl_enqueue_kernel(queue, "colours", colours, 1, &items, NULL, OCL_NO_WAITS, NULL,
                               &err) != STATUS_OK ||
            ocl_enqueue_read(queue, "bins", buffer, true, 0, items * sizeof *out, out, OCL_NO_WAITS,
                             NULL, &err) != STATUS_OK)
            fail_msg("%s", err.sentence);
        for (uint32_t i = 0; i < items; i++) {
            const uint32_t c = first + i * step;
            wrong += out[i] != hsv_of((int)(c >> 16), (int)(c >> 8 & 255), (int)(c & 255));
        }
    }
    assert_int_equal(wrong, 0);
    if (ocl_args(hue, &err, sizeof buffer, &buffer, OCL_ARGS_END) != STATUS_OK ||
        ocl_enqueue_kernel(queue, "hues", hue, 1, &hues, NULL, OCL_NO_WAITS, NULL, &err) !=
            STATUS_OK ||
        ocl_enqueue_read(queue, "hues", buffer, true, 0, hues * sizeof *out, out, OCL_NO_WAITS,
                         NULL, &err) != STATUS_OK)
        fail_msg("%s", err.sentence);
    for (uint32_t i = 0; i < hues; i++)
        wrong += out[i] != i / 256 * (i % 256 + 1) / 360;
    assert_int_equal(wrong, 0);
    free(out);
    ocl_buffer_release(&buffer);
    clReleaseKernel(colours);
    clReleaseKernel(hue);
    clReleaseProgram(program);
    ocl_queue_close(&queue);
    ocl_context_close(&context);
}

static void test_hsv_of_every_colour(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct ocl_devices devices;
    assert_int_equal(ocl_devices_open(&devices, 2, &err), STATUS_OK);
    for (unsigned i = 0; i < devices.count; i++)
        if (devices.device[i].usable)
            check_hsv(&devices.device[i]);
    ocl_devices_close(&devices);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_hsv_of_every_colour),
    cmocka_unit_test(test_every_variant_equals_the_reference),
    cmocka_unit_test(test_2097152_samples_are_2097152_counts),
    cmocka_unit_test(test_packed_words_hold_the_longest_tile),
};
TEST_GROUP_WITHIN(300, histogram, NULL, NULL)
