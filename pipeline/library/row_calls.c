/* row_calls.c: k-means and nearest neighbours of the caller's rows. */
#include "base/held.h"
#include "base/minmax.h"
#include "kmeans/label_rows.h"
#include "library/library.h"
#include "matrix/matrix.h"
#include "matrix/projected.h"
#include "neighbours/neighbours.h"
#include <math.h>
#include <string.h>

/* More rows are certainly a mistake. */
#define ROWS_MOST (UINT64_C(1) << 40)
/* Fewer multiply-adds than this take less time than starting a device. */
#define HOST_WORK (UINT64_C(1) << 26)

/* The caller's rows as a matrix; `source` points to this struct. */
struct rows {
    struct clpipe_rows given;
    struct matrix_memory memory;
    struct matrix_source source;
};

/* --- rows -------------------------------------------------------------------------------------- */

static enum status read_given(void *context, uint64_t first, uint64_t count, float *rows,
                              struct error *err)
{
    const struct clpipe_rows *given = context;
    library_calls_back = true;
    const int code = given->read(given->context, first, count, rows);
    library_calls_back = false;
    return code ? error_set(err, STATUS_USAGE,
                            "the callback that reads rows returned %d for row %llu", code,
                            (unsigned long long)first)
                : STATUS_OK;
}

/* STATUS_USAGE: `value` is not one of an enum's `count` values; `what` describes the enum for the
 * message. */
static enum status choice(int value, int count, const char *what, struct error *err)
{
    return value >= 0 && value < count
               ? STATUS_OK
               : error_set(err, STATUS_USAGE, "there is no %s %d", what, value);
}

bool library_strides_fit(const int64_t *stride, const uint64_t *count, unsigned axes, int64_t bytes)
{
    int64_t all = 0;
    for (unsigned i = 0; i < axes; i++) {
        int64_t length;
        if ((stride[i] > -bytes && stride[i] < bytes && stride[i] != 0) ||
            __builtin_mul_overflow(stride[i], (int64_t)count[i], &length) ||
            __builtin_add_overflow(all, length > 0 ? length : -(length + 1), &all))
            return false;
    }
    return true;
}

/* Accepts 0 rows. STATUS_USAGE: sizes, strides or pointers are invalid. */
static enum status rows_open(struct rows *out, const struct clpipe_rows *rows, struct error *err)
{
    static const struct value_format formats[] = {
        {'f', 4, false}, {'f', 2, false}, {'f', 8, false}, {'u', 1, false}};
    struct clpipe_rows *given = &out->given;
    if (library_take(given, sizeof *given, rows, "clpipe_rows", err) != STATUS_OK)
        return err->status;
    if (given->columns < 1 || given->columns > CLPIPE_COLUMNS_MAX)
        return error_set(err, STATUS_USAGE, "rows have %u columns; there can be 1 to %u",
                         given->columns, CLPIPE_COLUMNS_MAX);
    if (given->rows > ROWS_MOST)
        return error_set(err, STATUS_USAGE, "%llu rows are too many",
                         (unsigned long long)given->rows);
    if (given->rows > 0 && !given->values == !given->read)
        return error_set(err, STATUS_USAGE,
                         "rows need either values or a callback that reads them");
    if (choice(given->type, sizeof formats / sizeof *formats, "type", err) != STATUS_OK)
        return err->status;
    struct matrix_memory *memory = &out->memory;
    *memory = (struct matrix_memory){.values = given->values,
                                     .dimension = given->columns,
                                     .format = formats[given->type],
                                     .row_stride = given->row_stride,
                                     .column_stride = given->column_stride};
    matrix_memory_source(&out->source, memory, given->rows);
    if (given->read) {
        out->source.read = read_given;
        out->source.concurrent = false;
        out->source.context = given;
    } else if (!library_strides_fit((int64_t[]){memory->row_stride, memory->column_stride},
                                    (uint64_t[]){given->rows, given->columns}, 2,
                                    memory->format.bytes)) {
        return error_set(
            err, STATUS_USAGE,
            "strides of %lld and %lld bytes do not fit %llu rows of %u values of %u bytes",
            (long long)memory->row_stride, (long long)memory->column_stride,
            (unsigned long long)given->rows, given->columns, memory->format.bytes);
    }
    return STATUS_OK;
}

/* --- k-means ----------------------------------------------------------------------------------- */

