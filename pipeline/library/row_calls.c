/* row_calls.c: k-means and nearest neighbours of the caller's rows. */
#include "base/held.h"
#include "base/minmax.h"
#include "kmeans/label_rows.h"
#include "library/library.h"
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

bool library_strides_fit(const int64_t *stride, const uint64_t *count, unsigned axes, int64_t bytes)
{
    bool apart = true;
    double all = 0;
    for (unsigned i = 0; i < axes; i++) {
        apart = apart && (stride[i] <= -bytes || stride[i] >= bytes || stride[i] == 0);
        all += fabs((double)stride[i]) * (double)count[i];
    }
    return apart && all < 0x1p62;
}

/* Accepts 0 rows. False: sizes, strides, pointers or the metric are invalid; *err is set. */
static bool rows_open(struct rows *out, const struct clpipe_rows *rows, int metric,
                      struct error *err)
{
    static const struct value_format formats[] = {
        {'f', 4, false}, {'f', 2, false}, {'f', 8, false}, {'u', 1, false}};
    struct clpipe_rows *given = &out->given;
    struct matrix_memory *memory = &out->memory;
    if (!library_take(given, sizeof *given, rows, "clpipe_rows", err) ||
        !REQUIRE(given->columns >= 1 && given->columns <= CLPIPE_COLUMNS_MAX, err,
                 "rows have %u columns; there can be 1 to %u", given->columns,
                 CLPIPE_COLUMNS_MAX) ||
        !REQUIRE(given->rows <= ROWS_MOST, err, "%llu rows are too many",
                 (unsigned long long)given->rows) ||
        !REQUIRE(given->rows == 0 || !given->values != !given->read, err,
                 "rows need either values or a callback that reads them") ||
        !REQUIRE(given->type >= 0 && given->type <= CLPIPE_UINT8, err, "there is no type %d",
                 given->type) ||
        !REQUIRE(metric >= 0 && metric <= CLPIPE_HELLINGER, err, "there is no metric %d", metric))
        return false;
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
    }
    return given->read ||
           REQUIRE(library_strides_fit((int64_t[]){memory->row_stride, memory->column_stride},
                                       (uint64_t[]){given->rows, given->columns}, 2,
                                       memory->format.bytes),
                   err, "strides of %lld and %lld bytes do not fit these rows",
                   (long long)memory->row_stride, (long long)memory->column_stride);
}

static void give(void *to, const void *from, size_t bytes)
{
    if (to)
        memcpy(to, from, bytes);
}

/* --- k-means ----------------------------------------------------------------------------------- */

static bool configure(struct cluster_config *out, struct library *library,
                      const struct clpipe_kmeans *kmeans, const struct matrix_source *rows,
                      struct error *err)
{
    if (!REQUIRE(kmeans->k <= rows->rows || rows->rows == 0, err,
                 "k is %u, but there are %llu rows", kmeans->k, (unsigned long long)rows->rows) ||
        !REQUIRE(kmeans->tol >= 0, err, "tol is %g; it must be 0 or more", kmeans->tol) ||
        !REQUIRE(kmeans->init >= 0 && kmeans->init <= CLPIPE_GIVEN, err,
                 "there is no way %d to choose the initial centroids", kmeans->init) ||
        !REQUIRE(kmeans->init != CLPIPE_GIVEN || kmeans->initial, err,
                 "the given centroids are NULL"))
        return false;
    clustering_config_of(out, &library->machine);
    out->k = kmeans->k;
    out->metric = (enum cluster_metric)kmeans->metric;
    out->init = (enum cluster_init)kmeans->init;
    out->initial = kmeans->initial;
    out->weights = kmeans->weights;
    out->seed = kmeans->seed;
    out->n_init = kmeans->n_init ? kmeans->n_init : 1;
    out->max_iter = library->iterations = kmeans->max_iter ? kmeans->max_iter : 300;
    out->tol = kmeans->tol;
    out->mini_batch = kmeans->mini_batch;
    out->method = kmeans->mini_batch ? "mini-batch" : "lloyd";
    return true;
}

int clpipe_fit(struct clpipe_fit *fit, struct clpipe *clpipe, const struct clpipe_rows *given,
               const struct clpipe_kmeans *wanted, const struct clpipe_watch *watch,
               struct clpipe_error *err)
{
    struct error why = ERROR_INIT;
    struct clpipe_fit out;
    struct clpipe_kmeans kmeans;
    struct rows rows;
    struct cluster_config config;
    struct cluster_outcome found;
    struct library *library = library_begin(clpipe, watch, &why);
    if (library && library_take(&out, sizeof out, fit, "clpipe_fit", &why) &&
        library_take(&kmeans, sizeof kmeans, wanted, "clpipe_kmeans", &why) &&
        rows_open(&rows, given, kmeans.metric, &why) &&
        configure(&config, library, &kmeans, &rows.source, &why) &&
        cluster_run(&found, &library->contexts.devices, &rows.source, &config, &why) == STATUS_OK) {
        give(out.centroids, found.centroids,
             (size_t)found.k * found.dimension * sizeof *out.centroids);
        give(out.labels, found.labels, found.rows * sizeof *out.labels);
        give(out.distances, found.distances, found.rows * sizeof *out.distances);
        give(out.sizes, found.sizes, found.k * sizeof *out.sizes);
        out.inertia = found.inertia;
        out.iterations = found.iterations;
        out.converged = found.converged;
        memcpy(fit, &out, min_u64(out.size, sizeof out));
        cluster_outcome_clear(&found);
    }
    return library_end(library, &why, err);
}

