/* device_pairs.c: uploads blocks, and launches the filter with a reach that shrinks. */
#include "neighbours/device_pairs.h"
#include "base/array.h"
#include "base/minmax.h"
#include "neighbours/choice.h"
#include "neighbours/codes.h"
#include "ocl/lane.h"
#include "search.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Default capacity of a row's list. */
#define LIST 512
/* Maximum number of rows whose lists are on the device at a time. */
#define QUERIES_MOST (1u << 22)
/* Maximum number of pairs per launch, after which a stop is checked. */
#define LAUNCH_PAIRS (1ull << 38)
/* Rows that a thread collects at a time. */
#define TAKE_ROWS 4096
/* Bytes of each of the two staging buffers for rows. */
#define STAGING_BYTES (32u << 20)
/* Searches repeated with the reach left by the previous one, for rows whose lists overflowed. */
#define RETRIES 2
/* Steps of a repeated search, whose reach is known. */
#define RETRY_STEPS 16
/* Lists are decided at the end, and after each step once 2^-DECISIONS of the rows were compared. */
#define DECISIONS 5
/* Rows of up to this many column blocks stay in registers, which have room for 8; longer ones pass
 * through local memory. */
#define KEPT_MOST 8
/* Both halves of a float64 that is larger than any distance. */
#define NO_DISTANCE 0x7f7f7f7fu
/* 1 / the share of the device's memory left to other users. */
#define SPARE_SHARE 8

/* Rows on the device. */
struct block {
    uint64_t first; /* row */
    uint32_t rows, padded;
    cl_mem values, codes, facts, ids, spans, sides; /* sides: for blocks that are queries */
};

struct staging {
    void *rows; /* pinned */
    cl_event busy;
};

enum kernel {
    KERNEL_ENCODE,
    KERNEL_BOUND,
    KERNEL_FILTER,
    KERNEL_SHRINK,
    KERNEL_DECIDE,
    KERNEL_REACHES,
    KERNELS
};

static const char *const kernel_names[KERNELS] = {"encode_rows",  "bound_spans",  "filter_pairs",
                                                  "shrink_lists", "decide_lists", "bound_reaches"};

struct search {
    struct lane lane;
    struct block_reader *reader;
    struct code_space space;
    struct lane_held *held;
    cl_kernel kernel[KERNELS];
    cl_mem centre;
    cl_mem reaches, list, counts, found, lost, squared, rows; /* for queries */
    struct staging staging[2];
    uint32_t staging_rows;
    uint32_t stride, columns, capacity, n, queries;
    uint32_t *host_list, *host_rows;
    uint64_t *host_queries; /* rows of the query block */
    double *host_squared;
    struct nearest *lists;
    uint64_t *again; /* rows for the caller */
    uint32_t again_count;
};

static uint32_t columns_of(uint32_t stride)
{
    return (stride + SEARCH_BLOCK - 1) / SEARCH_BLOCK * SEARCH_BLOCK;
}

bool device_pairs_pays(const struct neighbours_config *config)
{
    if (config->devices.count == 0 || config->n > SEARCH_N_MOST)
        return false;
    const struct ocl_device *device = ocl_context_device(config->devices.contexts[0]);
    if (!device->fp64)
        return false;
    return (config->choice && config->choice->device) ||
           (!(device->type & CL_DEVICE_TYPE_CPU) && device->nvidia_major >= 8);
}

/* Launches one of the kernels; if a test or a benchmark requests it, waits and adds its seconds. */
static enum status launch(struct search *search, enum kernel kernel, uint64_t items, size_t group,
                          struct error *err)
{
    const struct neighbours_choice *choice = search->reader->config->choice;
    const size_t global = (items + group - 1) / group * group;
    cl_event event = NULL;
    if (!choice || !choice->kernel_seconds)
        return lane_launch(&search->lane, kernel_names[kernel], search->kernel[kernel], items,
                           group, err);
    if (ocl_enqueue_kernel(search->lane.compute, kernel_names[kernel], search->kernel[kernel], 1,
                           &global, &group, OCL_NO_WAITS, &event, err) != STATUS_OK)
        return err->status;
    const enum status status = ocl_wait(search->lane.compute, event, err);
    choice->kernel_seconds[kernel] += ocl_event_seconds(search->lane.ocl, event);
    clReleaseEvent(event);
    return status;
}

