/* importing.c: wires an import.
 *
 *   MATRIX ──> matrix_input ──> by order ───────────────────> result/imported ──> F.h5
 *                    │             or                 ▲
 *   LIST ──> path_list ──> path_match ──> gathered ───┘
 *
 * By path, rows are gathered for a block of images at a time: its rows are read in ascending order,
 * so a matrix that fits in the block is read once, whatever the order of the list, and a larger one
 * once for each block. */
#include "jobs/importing.h"
#include "base/clock.h"
#include "base/held.h"
#include "base/parse.h"
#include "base/path.h"
#include "jobs/matrix_input.h"
#include "result/imported.h"
#include "result/workdir.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A row of the matrix, and its place in the block. */
struct wanted {
    uint64_t row;
    uint64_t slot;
};

struct job {
    const struct importing_config *config;
    struct result *result;
    struct matrix_input input;
    struct path_list list;
    struct path_match *match;  /* the report's */
    struct matrix_source rows; /* one for each image */
    struct workdir *lock;
    uint64_t rows_at_once;
    struct held held;
    struct wanted *wanted; /* rows_at_once */
    float *staged;         /* staged_rows rows of the matrix, in its order */
    uint64_t staged_rows;
};

/* --- rows ------------------------------------------------------------------------------------ */

/* Rows [first, first + count) of the matrix must be finite. */
static enum status check_finite(const struct job *job, const float *rows, uint64_t first,
                                uint64_t count, struct error *err)
{
    const uint64_t columns = job->input.source.dimension, values = count * columns;
    char path[128], of[160] = "";
    uint64_t at = 0;
    /* The sum is finite only if all of them are; if it overflows, the values are checked again. */
    float sum = 0;
    for (uint64_t i = 0; i < values; i++)
        sum += rows[i] * 0.0f;
    if (sum == 0)
        return STATUS_OK;
    while (at < values && isfinite(rows[at]))
        at++;
    if (at == values)
        return STATUS_OK;
    const uint64_t row = first + at / columns;
    if (job->config->paths)
        snprintf(of, sizeof of, " ('%s')", path_list_shown(path, sizeof path, &job->list, row));
    return error_set(err, STATUS_FAILED,
                     "%s: row %llu%s, column %llu is %s; every value must be a finite number that "
                     "float32 can hold",
                     PATH_TEXT(job->config->input), (unsigned long long)row, of,
                     (unsigned long long)(at % columns),
                     isnan(rows[at]) ? "not a number (NaN)" : "infinite or too large");
}

static enum status read_by_order(void *context, uint64_t first, uint64_t count, float *rows,
                                 struct error *err)
{
    struct job *job = context;
    enum status status = matrix_read(&job->input.source, first, count, rows, err);
    return status == STATUS_OK ? check_finite(job, rows, first, count, err) : status;
}

static int compare_wanted(const void *a, const void *b)
{
    const struct wanted *x = a, *y = b;
    return (x->row > y->row) - (x->row < y->row);
}

