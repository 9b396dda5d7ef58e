/* histogram.c: plans passes, makes tiles, builds and launches the kernels. */
#include "histogram/histogram.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Pixels a tile has at most where a row allows it. On CPUs a picture in one tile stores its
 * counters instead of adding them with atomics (768 of them cost 5 microseconds, a picture of 512 x
 * 384 takes 270), so tiles are as long as a slot of the CPU's size still gives every thread four;
 * GPU tiles are short enough for a few thousand work-groups a slot. */
#define SLOT_PIXELS_PRIVATE     (2730u << 10) /* 8 MiB */
#define TILE_PIXELS_PRIVATE_MIN (32u << 10)
#define TILE_PIXELS_PRIVATE_MAX (256u << 10)
#define TILE_PIXELS_GROUP       (32u << 10)

#define PRIVATE_BYTES_MAX                                                                          \
    (192u << 10) /* tables of one work-item: what a second-level cache holds */
#define GROUP_SIZE 256u
#define COPIES_MAX 32u

struct pass {
    enum histogram_variant variant;
    unsigned feature[FEATURE_MAX]; /* indices into the set */
    unsigned count;
    uint32_t bins; /* counters of one cell, all features of the pass */
    uint32_t grid_rows, grid_columns;
    uint32_t group, copies;
    uint32_t tile_pixels;
    cl_program program;
    cl_kernel kernel;
};

struct histogram {
    struct ocl_context *context;
    const struct feature_set *features;
    struct pass pass[HISTOGRAM_PASSES_MAX];
    unsigned count;
};

static uint32_t max_u32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

const char *histogram_variant_name(enum histogram_variant variant)
{
    static const char *const name[] = {"auto", "private", "local", "global"};
    return name[variant];
}

bool histogram_variant_parse(enum histogram_variant *out, const char *name)
{
    for (int v = 0; v < HISTOGRAM_VARIANTS; v++) {
        if (strcmp(name, histogram_variant_name((enum histogram_variant)v)) == 0) {
            *out = (enum histogram_variant)v;
            return true;
        }
    }
    return false;
}

static const char *kernel_name(enum histogram_variant variant)
{
    static const char *const name[] = {"", "histogram_private", "histogram_local",
                                       "histogram_global"};
    return name[variant];
}

/* Bytes of table that a feature needs in a variant; 0: no limit. */
static uint64_t table_bytes(const struct feature *feature, enum histogram_variant variant)
{
    if (variant == HISTOGRAM_PRIVATE) {
        switch (feature->kind) {
        case FEATURE_RGB:
            return 4u * 4 * 3 * 272;
        case FEATURE_GRAY:
            return 4u * 4 * 272;
        default:
            return 4ull * feature->cell_bins;
        }
    }
    return variant == HISTOGRAM_LOCAL ? 4ull * feature->cell_bins : 0;
}

static enum histogram_variant choose(const struct ocl_device *device, const struct feature *feature)
{
    if (device->type & CL_DEVICE_TYPE_CPU)
        return HISTOGRAM_PRIVATE;
    return table_bytes(feature, HISTOGRAM_LOCAL) <= device->local_memory ? HISTOGRAM_LOCAL
                                                                         : HISTOGRAM_GLOBAL;
}

/* What the tables of one pass may take. On GPUs a pass leaves room for four copies: fewer cost more
 * than a second reading of the pixels. */
static uint64_t pass_bytes(const struct ocl_device *device, enum histogram_variant variant)
{
    return variant == HISTOGRAM_PRIVATE ? PRIVATE_BYTES_MAX
           : variant == HISTOGRAM_LOCAL ? device->local_memory / 4
                                        : UINT64_MAX;
}