/* The same after ocl_args. */
#define RUN(search, number, items, group, err, ...)                                                \
    (ocl_args((search)->kernel[number], err, __VA_ARGS__, OCL_ARGS_END) == STATUS_OK               \
         ? launch(search, number, items, group, err)                                               \
         : (err)->status)

/* --- blocks ------------------------------------------------------------------------------------ */

static uint64_t block_bytes(const struct search *search)
{
    return search->stride * sizeof(float) + search->columns + sizeof(cl_float4) + sizeof(cl_uint);
}

static enum status block_open(struct block *block, struct search *search, uint32_t capacity,
                              struct error *err)
{
    const size_t padded = ((size_t)capacity + SEARCH_PANEL - 1) / SEARCH_PANEL * SEARCH_PANEL;
    const struct lane_wanted wanted[] = {
        BUFFER(block->values, (size_t)capacity * search->stride * sizeof(float)),
        BUFFER(block->codes, padded * search->columns),
        BUFFER(block->facts, padded * sizeof(cl_float4)),
        BUFFER(block->ids, padded * sizeof(cl_uint)),
        BUFFER(block->spans, padded / SEARCH_SPAN * sizeof(cl_float4)),
        BUFFER(block->sides, padded / SEARCH_SPAN * sizeof(cl_float2)),
    };
    return lane_hold(&search->held, &search->lane, wanted, COUNT_OF(wanted), "rows to compare",
                     err);
}

/* Waits until a staging buffer is free. */
static enum status staging_wait(struct search *search, struct staging *staging, struct error *err)
{
    if (!staging->busy)
        return STATUS_OK;
    const enum status status = ocl_wait(search->lane.compute, staging->busy, err);
    clReleaseEvent(staging->busy);
    staging->busy = NULL;
    return status;
}

/* Marks the rows after the last one as absent. */
static enum status pad(struct search *search, struct block *block, struct error *err)
{
    const uint32_t more = block->padded - block->rows;
    cl_float4 facts[SEARCH_PANEL];
    cl_uint ids[SEARCH_PANEL];
    for (uint32_t i = 0; i < more; i++) {
        facts[i] = (cl_float4){{0, 0, SEARCH_NO_ROW, -SEARCH_NO_ROW}};
        ids[i] = SEARCH_NONE;
    }
    if (more == 0)
        return STATUS_OK;
    if (lane_fill(&search->lane, "pad codes", block->codes, 0,
                  (size_t)block->rows * search->columns, (size_t)more * search->columns,
                  err) != STATUS_OK ||
        lane_write(&search->lane, "pad facts", block->facts, block->rows * sizeof(cl_float4),
                   more * sizeof(cl_float4), facts, err) != STATUS_OK)
        return err->status;
    return lane_write(&search->lane, "pad ids", block->ids, block->rows * sizeof(cl_uint),
                      more * sizeof(cl_uint), ids, err);
}

static enum status block_load(struct search *search, struct block *block, uint64_t first,
                              uint32_t rows, struct error *err)
{
    const struct neighbours_config *config = search->reader->config;
    const size_t row_bytes = search->stride * sizeof(float);
    block->first = first;
    block->rows = rows;
    block->padded = (rows + SEARCH_PANEL - 1) / SEARCH_PANEL * SEARCH_PANEL;
    const cl_uint block_first = (cl_uint)first;
    const cl_ulong step = block_reader_step(rows);
    const cl_int largest = search->space.largest;
    if (pad(search, block, err) != STATUS_OK)
        return err->status;
    for (uint32_t done = 0, turn = 0; done < rows; turn = 1 - turn) {
        struct staging *staging = &search->staging[turn];
        const uint32_t now = min_u32(search->staging_rows, rows - done);
        const cl_uint from = done;
        if (staging_wait(search, staging, err) != STATUS_OK ||
            block_reader_read(search->reader, first + done, now, staging->rows, err) != STATUS_OK ||
            ocl_enqueue_write(search->lane.compute, "rows", block->values, false, done * row_bytes,
                              now * row_bytes, staging->rows, OCL_NO_WAITS, &staging->busy,
                              err) != STATUS_OK ||
            RUN(search, KERNEL_ENCODE, (uint64_t)now * SEARCH_ENCODE_ITEMS, SEARCH_ENCODE_ITEMS,
                err, OCL_ARG(block->values), OCL_ARG(search->centre), OCL_ARG(block->codes),
                OCL_ARG(block->facts), OCL_ARG(block->ids), OCL_ARG(from), OCL_ARG(block->rows),
                OCL_ARG(block_first), OCL_ARG(step), OCL_ARG(search->stride),
                OCL_ARG(search->columns), OCL_ARG(search->space.unit),
                OCL_ARG(largest)) != STATUS_OK ||
            ocl_flush(search->lane.compute, err) != STATUS_OK)
            return err->status;
        done += now;
        watch_show(&config->watch, "rows read", first + done, search->reader->source->rows);
    }
    const cl_uint spans = block->padded / SEARCH_SPAN;
    return RUN(search, KERNEL_BOUND, spans, 64, err, OCL_ARG(block->facts), OCL_ARG(block->spans),
               OCL_ARG(spans));
}

