/* selftest.c: the kernels of a run, or every variant, against feature_count_reference on difficult fills: one colour (all
 * additions collide), two colours, sorted, a gradient, random. Shapes go from 1 x 1 to rows of odd
 * lengths, with grids and orientations. */
#include "device/selftest.h"

#include "base/held.h"
#include "base/log.h"
#include "device/bench.h"
#include "features/kind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More pixels than kernels with small counters count at a time. */
#define LARGE_WIDTH  331u
#define LARGE_HEIGHT 211u
#define TILE_SMALL   64u
#define LAUNCH_BYTES (1u << 30) /* for the largest tiles */

static const struct {
    uint32_t width, height;
    uint8_t orientation;
} shapes[] = {{1, 1, 1},
              {1, 77, 6},
              {257, 1, 3},
              {13, 7, 5},
              {48, 40, 8},
              {85, 39, 7},
              {LARGE_WIDTH, LARGE_HEIGHT, 2}};
#define SHAPES (unsigned)(sizeof shapes / sizeof *shapes)

/* The brief test uses the first two: all additions collide, and none do. */
static const enum bench_fill fills[] = {BENCH_CONSTANT, BENCH_RANDOM, BENCH_TWO, BENCH_SORTED,
                                        BENCH_GRADIENT};
#define FILLS       (int)(sizeof fills / sizeof *fills)
#define FILLS_BRIEF 2

/* A built pass under test. */
struct rig {
    struct ocl_queue *queue;
    struct histogram *histogram;
    unsigned pass;
    const struct feature_set *features;
    uint32_t border; /* of the pass's features */
    cl_mem pixels, tiles, counters;
    struct histogram_tile *tile; /* `tile_room` elements, like the buffer */
    uint32_t tile_room;
    int tilings; /* per picture: default tiles, then small ones; brief tests use one */
    uint8_t *pixel;
    uint32_t *got, *want;
    struct held held; /* tile, pixel, got and want */
};

/* Shape s as a packed picture, all of which is counted but the border. */
static struct histogram_part part_of(unsigned s, uint32_t border)
{
    return (struct histogram_part){
        .width = shapes[s].width,
        .height = shapes[s].height,
        .orientation = shapes[s].orientation,
        .rect = {0, 0, shapes[s].width, shapes[s].height},
        .stride = (shapes[s].width + border) * 3,
    };
}

static size_t pixel_bytes(const struct histogram_part *part, uint32_t border)
{
    return (size_t)part->stride * (part->height + border);
}

/* Counts one picture on the device into rig->got. */
static enum status count_on_device(struct rig *rig, const struct histogram_part *part,
                                   uint32_t tile_pixels, struct error *err)
{
    const size_t bytes = pixel_bytes(part, rig->border);
    const size_t counter_bytes = rig->features->counters * sizeof(uint32_t);
    const uint32_t count = histogram_tiles(rig->tile, rig->histogram, rig->pass, part, tile_pixels);
    if (atomic_load(&rig->histogram->abandoned))
        return error_set(err, STATUS_INTERRUPTED, "the kernels are no longer needed");
    if (ocl_enqueue_write(rig->queue, "pixels", rig->pixels, true, 0, bytes, rig->pixel,
                          OCL_NO_WAITS, NULL, err) != STATUS_OK ||
        ocl_enqueue_fill(rig->queue, "zero", rig->counters, 0, 0, counter_bytes, OCL_NO_WAITS, NULL,
                         err) != STATUS_OK)
        return err->status;
    if (count > 0 &&
        (ocl_enqueue_write(rig->queue, "tiles", rig->tiles, true, 0, count * sizeof *rig->tile,
                           rig->tile, OCL_NO_WAITS, NULL, err) != STATUS_OK ||
         histogram_enqueue(rig->histogram, rig->pass, rig->queue, rig->pixels, rig->tiles, 0, count,
                           rig->counters, OCL_NO_WAITS, NULL, err) != STATUS_OK))
        return err->status;
    return ocl_enqueue_read(rig->queue, "counters", rig->counters, true, 0, counter_bytes, rig->got,
                            OCL_NO_WAITS, NULL, err);
}

/* One picture with one fill, in tiles of the pass's size and in small ones, so that cells have one
 * tile or several. */