static enum status plan(struct histogram *histogram, enum histogram_variant wanted,
                        struct error *err)
{
    const struct ocl_device *device = ocl_context_device(histogram->context);
    uint64_t used[HISTOGRAM_PASSES_MAX] = {0};
    for (unsigned f = 0; f < histogram->features->count; f++) {
        const struct feature *feature = &histogram->features->feature[f];
        enum histogram_variant variant =
            wanted == HISTOGRAM_AUTO ? choose(device, feature) : wanted;
        uint64_t bytes = table_bytes(feature, variant);
        if (variant == HISTOGRAM_LOCAL && bytes > device->local_memory)
            return error_set(err, STATUS_USAGE,
                             "feature %s needs %llu bytes of local memory and %s has %llu; use the "
                             "variant 'global'",
                             feature->name, (unsigned long long)bytes, device->name,
                             (unsigned long long)device->local_memory);
        unsigned p = 0;
        while (p < histogram->count && (histogram->pass[p].variant != variant ||
                                        histogram->pass[p].grid_rows != feature->grid_rows ||
                                        histogram->pass[p].grid_columns != feature->grid_columns ||
                                        used[p] + bytes > pass_bytes(device, variant)))
            p++;
        struct pass *pass = &histogram->pass[p];
        if (p == histogram->count) {
            histogram->count++;
            pass->variant = variant;
            pass->grid_rows = feature->grid_rows;
            pass->grid_columns = feature->grid_columns;
        }
        pass->feature[pass->count++] = f;
        pass->bins += feature->cell_bins;
        used[p] += bytes;
    }
    for (unsigned p = 0; p < histogram->count; p++) {
        struct pass *pass = &histogram->pass[p];
        pass->group = 1;
        pass->copies = 1;
        pass->tile_pixels = TILE_PIXELS_GROUP;
        if (pass->variant == HISTOGRAM_PRIVATE) {
            uint32_t share = SLOT_PIXELS_PRIVATE / 4 / max_u32(1, device->compute_units);
            pass->tile_pixels =
                min_u32(max_u32(share, TILE_PIXELS_PRIVATE_MIN), TILE_PIXELS_PRIVATE_MAX);
            continue;
        }
        while (pass->group * 2 <= GROUP_SIZE && pass->group * 2 <= device->max_work_group &&
               pass->group * 2 <= device->max_work_item[0])
            pass->group *= 2;
        while (pass->variant == HISTOGRAM_LOCAL && pass->copies < COPIES_MAX &&
               pass->copies < pass->group &&
               8ull * pass->bins * pass->copies <= device->local_memory)
            pass->copies *= 2;
    }
    return STATUS_OK;
}

enum status histogram_open(struct histogram **out, struct ocl_context *context,
                           const struct feature_set *features, enum histogram_variant variant,
                           struct error *err)
{
    *out = NULL;
    struct histogram *histogram = calloc(1, sizeof *histogram);
    if (!histogram)
        return error_memory(err, sizeof *histogram, "the histogram plan");
    histogram->context = context;
    histogram->features = features;
    enum status status = plan(histogram, variant, err);
    if (status != STATUS_OK)
        histogram_close(&histogram);
    *out = histogram;
    return status;
}

void histogram_close(struct histogram **histogram)
{
    if (!*histogram)
        return;
    for (unsigned p = 0; p < (*histogram)->count; p++) {
        struct pass *pass = &(*histogram)->pass[p];
        if (pass->kernel)
            clReleaseKernel(pass->kernel);
        if (pass->program)
            clReleaseProgram(pass->program);
    }
    free(*histogram);
    *histogram = NULL;
}

unsigned histogram_passes(const struct histogram *histogram)
{
    return histogram->count;
}

enum histogram_variant histogram_pass_variant(const struct histogram *histogram, unsigned pass)
{
    return histogram->pass[pass].variant;
}

/* --- tiles ----------------------------------------------------------------------------------- */

/* Cuts one rectangle (already inside the part) into tiles. */
static uint32_t cut(struct histogram_tile *tiles, const struct histogram_part *part,
                    struct cell_rect rect, uint32_t cell, uint32_t tile_pixels)
{
    uint32_t width = rect.x1 - rect.x0, rows = rect.y1 - rect.y0, count = 0;
    struct histogram_tile tile = {
        .offset =
            part->offset + (rect.y0 - part->rect.y0) * part->stride + (rect.x0 - part->rect.x0) * 3,
        .stride = part->stride,
        .counters = part->counters,
        .cell = cell,
    };
    if (width * 3 == part->stride || rows == 1) {
        /* Contiguous: one long row, cut at multiples of 16 pixels, equally long pieces. */
        uint64_t pixels = (uint64_t)width * rows;
        uint32_t pieces = (uint32_t)((pixels + tile_pixels - 1) / tile_pixels);
        uint32_t piece = (uint32_t)((pixels / pieces + 16) & ~15ull);
        tile.rows = 1;
        for (uint64_t x = 0; x < pixels; x += piece, count++) {
            if (!tiles)
                continue;
            tile.width = (uint32_t)(pixels - x < piece ? pixels - x : piece);
            tiles[count] = tile;
            tile.offset += piece * 3;
        }
        return count;
    }
    uint32_t step = max_u32(1, tile_pixels / width);
    for (uint32_t y = 0; y < rows; y += step, count++) {
        if (!tiles)
            continue;
        tile.width = width;
        tile.rows = min_u32(step, rows - y);
        tiles[count] = tile;
        tile.offset += step * part->stride;
    }
    return count;
}