static void tell(const struct search *search, uint64_t rows_done)
{
    const struct neighbours_config *config = search->reader->config;
    const uint64_t rows = search->reader->source->rows;
    watch_show(&config->watch, "rows compared", rows_done * rows / 1000000, rows * rows / 1000000);
}

/* --- searching --------------------------------------------------------------------------------- */

/* A range of lanes to compare queries with: `lanes` from `first` on; see filter_pairs. */
struct pass {
    cl_uint first, lanes, ways;
};

/* Compares the listed queries with lanes and shortens their reach. */
static enum status step(struct search *search, const struct block *queries,
                        const struct block *block, uint32_t count, struct pass pass,
                        struct error *err)
{
    const cl_uint block_first = (cl_uint)block->first, spans = queries->padded / SEARCH_SPAN;
    const cl_ulong step = block_reader_step(block->rows);
    if ((pass.ways & SEARCH_BOTH_WAYS) &&
        RUN(search, KERNEL_REACHES, spans, 64, err, OCL_ARG(queries->facts),
            OCL_ARG(search->reaches), OCL_ARG(queries->sides), OCL_ARG(spans)) != STATUS_OK)
        return err->status;
    if (RUN(search, KERNEL_FILTER, (count + SEARCH_ROWS - 1) / SEARCH_ROWS * (uint64_t)SEARCH_ITEMS,
            SEARCH_ITEMS, err, OCL_ARG(queries->codes), OCL_ARG(queries->facts),
            OCL_ARG(search->reaches), OCL_ARG(queries->ids), OCL_ARG(search->list),
            OCL_ARG(block->codes), OCL_ARG(block->facts), OCL_ARG(block->spans),
            OCL_ARG(queries->sides), OCL_ARG(search->counts), OCL_ARG(search->found),
            OCL_ARG(count), OCL_ARG(search->columns), OCL_ARG(pass.first), OCL_ARG(pass.lanes),
            OCL_ARG(block->padded), OCL_ARG(pass.ways), OCL_ARG(search->capacity),
            OCL_ARG(block_first), OCL_ARG(block->rows), OCL_ARG(step)) != STATUS_OK)
        return err->status;
    return RUN(search, KERNEL_SHRINK, (uint64_t)count * SEARCH_SHRINK_ITEMS, SEARCH_SHRINK_ITEMS,
               err, OCL_ARG(queries->facts), OCL_ARG(search->reaches), OCL_ARG(search->list),
               OCL_ARG(block->facts), OCL_ARG(search->counts), OCL_ARG(search->found),
               OCL_ARG(search->lost), OCL_ARG(search->capacity), OCL_ARG(search->n));
}

/* Evaluates and empties the lists, which shortens every reach as far as possible. */
static enum status decide(struct search *search, const struct block *queries,
                          const struct block *block, uint32_t count, struct error *err)
{
    const cl_uint query_first = (cl_uint)queries->first, block_first = (cl_uint)block->first;
    return RUN(search, KERNEL_DECIDE, (uint64_t)count * SEARCH_EXACT_ITEMS, SEARCH_EXACT_ITEMS, err,
               OCL_ARG(queries->values), OCL_ARG(queries->ids), OCL_ARG(query_first),
               OCL_ARG(queries->facts), OCL_ARG(search->reaches), OCL_ARG(search->list),
               OCL_ARG(block->values), OCL_ARG(block->ids), OCL_ARG(block_first),
               OCL_ARG(search->counts), OCL_ARG(search->found), OCL_ARG(search->squared),
               OCL_ARG(search->rows), OCL_ARG(search->stride), OCL_ARG(search->capacity),
               OCL_ARG(search->n), OCL_ARG(search->space.unit));
}

