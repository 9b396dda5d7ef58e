/* transform.c: the spaces of the metrics, and column statistics. */
#include "kmeans/transform.h"
#include "base/avx2.h"
#include "base/minmax.h"
#include "kmeans.h"
#include "kmeans/canonical.h"
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Bytes read at a time from a source that only one thread at a time may read: enough work for every
 * thread, and still in the cache when they are transformed. Without other threads, pieces fit the
 * thread's own cache, and the device and the host's threads keep theirs. */
#define PIECE_BYTES  (8u << 20)
#define GLANCE_BYTES (256u << 10)

/* Rows, and columns, that one thread takes at a time. */
#define ROWS_PART    64
#define COLUMNS_PART 64

/* Maximum for column_stats_chunk. */
#define CHUNKS 1024

struct row_job {
    const struct transform *transform;
    float *to;
    const float *from;
    uint64_t first;
    uint32_t rows;
};

static enum status refuse(const struct row_job *job, uint32_t row, uint32_t column,
                          const char *problem, struct error *err)
{
    return error_set(err, STATUS_FAILED, "%s %llu (counted from 0) %s in column %u",
                     job->transform->what, (unsigned long long)(job->first + row), problem, column);
}

/* For two values in one word: adding one unit of the exponent carries into the sign bit if all bits
 * of the exponent are set. */
static uint64_t add_exponent(uint64_t two)
{
    return (two & 0x7fffffff7fffffffu) + 0x0080000000800000u;
}

static bool all_finite(const float *from, uint32_t dimension)
{
    uint64_t found[4] = {0};
    uint32_t j = 0;
    for (; j + 8 <= dimension; j += 8) {
        uint64_t two[4];
        memcpy(two, from + j, sizeof two);
        for (unsigned i = 0; i < 4; i++)
            found[i] |= add_exponent(two[i]);
    }
    for (; j < dimension; j++) {
        uint32_t one;
        memcpy(&one, from + j, sizeof one);
        found[0] |= add_exponent(one);
    }
    return !((found[0] | found[1] | found[2] | found[3]) & 0x8000000080000000u);
}

/* It runs on all rows in every pass over a file, so it is branch-free and works on whole words. */
static enum status check_finite(const struct row_job *job, const float *from, uint32_t row,
                                struct error *err)
{
    const uint32_t dimension = job->transform->dimension;
    if (all_finite(from, dimension))
        return STATUS_OK;
    for (uint32_t j = 0; j < dimension; j++)
        if (!isfinite(from[j]))
            return refuse(job, row, j,
                          isnan(from[j]) ? "holds NaN"
                                         : "holds an infinity (or more than float32 can hold)",
                          err);
    return STATUS_OK;
}

static enum status to_roots(const struct row_job *job, float *to, const float *from, uint32_t row,
                            struct error *err)
{
    for (uint32_t j = 0; j < job->transform->dimension; j++) {
        if (from[j] < 0) {
            refuse(job, row, j, "is negative (invalid for the hellinger metric)", err);
            return error_remedy(err, REMEDY_OTHER_METRIC);
        }
        to[j] = (float)sqrt((double)from[j]);
    }
    return STATUS_OK;
}

static enum status to_unit(const struct row_job *job, float *to, const float *from, uint32_t row,
                           struct error *err)
{
    const uint32_t dimension = job->transform->dimension;
    double sum[KMEANS_LANES] = {0};
    for (uint32_t j = 0; j < dimension; j++)
        sum[j % KMEANS_LANES] += (double)from[j] * (double)from[j];
    const double square = canonical_lane_sum(sum);
    if (square == 0) {
        error_set(err, STATUS_FAILED,
                  "%s %llu (counted from 0) is all zeros, for which the cosine metric is undefined",
                  job->transform->what, (unsigned long long)(job->first + row));
        return error_remedy(err, REMEDY_OTHER_METRIC);
    }
    const double length = sqrt(square);
    for (uint32_t j = 0; j < dimension; j++)
        to[j] = (float)((double)from[j] / length);
    return STATUS_OK;
}

