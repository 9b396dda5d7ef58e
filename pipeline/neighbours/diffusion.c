/* diffusion.c: processes a group of queries at a time, as many as memory can hold distances for:
 * their distances from all rows, which are read in blocks; then scores and ranking, AFFINITY_LANES
 * of them per thread. */
#include "neighbours/diffusion.h"
#include "base/clock.h"
#include "base/held.h"
#include "base/minmax.h"
#include "kmeans/canonical.h"
#include "neighbours/affinity.h"
#include "neighbours/block_reader.h"
#include "neighbours/choice.h"
#include "neighbours/distances.h"
#include "neighbours/nearest.h"
#include <stdlib.h>

#define BLOCK_BYTES (16u << 20)
/* Rows of a block that a thread compares with all queries of the group. */
#define PART_ROWS 64
/* Parts per thread between two checks for a stop. */
#define PARTS_THREAD 4

struct job {
    const struct queries *queries;
    const struct neighbours_config *config;
    struct block_reader *reader;
    distances_function distances;
    diffusion_take take;
    void *take_context;
    struct edges affinity;
    uint64_t all;
    uint32_t stride, block_room, group_room;
    double *squares; /* squared lengths of all rows */
    float *zero;     /* a row of zeros */
    float *block;    /* rows in memory: */
    uint64_t block_first;
    uint32_t block_rows;
    /* The group of queries: */
    uint32_t first, count, from_part;
    float *values;    /* count x stride */
    double *squared;  /* count x all */
    struct held held; /* the arrays above */
};

/* --- rows --------------------------------------------------------------------------------------- */

static void measure_lengths(void *context, uint64_t part)
{
    struct job *job = context;
    const uint32_t end = (uint32_t)min_u64((part + 1) * PART_ROWS, job->block_rows);
    for (uint32_t i = (uint32_t)part * PART_ROWS; i < end; i++)
        job->squares[job->block_first + i] =
            canonical_distance(job->block + (size_t)i * job->stride, job->zero, job->stride);
}

static void compare_part(void *context, uint64_t part)
{
    struct job *job = context;
    const uint32_t begin = (uint32_t)part * PART_ROWS;
    const uint32_t end = min_u32(begin + PART_ROWS, job->block_rows);
    const float *x[DISTANCES_SIDE], *y[DISTANCES_SIDE];
    double squared[DISTANCES_SIDE * DISTANCES_SIDE];
    for (uint32_t q = 0; q < job->count; q += DISTANCES_SIDE) {
        const uint32_t some = min_u32(DISTANCES_SIDE, job->count - q);
        for (uint32_t i = 0; i < DISTANCES_SIDE; i++)
            x[i] = job->values + (size_t)(q + (i < some ? i : 0)) * job->stride;
        for (uint32_t row = begin; row < end; row += DISTANCES_SIDE) {
            const uint32_t lanes = min_u32(DISTANCES_SIDE, end - row);
            for (uint32_t j = 0; j < DISTANCES_SIDE; j++)
                y[j] = job->block + (size_t)(row + (j < lanes ? j : 0)) * job->stride;
            job->distances(squared, x, y, job->stride);
            for (uint32_t i = 0; i < some; i++)
                for (uint32_t j = 0; j < lanes; j++)
                    job->squared[(q + i) * job->all + job->block_first + row + j] =
                        squared[i * DISTANCES_SIDE + j];
        }
    }
}

/* A pass over all rows. */
static enum status over_rows(struct job *job, void (*part)(void *context, uint64_t number),
                             struct error *err)
{
    const struct neighbours_config *config = job->config;
    enum status status = STATUS_OK;
    for (uint64_t first = 0; first < job->all && status == STATUS_OK; first += job->block_rows) {
        job->block_first = first;
        job->block_rows = (uint32_t)min_u64(job->block_room, job->all - first);
        status = block_reader_read(job->reader, first, job->block_rows, job->block, err);
        if (status == STATUS_OK)
            workers_run(job->reader->workers, part, job,
                        (job->block_rows + PART_ROWS - 1) / PART_ROWS);
        if (status == STATUS_OK)
            watch_show(&config->watch, "rows read", first + job->block_rows, job->all);
    }
    return status;
}

