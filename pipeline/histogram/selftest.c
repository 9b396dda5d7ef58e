/* selftest.c: every variant against feature_count_reference on fills that break histograms: one
 * colour (all additions meet), two colours, sorted, a gradient, random; in shapes from 1 x 1 to
 * rows that are no multiple of anything, some as strips of a larger picture, with grids and
 * orientations.
 */
#include "histogram/selftest.h"

#include "histogram/blur.h"
#include "histogram/histogram.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TILES_MAX 4096u

static const struct {
    uint32_t width, height;
    uint8_t orientation;
} shapes[] = {{1, 1, 1}, {1, 77, 6}, {257, 1, 3}, {13, 7, 5}, {48, 40, 8}, {85, 39, 7}};

static const char *const specs[] = {
    "rgb:bins=256",
    "a=rgb:bins=100,grid=3x3",
    "rgb:bins=7x9x5",
    "gray:bins=10,grid=2x5",
    "b=gray:bins=256",
    "hsv:bins=8x4x4",
    "c=hsv:bins=12x3x5,grid=3x3",
    "d=rgb:bins=31x33x15",
};

/* The first two are what a brief test takes: all additions meet, and none do. */
enum fill { FILL_CONSTANT, FILL_RANDOM, FILL_TWO, FILL_SORTED, FILL_GRADIENT, FILLS };
#define FILLS_BRIEF 2

static void fill_pixels(uint8_t *pixels, size_t bytes, enum fill fill)
{
    uint32_t state = 2463534242u; /* xorshift32, G. Marsaglia 2003 */
    for (size_t i = 0; i < bytes; i++) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        switch (fill) {
        case FILL_CONSTANT:
            pixels[i] = 255;
            break;
        case FILL_TWO:
            pixels[i] = state & 1 ? 254 : 1;
            break;
        case FILL_SORTED:
            pixels[i] = (uint8_t)(i * 255 / bytes);
            break;
        case FILL_GRADIENT:
            pixels[i] = (uint8_t)(i / 3 + i % 3 * 40);
            break;
        default:
            pixels[i] = (uint8_t)(state >> 24);
        }
    }
}

struct rig {
    struct ocl_context *context;
    struct ocl_queue *queue;
    struct histogram *histogram;
    const struct feature_set *features;
    cl_mem pixels, tiles, counters;
    int fills; /* the first ones */
};

/* Counts one picture on the device into `counters`. */
static enum status count_on_device(uint32_t *counters, struct rig *rig, const uint8_t *pixels,
                                   const struct histogram_part *part, struct error *err)
{
    size_t bytes = (size_t)part->width * part->height * 3;
    size_t counter_bytes = rig->features->counters * sizeof(uint32_t);
    static struct histogram_tile tiles[TILES_MAX];
    enum status status = ocl_enqueue_write(rig->queue, "pixels", rig->pixels, true, 0, bytes,
                                           pixels, OCL_NO_WAITS, NULL, err);
    if (status == STATUS_OK)
        status = ocl_enqueue_write(rig->queue, "zero", rig->counters, true, 0, counter_bytes,
                                   memset(counters, 0, counter_bytes), OCL_NO_WAITS, NULL, err);
    for (unsigned p = 0; p < histogram_passes(rig->histogram) && status == STATUS_OK; p++) {
        uint32_t count = histogram_tiles(NULL, rig->histogram, p, part);
        if (count == 0 || count > TILES_MAX)
            continue;
        histogram_tiles(tiles, rig->histogram, p, part);
        status = ocl_enqueue_write(rig->queue, "tiles", rig->tiles, true, 0, count * sizeof *tiles,
                                   tiles, OCL_NO_WAITS, NULL, err);
        if (status == STATUS_OK)
            status = histogram_enqueue(rig->histogram, p, rig->queue, rig->pixels, rig->tiles, 0,
                                       count, rig->counters, OCL_NO_WAITS, NULL, err);
    }
    if (status == STATUS_OK)
        status = ocl_enqueue_read(rig->queue, "counters", rig->counters, true, 0, counter_bytes,
                                  counters, OCL_NO_WAITS, NULL, err);
    return status;
}

