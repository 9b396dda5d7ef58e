/* ranking.c: the ranks of each row's relevant rows, from the distances of all pairs.
 *
 * A rank is 1 plus the number of nearer rows, so only the relevant rows of a query are sorted:
 *
 *   queries (as many as memory can hold lists for)
 *     ├─> collect: distances from all rows of their class, a list per query
 *     ├─> order: each list by distance, with an index of equal steps of distance
 *     ├─> count: distances from all other rows, by step; steps with rows of the list are searched
 *     └─> measure: ranks are positions in the list plus the counts up to there
 *
 * Rows that do not fit in memory are read again, block by block, for each group of queries. */
#include "neighbours/ranking.h"
#include "base/clock.h"
#include "base/held.h"
#include "base/minmax.h"
#include "neighbours/block_reader.h"
#include "neighbours/choice.h"
#include "neighbours/distances.h"
#include "neighbours/nearest.h"
#include <stdatomic.h>
#include <stdlib.h>

/* Queries of one class that a thread takes at a time: their rows stay in its cache. */
#define PART_QUERIES 16
/* Parts per thread between two checks for a stop. */
#define PARTS_THREAD 32
/* Rows whose distances a thread computes before it counts them, so that a query's steps and list,
 * which barely fit its cache, are used many times in succession. */
#define STRIP_ROWS 1024
/* Steps of distance per row of a list: few contain a row, so counting usually adds 1 to a step. */
#define STEPS_ROW 4
/* Lists up to this length are searched linearly. */
#define FEW 16
struct step {
    uint32_t begin;  /* of its rows in the list, which end where the next step's begin */
    uint32_t others; /* rows in it, if it has none of the list */
};

struct query {
    uint32_t row, class;
    const float *values;
    struct nearest *list; /* relevant rows */
    uint32_t count, steps;
    struct step *step;   /* steps + 2: the last but one lies past the whole list */
    uint32_t *before;    /* count + 1: others in steps with rows, between list[i - 1] and list[i] */
    double origin, rate; /* distance d is in step (d - origin) * rate */
};

/* Rows in memory, grouped by class. */
struct rows {
    uint64_t first;
    uint32_t count;
    float *values;
    uint32_t *by_class; /* rows of the block, by class, then row */
    uint32_t *begin;    /* class_count + 1 */
};

struct part {
    uint32_t first, count; /* queries of one class */
};

struct ranker {
    struct block_reader *reader;
    struct measured_classes classes;
    uint32_t stride;
    distances_function distances;
    struct rows rows;
    bool resident; /* all rows are in memory */
    /* A group of queries: */
    struct query *queries;
    uint32_t query_count, query_room;
    struct part *parts;
    uint32_t part_count, from_part;
    float *values; /* of queries; NULL if all rows are in memory */
    char *lists;
    struct measured *measured; /* of all rows */
    _Atomic bool no_memory;
    uint64_t done, total; /* pairs */
    struct held held;     /* the arrays above */
};

/* --- rows --------------------------------------------------------------------------------------- */

/* Leaves out rows without a class. */
static void group_by_class(struct ranker *ranker)
{
    struct rows *rows = &ranker->rows;
    const uint32_t *classes = ranker->classes.of_row + rows->first;
    memset(rows->begin, 0, ((size_t)ranker->classes.count + 1) * sizeof *rows->begin);
    for (uint32_t i = 0; i < rows->count; i++)
        if (classes[i] != RANKING_NO_CLASS)
            rows->begin[classes[i] + 1]++;
    for (uint32_t c = 0; c < ranker->classes.count; c++)
        rows->begin[c + 1] += rows->begin[c];
    for (uint32_t i = 0; i < rows->count; i++)
        if (classes[i] != RANKING_NO_CLASS)
            rows->by_class[rows->begin[classes[i]]++] = i;
    for (uint32_t c = ranker->classes.count; c > 0; c--)
        rows->begin[c] = rows->begin[c - 1];
    rows->begin[0] = 0;
}

static enum status read_rows(struct ranker *ranker, uint64_t first, uint32_t count,
                             struct error *err)
{
    ranker->rows.first = first;
    ranker->rows.count = count;
    const enum status status =
        block_reader_read(ranker->reader, first, count, ranker->rows.values, err);
    if (status == STATUS_OK)
        group_by_class(ranker);
    return status;
}

