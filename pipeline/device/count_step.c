/* count_step.c: the passes of a histogram plan as one step, with a list of tiles per pass. */
#include "device/plan.h"

#include "device/selftest.h"
#include "features/kind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TILES 8192u /* per pass and slot */

struct count {
    struct histogram *histogram;
    uint32_t border;
};

static enum status open_count(void **out, struct step_needs *needs, struct ocl_context *context,
                              const struct step_node *node, uint64_t launch_bytes,
                              struct error *err)
{
    const struct count_config *config = node->config;
    const struct histogram_config histogram = {
        .features = config->features,
        .image = &config->image,
        .variant = config->variant,
        .launch_bytes = launch_bytes,
    };
    struct count *count = calloc(1, sizeof *count);
    if (!count)
        return error_memory(err, sizeof *count, "the histogram plan");
    *out = count;
    count->border = node->border;
    const enum status status = histogram_open(&count->histogram, context, &histogram, err);
    if (status != STATUS_OK)
        return status;
    const unsigned passes = count->histogram->count;
    *needs = (struct step_needs){
        .lists = passes, .entries = TILES, .counts = passes, .events = passes * HISTOGRAM_EVENTS};
    return STATUS_OK;
}

static void close_count(void **state)
{
    struct count *count = *state;
    if (count)
        histogram_close(&count->histogram);
    free(count);
    *state = NULL;
}

static enum status prove_count(void *state, struct error *err)
{
    return histogram_prepare(((struct count *)state)->histogram, err);
}

static void abandon_count(void *state)
{
    atomic_store(&((struct count *)state)->histogram->abandoned, true);
}

static struct histogram_part counted_part(const struct count *count, const struct part_shape *in)
{
    struct part_shape counted = *in;
    part_shrink(&counted, count->border);
    return (struct histogram_part){.width = counted.width,
                                   .height = counted.height,
                                   .orientation = counted.orientation,
                                   .rect = part_own(&counted),
                                   .stride = in->stride};
}

static void count_tiles(uint32_t *tiles, const void *state, const struct part_shape *in)
{
    const struct count *count = state;
    const struct histogram_part part = counted_part(count, in);
    for (unsigned p = 0; p < count->histogram->count; p++)
        tiles[p] = histogram_tile_count(count->histogram, p, &part);
}

static void fill_tiles(void *table, const void *state, const struct step_entry *entry)
{
    const struct count *count = state;
    struct histogram_part part = counted_part(count, entry->in);
    part.offset = entry->in_offset;
    part.counters = entry->values;
    for (unsigned p = 0; p < count->histogram->count; p++) {
        struct histogram_tile *tiles =
            (struct histogram_tile *)table + (size_t)p * entry->list_entries + entry->first[p];
        if (entry->given_up)
            memset(tiles, 0, entry->count[p] * sizeof *tiles);
        else
            histogram_tiles(tiles, count->histogram, p, &part, 0);
    }
}

static enum status enqueue_count(void *state, struct ocl_queue *queue, struct step_io *io,
                                 struct error *err)
{
    struct count *count = state;
    for (unsigned p = 0; p < count->histogram->count; p++) {
        cl_event *events = io->events + (size_t)p * HISTOGRAM_EVENTS;
        if (io->counts[p] == 0)
            continue;
        if (histogram_enqueue(count->histogram, p, queue, io->in, io->table, p * io->list_entries,
                              io->counts[p], io->values, io->waits, events, err) != STATUS_OK)
            return STATUS_FAILED;
        io->last = &events[0];
    }
    return STATUS_OK;
}

static void describe_count(const void *state, char *text, size_t size)
{
    const struct count *count = state;
    size_t used = 0;
    for (unsigned p = 0; p < count->histogram->count && used < size; p++) {
        const struct histogram_pass *pass = &count->histogram->pass[p];
        snprintf(text + used, size - used, " %s%s", histogram_variant_name(pass->planned),
                 pass->tuned ? " (tuned)" : "");
        used += strlen(text + used);
    }
}

/* One node for all features of an image. */
static bool is_needed(struct step_node *node, struct plan *plan, const struct feature *feature)
{
    unsigned i = 0;
    if (!feature || !feature->kind->count)
        return false;
    while (i < plan->counts && !feature_image_equal(&plan->count[i].image, &feature->image))
        i++;
    if (i == plan->counts)
        plan->count[plan->counts++] =
            (struct count_config){plan->config.features, feature->image, plan->config.variant};
    node->border = feature->image.border;
    node->config = &plan->count[i];
    return true;
}

const struct step count_step = {
    .name = "count",
    .needed = is_needed,
    .takes = PAYLOAD_RGB,
    .gives = PAYLOAD_VALUES,
    .entry_bytes = sizeof(struct histogram_tile),
    .upload = "upload tiles",
    .unmap = "unmap tiles",
    .map = "map tiles",
    .open = open_count,
    .close = close_count,
    .prove = prove_count,
    .abandon = abandon_count,
    .count = count_tiles,
    .fill = fill_tiles,
    .enqueue = enqueue_count,
    .describe = describe_count,
};