/* After a step: evaluates the lists if that is worthwhile or due, and waits after long launches so
 * that a stop is noticed. */
static enum status after_step(struct search *search, const struct block *queries,
                              const struct block *block, uint32_t count, bool decides, bool waits,
                              uint64_t rows_done, struct error *err)
{
    if ((decides && decide(search, queries, block, count, err) != STATUS_OK) ||
        ocl_flush(search->lane.compute, err) != STATUS_OK)
        return err->status;
    if (!waits)
        return STATUS_OK;
    ocl_finish(search->lane.compute);
    if (stop_check(search->lane.stop, "comparing rows", err) != STATUS_OK)
        return err->status;
    tell(search, rows_done);
    return STATUS_OK;
}

/* Maximum number of panels per launch. */
static uint32_t panels_most(uint32_t count)
{
    return (uint32_t)min_u64(max_u64(LAUNCH_PAIRS / count / SEARCH_PANEL, 1), 1u << 24);
}

/* Compares `count` listed queries with a block. first: no reach is known yet. */
static enum status search_block(struct search *search, const struct block *queries,
                                const struct block *block, uint32_t count, bool first,
                                struct error *err)
{
    uint32_t lanes = first ? search->capacity / 2 / SEARCH_PANEL * SEARCH_PANEL
                           : (block->padded / RETRY_STEPS) / SEARCH_PANEL * SEARCH_PANEL;
    lanes = max_u32(lanes, SEARCH_PANEL);
    const uint32_t most = panels_most(count) * SEARCH_PANEL;
    for (uint32_t from = 0; from < block->padded;) {
        const uint32_t to = block->padded - from > lanes ? from + lanes : block->padded;
        if (step(search, queries, block, count, (struct pass){from, to - from, 0}, err) !=
                STATUS_OK ||
            after_step(search, queries, block, count,
                       to == block->padded || (first && to >= block->padded >> DECISIONS),
                       to - from == most, queries->first + count * (uint64_t)to / block->padded,
                       err) != STATUS_OK)
            return err->status;
        from = to;
        /* As many again as so far. */
        lanes = min_u32(first ? to : lanes, most);
    }
    return STATUS_OK;
}

/* Compares all rows of a block with each other, each pair once: every panel with itself, with the
 * next panel, and so on, wrapping around after the last one, up to the opposite panel. Each pair is
 * listed for both rows, so that after each step all have met the same number of rows, twice as many
 * as before. */
static enum status search_all(struct search *search, const struct block *block, struct error *err)
{
    const uint32_t panels = block->padded / SEARCH_PANEL, most = panels_most(block->rows);
    for (uint32_t from = 0, wanted = 1; from <= panels / 2;) {
        /* Opposite panels meet from both sides. */
        const uint32_t end = panels % 2 == 0 && from < panels / 2 ? panels / 2 : panels / 2 + 1;
        const uint32_t to = min_u32(end, from + min_u32(wanted, most));
        const bool alone = from == 0 || 2 * from == panels;
        const struct pass pass = {from * SEARCH_PANEL, (to - from) * SEARCH_PANEL,
                                  SEARCH_ALL_ROWS | (alone ? 0 : SEARCH_BOTH_WAYS)};
        const uint32_t met = 2 * to - 1;
        if (step(search, block, block, block->rows, pass, err) != STATUS_OK ||
            after_step(search, block, block, block->rows,
                       to > panels / 2 || met >= panels >> DECISIONS, to - from == most,
                       (uint64_t)block->rows * met / panels, err) != STATUS_OK)
            return err->status;
        from = to;
        wanted = max_u32(met / 2, 1);
    }
    return STATUS_OK;
}