static enum status compare_picture(uint64_t *compared, uint64_t *wrong, struct rig *rig,
                                   const struct histogram_part *part, enum bench_fill fill,
                                   struct error *err)
{
    const struct histogram_pass *pass = &rig->histogram->pass[rig->pass];
    const uint32_t counters = rig->features->counters;
    bench_pixels(rig->pixel, pixel_bytes(part, rig->border), part->stride / 3, fill);
    memset(rig->want, 0, counters * sizeof *rig->want);
    for (unsigned i = 0; i < pass->count; i++) {
        const struct feature *feature = &rig->features->feature[pass->feature[i]];
        feature_count_reference(rig->want + feature->offset, feature, rig->pixel, part->stride,
                                part->width, part->height, part->orientation);
        *compared += (uint32_t)rig->tilings * feature->words;
    }
    enum status status = STATUS_OK;
    for (int small = 0; small < rig->tilings && status == STATUS_OK; small++) {
        status = count_on_device(rig, part, small ? TILE_SMALL : 0, err);
        /* Counters of other passes are zero in both. */
        for (uint32_t i = 0; i < counters && status == STATUS_OK; i++)
            *wrong += rig->got[i] != rig->want[i];
    }
    return status;
}

static enum status rig_open(struct rig *rig, struct histogram *histogram, unsigned pass, bool brief,
                            struct error *err)
{
    struct ocl_context *context = histogram->context;
    const struct feature_set *features = histogram->features;
    const uint32_t border = features->feature[*histogram->pass[pass].feature].image.border;
    const size_t bytes = (size_t)3 * (LARGE_WIDTH + border) * (LARGE_HEIGHT + border);
    *rig = (struct rig){.histogram = histogram,
                        .pass = pass,
                        .features = features,
                        .border = border,
                        .tile_room = 1,
                        .tilings = brief ? 1 : 2};
    for (unsigned s = 0; s < SHAPES - brief; s++) {
        const struct histogram_part part = part_of(s, border);
        const uint32_t count = histogram_tiles(NULL, histogram, pass, &part, TILE_SMALL);
        rig->tile_room = count > rig->tile_room ? count : rig->tile_room;
    }
    const size_t counters = rig->features->counters;
    rig->pixel = held_array(&rig->held, bytes, 1);
    rig->tile = held_array(&rig->held, rig->tile_room, sizeof *rig->tile);
    rig->got = held_array(&rig->held, counters, sizeof *rig->got);
    rig->want = held_array(&rig->held, counters, sizeof *rig->want);
    if (held_check(&rig->held, "the self-test", err) != STATUS_OK ||
        ocl_queue_open(&rig->queue, context, "self-test", err) != STATUS_OK ||
        ocl_buffer(&rig->pixels, context, CL_MEM_READ_ONLY, bytes, NULL, "pixels", err) !=
            STATUS_OK ||
        ocl_buffer(&rig->tiles, context, CL_MEM_READ_ONLY, rig->tile_room * sizeof *rig->tile, NULL,
                   "tiles", err) != STATUS_OK)
        return err->status;
    return ocl_buffer(&rig->counters, context, CL_MEM_READ_WRITE, counters * sizeof(uint32_t), NULL,
                      "counters", err);
}

/* Compares a built pass with the reference. `brief`, for simulators and large tables, uses two fills
 * and no large picture. Adds to the counts. */
static enum status check_pass(uint64_t *compared, uint64_t *wrong, struct histogram *histogram,
                              unsigned pass, bool brief, struct error *err)
{
    struct rig rig;
    enum status status = rig_open(&rig, histogram, pass, brief, err);
    for (unsigned s = 0; s < SHAPES - brief; s++) {
        const struct histogram_part part = part_of(s, rig.border);
        const int tried = brief || s == SHAPES - 1 ? FILLS_BRIEF : FILLS;
        for (int i = 0; i < tried && status == STATUS_OK; i++)
            status = compare_picture(compared, wrong, &rig, &part, fills[i], err);
    }
    ocl_buffer_release(&rig.counters);
    ocl_buffer_release(&rig.tiles);
    ocl_buffer_release(&rig.pixels);
    ocl_queue_close(&rig.queue);
    held_free(&rig.held);
    return status;
}

/* --- proving --------------------------------------------------------------------------------- */
/* The proof runs the program that will be used: its features, work-group size and copies. It takes
 * milliseconds and no compilation; proving every variant for every kind of feature takes half a
 * minute to compile. Only successes are cached: a wrong result may be a transient fault, so the next
 * run tries the kernel again and reports a failure again. */

/* With so many counters, clearing and comparing them dominates, so fewer pictures are used. */
#define COUNTERS_MANY (1u << 16)

/* Builds one pass in its current variant and proves it. */
static enum status prepare_pass(struct histogram *histogram, unsigned pass, struct error *err)
{
    char key[OCL_KEY];
    uint64_t compared = 0, wrong = 0;
    enum status status = histogram_build_pass(histogram, pass, err);
    if (status == STATUS_OK)
        status = histogram_pass_key(key, histogram, pass, err);
    if (status != STATUS_OK || ocl_program_is_proven(key))
        return status;
    const bool brief = histogram->features->counters > COUNTERS_MANY;
    status = check_pass(&compared, &wrong, histogram, pass, brief, err);
    if (status != STATUS_OK)
        return status;
    if (wrong > 0) {
        error_set(err, STATUS_FAILED, "kernel %s gives wrong counts on %s (%llu of %llu counters)",
                  histogram_kernel(histogram, &histogram->pass[pass]),
                  ocl_context_device(histogram->context)->name, (unsigned long long)wrong,
                  (unsigned long long)compared);
        return error_remedy(err, REMEDY_OTHER_DEVICE);
    }
    ocl_program_set_proven(key);
    return STATUS_OK;
}