static enum status configure(struct cluster_config *out, const struct library *library,
                             const struct clpipe_kmeans *kmeans, const struct matrix_source *rows,
                             struct error *err)
{
    clustering_config_of(out, &library->machine);
    if (kmeans->k > rows->rows)
        return error_set(err, rows->rows ? STATUS_USAGE : STATUS_FAILED,
                         "k is %u, but there are %llu rows", kmeans->k,
                         (unsigned long long)rows->rows);
    if (!(kmeans->tol >= 0))
        return error_set(err, STATUS_USAGE, "tol is %g; it must be 0 or more", kmeans->tol);
    if (kmeans->init == CLPIPE_GIVEN && !kmeans->initial)
        return error_set(err, STATUS_USAGE, "the given centroids are NULL");
    if (choice(kmeans->metric, 3, "metric", err) != STATUS_OK ||
        choice(kmeans->init, 4, "way to choose the first centroids", err) != STATUS_OK)
        return err->status;
    out->k = kmeans->k;
    out->metric = (enum cluster_metric)kmeans->metric;
    out->init = (enum cluster_init)kmeans->init;
    out->initial = kmeans->initial;
    out->weights = kmeans->weights;
    out->seed = kmeans->seed;
    out->n_init = kmeans->n_init ? kmeans->n_init : 1;
    out->max_iter = kmeans->max_iter ? kmeans->max_iter : 300;
    out->tol = kmeans->tol;
    out->mini_batch = kmeans->mini_batch;
    out->method = kmeans->mini_batch ? "mini-batch" : "lloyd";
    return STATUS_OK;
}

static void give(void *to, const void *from, size_t bytes)
{
    if (to)
        memcpy(to, from, bytes);
}

static enum status fit_rows(struct clpipe_fit *fit, struct library *library,
                            const struct clpipe_rows *given, const struct clpipe_kmeans *config,
                            struct error *err)
{
    struct clpipe_fit out;
    struct rows rows;
    struct clpipe_kmeans kmeans;
    struct cluster_config cluster;
    struct cluster_outcome outcome;
    const struct cluster_devices devices = {library->contexts.context, library->contexts.count};
    if (library_take(&out, sizeof out, fit, "clpipe_fit", err) != STATUS_OK ||
        rows_open(&rows, given, err) != STATUS_OK ||
        library_take(&kmeans, sizeof kmeans, config, "clpipe_kmeans", err) != STATUS_OK ||
        configure(&cluster, library, &kmeans, &rows.source, err) != STATUS_OK)
        return err->status;
    library->iterations = cluster.max_iter;
    if (cluster_run(&outcome, &devices, &rows.source, &cluster, err) != STATUS_OK)
        return err->status;
    give(out.centroids, outcome.centroids,
         (size_t)outcome.k * outcome.dimension * sizeof *out.centroids);
    give(out.labels, outcome.labels, outcome.rows * sizeof *out.labels);
    give(out.distances, outcome.distances, outcome.rows * sizeof *out.distances);
    give(out.sizes, outcome.sizes, outcome.k * sizeof *out.sizes);
    out.inertia = outcome.inertia;
    out.iterations = outcome.iterations;
    out.converged = outcome.converged;
    memcpy(fit, &out, out.size < sizeof out ? out.size : sizeof out);
    cluster_outcome_clear(&outcome);
    return STATUS_OK;
}

int clpipe_fit(struct clpipe_fit *fit, struct clpipe *clpipe, const struct clpipe_rows *rows,
               const struct clpipe_kmeans *kmeans, const struct clpipe_watch *watch,
               struct clpipe_error *err)
{
    struct error why = ERROR_INIT;
    struct library *library = library_begin(clpipe, watch, &why);
    if (library)
        fit_rows(fit, library, rows, kmeans, &why);
    return library_end(library, &why, err);
}

/* Labels rows on the host, bit-identically; false: some row is invalid under the metric, or *err is set. */
static bool label_few(int32_t *labels, float *distances, const struct library *library,
                      const struct matrix_source *rows, const float *centroids, uint32_t k,
                      int metric, struct error *err)
{
    struct held held = {0};
    float *copy = held_array(&held, rows->rows * rows->dimension, sizeof *copy);
    uint64_t placed = 0;
    memset(labels, -1, rows->rows * sizeof *labels); /* to be searched */
    if (held_check(&held, "rows", err) == STATUS_OK &&
        matrix_read(rows, 0, rows->rows, copy, err) == STATUS_OK &&
        label_rows(labels, distances, copy, rows->rows, rows->dimension, centroids, k,
                   metric_names[metric], library->machine.threads, library->machine.stop,
                   err) == STATUS_OK)
        while (placed < rows->rows && labels[placed] >= 0)
            placed++;
    held_free(&held);
    return placed == rows->rows;
}