/* --- queries ------------------------------------------------------------------------------------ */

static bool is_row(const struct job *job)
{
    return job->queries->rows;
}

/* The row itself; for values, their nearest rows in proportion to affinity. */
static void start_of(struct affinity_start *start, const struct job *job, uint32_t query)
{
    struct nearest list[AFFINITY_NEIGHBOURS];
    const double *squared = job->squared + query * job->all;
    double sum = 0;
    if (is_row(job)) {
        *start =
            (struct affinity_start){1, {(uint32_t)job->queries->rows[job->first + query]}, {1}};
        return;
    }
    const double square =
        canonical_distance(job->values + (size_t)query * job->stride, job->zero, job->stride);
    nearest_init(list, AFFINITY_NEIGHBOURS);
    for (uint64_t row = 0; row < job->all; row++)
        nearest_add(list, AFFINITY_NEIGHBOURS, squared[row], (uint32_t)row);
    *start = (struct affinity_start){0};
    for (uint32_t i = 0; i < AFFINITY_NEIGHBOURS && list[i].row != NEAREST_NONE; i++) {
        const double share = affinity_of(square, job->squares[list[i].row], list[i].squared);
        if (share <= 0)
            continue;
        start->rows[start->count] = list[i].row;
        start->shares[start->count++] = share;
        sum += share;
    }
    for (uint32_t i = 0; i < start->count; i++)
        start->shares[i] /= sum;
}

