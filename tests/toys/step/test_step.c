/* test_step.c: a new step needs only one file and one table row. This file has two steps, whose
 * table replaces that of table.c: `invert`, after which all features are counted, and `doubt`,
 * which replaces the JPEG step and hands back pictures with coefficients. */
#include "runner.h"

#include "base/random.h"
#include "device/plan.h"
#include "device/staging.h"
#include "ingest/ingest.h"
#include "result/result.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jpeglib.h> /* requires stdio.h */

/* --- the steps: each work-item copies a part with inverted bits, or sets its verdict ---------- */

#define PROVEN 0xffffffffu

static const char source[] =
    "__kernel void toy(__global const uchar *in, __global const uint *table, uint count, uint bits,"
    "                  __global uchar *out, __global uint *values)\n"
    "{\n"
    "    const uint part = (uint)get_global_id(0);\n"
    "    if (part >= count)\n"
    "        return;\n"
    "    __global const uint *entry = table + 4 * part;\n"
    "    for (uint i = 0; i < entry[2]; i++)\n"
    "        out[entry[1] + i] = in[entry[0] + i] ^ (uchar)bits;\n"
    "    if (entry[3] != 0xffffffff)\n"
    "        values[entry[3]] = 1;\n"
    "}\n";

struct toy_entry {
    uint32_t in, out, bytes, verdict;
};

struct toy {
    struct ocl_context *context;
    uint32_t bits;
    cl_program program;
    cl_kernel kernel;
};

static enum status open_toy(void **out, struct step_needs *needs, struct ocl_context *context,
                            const struct step_node *node, uint64_t launch_bytes, struct error *err)
{
    (void)launch_bytes;
    (void)err;
    struct toy *toy = calloc(1, sizeof *toy);
    toy->context = context;
    toy->bits = (uint32_t)node->parameter;
    *needs = (struct step_needs){.lists = 1, .counts = 1, .events = 1};
    *out = toy;
    return STATUS_OK;
}

static void close_toy(void **state)
{
    struct toy *toy = *state;
    clReleaseKernel(toy->kernel);
    clReleaseProgram(toy->program);
    free(toy);
    *state = NULL;
}

static enum status build_toy(void *state, struct error *err)
{
    struct toy *toy = state;
    if (ocl_program_build_source(&toy->program, toy->context, "toy", source, "", err) != STATUS_OK)
        return STATUS_FAILED;
    return ocl_kernel(&toy->kernel, toy->program, "toy", err);
}

static enum status prove_toy(void *state, struct error *err)
{
    (void)state;
    (void)err;
    return STATUS_OK;
}

static void count_toy(uint32_t *count, const void *state, const struct part_shape *in)
{
    (void)state;
    (void)in;
    count[0] = 1;
}

static atomic_uint doubted;

static void fill_toy(void *table, const void *state, const struct step_entry *entry)
{
    (void)state;
    const bool coded = entry->in->payload == PAYLOAD_DCT;
    doubted += coded && !entry->given_up;
    ((struct toy_entry *)table)[entry->first[0]] = (struct toy_entry){
        .in = entry->in_offset,
        .out = entry->out_offset,
        .bytes = coded || entry->given_up ? 0 : (uint32_t)entry->in->bytes,
        .verdict = coded ? entry->verdict : PROVEN,
    };
}

static enum status enqueue_toy(void *state, struct ocl_queue *queue, struct step_io *io,
                               struct error *err)
{
    struct toy *toy = state;
    const size_t global = io->counts[0];
    if (ocl_args(toy->kernel, err, sizeof io->in, &io->in, sizeof io->table, &io->table,
                 sizeof *io->counts, io->counts, sizeof toy->bits, &toy->bits, sizeof io->out,
                 &io->out, sizeof io->values, &io->values, OCL_ARGS_END) != STATUS_OK)
        return STATUS_FAILED;
    io->last = &io->events[0];
    return ocl_enqueue_kernel(queue, "toy", toy->kernel, 1, &global, NULL, io->waits,
                              &io->events[0], err);
}

/* Twice the necessary space, so that parts are not at their positions in the slot. */
static void invert_shape(struct part_shape *shape, const struct step_node *node)
{
    (void)node;
    shape->bytes *= 2;
}

static void make_rgb(struct part_shape *shape, const struct step_node *node)
{
    (void)node;
    part_set_rgb(shape);
}

static bool needs_doubt(struct step_node *node, struct plan *plan, const struct feature *feature)
{
    (void)node;
    (void)feature;
    return plan->config.jpeg != PLAN_JPEG_HOST;
}

static bool needs_invert(struct step_node *node, struct plan *plan, const struct feature *feature)
{
    (void)plan;
    (void)feature;
    node->parameter = 0xff;
    return true;
}

#define TOY                                                                                        \
    .gives = PAYLOAD_RGB, .entry_bytes = sizeof(struct toy_entry), .upload = "upload parts",       \
    .unmap = "unmap parts", .map = "map parts", .open = open_toy, .close = close_toy,              \
    .build = build_toy, .prove = prove_toy, .count = count_toy, .fill = fill_toy,                  \
    .enqueue = enqueue_toy