/* --- lists -------------------------------------------------------------------------------------- */

static inline uint32_t step_of(const struct query *query, double squared)
{
    const double step = (squared - query->origin) * query->rate, last = query->steps;
    const double low = step > 0 ? step : 0;
    return (uint32_t)(int32_t)(low < last ? low : last);
}

static int compare_nearest(const void *a, const void *b)
{
    const struct nearest *x = a, *y = b;
    return nearest_before(x->squared, x->row, y) ? -1 : 1;
}

/* Sorts by steps of distance, then within each step, which has few rows in most data. */
static void order_list(struct ranker *ranker, struct query *query)
{
    const uint32_t n = query->count;
    double least = INFINITY, greatest = 0;
    for (uint32_t i = 0; i < n; i++) {
        least = fmin(least, query->list[i].squared);
        greatest = fmax(greatest, query->list[i].squared);
    }
    query->origin = least;
    query->rate = greatest > least ? (query->steps - 1) / (greatest - least) : 0;
    if (!isfinite(query->rate))
        query->rate = 0;
    struct nearest *unordered = malloc(n * sizeof *unordered);
    if (!unordered) {
        atomic_store(&ranker->no_memory, true);
        return;
    }
    memcpy(unordered, query->list, n * sizeof *unordered);
    memset(query->step, 0, ((size_t)query->steps + 2) * sizeof *query->step);
    memset(query->before, 0, ((size_t)n + 1) * sizeof *query->before);
    for (uint32_t i = 0; i < n; i++)
        query->step[step_of(query, unordered[i].squared) + 1].begin++;
    for (uint32_t step = 0; step <= query->steps; step++)
        query->step[step + 1].begin += query->step[step].begin;
    for (uint32_t i = 0; i < n; i++) {
        struct step *step = &query->step[step_of(query, unordered[i].squared)];
        query->list[step->begin + step->others++] = unordered[i];
    }
    for (uint32_t i = 0; i < query->steps; i++) {
        const uint32_t begin = query->step[i].begin, count = query->step[i].others;
        query->step[i].others = 0;
        if (count > FEW)
            qsort(query->list + begin, count, sizeof *query->list, compare_nearest);
        for (uint32_t r = begin + 1; r < begin + count && count <= FEW; r++) {
            const struct nearest one = query->list[r];
            uint32_t at = r;
            for (; at > begin && nearest_before(one.squared, one.row, &query->list[at - 1]); at--)
                query->list[at] = query->list[at - 1];
            query->list[at] = one;
        }
    }
    free(unordered);
}

/* Finds a row's place among those of its step. */
static void count_in_list(struct query *query, const struct step *step, double squared,
                          uint32_t row)
{
    uint32_t low = step[0].begin, high = step[1].begin;
    while (high - low > FEW) {
        const uint32_t middle = (low + high) / 2;
        if (nearest_before(squared, row, &query->list[middle]))
            high = middle;
        else
            low = middle + 1;
    }
    uint32_t nearer = 0;
    for (uint32_t i = low; i < high; i++)
        nearer += (squared > query->list[i].squared) |
                  ((squared == query->list[i].squared) & (row > query->list[i].row));
    query->before[low + nearer]++;
}

/* --- pairs -------------------------------------------------------------------------------------- */

/* Processes the distances between a query and rows first + rows[i]. */
typedef void (*strip_function)(struct query *query, const double *squared, uint32_t first,
                               const uint32_t *rows, uint32_t count);

static void collect_strip(struct query *query, const double *squared, uint32_t first,
                          const uint32_t *rows, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (first + rows[i] != query->row)
            query->list[query->count++] = (struct nearest){squared[i], first + rows[i]};
}

static void count_strip(struct query *query, const double *squared, uint32_t first,
                        const uint32_t *rows, uint32_t count)
{
    /* Whether a step has rows of the list is unpredictable, so nothing branches on it. */
    uint16_t in_list[STRIP_ROWS];
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct step *step = &query->step[step_of(query, squared[i])];
        const uint32_t empty = step[0].begin == step[1].begin;
        step->others += empty;
        in_list[found] = (uint16_t)i;
        found += 1 - empty;
    }
    for (uint32_t i = 0; i < found; i++) {
        const uint32_t at = in_list[i];
        count_in_list(query, &query->step[step_of(query, squared[at])], squared[at],
                      first + rows[at]);
    }
}

