/* histogram.c: plans passes, cuts tiles, builds and launches kernels. */
#include "device/histogram.h"
#include "base/minmax.h"

#include "device/tuning.h"
#include "features/kind.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Wider rows are tiles of their own. */
#define ROW_PIXELS_MOST 16384u
#define LINE_PIXELS     128u /* three lines of 128 bytes */

#define BUCKETS_LEAST 64u

static const struct feature *first_feature(const struct histogram *histogram,
                                           const struct histogram_pass *pass)
{
    return &histogram->features->feature[pass->feature[0]];
}

static bool same_kernel(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Does the pass have the grid, image and kernel of the feature? */
static bool pass_matches(const struct histogram *histogram, const struct histogram_pass *pass,
                         const struct feature *feature)
{
    const struct feature *first = first_feature(histogram, pass);
    return feature_grid_equal(first, feature) &&
           feature_image_equal(&first->image, &feature->image) &&
           (first->kind == feature->kind ||
            same_kernel(first->kind->kernel, feature->kind->kernel));
}

/* The pass for a feature with that choice; a new one if no existing pass has space. */
static struct histogram_pass *find_pass(struct histogram *histogram, uint64_t *used,
                                        const struct histogram_choice *choice,
                                        const struct feature *feature,
                                        const struct ocl_device *device)
{
    const uint64_t bytes = histogram_variant_table(choice->variant, feature);
    unsigned p = 0;
    while (p < histogram->count &&
           (histogram->pass[p].planned != choice->variant ||
            !pass_matches(histogram, &histogram->pass[p], feature) ||
            used[p] + bytes > histogram_variant_tables_most(choice->variant, device)))
        p++;
    struct histogram_pass *pass = &histogram->pass[p];
    if (p == histogram->count) {
        histogram->count++;
        pass->planned = pass->variant = choice->variant;
        pass->grid_rows = feature->grid_rows;
        pass->grid_columns = feature->grid_columns;
        pass->shape = choice->shape;
        pass->tuned = choice->tuned;
        pass->own = feature->kind->kernel != NULL;
    }
    used[p] += bytes;
    return pass;
}

/* The requested variant, else the tuned or default one for the device. A kind's own kernel is
 * launched like the variant `global`. */
static enum status choose_variant(struct histogram_choice *choice,
                                  const struct histogram *histogram, const struct tuning *tuning,
                                  const struct feature *feature, struct error *err)
{
    const struct ocl_device *device = ocl_context_device(histogram->context);
    char reason[128];
    *choice = (struct histogram_choice){.variant = histogram->wanted};
    if (feature->kind->kernel)
        choice->variant = HISTOGRAM_GLOBAL;
    else if (histogram->wanted == HISTOGRAM_AUTO)
        *choice = tuning_choice(tuning, feature, device);
    if (!histogram_variant_takes(reason, sizeof reason, choice->variant, feature, device))
        return error_set(err, STATUS_USAGE, "the variant '%s' cannot count %s on %s: %s",
                         histogram_variant_name(choice->variant), feature->name, device->name,
                         reason);
    return STATUS_OK;
}

/* The variant whose launch shape the pass uses. A kind's own kernel uses that of `private` on
 * CPUs. */
static enum histogram_variant shape_of(const struct histogram *histogram,
                                       const struct histogram_pass *pass)
{
    const bool cpu = ocl_context_device(histogram->context)->type & CL_DEVICE_TYPE_CPU;
    const bool own = first_feature(histogram, pass)->kind->kernel != NULL;
    return own ? cpu ? HISTOGRAM_PRIVATE : HISTOGRAM_LOCAL : pass->variant;
}

static enum status plan_passes(struct histogram *histogram, const struct feature_image *image,
                               const struct histogram_shape *shape, struct error *err)
{
    const struct ocl_device *device = ocl_context_device(histogram->context);
    uint64_t used[HISTOGRAM_PASSES_MAX] = {0};
    struct tuning tuning = {0};
    if (histogram->wanted == HISTOGRAM_AUTO)
        tuning_load(&tuning, device);
    for (unsigned f = 0; f < histogram->features->count; f++) {
        const struct feature *feature = &histogram->features->feature[f];
        struct histogram_choice choice;
        if (!feature->kind->count || (image && !feature_image_equal(image, &feature->image)))
            continue;
        enum status status = choose_variant(&choice, histogram, &tuning, feature, err);
        if (status != STATUS_OK)
            return status;
        if (shape)
            choice.shape = *shape;
        struct histogram_pass *pass = find_pass(histogram, used, &choice, feature, device);
        pass->feature[pass->count++] = f;
        pass->bins += feature->cell_bins;
    }
    for (unsigned p = 0; p < histogram->count; p++) {
        struct histogram_pass *pass = &histogram->pass[p];
        /* A shape measured for one feature does not apply to several in a pass. */
        if (pass->shape.group == 0 || (pass->count > 1 && !shape))
            pass->shape = histogram_variant_shape(shape_of(histogram, pass), pass->bins,
                                                  histogram->launch_bytes, device);
    }
    return STATUS_OK;
}

enum status histogram_open(struct histogram **out, struct ocl_context *context,
                           const struct histogram_config *config, struct error *err)
{
    *out = NULL;
    struct histogram *histogram = calloc(1, sizeof *histogram);
    if (!histogram)
        return error_memory(err, sizeof *histogram, "the histogram plan");
    histogram->context = context;
    histogram->features = config->features;
    histogram->wanted = config->variant;
    histogram->launch_bytes = config->launch_bytes;
    enum status status = plan_passes(histogram, config->image, config->shape, err);
    if (status != STATUS_OK)
        histogram_close(&histogram);
    *out = histogram;
    return status;
}

static void clear_programs(struct histogram_pass *pass)
{
    ocl_buffer_release(&pass->buckets);
    pass->bucket_count = 0;
    if (pass->reduce)
        clReleaseKernel(pass->reduce);
    if (pass->kernel)
        clReleaseKernel(pass->kernel);
    if (pass->program)
        clReleaseProgram(pass->program);
    pass->reduce = pass->kernel = NULL;
    pass->program = NULL;
}

void histogram_close(struct histogram **histogram)
{
    if (!*histogram)
        return;
    for (unsigned p = 0; p < (*histogram)->count; p++)
        clear_programs(&(*histogram)->pass[p]);
    free(*histogram);
    *histogram = NULL;
}

const char *histogram_kernel(const struct histogram *histogram, const struct histogram_pass *pass)
{
    const char *own = first_feature(histogram, pass)->kind->kernel;
    return own ? own : histogram_variant_kernel(pass->variant);
}

/* --- tiles ----------------------------------------------------------------------------------- */

/* Without a grid a part's rows are contiguous; variants are built for single rows. A kind's own
 * kernel takes any rectangle. */
static bool has_grid(const struct histogram_pass *pass)
{
    return pass->own || pass->grid_rows * pass->grid_columns > 1;
}

/* Cuts `pixels` consecutive pixels into tiles of equal length. Tiles begin at multiples of 16
 * pixels (48 bytes), or at whole cache lines if tiles are that long: in a work-group that begins
 * inside a line, each load touches one more line. */
static uint32_t cut_row(struct histogram_tile *tiles, struct histogram_tile tile, uint64_t pixels,
                        uint32_t tile_pixels)
{
    const uint64_t unit = tile_pixels % LINE_PIXELS == 0 ? LINE_PIXELS : 16;
    const uint64_t pieces = (pixels + tile_pixels - 1) / tile_pixels;
    const uint64_t piece = ((pixels + pieces - 1) / pieces + unit - 1) / unit * unit;
    uint32_t count = 0;
    tile.rows = 1;
    for (uint64_t x = 0; x < pixels; x += piece, count++) {
        if (!tiles)
            continue;
        tile.width = (uint32_t)(pixels - x < piece ? pixels - x : piece);
        tiles[count] = tile;
        tile.offset += tile.width * 3;
    }
    return count;
}

/* Cuts one rectangle inside the part into tiles. */
static uint32_t cut(struct histogram_tile *tiles, const struct histogram_part *part,
                    struct cell_rect rect, uint32_t cell, const struct histogram_pass *pass,
                    uint32_t tile_pixels)
{
    uint32_t width = rect.x1 - rect.x0, rows = rect.y1 - rect.y0, count = 0;
    struct histogram_tile tile = {
        .offset =
            part->offset + (rect.y0 - part->rect.y0) * part->stride + (rect.x0 - part->rect.x0) * 3,
        .stride = part->stride,
        .counters = part->counters,
        .cell = cell,
    };
    if (width * 3 == part->stride || rows == 1)
        return cut_row(tiles, tile, (uint64_t)width * rows, tile_pixels);
    if (!has_grid(pass) || width > ROW_PIXELS_MOST) {
        for (uint32_t y = 0; y < rows; y++, tile.offset += part->stride)
            count += cut_row(tiles ? tiles + count : NULL, tile, width, tile_pixels);
        return count;
    }
    const uint32_t step = max_u32(1, tile_pixels / width);
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
                         unsigned pass_index, const struct histogram_part *part,
                         uint32_t tile_pixels)
{
    const struct histogram_pass *pass = &histogram->pass[pass_index];
    const struct feature *feature = first_feature(histogram, pass);
    uint32_t count = 0;
    for (uint32_t row = 0; row < pass->grid_rows; row++) {
        for (uint32_t column = 0; column < pass->grid_columns; column++) {
            const struct cell_rect cell = feature_cell_rect(feature, row, column, part->width,
                                                            part->height, part->orientation);
            const struct cell_rect rect = {
                max_u32(cell.x0, part->rect.x0), max_u32(cell.y0, part->rect.y0),
                min_u32(cell.x1, part->rect.x1), min_u32(cell.y1, part->rect.y1)};
            if (rect.x0 >= rect.x1 || rect.y0 >= rect.y1)
                continue;
            uint32_t pieces =
                cut(tiles ? tiles + count : NULL, part, rect, row * pass->grid_columns + column,
                    pass, tile_pixels ? tile_pixels : pass->shape.tile_pixels);
            if (tiles)
                tiles[count].cell_tiles = pieces;
            count += pieces;
        }
    }
    return count;
}

/* The different lengths of a part's cells along one axis. There are few: cells of a grid differ by
 * one pixel, the part's edges cut two of them, and a pyramid has few cells. */
#define LENGTHS FEATURE_CUTS_MAX
struct lengths {
    uint32_t length[LENGTHS], times[LENGTHS];
    unsigned count;
};

static void add_length(struct lengths *lengths, uint32_t from, uint32_t to)
{
    unsigned i = 0;
    while (from < to && i < lengths->count && lengths->length[i] != to - from)
        i++;
    if (from >= to)
        return;
    if (i == lengths->count) {
        lengths->length[lengths->count++] = to - from;
        lengths->times[i] = 0;
    }
    lengths->times[i]++;
}

uint32_t histogram_tile_count(const struct histogram *histogram, unsigned pass_index,
                              const struct histogram_part *part)
{
    const struct histogram_pass *pass = &histogram->pass[pass_index];
    const struct feature *feature = &histogram->features->feature[pass->feature[0]];
    const struct cell_rect own = part->rect;
    const bool swapped = part->orientation >= 5;
    const uint32_t across = swapped ? pass->grid_rows : pass->grid_columns;
    const uint32_t down = swapped ? pass->grid_columns : pass->grid_rows;
    struct lengths widths = {.count = 0}, heights = {.count = 0};
    uint32_t count = 0;
    for (uint32_t i = 0; i < across; i++) {
        const struct cell_rect cell =
            feature_cell_rect(feature, swapped ? i : 0, swapped ? 0 : i, part->width, part->height,
                              part->orientation);
        add_length(&widths, max_u32(cell.x0, own.x0), min_u32(cell.x1, own.x1));
    }
    for (uint32_t i = 0; i < down; i++) {
        const struct cell_rect cell =
            feature_cell_rect(feature, swapped ? 0 : i, swapped ? i : 0, part->width, part->height,
                              part->orientation);
        add_length(&heights, max_u32(cell.y0, own.y0), min_u32(cell.y1, own.y1));
    }
    for (unsigned w = 0; w < widths.count; w++) {
        for (unsigned h = 0; h < heights.count; h++) {
            const struct cell_rect rect = {own.x0, own.y0, own.x0 + widths.length[w],
                                           own.y0 + heights.length[h]};
            count += widths.times[w] * heights.times[h] *
                     cut(NULL, part, rect, 0, pass, pass->shape.tile_pixels);
        }
    }
    return count;
}

/* --- kernels --------------------------------------------------------------------------------- */

#define PROLOGUE_BYTES (192 * FEATURE_MAX)

/* Source and options of a pass that are added to the kernel's own source: the lines required by
 * kernels/histogram_bins.h. */
struct source {
    char prologue[PROLOGUE_BYTES], options[128];
};

static void write_source(struct source *source, const struct histogram *histogram,
                         const struct histogram_pass *pass)
{
    const struct feature *features = histogram->features->feature;
    char *text = source->prologue;
    const size_t size = sizeof source->prologue;
    int used = 0;
    for (unsigned i = 0; i < pass->count; i++) {
        const char *header = features[pass->feature[i]].kind->header;
        bool included = !header;
        for (unsigned j = 0; j < i && !included; j++)
            included = strcmp(header, features[pass->feature[j]].kind->header) == 0;
        if (!included)
            used += snprintf(text + used, size - (size_t)used, "#include \"%s\"\n", header);
    }
    used += snprintf(text + used, size - (size_t)used, "#define PASS_BINS %u\n#define FEATURES(X)",
                     pass->bins);
    uint32_t table = 0;
    for (unsigned i = 0; i < pass->count; i++) {
        const struct feature *feature = &features[pass->feature[i]];
        used += snprintf(text + used, size - (size_t)used, " X(%u, %s, %u, %u, %u, %u, %u, %u)", i,
                         feature->kind->macro, feature->bins[0], feature->bins[1], feature->bins[2],
                         feature->cell_bins, feature->offset, table);
        table += feature->cell_bins;
    }
    used += snprintf(text + used, size - (size_t)used, "\n");
    assert((size_t)used < size);
    histogram_variant_options(source->options, sizeof source->options, pass->variant, &pass->shape,
                              ocl_context_device(histogram->context));
    const size_t options = strlen(source->options);
    snprintf(source->options + options, sizeof source->options - options, " -DGRID=%d",
             has_grid(pass));
}

enum status histogram_build_pass(struct histogram *histogram, unsigned index, struct error *err)
{
    struct histogram_pass *pass = &histogram->pass[index];
    struct source source;
    write_source(&source, histogram, pass);
    const char *name = histogram_kernel(histogram, pass);
    const char *reduce = histogram_variant_reduce(pass->variant);
    enum status status = ocl_program_build(&pass->program, histogram->context, name,
                                           source.prologue, source.options, err);
    if (status != STATUS_OK)
        return status;
    status = ocl_kernel(&pass->kernel, pass->program, name, err);
    if (status != STATUS_OK || !reduce)
        return status;
    return ocl_kernel(&pass->reduce, pass->program, reduce, err);
}

enum status histogram_build(struct histogram *histogram, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned p = 0; p < histogram->count && status == STATUS_OK; p++)
        status = histogram_build_pass(histogram, p, err);
    return status;
}