static void predict(int32_t *labels, float *distances, const struct library *library,
                    const struct clpipe_rows *given, const float *centroids, uint32_t k, int metric,
                    struct error *err)
{
    const struct cluster_devices devices = {library->contexts.context, library->contexts.count};
    struct cluster_config config;
    struct rows rows;
    if (rows_open(&rows, given, err) != STATUS_OK || choice(metric, 3, "metric", err) != STATUS_OK)
        return;
    const struct matrix_source *source = &rows.source;
    const size_t n = source->rows;
    if (!centroids || k < 1)
        error_set(err, STATUS_USAGE, "there are no centroids");
    for (size_t i = 0; err->status == STATUS_OK && i < (size_t)k * source->dimension; i++)
        if (!isfinite(centroids[i]))
            error_set(err, STATUS_FAILED, "centroid %zu is not finite", i / source->dimension);
    if (err->status != STATUS_OK || n == 0)
        return;
    struct held held = {0};
    labels = labels ? labels : held_array(&held, n, sizeof *labels);
    distances = distances ? distances : held_array(&held, n, sizeof *distances);
    if (held_check(&held, "labels", err) != STATUS_OK)
        goto out;
    clustering_config_of(&config, &library->machine);
    config.metric = (enum cluster_metric)metric;
    const bool few = n * source->dimension <= HOST_WORK / k;
    if (!(few && label_few(labels, distances, library, source, centroids, k, metric, err)) &&
        err->status == STATUS_OK) /* this also reports what is wrong with a row */
        cluster_assign(labels, distances, &devices, source, centroids, k, &config, err);
out:
    held_free(&held);
}

int clpipe_predict(int32_t *labels, float *distances, struct clpipe *clpipe,
                   const struct clpipe_rows *rows, const float *centroids, uint32_t k, int metric,
                   const struct clpipe_watch *watch, struct clpipe_error *err)
{
    struct error why = ERROR_INIT;
    struct library *library = library_begin(clpipe, watch, &why);
    if (library)
        predict(labels, distances, library, rows, centroids, k, metric, &why);
    return library_end(library, &why, err);
}

/* --- neighbours -------------------------------------------------------------------------------- */

/* Queries are processed in parts, each compared with all rows. */
static uint32_t part_of(uint64_t queries, const struct library *library, uint32_t columns,
                        uint32_t n)
{
    const uint64_t bytes = columns * sizeof(float) + n * UINT64_C(64) + 64;
    const uint64_t fit = library->machine.memory / 4 / bytes;
    return (uint32_t)min_u64(min_u64(queries, 1u << 30), fit ? fit : 1);
}

static enum status search(int64_t *neighbors, double *distances, struct library *library,
                          const struct clpipe_rows *given, const struct clpipe_rows *given_queries,
                          uint32_t n, int metric, struct error *err)
{
    const struct clustering_machine *machine = &library->machine;
    struct rows rows, queries;
    if (rows_open(&rows, given, err) != STATUS_OK ||
        (given_queries && rows_open(&queries, given_queries, err) != STATUS_OK) ||
        choice(metric, 3, "metric", err) != STATUS_OK)
        return err->status;
    const struct matrix_source *of = given_queries ? &queries.source : &rows.source;
    const uint64_t others = rows.source.rows - (!given_queries && rows.source.rows);
    if (of->dimension != rows.source.dimension)
        return error_set(err, STATUS_USAGE, "queries have %u columns, but rows have %u",
                         of->dimension, rows.source.dimension);
    if (n < 1 || n > others)
        return error_set(err, rows.source.rows ? STATUS_USAGE : STATUS_FAILED,
                         "n is %u, but there are %llu rows that can be neighbours", n,
                         (unsigned long long)others);
    struct neighbours_config config = clustering_search(machine, (enum cluster_metric)metric, n);
    config.devices = (struct cluster_devices){library->contexts.context, library->contexts.count};
    for (uint64_t done = 0; done < of->rows;) {
        struct neighbours found;
        const struct queries wanted = {.values = of,
                                       .first = done,
                                       .count =
                                           part_of(of->rows - done, library, of->dimension, n)};
        if (neighbours_find(&found, &rows.source, given_queries ? &wanted : NULL, &config, err) !=
            STATUS_OK)
            return err->status;
        const size_t places = (size_t)found.queries * n;
        if (neighbors)
            memcpy(neighbors + done * n, found.rows, places * sizeof *neighbors);
        if (distances)
            memcpy(distances + done * n, found.squared, places * sizeof *distances);
        done += found.queries;
        neighbours_clear(&found);
    }
    return STATUS_OK;
}

int clpipe_neighbors(int64_t *neighbors, double *distances, struct clpipe *clpipe,
                     const struct clpipe_rows *rows, const struct clpipe_rows *queries, uint32_t n,
                     int metric, const struct clpipe_watch *watch, struct clpipe_error *err)
{
    struct error why = ERROR_INIT;
    struct library *library = library_begin(clpipe, watch, &why);
    if (library)
        search(neighbors, distances, library, rows, queries, n, metric, &why);
    return library_end(library, &why, err);
}