/* Starts the listed queries: `count` rows of a block, with empty lists. */
static enum status begin(struct search *search, const struct block *queries, uint32_t count,
                         struct error *err)
{
    const uint64_t step = block_reader_step(queries->rows);
    const size_t neighbours = (size_t)count * search->n;
    for (uint32_t slot = 0; slot < count; slot++)
        search->host_list[slot] = (cl_uint)(search->host_queries[slot] * step % queries->rows);
    if (lane_write(&search->lane, "queries", search->list, 0, count * sizeof(cl_uint),
                   search->host_list, err) != STATUS_OK ||
        lane_fill(&search->lane, "no distances", search->squared, NO_DISTANCE, 0,
                  neighbours * sizeof(cl_double), err) != STATUS_OK ||
        lane_fill(&search->lane, "no rows", search->rows, SEARCH_NONE, 0,
                  neighbours * sizeof(cl_uint), err) != STATUS_OK ||
        lane_fill(&search->lane, "no pairs", search->counts, 0, 0, count * sizeof(cl_uint), err) !=
            STATUS_OK)
        return err->status;
    return lane_fill(&search->lane, "nothing lost", search->lost, 0, 0, count * sizeof(cl_uint),
                     err);
}

/* Resets the reach of all rows of a block. */
static enum status forget_reaches(struct search *search, const struct block *queries,
                                  struct error *err)
{
    const float none = 2 * SEARCH_FAR;
    uint32_t bits;
    memcpy(&bits, &none, sizeof bits);
    if (queries->padded > queries->rows &&
        lane_fill(&search->lane, "no row", search->reaches, 0, queries->rows * sizeof(cl_float),
                  (queries->padded - queries->rows) * sizeof(cl_float), err) != STATUS_OK)
        return err->status;
    return lane_fill(&search->lane, "no reach", search->reaches, bits, 0,
                     queries->rows * sizeof(cl_float), err);
}

struct take_job {
    const struct search *search;
    uint64_t first; /* row of the block */
    uint32_t count;
};

static void take_part(void *context, uint64_t part)
{
    const struct take_job *job = context;
    const struct search *search = job->search;
    const uint32_t end = min_u32((uint32_t)(part + 1) * TAKE_ROWS, job->count);
    for (uint32_t slot = (uint32_t)part * TAKE_ROWS; slot < end; slot++) {
        const size_t from = (size_t)slot * search->n;
        struct nearest *list =
            search->lists + (job->first + search->host_queries[slot]) * search->n;
        for (uint32_t i = 0; i < search->n; i++)
            list[i] = (struct nearest){search->host_squared[from + i], search->host_rows[from + i]};
    }
}

/* Collects the results of the listed queries; *count becomes the number of those whose lists
 * overflowed, which are listed then. */
static enum status take(struct search *search, const struct block *queries, uint32_t *count,
                        struct error *err)
{
    const size_t neighbours = (size_t)*count * search->n;
    if (lane_read(&search->lane, "lost", search->lost, 0, *count * sizeof(cl_uint),
                  search->host_list, err) != STATUS_OK ||
        lane_read(&search->lane, "distances", search->squared, 0, neighbours * sizeof(cl_double),
                  search->host_squared, err) != STATUS_OK ||
        lane_read(&search->lane, "neighbours", search->rows, 0, neighbours * sizeof(cl_uint),
                  search->host_rows, err) != STATUS_OK)
        return err->status;
    struct take_job job = {search, queries->first, *count};
    workers_run(search->reader->workers, take_part, &job, (*count + TAKE_ROWS - 1) / TAKE_ROWS);
    uint32_t left = 0;
    for (uint32_t slot = 0; slot < *count; slot++)
        if (search->host_list[slot])
            search->host_queries[left++] = search->host_queries[slot];
    *count = left;
    return STATUS_OK;
}

/* Leaves rows to the caller. */
static enum status leave(struct search *search, const struct block *queries, uint32_t count,
                         struct error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        if (array_grow(&search->again, search->again_count, sizeof *search->again,
                       "rows to search for", err))
            return STATUS_FAILED;
        search->again[search->again_count++] = queries->first + search->host_queries[i];
    }
    return STATUS_OK;
}