enum status histogram_pass_key(char key[OCL_KEY], const struct histogram *histogram, unsigned index,
                               struct error *err)
{
    const struct histogram_pass *pass = &histogram->pass[index];
    struct source source;
    write_source(&source, histogram, pass);
    return ocl_program_key(key, ocl_context_device(histogram->context),
                           histogram_kernel(histogram, pass), source.prologue, source.options, err);
}

bool histogram_replace(struct histogram *histogram, unsigned index, enum histogram_variant variant)
{
    struct histogram_pass *pass = &histogram->pass[index];
    const struct ocl_device *device = ocl_context_device(histogram->context);
    uint64_t bytes = 0;
    for (unsigned i = 0; i < pass->count; i++) {
        const struct feature *feature = &histogram->features->feature[pass->feature[i]];
        char reason[128];
        if (!histogram_variant_takes(reason, sizeof reason, variant, feature, device))
            return false;
        bytes += histogram_variant_table(variant, feature);
    }
    if (pass->count > 1 && bytes > histogram_variant_tables_most(variant, device))
        return false;
    const struct histogram_shape shape =
        histogram_variant_shape(variant, pass->bins, histogram->launch_bytes, device);
    clear_programs(pass);
    pass->variant = variant;
    pass->shape.group = shape.group;
    pass->shape.copies = shape.copies;
    return true;
}

