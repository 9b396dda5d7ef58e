/* kmeans_rows.c: k-means of the caller's rows. */
#include "kmeans/label_rows.h"
#include "library/library.h"
#include "matrix/projected.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Fewer multiply-adds than this take less time than starting a device. */
#define HOST_WORK (UINT64_C(1) << 26)

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
    if (library_choice(kmeans->metric, 3, "metric", err) != STATUS_OK ||
        library_choice(kmeans->init, 4, "way to choose the first centroids", err) != STATUS_OK)
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
    struct library_rows rows;
    struct clpipe_kmeans kmeans;
    struct cluster_config cluster;
    struct cluster_outcome outcome;
    const struct cluster_devices devices = {library->contexts.context, library->contexts.count};
    if (library_take(&out, sizeof out, fit, "clpipe_fit", err) != STATUS_OK ||
        library_rows_open(&rows, given, err) != STATUS_OK ||
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
    const size_t bytes = (size_t)rows->rows * rows->dimension * sizeof(float);
    float *copy = malloc(bytes);
    uint64_t placed = 0;
    memset(labels, -1, rows->rows * sizeof *labels); /* not labelled yet */
    if (!copy)
        error_memory(err, bytes, "rows");
    else if (matrix_read(rows, 0, rows->rows, copy, err) == STATUS_OK &&
             label_rows(labels, distances, copy, rows->rows, rows->dimension, centroids, k,
                        metric_names[metric], library->machine.threads, library->machine.stop,
                        err) == STATUS_OK)
        while (placed < rows->rows && labels[placed] >= 0)
            placed++;
    free(copy);
    return placed == rows->rows;
}

static void predict(int32_t *labels, float *distances, const struct library *library,
                    const struct clpipe_rows *given, const float *centroids, uint32_t k, int metric,
                    struct error *err)
{
    const struct cluster_devices devices = {library->contexts.context, library->contexts.count};
    struct cluster_config config;
    struct library_rows rows;
    if (library_rows_open(&rows, given, err) != STATUS_OK ||
        library_choice(metric, 3, "metric", err) != STATUS_OK)
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
    int32_t *own = labels && distances ? NULL : malloc(2 * n * sizeof *own);
    if (!own && !(labels && distances)) {
        error_memory(err, 2 * n * sizeof *own, "labels");
        return;
    }
    labels = labels ? labels : own;
    distances = distances ? distances : (float *)(own + n);
    clustering_config_of(&config, &library->machine);
    config.metric = (enum cluster_metric)metric;
    const bool few = n * source->dimension <= HOST_WORK / k;
    if (!(few && label_few(labels, distances, library, source, centroids, k, metric, err)) &&
        err->status == STATUS_OK) /* this also reports what is wrong with a row */
        cluster_assign(labels, distances, &devices, source, centroids, k, &config, err);
    free(own);
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