/* Searches with all rows on the device. */
static enum status search_resident(struct search *search, struct block *block, struct error *err)
{
    const uint64_t rows = search->reader->source->rows;
    enum status status = block_load(search, block, 0, (uint32_t)rows, err);
    if (status == STATUS_OK)
        status = forget_reaches(search, block, err);
    for (uint64_t first = 0; first < rows && status == STATUS_OK; first += search->queries) {
        uint32_t count = (uint32_t)min_u64(search->queries, rows - first);
        const bool all = count == rows;
        const uint64_t step = block_reader_step(block->rows);
        /* All rows are listed by position. */
        for (uint32_t i = 0; i < count; i++)
            search->host_queries[all ? i * step % rows : i] = first + i;
        for (uint32_t turn = 0; turn <= RETRIES && count > 0 && status == STATUS_OK; turn++) {
            status = stop_check(search->lane.stop, "comparing rows", err);
            if (status == STATUS_OK)
                status = begin(search, block, count, err);
            if (status == STATUS_OK)
                status = all && turn == 0
                             ? search_all(search, block, err)
                             : search_block(search, block, block, count, turn == 0, err);
            if (status == STATUS_OK)
                status = take(search, block, &count, err);
        }
        if (status == STATUS_OK)
            status = leave(search, block, count, err);
        tell(search, min_u64(first + search->queries, rows));
    }
    return status;
}

/* Searches block by block; `queries` has the rows searched for. */
static enum status search_blocks(struct search *search, struct block *queries, struct block *block,
                                 uint32_t size, struct error *err)
{
    const uint64_t rows = search->reader->source->rows;
    enum status status = STATUS_OK;
    for (uint64_t first = 0; first < rows && status == STATUS_OK; first += search->queries) {
        uint32_t count = (uint32_t)min_u64(search->queries, rows - first);
        for (uint32_t i = 0; i < count; i++)
            search->host_queries[i] = i;
        status = block_load(search, queries, first, count, err);
        if (status == STATUS_OK)
            status = forget_reaches(search, queries, err);
        if (status == STATUS_OK)
            status = begin(search, queries, count, err);
        for (uint64_t from = 0; from < rows && status == STATUS_OK; from += size) {
            status = stop_check(search->lane.stop, "comparing rows", err);
            if (status == STATUS_OK)
                status = block_load(search, block, from, (uint32_t)min_u64(size, rows - from), err);
            if (status == STATUS_OK)
                status = search_block(search, queries, block, count, from == 0, err);
        }
        if (status == STATUS_OK)
            status = take(search, queries, &count, err);
        if (status == STATUS_OK)
            status = leave(search, queries, count, err);
        tell(search, min_u64(first + search->queries, rows));
    }
    return status;
}

/* --- all of it --------------------------------------------------------------------------------- */

static enum status open_kernels(struct search *search, struct error *err)
{
    /* The stand-in for tensor cores is for tests. */
    char options[32];
    const uint32_t blocks = search->columns / SEARCH_BLOCK;
    snprintf(options, sizeof options, "-DKEPT=%u%s", blocks <= KEPT_MOST ? blocks : 0,
             search->lane.device->nvidia_major >= 8 ? "" : " -DPLAIN");
    struct lane_wanted kernels[KERNELS];
    for (int i = 0; i < KERNELS; i++)
        kernels[i] =
            (struct lane_wanted)KERNEL(search->kernel[i], "search_pairs", options, kernel_names[i]);
    return lane_hold(&search->held, &search->lane, kernels, KERNELS, "rows to compare", err);
}

static enum status open_staging(struct search *search, struct error *err)
{
    const size_t row = search->stride * sizeof(float);
    const uint64_t bytes = min_u64(STAGING_BYTES, search->reader->config->memory / 4);
    search->staging_rows =
        (uint32_t)min_u64(bytes / row ? bytes / row : 1, search->reader->source->rows);
    const struct lane_wanted wanted[] = {
        PINNED(search->staging[0].rows, search->staging_rows * row),
        PINNED(search->staging[1].rows, search->staging_rows * row)};
    return lane_hold(&search->held, &search->lane, wanted, COUNT_OF(wanted), "rows to read", err);
}

static enum status open_queries(struct search *search, uint32_t positions, struct error *err)
{
    const size_t queries = search->queries, neighbours = queries * search->n;
    const struct lane_wanted wanted[] = {
        BUFFER(search->reaches, (positions + SEARCH_PANEL) * sizeof(cl_float)),
        BUFFER(search->list, queries * sizeof(cl_uint)),
        BUFFER(search->counts, queries * sizeof(cl_uint)),
        BUFFER(search->lost, queries * sizeof(cl_uint)),
        BUFFER(search->found, queries * search->capacity * sizeof(cl_uint2)),
        BUFFER(search->squared, neighbours * sizeof(cl_double)),
        BUFFER(search->rows, neighbours * sizeof(cl_uint)),
        BUFFER(search->centre, search->stride * sizeof(cl_float)),
        HOST(search->host_list, queries),
        HOST(search->host_queries, queries),
        HOST(search->host_rows, neighbours),
        HOST(search->host_squared, neighbours),
    };
    if (lane_hold(&search->held, &search->lane, wanted, COUNT_OF(wanted), "lists of rows", err) !=
        STATUS_OK)
        return err->status;
    return lane_write(&search->lane, "centre", search->centre, 0, search->stride * sizeof(cl_float),
                      search->space.centre, err);
}