/* Enlarges the buffer to hold the buckets of `count` tiles; it at least doubles, so it rarely
 * grows. A buffer in use by an earlier launch is released when the launch is done. */
static enum status reserve_buckets(struct histogram *histogram, struct histogram_pass *pass,
                                   uint32_t count, struct error *err)
{
    if (count <= pass->bucket_count)
        return STATUS_OK;
    count = max_u32(count, max_u32(BUCKETS_LEAST, 2 * pass->bucket_count));
    ocl_buffer_release(&pass->buckets);
    pass->bucket_count = 0;
    enum status status =
        ocl_buffer(&pass->buckets, histogram->context, CL_MEM_READ_WRITE,
                   (size_t)count * pass->bins * sizeof(uint32_t), NULL, "partial tables", err);
    if (status == STATUS_OK)
        pass->bucket_count = count;
    return status;
}

/* Work-groups loop over the counters of a cell and over the tiles of a launch. */
#define REDUCE_COUNTERS 16u
#define REDUCE_TILES    256u

enum status histogram_enqueue(struct histogram *histogram, unsigned pass_index,
                              struct ocl_queue *queue, cl_mem pixels, cl_mem tiles, uint32_t first,
                              uint32_t count, cl_mem counters, struct ocl_waits waits,
                              cl_event *events, struct error *err)
{
    struct histogram_pass *pass = &histogram->pass[pass_index];
    const bool partial = pass->reduce != NULL;
    enum status status = partial ? reserve_buckets(histogram, pass, count, err) : STATUS_OK;
    if (status != STATUS_OK)
        return status;
    const cl_mem *out = partial ? &pass->buckets : &counters;
    status = ocl_args(pass->kernel, err, sizeof pixels, &pixels, sizeof tiles, &tiles, sizeof first,
                      &first, sizeof count, &count, sizeof *out, out, OCL_ARGS_END);
    if (status != STATUS_OK)
        return status;
    if (events)
        events[0] = events[1] = NULL;
    const size_t local = pass->shape.group, global = (size_t)count * pass->shape.group;
    status = ocl_enqueue_kernel(queue, histogram_kernel(histogram, pass), pass->kernel, 1, &global,
                                &local, waits, events ? &events[partial] : NULL, err);
    if (status != STATUS_OK || !partial)
        return status;
    status = ocl_args(pass->reduce, err, sizeof pass->buckets, &pass->buckets, sizeof tiles, &tiles,
                      sizeof first, &first, sizeof count, &count, sizeof counters, &counters,
                      OCL_ARGS_END);
    if (status != STATUS_OK)
        return status;
    const size_t reduce_local[2] = {local, 1};
    const size_t reduce_global[2] = {local * REDUCE_COUNTERS, min_u32(count, REDUCE_TILES)};
    return ocl_enqueue_kernel(queue, histogram_variant_reduce(pass->variant), pass->reduce, 2,
                              reduce_global, reduce_local, OCL_NO_WAITS, events, err);
}