enum status histogram_prepare(struct histogram *histogram, struct error *err)
{
    for (unsigned p = 0; p < histogram->count; p++) {
        const struct histogram_pass *pass = &histogram->pass[p];
        const struct feature *first = &histogram->features->feature[pass->feature[0]];
        /* The last two are slow everywhere but need no optional device feature. */
        const enum histogram_variant order[] = {
            histogram_variant_usual(first, ocl_context_device(histogram->context)),
            HISTOGRAM_REPLICATED, HISTOGRAM_LOCAL, HISTOGRAM_PRIVATE, HISTOGRAM_GLOBAL};
        enum histogram_variant variant = pass->planned;
        enum status status = prepare_pass(histogram, p, err);
        for (unsigned i = 0; i < sizeof order / sizeof *order && status == STATUS_FAILED &&
                             histogram->wanted == HISTOGRAM_AUTO;
             i++) {
            if (order[i] == pass->planned || (i > 0 && order[i] == order[0]) ||
                !histogram_replace(histogram, p, order[i]))
                continue;
            log_message(LOG_NOTICE, "notice: histogram variant '%s' is used instead of '%s': %s",
                        histogram_variant_name(order[i]), histogram_variant_name(variant),
                        err->sentence);
            *err = (struct error)ERROR_INIT;
            variant = order[i];
            status = prepare_pass(histogram, p, err);
        }
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

/* --- all variants ------------------------------------------------------------------------------ */

/* Adds example features of all kinds that the device can count with the variant; if there are none,
 * `reason` says why the last one cannot be counted. Brief: every second example; the others are
 * tested with the next variant. */
static enum status add_examples(struct feature_set *features, enum histogram_variant variant,
                                const struct ocl_device *device, bool brief, char *reason,
                                size_t size, struct error *err)
{
    for (unsigned k = 0; feature_kinds[k]; k++) {
        for (const char *const *spec = feature_kinds[k]->examples; *spec; spec++) {
            struct feature_set one = {0};
            if (brief && (spec - feature_kinds[k]->examples + variant) % 2 != 0)
                continue;
            enum status status = feature_set_add(&one, *spec, NORMALIZE_NONE, err);
            if (status == STATUS_OK &&
                histogram_variant_takes(reason, size, variant, &one.feature[0], device))
                status = feature_set_add(features, *spec, NORMALIZE_NONE, err);
            if (status != STATUS_OK)
                return status;
        }
    }
    return STATUS_OK;
}

/* If the device can count no feature with the variant, compares nothing and sets `reason`. */
static enum status test_variant(struct ocl_context *context, enum histogram_variant variant,
                                bool brief, uint64_t *compared, uint64_t *wrong, char *reason,
                                size_t size, struct error *err)
{
    struct feature_set features = {0};
    struct histogram *histogram = NULL;
    enum status status =
        add_examples(&features, variant, ocl_context_device(context), brief, reason, size, err);
    if (status != STATUS_OK || features.count == 0)
        return status;
    const struct histogram_config config = {
        .features = &features, .variant = variant, .launch_bytes = LAUNCH_BYTES};
    status = histogram_open(&histogram, context, &config, err);
    if (status != STATUS_OK)
        goto out;
    status = histogram_build(histogram, err);
    for (unsigned p = 0; status == STATUS_OK && p < histogram->count; p++)
        status = check_pass(compared, wrong, histogram, p, brief, err);
out:
    histogram_close(&histogram);
    return status;
}

enum status histogram_self_test(struct ocl_context *context, bool brief,
                                void (*line)(const char *text, void *user), void *user,
                                uint64_t *wrong, struct error *err)
{
    *wrong = 0;
    for (int v = HISTOGRAM_PRIVATE; v < HISTOGRAM_VARIANTS; v++) {
        enum histogram_variant variant = (enum histogram_variant)v;
        uint64_t compared = 0, different = 0;
        char text[256], reason[128] = "";
        enum status status = test_variant(context, variant, brief, &compared, &different, reason,
                                          sizeof reason, err);
        if (status != STATUS_OK)
            return status;
        *wrong += different;
        if (compared == 0)
            snprintf(text, sizeof text, "histogram %-10s passed over: %s",
                     histogram_variant_name(variant), reason);
        else
            snprintf(text, sizeof text, "histogram %-10s %llu counters compared, %llu differ",
                     histogram_variant_name(variant), (unsigned long long)compared,
                     (unsigned long long)different);
        line(text, user);
    }
    return STATUS_OK;
}