static enum status read_by_path(void *context, uint64_t first, uint64_t count, float *rows,
                                struct error *err)
{
    struct job *job = context;
    const size_t columns = job->input.source.dimension;
    uint64_t found = 0;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t row = job->match->row[first + i];
        if (row != PATH_LIST_NONE)
            job->wanted[found++] = (struct wanted){row, i};
        else
            for (size_t j = 0; j < columns; j++)
                rows[i * columns + j] = NAN;
    }
    qsort(job->wanted, (size_t)found, sizeof *job->wanted, compare_wanted);
    for (uint64_t at = 0, end; at < found; at = end) {
        const uint64_t start = job->wanted[at].row;
        for (end = at + 1; end < found && job->wanted[end].row - start < job->staged_rows;)
            end++;
        const uint64_t read = job->wanted[end - 1].row - start + 1;
        enum status status = watch_check(&job->config->watch, "reading rows", err);
        if (status == STATUS_OK)
            status = matrix_read(&job->input.source, start, read, job->staged, err);
        for (uint64_t i = at; i < end && status == STATUS_OK; i++) {
            const float *row = job->staged + (job->wanted[i].row - start) * columns;
            status = check_finite(job, row, job->wanted[i].row, 1, err);
            memcpy(rows + job->wanted[i].slot * columns, row, columns * sizeof *rows);
        }
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static enum status digest_rows(void *context, char hex[65], struct error *err)
{
    struct job *job = context;
    return matrix_input_digest(&job->input, hex, err);
}

/* --- opening --------------------------------------------------------------------------------- */

/* Base name of the matrix's file, and the dataset. */
static void name_origin(char *out, size_t size, const struct job *job)
{
    const char *path = job->input.path, *slash = strrchr(path, '/');
    const char *base = slash && slash[1] ? slash + 1 : path;
    const char *dataset =
        strlen(job->config->input) > strlen(path) ? job->config->input + strlen(path) : "";
    snprintf(out, size, "%s%s", PATH_TEXT_IN(200, base), PATH_TEXT_IN(200, dataset));
}

static enum status match_rows(struct job *job, struct importing_report *report, struct error *err)
{
    const struct importing_config *config = job->config;
    const uint64_t rows = job->input.source.rows;
    const char *input = PATH_TEXT(config->input);
    if (!config->paths) {
        if (rows == report->images)
            return STATUS_OK;
        return error_set(err, STATUS_FAILED,
                         "%s has %s, but %s has %s: without --paths LIST, row i is image i", input,
                         NUMBER_OF(rows, "row"), PATH_TEXT(config->file),
                         NUMBER_OF(report->images, "image"));
    }
    const char *list = PATH_TEXT(config->paths);
    enum status status =
        path_list_open_for(&job->list, config->paths, config->input, rows, false, err);
    if (status != STATUS_OK)
        return status;
    status = path_match_make(job->match, &job->list, job->result, err);
    if (status != STATUS_OK || job->match->missing == 0 || config->allow_missing)
        return status;
    error_set(err, STATUS_FAILED, "%s of %llu %s no path in %s: %s",
              NUMBER_OF(job->match->missing, "image"), (unsigned long long)report->images,
              job->match->missing == 1 ? "has" : "have", list, job->match->first_missing);
    return error_remedy(err, REMEDY_ALLOW_MISSING);
}

static enum status job_open(struct job *job, struct importing_report *report, struct error *err)
{
    const struct importing_config *config = job->config;
    enum status status = result_open(&job->result, config->file, err);
    if (status == STATUS_OK)
        status = imported_check(job->result, config->name, true, err);
    if (status == STATUS_OK)
        status = matrix_input_open(&job->input, config->input, NULL, NULL, err);
    if (status != STATUS_OK)
        return status;
    const struct matrix_source *source = &job->input.source;
    job->input.digests = true;
    report->rows = source->rows;
    report->images = result_images(job->result);
    report->dimension = source->dimension;
    snprintf(report->type, sizeof report->type, "%s",
             job->input.rows.type[0]     ? job->input.rows.type
             : job->input.about.is_float ? "float32"
                                         : "uint32");
    name_origin(report->from, sizeof report->from, job);
    if (source->dimension > FEATURE_DIMENSION_MAX)
        return error_set(err, STATUS_FAILED, "a row of %s has %u values; a feature has at most %u",
                         report->from, source->dimension, FEATURE_DIMENSION_MAX);
    for (unsigned i = 0; i < job->result->clusters_count; i++)
        report->clusterings_removed +=
            result_feature_find(job->result, config->name) &&
            feature_is_part(job->result->clusters[i].feature, config->name);
    status = match_rows(job, report, err);
    if (status != STATUS_OK)
        return status;
    job->rows = (struct matrix_source){.rows = report->images,
                                       .dimension = source->dimension,
                                       .read = job->match->row ? read_by_path : read_by_order,
                                       .identity = digest_rows,
                                       .context = job};
    job->rows_at_once = matrix_rows_at_once(&job->rows);
    if (!job->match->row)
        return STATUS_OK;
    /* The memory for gathering, without the block: an entry for each of its rows, and the rows
     * being read. */
    const uint64_t row_bytes = source->dimension * sizeof(float);
    job->staged_rows = matrix_rows_at_once(source);
    if (config->memory / 2 / (row_bytes + sizeof *job->wanted) > job->rows_at_once)
        job->rows_at_once = config->memory / 2 / (row_bytes + sizeof *job->wanted);
    if (job->rows_at_once > report->images)
        job->rows_at_once = report->images;
    job->wanted = held_array(&job->held, job->rows_at_once, sizeof *job->wanted);
    job->staged = held_array(&job->held, job->staged_rows, row_bytes);
    return held_check(&job->held, "rows", err);
}

enum status importing_run(struct importing_report *report, const struct importing_config *config,
                          struct error *err)
{
    const int64_t start = clock_now();
    struct job job = {.config = config, .match = &report->match};
    *report = (struct importing_report){.rows = 0};
    enum status status = job_open(&job, report, err);
    const struct imported_feature feature = {.name = config->name,
                                             .from = report->from,
                                             .rows = &job.rows,
                                             .rows_at_once = job.rows_at_once,
                                             .watch = config->watch};
    if (status == STATUS_OK)
        status = imported_equal(&report->found, job.result, &feature, err);
    if (status == STATUS_OK && !report->found)
        status = imported_check(job.result, config->name, config->replace, err);
    /* Otherwise a simultaneous ingest could lose the feature, or the import the ingest's images. */
    if (status == STATUS_OK && !report->found)
        status = workdir_open(&job.lock, config->file, err);
    if (status == STATUS_OK && !report->found)
        status = result_check_current(job.result, err);
    if (status == STATUS_OK && !report->found)
        status = imported_write(job.result, &feature, err);
    if (report->found) {
        report->clusterings_removed = 0;
        workdir_tidy(config->file);
    }
    if (status == STATUS_OK)
        status = matrix_input_digest(&job.input, report->digest, err);
    report->seconds = (double)(clock_now() - start) * 1e-9;
    workdir_release(&job.lock);
    path_list_close(&job.list);
    matrix_input_close(&job.input);
    result_close(&job.result);
    held_free(&job.held);
    return status;
}