static enum status transform_part(void *context, uint64_t part, struct error *err)
{
    const struct row_job *job = context;
    const struct transform *transform = job->transform;
    const uint32_t dimension = transform->dimension, stride = transform->stride;
    uint32_t row = (uint32_t)part * ROWS_PART;
    const uint32_t end = min_u32(row + ROWS_PART, job->rows);
    enum status status = STATUS_OK;
    for (; row < end && status == STATUS_OK; row++) {
        const float *from = job->from + (size_t)row * dimension;
        float *to = job->to + (size_t)row * stride;
        status = check_finite(job, from, row, err);
        if (status != STATUS_OK)
            break;
        if (transform->metric == METRIC_HELLINGER)
            status = to_roots(job, to, from, row, err);
        else if (transform->metric == METRIC_COSINE)
            status = to_unit(job, to, from, row, err);
        else if (to != from)
            memmove(to, from, dimension * sizeof *to);
        for (uint32_t j = dimension; j < stride; j++)
            to[j] = 0;
    }
    return status;
}

enum status transform_rows(const struct transform *transform, struct workers *workers, float *to,
                           const float *from, uint64_t first, uint32_t rows, struct error *err)
{
    struct row_job job = {transform, to, from, first, rows};
    return workers_try(workers, transform_part, &job, ((uint64_t)rows + ROWS_PART - 1) / ROWS_PART,
                       err);
}

struct read_job {
    const struct transform *transform;
    const struct matrix_source *source;
    uint64_t first, rows, step;
    float *to;
};

/* Parts begin at multiples of `step`, counted over all rows, so they are whole pieces of the digest.
 * Rows to be padded are read to the end of their destination. */
static enum status read_part(void *context, uint64_t part, struct error *err)
{
    const struct read_job *job = context;
    const struct transform *transform = job->transform;
    const uint64_t at = (job->first / job->step + part) * job->step;
    const uint64_t first = max_u64(at, job->first),
                   end = min_u64(at + job->step, job->first + job->rows);
    float *to = job->to + (size_t)(first - job->first) * transform->stride;
    float *from = to + (size_t)(end - first) * (transform->stride - transform->dimension);
    const enum status status = matrix_read(job->source, first, end - first, from, err);
    return status == STATUS_OK
               ? transform_rows(transform, NULL, to, from, first, (uint32_t)(end - first), err)
               : status;
}

/* Reads some rows at a time, which all threads transform. */
static enum status read_in_turn(const struct read_job *job, struct workers *workers,
                                struct error *err)
{
    const struct transform *transform = job->transform;
    const size_t row = transform->dimension * sizeof(float), bytes = job->step * row;
    float *piece = transform->stride == transform->dimension ? NULL : malloc(bytes);
    enum status status = piece || transform->stride == transform->dimension
                             ? STATUS_OK
                             : error_memory(err, bytes, "reading rows");
    for (uint64_t done = 0, rows; done < job->rows && status == STATUS_OK; done += rows) {
        float *to = job->to + (size_t)done * transform->stride, *from = piece ? piece : to;
        rows = min_u64(job->step, job->rows - done);
        status = matrix_read(job->source, job->first + done, rows, from, err);
        if (status == STATUS_OK)
            status = transform_rows(transform, workers, to, from, job->first + done, (uint32_t)rows,
                                    err);
    }
    free(piece);
    return status;
}

enum status transform_read(const struct transform *transform, const struct matrix_source *source,
                           struct workers *workers, float *to, uint64_t first, uint64_t rows,
                           struct error *err)
{
    const size_t row = transform->dimension * sizeof(float);
    struct read_job job = {transform, source, first, rows, matrix_piece(source), to};
    const bool alone = !workers || !source->concurrent;
    if (alone)
        job.step = max_u64((workers ? PIECE_BYTES : GLANCE_BYTES) / row, 1);
    if (alone && job.step > KMEANS_BLOCK_ROWS)
        job.step -= job.step % KMEANS_BLOCK_ROWS;
    if (workers && alone) {
        job.step = min_u64(job.step, rows);
        return read_in_turn(&job, workers, err);
    }
    return rows > 0 ? workers_try(workers, read_part, &job,
                                  (first + rows - 1) / job.step - first / job.step + 1, err)
                    : STATUS_OK;
}

/* --- columns --------------------------------------------------------------------------------- */

uint64_t column_stats_chunk(uint64_t rows)
{
    const uint64_t blocks = (rows + KMEANS_BLOCK_ROWS - 1) / KMEANS_BLOCK_ROWS;
    return (blocks + CHUNKS - 1) / CHUNKS * KMEANS_BLOCK_ROWS;
}