static void search_close(struct search *search)
{
    struct error ignored = ERROR_INIT;
    for (size_t i = 0; i < COUNT_OF(search->staging); i++)
        staging_wait(search, &search->staging[i], &ignored);
    lane_settle(&search->lane);
    lane_release(&search->held);
    lane_close(&search->lane);
    code_space_close(&search->space);
}

/* Plans how many rows are searched for at a time, and how many of all are on the device. */
static uint32_t plan(struct search *search)
{
    const struct neighbours_config *config = search->reader->config;
    const struct neighbours_choice *choice = config->choice;
    const struct ocl_device *device = search->lane.device;
    const uint64_t rows = search->reader->source->rows, row = block_bytes(search);
    const uint64_t of_query = search->capacity * sizeof(cl_uint2) +
                              search->n * (sizeof(cl_double) + sizeof(cl_uint)) +
                              3 * sizeof(cl_uint);
    uint64_t memory = device->global_memory - device->global_memory / SPARE_SHARE;
    if (config->device_memory)
        memory = min_u64(memory, config->device_memory);
    uint64_t queries = min_u64(memory / 4, device->max_allocation) / of_query;
    queries = min_u64(min_u64(queries, QUERIES_MOST), rows);
    queries =
        queries > SEARCH_ROWS ? queries / SEARCH_ROWS * SEARCH_ROWS : min_u64(rows, SEARCH_ROWS);
    const uint64_t left = memory > queries * of_query ? memory - queries * of_query : 0;
    const uint64_t most = device->max_allocation / (search->stride * sizeof(float));
    uint64_t size = min_u64(left / row, most);
    if (choice && choice->block_rows)
        size = choice->block_rows;
    if (size < rows) {
        /* Both sides of the comparison need memory. */
        queries = min_u64(queries, size / 2);
        size = size - queries;
    }
    search->queries = (uint32_t)(queries ? queries : 1);
    return (uint32_t)min_u64(size ? size : 1, rows);
}

enum status device_pairs(struct nearest *lists, uint64_t **again, uint32_t *count,
                         struct neighbours *out, struct block_reader *reader, struct error *err)
{
    const struct neighbours_config *config = reader->config;
    const struct neighbours_choice *choice = config->choice;
    struct search search = {.reader = reader,
                            .stride = reader->stride,
                            .columns = columns_of(reader->stride),
                            .n = config->n,
                            .lists = lists,
                            .capacity = choice && choice->list ? choice->list : LIST};
    struct block block, queries;
    /* Room for n neighbours, and for as many doubtful ones. */
    search.capacity = min_u32(max_u32(search.capacity, 2 * config->n), SEARCH_LIST_MOST);
    enum status status = lane_open(&search.lane, config->devices.contexts[0], reader->workers,
                                   config->watch.stop, NULL, err);
    if (status == STATUS_OK)
        status = open_kernels(&search, err);
    if (status == STATUS_OK)
        status = code_space_open(&search.space, reader, err);
    if (status == STATUS_OK) {
        const uint32_t rows = (uint32_t)reader->source->rows, size = plan(&search);
        status = open_staging(&search, err);
        if (status == STATUS_OK)
            status = open_queries(&search, size < rows ? search.queries : rows, err);
        if (status == STATUS_OK)
            status = block_open(&block, &search, size, err);
        if (status == STATUS_OK && size < rows)
            status = block_open(&queries, &search, search.queries, err);
        if (status == STATUS_OK)
            status = size < rows ? search_blocks(&search, &queries, &block, size, err)
                                 : search_resident(&search, &block, err);
    }
    *again = search.again;
    *count = search.again_count;
    out->seconds_build = search.lane.seconds_build;
    search_close(&search);
    return status;
}