static const struct step invert_step = {.name = "invert",
                                        .needed = needs_invert,
                                        .takes = PAYLOAD_RGB,
                                        .arena_percent = 200,
                                        .output = invert_shape,
                                        TOY};

/* Has space for grey pictures, whose pixels take more than their coefficients. */
static const struct step doubt_step = {.name = "doubt",
                                       .needed = needs_doubt,
                                       .takes = PAYLOAD_DCT,
                                       .refuses = true,
                                       .arena_percent = 150,
                                       .output = make_rgb,
                                       TOY};

const struct step *const steps[] = {&doubt_step, &invert_step, &count_step, &code_step, NULL};

/* --- a feature is counted after a step -------------------------------------------------------- */

#define PICTURES 40u
#define SIDE     700u

struct picture {
    uint8_t *pixels;
    uint32_t width, height, counters[600];
    pthread_mutex_t lock;
};

static void add_values(void *context, void *item, const struct part_result *result)
{
    (void)context;
    struct picture *picture = item;
    assert_true(result->proven);
    pthread_mutex_lock(&picture->lock);
    for (unsigned i = 0; i < 600; i++)
        picture->counters[i] += result->values[i];
    pthread_mutex_unlock(&picture->lock);
}

static void fail_device(void *context, const struct error *err, unsigned alive)
{
    (void)context;
    (void)alive;
    fail_msg("%s", err->sentence);
}

/* Submits the picture in strips of random heights, and gives up some parts. */
static void submit_picture(struct staging *staging, struct picture *picture, uint32_t *random)
{
    for (uint32_t y = 0; y < picture->height;) {
        const uint32_t rows = 1 + (random_next(random) >> 8) % picture->height;
        const uint32_t bottom = picture->height - y > rows ? y + rows : picture->height;
        struct part_shape pixels = {.width = picture->width,
                                    .height = picture->height,
                                    .orientation = 6,
                                    .rect = {0, y, picture->width, bottom}};
        struct staging_part part;
        assert_true(staging_acquire(staging, &part, &pixels, NULL, 0, NULL));
        assert_int_equal(part.shape.payload, PAYLOAD_RGB);
        memcpy(part.bytes, picture->pixels + (size_t)3 * picture->width * y, part.shape.bytes);
        if (random_next(random) >> 8 & 1) {
            staging_cancel(staging, &part);
            continue;
        }
        y = part.shape.rect.y1;
        staging_submit(staging, &part, picture);
    }
}

static void test_feature_after_a_step(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct ocl_devices devices;
    struct feature_set features = {0};
    struct plan plan;
    struct staging *staging;
    static struct picture picture[PICTURES];
    uint32_t random = test_seed();
    const unsigned chosen = 0;
    assert_int_equal(feature_set_add(&features, "rgb:bins=8,grid=5x5", NORMALIZE_NONE, &err), 0);
    assert_int_equal(features.counters, 600);
    assert_int_equal(ocl_devices_open(&devices, 2, &err), STATUS_OK);
    const struct plan_config plan_config = {.features = &features, .jpeg = PLAN_JPEG_HOST};
    assert_int_equal(plan_make(&plan, &plan_config, &err), STATUS_OK);
    assert_int_equal(plan.steps.count, 2);
    const struct staging_config config = {.selection = {&devices, &chosen, 1, NULL, NULL},
                                          .plan = &plan.steps,
                                          .host_memory = 64u << 20,
                                          .slot_bytes = 1u << 20,
                                          .deliver = add_values,
                                          .failed = fail_device};
    if (staging_open(&staging, &config, &err) != STATUS_OK)
        fail_msg("%s", err.sentence);
    assert_false(staging_takes(staging, PAYLOAD_DCT));
    for (unsigned i = 0; i < PICTURES; i++) {
        picture[i].width = 1 + (random_next(&random) >> 8) % (i % 8 ? 50 : SIDE / 2);
        picture[i].height = 1 + (random_next(&random) >> 8) % (i % 8 ? 50 : SIDE);
        picture[i].pixels = malloc((size_t)3 * picture[i].width * picture[i].height);
        pthread_mutex_init(&picture[i].lock, NULL);
        for (size_t b = 0; b < (size_t)3 * picture[i].width * picture[i].height; b++)
            picture[i].pixels[b] = (uint8_t)(random_next(&random) >> 9);
        submit_picture(staging, &picture[i], &random);
    }
    staging_close(&staging);
    for (unsigned i = 0; i < PICTURES; i++) {
        const size_t bytes = (size_t)3 * picture[i].width * picture[i].height;
        uint32_t wanted[600] = {0};
        for (size_t b = 0; b < bytes; b++)
            picture[i].pixels[b] ^= 0xff;
        feature_count_reference(wanted, &features.feature[0], picture[i].pixels,
                                (size_t)3 * picture[i].width, picture[i].width, picture[i].height,
                                6);
        assert_memory_equal(picture[i].counters, wanted, sizeof wanted);
        free(picture[i].pixels);
        pthread_mutex_destroy(&picture[i].lock);
    }
    ocl_devices_close(&devices);
}

