/* runtime_step.c: maps a slot's pictures and passes them to the model's process. */
#include "device/runtime_step.h"
#include "device/on_host.h"

#include "net_part.h"

#include <stdlib.h>

/* The step's state is the feature. */
static enum status open_runtime(void **state, struct step_needs *needs, struct ocl_context *context,
                                const struct step_node *node, uint64_t launch_bytes, struct error *err)
{
    (void)context;
    (void)launch_bytes;
    (void)err;
    *state = (void *)(uintptr_t)node->config;
    *needs = (struct step_needs){.lists = 1, .counts = 1, .events = 1};
    return STATUS_OK;
}

static void close_runtime(void **state)
{
    *state = NULL;
}

/* There is no reference. */
static enum status prove_runtime(void *state, struct error *err)
{
    (void)state;
    (void)err;
    return STATUS_OK;
}

/* Counts only whole pictures from the scale step. */
static void count_pictures(uint32_t *count, const void *state, const struct part_shape *in)
{
    const struct runtime_job *job = &((const struct feature *)state)->net.job;
    count[0] = part_is_whole(in) && in->width == job->width && in->height == job->height;
}

static void fill_entry(void *table, const void *state, uint32_t list_entries,
                       const struct step_entry *entry)
{
    const uint32_t words = entry->values + ((const struct feature *)state)->offset;
    (void)list_entries;
    if (entry->count[0] > 0)
        ((struct net_part *)table)[entry->first[0]] = (struct net_part){
            .offset = entry->in_offset, .words = entry->given_up ? NET_NO_WORDS : words};
}

static enum status compute(const void *context, void *const mapped[3], uint32_t count,
                           struct error *err)
{
    const struct feature *feature = context;
    const struct net_part *parts = mapped[1];
    const uint8_t **pictures = calloc(count, sizeof *pictures);
    float **rows = calloc(count, sizeof *rows);
    uint32_t there = 0, values = feature->net.values;
    for (uint32_t i = 0; pictures && rows && i < count; i++)
        if (parts[i].words != NET_NO_WORDS) {
            pictures[there] = (const uint8_t *)mapped[0] + parts[i].offset;
            rows[there++] = (float *)mapped[2] + parts[i].words;
        }
    const enum status status =
        pictures && rows ? runtime_rows(feature->net.runtime, &feature->net.job, &values, pictures,
                                        rows, there, err)
                         : error_memory(err, count * sizeof *rows, "the rows of a network");
    free(rows);
    free(pictures);
    return status;
}

static enum status enqueue_runtime(void *state, struct ocl_queue *queue, struct step_io *io,
                                   struct error *err)
{
    return io->counts[0] > 0 ? on_host(compute, state, queue, io, err) : STATUS_OK;
}

const struct step runtime_step = {
    .name = "runtime",
    .takes = PAYLOAD_RGB,
    .gives = PAYLOAD_VALUES,
    .entry_bytes = sizeof(struct net_part),
    .fault = "ONNX Runtime computes",
    .upload = "upload parts",
    .unmap = "unmap parts",
    .map = "map parts",
    .open = open_runtime,
    .close = close_runtime,
    .prove = prove_runtime,
    .count = count_pictures,
    .fill = fill_entry,
    .enqueue = enqueue_runtime,
};