/* Compares the queries of a part with rows [from, to) of the block's order. */
static void compare_rows(struct ranker *ranker, const struct part *part, uint32_t from, uint32_t to,
                         strip_function use)
{
    const struct rows *rows = &ranker->rows;
    struct query *queries = ranker->queries + part->first;
    const float *x[DISTANCES_SIDE], *y[DISTANCES_SIDE];
    double squared[DISTANCES_SIDE * DISTANCES_SIDE];
    double strip[PART_QUERIES][STRIP_ROWS];
    for (; from < to; from += STRIP_ROWS) {
        const uint32_t *order = rows->by_class + from, count = min_u32(STRIP_ROWS, to - from);
        for (uint32_t at = 0; at < count; at += DISTANCES_SIDE) {
            const uint32_t lanes = min_u32(DISTANCES_SIDE, count - at);
            for (uint32_t j = 0; j < DISTANCES_SIDE; j++)
                y[j] = rows->values + (size_t)order[at + (j < lanes ? j : 0)] * ranker->stride;
            for (uint32_t q = 0; q < part->count; q += DISTANCES_SIDE) {
                const uint32_t some = min_u32(DISTANCES_SIDE, part->count - q);
                for (uint32_t i = 0; i < DISTANCES_SIDE; i++)
                    x[i] = queries[q + (i < some ? i : 0)].values;
                ranker->distances(squared, x, y, ranker->stride);
                for (uint32_t i = 0; i < some; i++)
                    memcpy(&strip[q + i][at], squared + i * DISTANCES_SIDE,
                           lanes * sizeof *squared);
            }
        }
        for (uint32_t q = 0; q < part->count; q++)
            use(&queries[q], strip[q], (uint32_t)rows->first, order, count);
    }
}

static void collect_part(void *context, uint64_t number)
{
    struct ranker *ranker = context;
    const struct part *part = &ranker->parts[ranker->from_part + number];
    const uint32_t class = ranker->queries[part->first].class;
    compare_rows(ranker, part, ranker->rows.begin[class], ranker->rows.begin[class + 1],
                 collect_strip);
}

static void order_part(void *context, uint64_t number)
{
    struct ranker *ranker = context;
    const struct part *part = &ranker->parts[ranker->from_part + number];
    for (uint32_t q = part->first; q < part->first + part->count; q++)
        order_list(ranker, &ranker->queries[q]);
}

static void count_part(void *context, uint64_t number)
{
    struct ranker *ranker = context;
    const struct part *part = &ranker->parts[ranker->from_part + number];
    const uint32_t class = ranker->queries[part->first].class;
    compare_rows(ranker, part, 0, ranker->rows.begin[class], count_strip);
    compare_rows(ranker, part, ranker->rows.begin[class + 1],
                 ranker->rows.begin[ranker->classes.count], count_strip);
}

static void measure_part(void *context, uint64_t number)
{
    struct ranker *ranker = context;
    const struct part *part = &ranker->parts[ranker->from_part + number];
    for (uint32_t q = part->first; q < part->first + part->count; q++) {
        const struct query *query = &ranker->queries[q];
        struct measuring measuring = {0};
        uint64_t others = 0;
        const struct step *step = query->step;
        for (uint32_t i = 0; i < query->count; i++) {
            for (; step[1].begin <= i; step++)
                others += step->others;
            others += query->before[i];
            measures_add(&measuring, others + i + 1);
        }
        ranker->measured[query->row] = measures_end(&measuring);
    }
}

/* --- groups of queries --------------------------------------------------------------------------- */