/* Labels rows on the host, bit-identically. False: some row or centroid is invalid, or *err is set. */
static bool label_few(int32_t *labels, float *distances, const struct library *library,
                      const struct matrix_source *rows, const float *centroids, uint32_t k,
                      int metric, struct error *err)
{
    SCOPED_HELD held = {0};
    uint64_t valid = 0;
    for (size_t i = 0; i < (size_t)k * rows->dimension; i++)
        if (!isfinite(centroids[i]))
            return false;
    float *copy = held_array(&held, rows->rows * rows->dimension, sizeof *copy);
    memset(labels, -1, rows->rows * sizeof *labels); /* to be searched */
    if (held_check(&held, "rows", err) == STATUS_OK &&
        matrix_read(rows, 0, rows->rows, copy, err) == STATUS_OK &&
        label_rows(labels, distances, copy, rows->rows, rows->dimension, centroids, k,
                   metric_names[metric], library->machine.threads, library->machine.watch.stop,
                   err) == STATUS_OK)
        while (valid < rows->rows && labels[valid] >= 0)
            valid++;
    return valid == rows->rows;
}

int clpipe_predict(int32_t *labels, float *distances, struct clpipe *clpipe,
                   const struct clpipe_rows *given, const float *centroids, uint32_t k, int metric,
                   const struct clpipe_watch *watch, struct clpipe_error *err)
{
    struct error why = ERROR_INIT;
    SCOPED_HELD held = {0};
    struct rows rows;
    struct cluster_config config;
    struct library *library = library_begin(clpipe, watch, &why);
    if (library && rows_open(&rows, given, metric, &why) &&
        REQUIRE(centroids && k > 0, &why, "there are no centroids") && rows.source.rows > 0) {
        const uint64_t n = rows.source.rows;
        labels = labels ? labels : held_array(&held, n, sizeof *labels);
        distances = distances ? distances : held_array(&held, n, sizeof *distances);
        clustering_config_of(&config, &library->machine);
        config.metric = (enum cluster_metric)metric;
        const bool done =
            held_check(&held, "labels", &why) == STATUS_OK &&
            n * rows.source.dimension <= HOST_WORK / k &&
            label_few(labels, distances, library, &rows.source, centroids, k, metric, &why);
        if (!done && why.status == STATUS_OK) /* this also says what is invalid */
            cluster_assign(labels, distances, &library->contexts.devices, &rows.source, centroids,
                           k, &config, &why);
    }
    return library_end(library, &why, err);
}

/* --- neighbours -------------------------------------------------------------------------------- */

int clpipe_neighbors(int64_t *neighbors, double *distances, struct clpipe *clpipe,
                     const struct clpipe_rows *given, const struct clpipe_rows *given_queries,
                     uint32_t n, int metric, const struct clpipe_watch *watch,
                     struct clpipe_error *err)
{
    struct error why = ERROR_INIT;
    struct rows rows, queries;
    struct neighbours found;
    struct library *library = library_begin(clpipe, watch, &why);
    if (!library || !rows_open(&rows, given, metric, &why) ||
        (given_queries && !rows_open(&queries, given_queries, metric, &why)))
        return library_end(library, &why, err);
    const struct matrix_source *source = &rows.source;
    const struct queries wanted = {.values = &queries.source,
                                   .count = given_queries ? queries.source.rows : source->rows};
    const uint64_t others = source->rows - (!given_queries && source->rows);
    struct neighbours_config config =
        clustering_search(&library->machine, (enum cluster_metric)metric, n);
    config.devices = library->contexts.devices;
    if (n < 1 || n > others)
        error_set(&why, source->rows ? STATUS_USAGE : STATUS_FAILED,
                  "n is %u, but there are %llu rows that can be neighbours", n,
                  (unsigned long long)others);
    else if (REQUIRE(!given_queries || queries.source.dimension == source->dimension, &why,
                     "queries have %u columns, but rows have %u", queries.source.dimension,
                     source->dimension) &&
             neighbours_find(&found, source, given_queries ? &wanted : NULL, &config, &why) ==
                 STATUS_OK) {
        give(neighbors, found.rows, (size_t)wanted.count * n * sizeof *neighbors);
        give(distances, found.squared, (size_t)wanted.count * n * sizeof *distances);
        neighbours_clear(&found);
    }
    return library_end(library, &why, err);
}
