/* host_pairs.c: compares blocks with blocks, in steps that start small, so that the reach of every
 * row is short before most pairs are considered. */
#include "neighbours/host_pairs.h"
#include "base/held.h"
#include "base/minmax.h"
#include "kmeans/canonical.h"
#include "neighbours/choice.h"
#include "neighbours/codes.h"
#include "neighbours/tile.h"
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Rows per part: their codes stay in the L2 cache while panels pass. */
#define PART_ROWS (8 * TILE_ROWS)
/* Blocks are padded to whole tiles and parts. */
#define BLOCK_ALIGN 96
_Static_assert(BLOCK_ALIGN % PART_ROWS == 0 && BLOCK_ALIGN % TILE_LANES == 0, "whole tiles");
/* Minimum number of rows in the first step. */
#define FIRST_ROWS 24
/* Parts of a step per thread. */
#define PARTS_THREAD 4
/* Lists share a lock if their row numbers are equal modulo this. */
#define LOCKS 1024

struct block {
    uint64_t first; /* number of its first row */
    uint32_t rows, padded;
    float *values; /* rows x stride */
    void *codes;   /* padded x stride, by position; lanes: the same in panels */
    void *lanes;
    struct tile_side side; /* by position; reach is from the latest step */
    double *limits;        /* by position: squared distance beyond which rows do not matter */
    int32_t *sums;         /* by position: sum of codes */
    uint32_t *at;          /* row within the block, by position */
    uint32_t step;         /* rows from one position to the next */
    struct held held;      /* all of these */
};

struct pairs {
    struct block_reader *reader;
    const struct tile_ops *ops;
    struct code_space space;
    struct nearest *lists;
    uint32_t n, stride;
    double roundoff; /* relative error of a float32 distance */
    pthread_mutex_t locks[LOCKS];
    _Atomic uint64_t compared;
    /* This step: */
    struct block *rows, *lanes; /* may be the same */
    uint32_t from, to;          /* positions of rows */
    uint32_t slices;            /* of panels */
};

/* --- blocks ------------------------------------------------------------------------------------ */

static size_t block_row_bytes(const struct pairs *pairs)
{
    return pairs->stride * (sizeof(float) + 2 * (size_t)pairs->ops->code_bytes) +
           4 * sizeof(float) + sizeof(double) + sizeof(int32_t) + sizeof(uint32_t);
}