static enum status run_parts(struct ranker *ranker, void (*part)(void *context, uint64_t number),
                             uint32_t rows, struct error *err)
{
    const struct neighbours_config *config = ranker->reader->config;
    const uint32_t step = workers_count(ranker->reader->workers) * PARTS_THREAD;
    for (uint32_t from = 0; from < ranker->part_count; from += step) {
        if (watch_check(&config->watch, "comparing rows", err) != STATUS_OK)
            return err->status;
        const uint32_t count = min_u32(step, ranker->part_count - from);
        ranker->from_part = from;
        workers_run(ranker->reader->workers, part, ranker, count);
        ranker->done += (uint64_t)rows * count * PART_QUERIES;
        if (rows > 0)
            watch_show(&config->watch, "rows compared",
                       min_u64(ranker->done, ranker->total) / 1000000, ranker->total / 1000000);
    }
    return atomic_load(&ranker->no_memory)
               ? error_memory(err, ranker->query_count * sizeof(struct nearest), "rankings")
               : STATUS_OK;
}

/* The same with all rows, block by block. */
static enum status over_rows(struct ranker *ranker, void (*part)(void *context, uint64_t number),
                             uint32_t block, bool progress, struct error *err)
{
    const uint64_t all = ranker->reader->source->rows;
    enum status status = STATUS_OK;
    for (uint64_t first = 0; first < all && status == STATUS_OK; first += block) {
        const uint32_t count = (uint32_t)min_u64(block, all - first);
        if (!ranker->resident)
            status = read_rows(ranker, first, count, err);
        if (status == STATUS_OK)
            status = run_parts(ranker, part, progress ? count : 0, err);
    }
    return status;
}

/* Bytes of the lists of a query of that class. */
static size_t list_bytes(const struct ranker *ranker, uint32_t class)
{
    const size_t count = ranker->classes.sizes[class] - 1;
    const size_t bytes = count * sizeof(struct nearest) + (count + 1) * sizeof(uint32_t) +
                         (count * STEPS_ROW + 2) * sizeof(struct step);
    return (bytes + sizeof(struct nearest) - 1) & ~(sizeof(struct nearest) - 1);
}

static int compare_queries(const void *a, const void *b)
{
    const struct query *x = a, *y = b;
    return x->class != y->class ? (x->class > y->class) - (x->class < y->class)
                                : (x->row > y->row) - (x->row < y->row);
}

/* Takes the next queries, as many as fit, at least one; advances *row. */
static enum status take_queries(struct ranker *ranker, uint64_t *row, size_t list_room,
                                struct error *err)
{
    const uint64_t all = ranker->reader->source->rows;
    const size_t stride = ranker->stride;
    enum status status = STATUS_OK;
    size_t bytes = 0, at = 0;
    ranker->query_count = ranker->part_count = 0;
    for (; *row < all && ranker->query_count < ranker->query_room && status == STATUS_OK; ++*row) {
        if (!measures_is_query(&ranker->classes, *row))
            continue;
        const uint32_t class = ranker->classes.of_row[*row];
        if (bytes + list_bytes(ranker, class) > list_room)
            break;
        bytes += list_bytes(ranker, class);
        float *values = ranker->rows.values + *row * stride;
        if (!ranker->resident) {
            values = ranker->values + ranker->query_count * stride;
            status = block_reader_read(ranker->reader, *row, 1, values, err);
        }
        ranker->queries[ranker->query_count++] =
            (struct query){.row = (uint32_t)*row, .class = class, .values = values};
    }
    qsort(ranker->queries, ranker->query_count, sizeof *ranker->queries, compare_queries);
    for (uint32_t q = 0; q < ranker->query_count; q++) {
        struct query *query = &ranker->queries[q];
        const size_t count = ranker->classes.sizes[query->class] - 1;
        query->list = (struct nearest *)(void *)(ranker->lists + at);
        query->steps = (uint32_t)min_u64(count * STEPS_ROW, INT32_MAX - 2);
        query->step = (struct step *)(void *)(query->list + count);
        query->before = (uint32_t *)(void *)(query->step + query->steps + 2);
        at += list_bytes(ranker, query->class);
        struct part *last = ranker->part_count ? &ranker->parts[ranker->part_count - 1] : NULL;
        if (last && last->count < PART_QUERIES && query[-1].class == query->class)
            last->count++;
        else
            ranker->parts[ranker->part_count++] = (struct part){q, 1};
    }
    return status;
}

/* --- all ------------------------------------------------------------------------------------------ */