/* All shapes and fills with the rig's variant. */
static enum status compare_all(struct rig *rig, uint8_t *pixels, uint32_t *got, uint32_t *want,
                               uint64_t *compared, uint64_t *wrong, struct error *err)
{
    const struct feature_set *features = rig->features;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        uint32_t width = shapes[s].width, height = shapes[s].height;
        for (int fill = 0; fill < rig->fills; fill++) {
            fill_pixels(pixels, (size_t)width * height * 3, (enum fill)fill);
            struct histogram_part part = {
                .width = width,
                .height = height,
                .orientation = shapes[s].orientation,
                .rect = {0, 0, width, height},
                .stride = width * 3,
            };
            enum status status = count_on_device(got, rig, pixels, &part, err);
            if (status != STATUS_OK)
                return status;
            memset(want, 0, features->counters * sizeof *want);
            for (unsigned f = 0; f < features->count; f++)
                feature_count_reference(want + features->feature[f].offset, &features->feature[f],
                                        pixels, (size_t)width * 3, width, height,
                                        shapes[s].orientation);
            for (uint32_t i = 0; i < features->counters; i++)
                *wrong += got[i] != want[i];
            *compared += features->counters;
        }
    }
    return STATUS_OK;
}

/* Compares nothing, and fills `reason`, where the device can count no feature with the variant. */
static enum status test_variant(struct ocl_context *context, enum histogram_variant variant,
                                int fills, uint64_t *compared, uint64_t *wrong, char *reason,
                                size_t size, struct error *err)
{
    struct feature_set features = {0};
    struct rig rig = {.context = context, .features = &features, .fills = fills};
    uint8_t *pixels = NULL;
    uint32_t *got = NULL, *want = NULL;
    const struct ocl_device *device = ocl_context_device(context);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof specs / sizeof *specs && status == STATUS_OK; i++) {
        struct feature_set one = {0};
        status = feature_set_add(&one, specs[i], NORMALIZE_NONE, err);
        if (status == STATUS_OK &&
            histogram_variant_takes(reason, size, variant, &one.feature[0], device))
            status = feature_set_add(&features, specs[i], NORMALIZE_NONE, err);
    }
    if (status != STATUS_OK || features.count == 0)
        return status;
    size_t pixel_bytes = 257 * 131 * 3; /* no shape has more */
    pixels = malloc(pixel_bytes);
    got = calloc(features.counters, sizeof *got);
    want = calloc(features.counters, sizeof *want);
    if (status == STATUS_OK && (!pixels || !got || !want))
        status = error_memory(err, pixel_bytes, "the self-test");
    if (status == STATUS_OK)
        status = ocl_queue_open(&rig.queue, context, "self-test", err);
    if (status == STATUS_OK)
        status = histogram_open(&rig.histogram, context, &features, variant, err);
    if (status == STATUS_OK)
        status = histogram_build(rig.histogram, err);
    if (status == STATUS_OK)
        status =
            ocl_buffer(&rig.pixels, context, CL_MEM_READ_ONLY, pixel_bytes, NULL, "pixels", err);
    if (status == STATUS_OK)
        status = ocl_buffer(&rig.tiles, context, CL_MEM_READ_ONLY,
                            TILES_MAX * sizeof(struct histogram_tile), NULL, "tiles", err);
    if (status == STATUS_OK)
        status = ocl_buffer(&rig.counters, context, CL_MEM_READ_WRITE,
                            features.counters * sizeof(uint32_t), NULL, "counters", err);
    if (status == STATUS_OK)
        status = compare_all(&rig, pixels, got, want, compared, wrong, err);
    ocl_buffer_release(&rig.counters);
    ocl_buffer_release(&rig.tiles);
    ocl_buffer_release(&rig.pixels);
    histogram_close(&rig.histogram);
    ocl_queue_close(&rig.queue);
    free(want);
    free(got);
    free(pixels);
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
        enum status status = test_variant(context, variant, brief ? FILLS_BRIEF : FILLS, &compared,
                                          &different, reason, sizeof reason, err);
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
    uint64_t compared, different;
    char text[256];
    enum status status = blur_self_test(&compared, &different, context, err);
    if (status != STATUS_OK)
        return status;
    *wrong += different;
    snprintf(text, sizeof text, "blur 3x3             %llu bytes compared, %llu differ",
             (unsigned long long)compared, (unsigned long long)different);
    line(text, user);
    return STATUS_OK;
}