uint32_t histogram_tiles(struct histogram_tile *tiles, const struct histogram *histogram,
                         unsigned pass_index, const struct histogram_part *part)
{
    const struct pass *pass = &histogram->pass[pass_index];
    const struct feature *feature = &histogram->features->feature[pass->feature[0]];
    uint32_t count = 0;
    for (uint32_t row = 0; row < pass->grid_rows; row++) {
        for (uint32_t column = 0; column < pass->grid_columns; column++) {
            struct cell_rect rect = feature_cell_rect(feature, row, column, part->width,
                                                      part->height, part->orientation);
            rect.x0 = max_u32(rect.x0, part->rect.x0);
            rect.y0 = max_u32(rect.y0, part->rect.y0);
            rect.x1 = min_u32(rect.x1, part->rect.x1);
            rect.y1 = min_u32(rect.y1, part->rect.y1);
            if (rect.x0 >= rect.x1 || rect.y0 >= rect.y1)
                continue;
            uint32_t pieces = cut(tiles ? tiles + count : NULL, part, rect,
                                  row * pass->grid_columns + column, pass->tile_pixels);
            if (tiles && pieces == 1)
                tiles[count].whole_cell = 1;
            count += pieces;
        }
    }
    return count;
}

/* --- kernels --------------------------------------------------------------------------------- */

/* The lines that kernels/histogram_bins.h asks for. */
static void write_prologue(char *text, size_t size, const struct histogram *histogram,
                           const struct pass *pass)
{
    static const char *const kind[] = {"RGB", "RGB_JOINT", "GRAY", "HSV"};
    int used = snprintf(text, size, "#define PASS_BINS %u\n#define FEATURES(X)", pass->bins);
    uint32_t table = 0;
    for (unsigned i = 0; i < pass->count; i++) {
        const struct feature *feature = &histogram->features->feature[pass->feature[i]];
        used += snprintf(text + used, size - (size_t)used, " X(%u, %s, %u, %u, %u, %u, %u, %u)", i,
                         kind[feature->kind], feature->bins[0], feature->bins[1], feature->bins[2],
                         feature->cell_bins, feature->offset, table);
        table += feature->cell_bins;
    }
    used += snprintf(text + used, size - (size_t)used, "\n");
    assert((size_t)used < size);
}

enum status histogram_build(struct histogram *histogram, struct error *err)
{
    for (unsigned p = 0; p < histogram->count; p++) {
        struct pass *pass = &histogram->pass[p];
        char prologue[128 * FEATURE_MAX], options[128];
        write_prologue(prologue, sizeof prologue, histogram, pass);
        snprintf(options, sizeof options, "-cl-std=CL1.2 -DGROUP=%u -DCOPIES=%u", pass->group,
                 pass->copies);
        const char *name = kernel_name(pass->variant);
        enum status status =
            ocl_program_build(&pass->program, histogram->context, name, prologue, options, err);
        if (status == STATUS_OK)
            status = ocl_kernel(&pass->kernel, pass->program, name, err);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

enum status histogram_enqueue(struct histogram *histogram, unsigned pass_index,
                              struct ocl_queue *queue, cl_mem pixels, cl_mem tiles, uint32_t first,
                              uint32_t count, cl_mem counters, struct ocl_waits waits,
                              cl_event *event, struct error *err)
{
    struct pass *pass = &histogram->pass[pass_index];
    enum status status =
        ocl_args(pass->kernel, err, sizeof pixels, &pixels, sizeof tiles, &tiles, sizeof first,
                 &first, sizeof count, &count, sizeof counters, &counters, OCL_ARGS_END);
    if (status != STATUS_OK)
        return status;
    size_t local = pass->group, global = (size_t)count * pass->group;
    return ocl_enqueue_kernel(queue, kernel_name(pass->variant), pass->kernel, 1, &global, &local,
                              waits, event, err);
}