static enum status rank_all(struct ranker *ranker, uint32_t block, size_t list_room,
                            struct error *err)
{
    const uint64_t all = ranker->reader->source->rows;
    enum status status = STATUS_OK;
    if (ranker->resident)
        status = read_rows(ranker, 0, (uint32_t)all, err);
    for (uint64_t row = 0; row < all && status == STATUS_OK;) {
        status = take_queries(ranker, &row, list_room, err);
        if (status == STATUS_OK)
            status = over_rows(ranker, collect_part, block, false, err);
        if (status == STATUS_OK)
            status = run_parts(ranker, order_part, 0, err);
        if (status == STATUS_OK)
            status = over_rows(ranker, count_part, block, true, err);
        if (status == STATUS_OK)
            status = run_parts(ranker, measure_part, 0, err);
    }
    return status;
}

/* Allocates everything. */
static enum status open_ranker(struct ranker *ranker, uint32_t *block, size_t *list_room,
                               struct error *err)
{
    const struct neighbours_config *config = ranker->reader->config;
    const struct neighbours_choice *choice = config->choice;
    const uint64_t all = ranker->reader->source->rows;
    const size_t row_bytes = ranker->stride * sizeof(float);
    uint64_t lists = 0, longest = 0;
    for (uint64_t row = 0; row < all; row++)
        if (measures_is_query(&ranker->classes, row)) {
            const size_t bytes = list_bytes(ranker, ranker->classes.of_row[row]);
            lists += bytes;
            longest = max_u64(longest, bytes);
        }
    /* Half of the memory for rows; a quarter each for rows and queries if that is too little. */
    const uint64_t part = config->memory / 4 / row_bytes + PART_QUERIES;
    ranker->resident = all * row_bytes <= config->memory / 2 && !(choice && choice->block_rows);
    *block = (uint32_t)(ranker->resident ? all : min_u64(part, all));
    if (choice && choice->block_rows)
        *block = (uint32_t)min_u64(choice->block_rows, all);
    *list_room = (size_t)min_u64(lists, max_u64(config->memory / 2, longest * PART_QUERIES));
    ranker->query_room = (uint32_t)(ranker->resident ? all : min_u64(part, all));
    ranker->total = all * all;
    struct held *held = &ranker->held;
    ranker->rows.values = held_array(held, *block, row_bytes);
    ranker->rows.by_class = held_array(held, *block, sizeof *ranker->rows.by_class);
    ranker->rows.begin = held_array(held, ranker->classes.count + 1ull, sizeof *ranker->rows.begin);
    ranker->queries = held_array(held, ranker->query_room, sizeof *ranker->queries);
    ranker->parts = held_array(held, ranker->query_room, sizeof *ranker->parts);
    ranker->values = ranker->resident ? NULL : held_array(held, ranker->query_room, row_bytes);
    ranker->lists = held_array(held, *list_room, 1);
    ranker->measured = held_array(held, all, sizeof *ranker->measured);
    return held_check(held, "rankings", err);
}

enum status ranking_measure(struct ranking *out, const struct matrix_source *source,
                            const uint32_t *classes, uint32_t class_count,
                            const struct neighbours_config *config, struct error *err)
{
    struct block_reader reader = {0};
    const int64_t begun = clock_now();
    uint32_t block;
    size_t list_room;
    *out = (struct ranking){0};
    if (source->rows > NEIGHBOURS_ROWS_MAX)
        return error_set(err, STATUS_FAILED, "%llu rows are too many: a ranking takes at most %u",
                         (unsigned long long)source->rows, NEIGHBOURS_ROWS_MAX);
    struct ranker ranker = {
        .reader = &reader,
        .distances = distances_choose(config->choice ? config->choice->distances : NULL)};
    enum status status =
        measured_classes_open(&ranker.classes, classes, source->rows, class_count, err);
    if (status == STATUS_OK)
        status = block_reader_open(&reader, source, config, err);
    ranker.stride = reader.stride;
    if (status == STATUS_OK)
        status = open_ranker(&ranker, &block, &list_room, err);
    if (status == STATUS_OK)
        status = rank_all(&ranker, block, list_room, err);
    if (status == STATUS_OK)
        status = measures_sum_up(out, ranker.measured, &ranker.classes, err);
    out->seconds = (double)(clock_now() - begun) * 1e-9;
    held_free(&ranker.held);
    block_reader_close(&reader);
    measured_classes_close(&ranker.classes);
    return status;
}