enum status column_stats_open(struct column_stats *stats, uint32_t dimension, uint64_t rows,
                              uint64_t first, uint64_t count, struct error *err)
{
    *stats = (struct column_stats){
        .dimension = dimension, .rows = first, .chunk_rows = column_stats_chunk(rows)};
    const size_t columns = dimension;
    stats->first_chunk = first / stats->chunk_rows;
    stats->room = count == rows ? 1 : (count + stats->chunk_rows - 1) / stats->chunk_rows;
    stats->bytes = columns * (4 * sizeof(double) + 2 * sizeof(float));
    stats->sum = calloc(1, stats->bytes);
    stats->chunks = calloc(stats->room, 2 * columns * sizeof *stats->chunks);
    if (!stats->sum || !stats->chunks)
        return error_memory(err, stats->bytes + stats->room * 2 * columns * sizeof *stats->chunks,
                            "the columns' statistics");
    stats->squares = stats->sum + columns;
    stats->block_sum = stats->squares + columns;
    stats->block_squares = stats->block_sum + columns;
    stats->origin = (float *)(stats->block_squares + columns);
    stats->largest = stats->origin + columns;
    return STATUS_OK;
}

/* Adds up the chunks and clears them. */
static void fold(struct column_stats *stats)
{
    const uint32_t columns = stats->dimension;
    for (uint64_t chunk = 0; chunk < stats->room; chunk++) {
        double *sums = stats->chunks + chunk * 2 * columns;
        for (uint32_t j = 0; j < columns; j++) {
            stats->sum[j] += sums[j];
            stats->squares[j] += sums[columns + j];
        }
        memset(sums, 0, 2 * columns * sizeof *sums);
    }
}

void column_stats_follow(struct column_stats *stats, const struct column_stats *before)
{
    for (uint32_t j = 0; before && j < stats->dimension; j++) {
        stats->sum[j] += before->sum[j];
        stats->squares[j] += before->squares[j];
        if (before->largest[j] > stats->largest[j])
            stats->largest[j] = before->largest[j];
    }
    fold(stats);
}

void column_stats_close(struct column_stats *stats)
{
    free(stats->sum);
    free(stats->chunks);
    *stats = (struct column_stats){0};
}

/* Partial sums of up to COLUMNS_PART columns. */
struct column_part {
    double sum[COLUMNS_PART], squares[COLUMNS_PART];
    float largest[COLUMNS_PART];
};

struct column_job {
    const struct column_stats *stats;
    const float *rows, *weights;
    uint32_t count, stride; /* rows; a part takes a block of them */
    uint64_t groups;        /* of columns */
    struct column_part *parts;
};

ALWAYS_INLINE void add_values(struct column_part *part, const float *values, const float *origin,
                              uint32_t columns)
{
    for (uint32_t j = 0; j < columns; j++) {
        const float size = fabsf(values[j]);
        const double t = (double)values[j] - (double)origin[j];
        part->largest[j] = size > part->largest[j] ? size : part->largest[j];
        part->sum[j] += t;
        part->squares[j] += t * t;
    }
}

static void add_weighted(struct column_part *part, const float *values, const float *origin,
                         uint32_t columns, double weight)
{
    for (uint32_t j = 0; j < columns; j++) {
        const double t = (double)values[j] - (double)origin[j];
        part->sum[j] += weight * t;
        part->squares[j] += weight * (t * t);
    }
}

AVX2_TOO static void add_part(void *context, uint64_t number)
{
    const struct column_job *job = context;
    const uint32_t from = (uint32_t)(number % job->groups) * COLUMNS_PART;
    const uint32_t first = (uint32_t)(number / job->groups) * KMEANS_BLOCK_ROWS;
    const uint32_t columns =
        job->stats->dimension - from < COLUMNS_PART ? job->stats->dimension - from : COLUMNS_PART;
    const uint32_t left = job->count - first;
    const uint32_t rows = left < KMEANS_BLOCK_ROWS ? left : KMEANS_BLOCK_ROWS;
    const float *values = job->rows + (size_t)first * job->stride + from;
    const float *origin = job->stats->origin + from;
    struct column_part part = job->parts[number];
    for (uint32_t row = 0; row < rows && job->weights; row++)
        add_weighted(&part, values + (size_t)row * job->stride, origin, columns,
                     (double)job->weights[first + row]);
    if (job->weights) {
        job->parts[number] = part;
        return;
    }
    /* The usual case has a constant trip count. */
    for (uint32_t row = 0; row < rows && columns == COLUMNS_PART; row++, values += job->stride)
        add_values(&part, values, origin, COLUMNS_PART);
    for (uint32_t row = 0; row < rows && columns < COLUMNS_PART; row++, values += job->stride)
        add_values(&part, values, origin, columns);
    job->parts[number] = part;
}