static int compare_diffused(const void *a, const void *b)
{
    const struct diffused *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    if (x->squared != y->squared)
        return x->squared < y->squared ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static enum status diffuse_part(void *context, uint64_t number, struct error *err)
{
    struct job *job = context;
    const uint32_t first = (job->from_part + (uint32_t)number) * AFFINITY_LANES;
    const uint32_t count = min_u32(AFFINITY_LANES, job->count - first);
    const size_t values = (size_t)job->all * AFFINITY_LANES;
    struct affinity_start starts[AFFINITY_LANES] = {{0}};
    double *scores = malloc(2 * values * sizeof *scores);
    struct diffused *order = malloc((size_t)job->all * sizeof *order);
    const enum status status =
        scores && order
            ? STATUS_OK
            : error_memory(err, job->all * 2 * AFFINITY_LANES * sizeof(double), "scores");
    if (status != STATUS_OK)
        goto out;
    for (uint32_t q = 0; q < count; q++)
        start_of(&starts[q], job, first + q);
    affinity_diffuse(scores, scores + values, &job->affinity, starts);
    for (uint32_t q = 0; q < count; q++) {
        const uint32_t query = job->first + first + q;
        uint64_t ranked = 0;
        for (uint64_t row = 0; row < job->all; row++)
            if (!is_row(job) || row != job->queries->rows[query])
                order[ranked++] =
                    (struct diffused){scores[row * AFFINITY_LANES + q],
                                      job->squared[(first + q) * job->all + row], (uint32_t)row};
        qsort(order, ranked, sizeof *order, compare_diffused);
        job->take(job->take_context, query, order, ranked);
    }
out:
    free(scores);
    free(order);
    return status;
}

static enum status rank_group(struct job *job, struct error *err)
{
    const uint32_t parts = (job->count + AFFINITY_LANES - 1) / AFFINITY_LANES;
    const uint32_t step = workers_count(job->reader->workers) * PARTS_THREAD;
    const struct neighbours_config *config = job->config;
    enum status status = block_reader_queries(job->reader, job->queries, job->first, job->count,
                                              job->values, NULL, err);
    if (status == STATUS_OK)
        status = over_rows(job, compare_part, err);
    for (uint32_t from = 0; from < parts && status == STATUS_OK; from += step) {
        status = watch_check(&config->watch, "ranking rows", err);
        if (status != STATUS_OK)
            break;
        job->from_part = from;
        status =
            workers_try(job->reader->workers, diffuse_part, job, min_u32(step, parts - from), err);
        watch_show(&config->watch, "queries ranked",
                   job->first + min_u32((from + step) * AFFINITY_LANES, job->count),
                   job->queries->count);
    }
    return status;
}

/* --- all ---------------------------------------------------------------------------------------- */

static enum status open_job(struct job *job, struct error *err)
{
    const uint64_t memory = job->config->memory;
    const size_t row_bytes = job->stride * sizeof(float);
    const size_t query_bytes = row_bytes + (size_t)job->all * sizeof(double);
    job->block_room = (uint32_t)min_u64(
        max_u64(min_u64(BLOCK_BYTES, memory / 4) / row_bytes, DISTANCES_SIDE), job->all);
    job->group_room = (uint32_t)min_u64(
        max_u64(memory / 2 / query_bytes / AFFINITY_LANES * AFFINITY_LANES, AFFINITY_LANES),
        job->queries->count);
    job->squares = held_array(&job->held, job->all, sizeof *job->squares);
    job->zero = held_array(&job->held, job->stride, sizeof *job->zero);
    job->block = held_array(&job->held, job->block_room, row_bytes);
    job->values = held_array(&job->held, job->group_room, row_bytes);
    job->squared = held_array(&job->held, job->group_room * job->all, sizeof *job->squared);
    return held_check(&job->held, "rankings", err);
}

enum status diffusion_rank(const struct matrix_source *source, const struct neighbours *nearest,
                           const struct queries *queries, const struct neighbours_config *config,
                           diffusion_take take, void *context, struct error *err)
{
    struct block_reader reader;
    struct job job = {.queries = queries,
                      .config = config,
                      .reader = &reader,
                      .distances =
                          distances_choose(config->choice ? config->choice->distances : NULL),
                      .take = take,
                      .take_context = context,
                      .all = source->rows};
    enum status status = block_reader_open(&reader, source, config, err);
    job.stride = reader.stride;
    if (status == STATUS_OK)
        status = open_job(&job, err);
    if (status == STATUS_OK)
        status = over_rows(&job, measure_lengths, err);
    if (status == STATUS_OK)
        status = affinity_open(&job.affinity, nearest, job.squares, err);
    for (uint32_t first = 0; first < queries->count && status == STATUS_OK; first += job.count) {
        job.first = first;
        job.count = min_u32(job.group_room, queries->count - first);
        status = rank_group(&job, err);
    }
    edges_close(&job.affinity);
    held_free(&job.held);
    block_reader_close(&reader);
    return status;
}

/* --- against classes ---------------------------------------------------------------------------- */

struct measure {
    const struct measured_classes *classes;
    const uint64_t *rows; /* of the queries */
    struct measured *measured;
};

static void measure_order(void *context, uint32_t query, const struct diffused *order,
                          uint64_t count)
{
    const struct measure *measure = context;
    const uint32_t *classes = measure->classes->of_row;
    const uint64_t row = measure->rows[query];
    struct measuring measuring = {0};
    uint64_t rank = 0;
    for (uint64_t i = 0; i < count; i++) {
        const uint32_t class = classes[order[i].row];
        rank += class != RANKING_NO_CLASS;
        if (class == classes[row])
            measures_add(&measuring, rank);
    }
    measure->measured[row] = measures_end(&measuring);
}

enum status diffusion_measure(struct ranking *out, const struct matrix_source *source,
                              const struct neighbours *nearest, const uint32_t *classes,
                              uint32_t class_count, const struct neighbours_config *config,
                              struct error *err)
{
    const int64_t begun = clock_now();
    struct measured_classes of;
    *out = (struct ranking){0};
    enum status status = measured_classes_open(&of, classes, source->rows, class_count, err);
    SCOPED_HELD held = {0};
    uint64_t *rows = held_array(&held, source->rows, sizeof *rows);
    struct measured *measured = held_array(&held, source->rows, sizeof *measured);
    struct queries queries = {.rows = rows};
    struct measure measure = {&of, rows, measured};
    if (status == STATUS_OK)
        status = held_check(&held, "rankings", err);
    for (uint64_t row = 0; row < source->rows && status == STATUS_OK; row++)
        if (measures_is_query(&of, row))
            rows[queries.count++] = row;
    if (status == STATUS_OK)
        status = diffusion_rank(source, nearest, &queries, config, measure_order, &measure, err);
    if (status == STATUS_OK)
        status = measures_sum_up(out, measured, &of, err);
    out->seconds = (double)(clock_now() - begun) * 1e-9;
    measured_classes_close(&of);
    return status;
}