/* --- pictures that are handed back are decoded by the host ------------------------------------ */

static char directory[] = "/tmp/toy_step.XXXXXX";
static char path[4096];

static const char *file(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

#define FILES 12u

static void write_jpeg(const char *name, uint32_t width, uint32_t height, int components,
                       uint32_t *random)
{
    struct jpeg_compress_struct info;
    struct jpeg_error_mgr errors;
    uint8_t row[3 * 512];
    FILE *stream = fopen(file(name), "wb");
    assert_non_null(stream);
    info.err = jpeg_std_error(&errors);
    jpeg_create_compress(&info);
    jpeg_stdio_dest(&info, stream);
    info.image_width = width;
    info.image_height = height;
    info.input_components = components;
    info.in_color_space = components == 3 ? JCS_RGB : JCS_GRAYSCALE;
    jpeg_set_defaults(&info);
    jpeg_start_compress(&info, TRUE);
    for (uint32_t y = 0; y < height; y++) {
        JSAMPROW rows[1] = {row};
        for (uint32_t i = 0; i < 3 * width; i++)
            row[i] = (uint8_t)(y * 2 + (random_next(random) >> 28));
        jpeg_write_scanlines(&info, rows, 1);
    }
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
    fclose(stream);
}

static int make_files(void **state)
{
    (void)state;
    uint32_t random = RANDOM_START;
    if (!mkdtemp(directory) || mkdir(file("pictures"), 0777))
        return -1;
    for (unsigned i = 0; i < FILES; i++) {
        char name[32];
        snprintf(name, sizeof name, "pictures/%02u.jpg", i);
        write_jpeg(name, 300 + 10 * i, 420 - 12 * i, i % 3 ? 3 : 1, &random);
    }
    /* The host decides on this truncated picture, with or without the step. */
    return truncate(file("pictures/07.jpg"), 9000);
}

static int remove_files(void **state)
{
    (void)state;
    char command[4200];
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    return system(command);
}

static enum status find_devices(void *context, struct ocl_selection *found, struct error *err)
{
    static const unsigned chosen = 0;
    struct ocl_devices *devices = context;
    *found = (struct ocl_selection){.devices = devices, .chosen = &chosen, .count = 1};
    return ocl_devices_open(devices, 2, err);
}

/* Returns the counts of all pictures, in walk order. */
static uint64_t ingest(uint32_t *counts, const char *output, enum plan_jpeg jpeg)
{
    struct error err = ERROR_INIT;
    struct ocl_devices devices = {0};
    struct ingest_report report;
    struct result *result;
    char sources[4096], out[4096];
    snprintf(sources, sizeof sources, "%s", file("pictures"));
    snprintf(out, sizeof out, "%s", file(output));
    const char *names[] = {sources};
    struct ingest_config config = {.walk = {.sources = names, .source_count = 1},
                                   .store = {.output = out, .content = {.parameters = "{}"}},
                                   .command_line = "test",
                                   .find_devices = find_devices,
                                   .find_devices_context = &devices,
                                   .threads = 2,
                                   .memory = 64u << 20,
                                   .slot_bytes = 1u << 20,
                                   .slot_count = 1,
                                   .jpeg = jpeg};
    decode_options_default(&config.decode);
    assert_int_equal(feature_set_add(&config.features, "gray:bins=16", NORMALIZE_NONE, &err), 0);
    if (ingest_run(&report, &config, &err) != STATUS_OK)
        fail_msg("%s", err.sentence);
    ocl_devices_close(&devices);
    assert_int_equal(report.images_ok, FILES - 1);
    assert_int_equal(failures_counted(report.by_reason), 1);
    assert_int_equal(report.by_reason[REASON_TRUNCATED], 1);
    assert_int_equal(result_open(&result, out, &err), STATUS_OK);
    assert_int_equal(result_feature_read_counts(result_feature_find(result, "gray_16"), 0,
                                                FILES - 1, counts, &err),
                     STATUS_OK);
    result_close(&result);
    return report.pixels;
}

static void test_handed_back(void **state)
{
    (void)state;
    static uint32_t host[(FILES - 1) * 16], device[(FILES - 1) * 16];
    const uint64_t pixels = ingest(host, "host.h5", PLAN_JPEG_HOST);
    assert_int_equal(doubted, 0);
    assert_int_equal(ingest(device, "device.h5", PLAN_JPEG_DEVICE), pixels);
    /* Each picture is doubted at most once. The truncated one does not get so far, and the pictures
     * of one slot arrived as pixels before the kernels were built. */
    assert_in_range(doubted, FILES / 2, FILES - 1);
    assert_memory_equal(host, device, sizeof host);
    uint64_t sum = 0;
    for (unsigned i = 0; i < (FILES - 1) * 16; i++)
        sum += device[i];
    assert_int_equal(sum, pixels);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_feature_after_a_step),
    cmocka_unit_test(test_handed_back),
};
TEST_GROUP(step, make_files, remove_files)