/* Where to add the block at `row`. */
static double *chunk_of(struct column_stats *stats, uint64_t row)
{
    const uint64_t chunk = row / stats->chunk_rows;
    if (chunk - stats->first_chunk >= stats->room) { /* all rows, which come in order */
        fold(stats);
        stats->first_chunk = chunk;
    }
    return stats->chunks + (chunk - stats->first_chunk) * 2 * stats->dimension;
}

/* Stores the sums of the rows of the block at `row`; adds a complete block to its chunk. */
static void keep_parts(struct column_stats *stats, const struct column_part *parts, uint64_t row,
                       bool whole)
{
    double *sum = chunk_of(stats, row), *squares = sum + stats->dimension;
    for (uint32_t j = 0; j < stats->dimension; j++) {
        const struct column_part *part = &parts[j / COLUMNS_PART];
        const uint32_t at = j % COLUMNS_PART;
        if (part->largest[at] > stats->largest[j])
            stats->largest[j] = part->largest[at];
        stats->block_sum[j] = whole ? 0 : part->sum[at];
        stats->block_squares[j] = whole ? 0 : part->squares[at];
        if (whole) {
            sum[j] += part->sum[at];
            squares[j] += part->squares[at];
        }
    }
}

enum status column_stats_add(struct column_stats *stats, struct workers *workers, const float *rows,
                             const float *weights, uint32_t count, uint32_t stride,
                             struct error *err)
{
    if (stats->rows == 0)
        memcpy(stats->origin, rows, stats->dimension * sizeof *stats->origin);
    const uint64_t groups = ((uint64_t)stats->dimension + COLUMNS_PART - 1) / COLUMNS_PART;
    const uint32_t blocks = (count + KMEANS_BLOCK_ROWS - 1) / KMEANS_BLOCK_ROWS;
    const size_t most = (size_t)groups * blocks;
    assert(count > 0 && stats->rows % KMEANS_BLOCK_ROWS == 0);
    struct column_part *parts = calloc(most, sizeof *parts);
    if (!parts)
        return error_memory(err, most * sizeof *parts, "the columns' statistics");
    struct column_job job = {stats, rows, weights, count, stride, groups, parts};
    workers_run(workers, add_part, &job, most);
    for (uint32_t block = 0; block < blocks; block++)
        keep_parts(stats, parts + block * groups, stats->rows + (uint64_t)block * KMEANS_BLOCK_ROWS,
                   count / KMEANS_BLOCK_ROWS > block);
    stats->rows += count;
    free(parts);
    return STATUS_OK;
}

double column_stats_mean(const struct column_stats *stats, uint32_t j)
{
    return column_stats_weighted_mean(stats, j, (double)stats->rows);
}

double column_stats_weighted_mean(const struct column_stats *stats, uint32_t j, double total)
{
    return (double)stats->origin[j] + (stats->sum[j] + stats->block_sum[j]) / total;
}

double column_stats_scatter(const struct column_stats *stats, uint32_t j)
{
    const double sum = stats->sum[j] + stats->block_sum[j];
    double scatter =
        stats->squares[j] + stats->block_squares[j] - sum * (sum / (double)stats->rows);
    return scatter > 0 ? scatter : 0;
}

double column_stats_scatter_about(const struct column_stats *stats, uint32_t j, double about,
                                  double total)
{
    const double shift = about - (double)stats->origin[j];
    const double sum = stats->sum[j] + stats->block_sum[j];
    const double scatter =
        stats->squares[j] + stats->block_squares[j] - shift * (2 * sum - shift * total);
    return scatter > 0 ? scatter : 0;
}