static enum status block_open(struct block *block, const struct pairs *pairs, uint32_t capacity,
                              struct error *err)
{
    const size_t padded = (capacity + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;
    const size_t codes = padded * pairs->stride * pairs->ops->code_bytes;
    struct held *held = &block->held;
    block->values = held_array(held, (uint64_t)capacity * pairs->stride, sizeof *block->values);
    block->codes = held_array(held, codes, 1);
    block->lanes = held_array(held, codes, 1);
    block->side.scale = held_array(held, padded, 4 * sizeof(float));
    block->limits = held_array(held, padded, sizeof *block->limits);
    block->sums = held_array(held, padded, sizeof *block->sums);
    block->at = held_array(held, padded, sizeof *block->at);
    block->side.error = block->side.scale + padded;
    block->side.square = block->side.error + padded;
    block->side.reach = block->side.square + padded;
    return held_check(held, "rows to compare", err);
}

struct block_job {
    const struct pairs *pairs;
    struct block *block;
};

/* Encodes a panel of positions. */
static enum status encode_part(void *context, uint64_t part, struct error *err)
{
    const struct block_job *job = context;
    const struct pairs *pairs = job->pairs;
    struct block *block = job->block;
    const struct tile_ops *ops = pairs->ops;
    const uint32_t stride = pairs->stride;
    const size_t row_bytes = (size_t)stride * ops->code_bytes;
    int8_t *codes = malloc(stride);
    if (!codes)
        return error_memory(err, stride, "codes of a row");
    char *panel = (char *)block->lanes + part * TILE_LANES * row_bytes;
    for (uint32_t lane = 0; lane < TILE_LANES; lane++) {
        const size_t p = part * TILE_LANES + lane;
        struct code_facts facts = {.square = 3e38f};
        if (p < block->rows) {
            block->at[p] = (uint32_t)((uint64_t)p * block->step % block->rows);
            codes_make(codes, &facts, &pairs->space, block->values + (size_t)block->at[p] * stride);
            facts.square *= 1 - CODES_SLACK;
        } else {
            memset(codes, 0, stride);
            block->at[p] = 0;
        }
        tile_put_lane(ops, panel, lane, codes, stride);
        tile_put_row(ops, (char *)block->codes + p * row_bytes, codes, stride);
        block->side.scale[p] = facts.scale;
        block->side.error[p] = facts.error * (1 + CODES_SLACK);
        block->side.square[p] = facts.square;
        block->side.reach[p] = 0;
        block->limits[p] = 0;
        block->sums[p] = facts.sum;
    }
    free(codes);
    return STATUS_OK;
}

static enum status block_read(struct pairs *pairs, struct block *block, uint64_t first,
                              uint32_t rows, struct error *err)
{
    block->first = first;
    block->rows = rows;
    block->padded = (rows + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;
    block->step = block_reader_step(rows);
    enum status status = block_reader_read(pairs->reader, first, rows, block->values, err);
    struct block_job job = {pairs, block};
    return status == STATUS_OK ? workers_try(pairs->reader->workers, encode_part, &job,
                                             block->padded / TILE_LANES, err)
                               : status;
}

/* --- pairs ------------------------------------------------------------------------------------- */

/* A thread's state for its part's rows. */
struct part {
    struct pairs *pairs;
    uint32_t from, rows;
    float reach[PART_ROWS], scale[PART_ROWS], error[PART_ROWS], square[PART_ROWS];
    double limits[PART_ROWS];
    uint64_t compared;
};

static void set_reach(float *reach, double *limit, const struct pairs *pairs, float error,
                      const struct nearest *last)
{
    const struct code_facts facts = {.error = error};
    *limit = last->squared;
    *reach = codes_reach(&pairs->space, &facts, last->squared);
}

/* Adds a row to another's list and returns the last entry of the list. */
static struct nearest put(struct pairs *pairs, uint64_t of, double squared, uint64_t row)
{
    struct nearest *list = pairs->lists + of * pairs->n;
    pthread_mutex_t *lock = &pairs->locks[of % LOCKS];
    pthread_mutex_lock(lock);
    nearest_add(list, pairs->n, squared, (uint32_t)row);
    const struct nearest last = list[pairs->n - 1];
    pthread_mutex_unlock(lock);
    return last;
}

/* Decides a pair that the codes leave in doubt. */
static void decide(struct part *part, uint32_t i, uint32_t lane)
{
    struct pairs *pairs = part->pairs;
    const struct block *a = pairs->rows, *b = pairs->lanes;
    const uint32_t position = part->from + i;
    if (a == b && position >= lane)
        return;
    const float *x = a->values + (size_t)a->at[position] * pairs->stride;
    const float *y = b->values + (size_t)b->at[lane] * pairs->stride;
    const double limit = fmax(part->limits[i], b->limits[lane]);
    if (limit < INFINITY) {
        const float rough = pairs->ops->distance(x, y, pairs->stride);
        if (isfinite(rough) && (double)rough * (1 - pairs->roundoff) > limit)
            return;
    }
    const double squared = canonical_distance(x, y, pairs->stride);
    const uint64_t row = a->first + a->at[position], other = b->first + b->at[lane];
    part->compared++;
    if (squared <= part->limits[i]) {
        const struct nearest last = put(pairs, row, squared, other);
        set_reach(&part->reach[i], &part->limits[i], pairs, a->side.error[position], &last);
    }
    if (squared <= b->limits[lane])
        put(pairs, other, squared, row);
}

static void compare_part(void *context, uint64_t number)
{
    struct pairs *pairs = context;
    const struct block *a = pairs->rows, *b = pairs->lanes;
    const size_t row_bytes = (size_t)pairs->stride * pairs->ops->code_bytes;
    struct part part = {.pairs = pairs,
                        .from = pairs->from + (uint32_t)(number / pairs->slices) * PART_ROWS};
    part.rows = min_u32(PART_ROWS, pairs->to - part.from);
    const uint32_t slice = (uint32_t)(number % pairs->slices);
    const uint32_t first_panel = a == b ? part.from / TILE_LANES : 0;
    const uint64_t panels = b->padded / TILE_LANES - first_panel;
    const uint32_t from_panel = first_panel + (uint32_t)(panels * slice / pairs->slices);
    const uint32_t to_panel = first_panel + (uint32_t)(panels * (slice + 1) / pairs->slices);
    int32_t start[PART_ROWS], products[TILE_ROWS * TILE_LANES];
    for (uint32_t i = 0; i < PART_ROWS; i++) {
        const uint32_t p = min_u32(part.from + i, a->padded - 1);
        part.scale[i] = a->side.scale[p];
        part.error[i] = a->side.error[p];
        part.square[i] = i < part.rows ? a->side.square[p] : 3e38f;
        part.reach[i] = a->side.reach[p];
        part.limits[i] = a->limits[p];
        start[i] = -pairs->ops->offset * a->sums[p];
    }
    const struct tile_side own = {part.scale, part.error, part.square, part.reach};
    for (uint32_t panel = from_panel; panel < to_panel; panel++) {
        const char *lanes = (const char *)b->lanes + (size_t)panel * TILE_LANES * row_bytes;
        for (uint32_t i = 0; i < part.rows; i += TILE_ROWS) {
            uint32_t found[TILE_ROWS];
            if (a == b && part.from + i >= (panel + 1) * TILE_LANES)
                break;
            pairs->ops->multiply(products,
                                 (const char *)a->codes + (size_t)(part.from + i) * row_bytes,
                                 lanes, pairs->stride, start + i);
            pairs->ops->test(found, products, &own, i, &b->side, (size_t)panel * TILE_LANES);
            for (uint32_t r = 0; r < TILE_ROWS; r++)
                for (uint32_t bits = found[r]; bits; bits &= bits - 1)
                    decide(&part, i + r, panel * TILE_LANES + (uint32_t)__builtin_ctz(bits));
        }
    }
    atomic_fetch_add_explicit(&pairs->compared, part.compared, memory_order_relaxed);
}

#define UPDATE_PART 1024

/* Updates the reach of a block's rows from their lists. */
static void update_part(void *context, uint64_t part)
{
    const struct block_job *job = context;
    struct block *block = job->block;
    const uint32_t end = min_u32((uint32_t)(part + 1) * UPDATE_PART, block->rows);
    for (uint32_t p = (uint32_t)part * UPDATE_PART; p < end; p++) {
        const struct nearest *last =
            &job->pairs->lists[(block->first + block->at[p] + 1) * job->pairs->n - 1];
        if (last->squared != block->limits[p] || block->side.reach[p] == 0)
            set_reach(&block->side.reach[p], &block->limits[p], job->pairs, block->side.error[p],
                      last);
    }
}

static void update(struct pairs *pairs, struct block *block)
{
    struct block_job job = {pairs, block};
    workers_run(pairs->reader->workers, update_part, &job,
                (block->rows + UPDATE_PART - 1) / UPDATE_PART);
}

/* Compares all pairs of rows of two blocks, or of one. done, total: pairs of all blocks. */
static enum status compare(struct pairs *pairs, struct block *a, struct block *b, uint64_t *done,
                           uint64_t total, struct error *err)
{
    const struct neighbours_config *config = pairs->reader->config;
    const uint32_t threads = workers_count(pairs->reader->workers);
    const uint32_t most = threads * PARTS_THREAD * PART_ROWS;
    /* No row has a reach before it has met n others. */
    uint32_t rows = (max_u32(pairs->n, FIRST_ROWS) + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS;
    pairs->rows = a;
    pairs->lanes = b;
    rows = min_u32(most, rows);
    for (uint32_t from = 0;; from += rows, rows = min_u32(most, rows * 2)) {
        if (watch_check(&config->watch, "comparing rows", err) != STATUS_OK)
            return err->status;
        update(pairs, a);
        if (a != b)
            update(pairs, b);
        pairs->from = from;
        pairs->to = min_u32(a->rows, from + rows);
        const uint32_t parts = (pairs->to - from + PART_ROWS - 1) / PART_ROWS;
        const uint32_t wanted = threads * PARTS_THREAD;
        pairs->slices = parts < wanted ? (wanted + parts - 1) / parts : 1;
        workers_run(pairs->reader->workers, compare_part, pairs, (uint64_t)parts * pairs->slices);
        *done += (uint64_t)(pairs->to - from) * (a == b ? b->rows - from : b->rows);
        watch_show(&config->watch, "rows compared", min_u64(*done, total) / 1000000,
                   total / 1000000);
        if (a->rows - from <= rows)
            break;
    }
    return STATUS_OK;
}

static enum status all_blocks(struct pairs *pairs, struct block *a, struct block *b, uint32_t size,
                              struct error *err)
{
    const uint64_t rows = pairs->reader->source->rows;
    const uint64_t total = rows * (rows + 1) / 2;
    uint64_t done = 0;
    enum status status = STATUS_OK;
    for (uint64_t first = 0; first < rows && status == STATUS_OK; first += size) {
        status = block_read(pairs, a, first, (uint32_t)min_u64(size, rows - first), err);
        if (status == STATUS_OK)
            status = compare(pairs, a, a, &done, total, err);
        for (uint64_t other = first + size; other < rows && status == STATUS_OK; other += size) {
            status = block_read(pairs, b, other, (uint32_t)min_u64(size, rows - other), err);
            if (status == STATUS_OK)
                status = compare(pairs, a, b, &done, total, err);
        }
    }
    return status;
}

enum status host_pairs(struct nearest *lists, struct neighbours *out, struct block_reader *reader,
                       struct error *err)
{
    const struct neighbours_config *config = reader->config;
    const struct neighbours_choice *choice = config->choice;
    const uint64_t rows = reader->source->rows;
    struct block a = {0}, b = {0};
    struct pairs *pairs = calloc(1, sizeof *pairs);
    if (!pairs)
        return error_memory(err, sizeof *pairs, "a search");
    pairs->reader = reader;
    pairs->ops = tile_choose(choice ? choice->tile : NULL);
    pairs->lists = lists;
    pairs->n = config->n;
    pairs->stride = reader->stride;
    pairs->roundoff = (pairs->stride / TILE_SUMS + 16) * 0x1p-23;
    for (uint32_t i = 0; i < LOCKS; i++)
        pthread_mutex_init(&pairs->locks[i], NULL);
    const size_t row = block_row_bytes(pairs);
    uint64_t size = config->memory / row;
    size = size < rows ? size / 2 : rows;
    size = choice && choice->block_rows ? choice->block_rows : size;
    size = min_u64(size > BLOCK_ALIGN ? size : BLOCK_ALIGN, rows);
    enum status status = code_space_open(&pairs->space, reader, err);
    if (status == STATUS_OK)
        status = block_open(&a, pairs, (uint32_t)size, err);
    if (status == STATUS_OK && size < rows)
        status = block_open(&b, pairs, (uint32_t)size, err);
    if (status == STATUS_OK)
        status = all_blocks(pairs, &a, &b, (uint32_t)size, err);
    out->compared = atomic_load(&pairs->compared);
    held_free(&a.held);
    held_free(&b.held);
    code_space_close(&pairs->space);
    for (uint32_t i = 0; i < LOCKS; i++)
        pthread_mutex_destroy(&pairs->locks[i]);
    free(pairs);
    return status;
}
