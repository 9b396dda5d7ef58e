/* kmeans_rows.c: k-means of the caller's rows. */
#include "kmeans/label_rows.h"
#include "library/library.h"
#include "matrix/projected.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Multiply-adds of so few rows cost less than what a device needs to begin. */
#define HOST_WORK (UINT64_C(1) << 26)

static enum status configure(struct cluster_config *out, const struct library *library,
                             const struct clpipe_kmeans *kmeans, const struct matrix_source *rows,
                             struct error *err)
{
    clustering_config_of(out, &library->machine);
    if (kmeans->k > rows->rows)
        return error_set(err, rows->rows ? STATUS_USAGE : STATUS_FAILED,
                         "k is %u, but there are %llu rows (n_samples = %llu)", kmeans->k,
                         (unsigned long long)rows->rows, (unsigned long long)rows->rows);
    if (!(kmeans->tol >= 0))
        return error_set(err, STATUS_USAGE, "tol is %g; it must be 0 or more", kmeans->tol);
    if (kmeans->init == CLPIPE_GIVEN && !kmeans->initial)
        return error_set(err, STATUS_USAGE, "the given centroids are NULL");
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
    enum status status = library_choice(kmeans->metric, 3, "metric", err);
    return status == STATUS_OK
               ? library_choice(kmeans->init, 4, "way to choose the first centroids", err)
               : status;
}

static void give(void *to, const void *from, size_t bytes)
{
    if (to && from)
        memcpy(to, from, bytes);
}

int clpipe_fit(struct clpipe_fit *fit, struct clpipe *clpipe, const struct clpipe_rows *given,
               const struct clpipe_kmeans *config, const struct clpipe_watch *watch,
               struct clpipe_error *err)
{
    struct error why = ERROR_INIT;
    struct library_rows rows;
    struct clpipe_fit out;
    struct clpipe_kmeans kmeans;
    struct cluster_config cluster = {0};
    struct cluster_outcome outcome = {0};
    int code;
    struct library *library = library_begin(clpipe, watch, err, &code);
    if (!library)
        return code;
    enum status status = library_take(&out, sizeof out, fit, "clpipe_fit", &why);
    if (status == STATUS_OK)
        status = library_rows_open(&rows, given, &why);
    if (status == STATUS_OK)
        status = library_take(&kmeans, sizeof kmeans, config, "clpipe_kmeans", &why);
    if (status == STATUS_OK)
        status = configure(&cluster, library, &kmeans, &rows.source, &why);
    library->iterations = cluster.max_iter;
    const struct cluster_devices devices = {library->contexts.context, library->contexts.count};
    if (status == STATUS_OK)
        status = cluster_run(&outcome, &devices, &rows.source, &cluster, &why);
    if (status == STATUS_OK) {
        give(out.centroids, outcome.centroids,
             (size_t)outcome.k * outcome.dimension * sizeof *out.centroids);
        give(out.labels, outcome.labels, outcome.rows * sizeof *out.labels);
        give(out.distances, outcome.distances, outcome.rows * sizeof *out.distances);
        give(out.sizes, outcome.sizes, outcome.k * sizeof *out.sizes);
        out.inertia = outcome.inertia;
        out.iterations = outcome.iterations;
        out.converged = outcome.converged;
        memcpy(fit, &out, out.size < sizeof out ? out.size : sizeof out);
    }
    cluster_outcome_clear(&outcome);
    return library_end(library, status, &why, err);
}

/* A few rows in memory: on the host, to the same bits. *done: all have a place in the space of the metric. */
static enum status label_few(bool *done, int32_t *labels, float *distances,
                             const struct library *library, const struct matrix_source *rows,
                             const float *centroids, uint32_t k, int metric, struct error *err)
{
    const size_t values = (size_t)rows->rows * rows->dimension;
    float *copy = malloc(values * sizeof *copy);
    enum status status = copy ? matrix_read(rows, 0, rows->rows, copy, err)
                              : error_memory(err, values * sizeof *copy, "rows");
    for (uint64_t i = 0; i < rows->rows; i++)
        labels[i] = -1; /* to be searched */
    if (status == STATUS_OK)
        status =
            label_rows(labels, distances, copy, rows->rows, rows->dimension, centroids, k,
                       metric_names[metric], library->machine.threads, library->machine.stop, err);
    *done = status == STATUS_OK;
    for (uint64_t i = 0; i < rows->rows && *done; i++)
        *done = labels[i] >= 0;
    free(copy);
    return status;
}

int clpipe_predict(int32_t *labels, float *distances, struct clpipe *clpipe,
                   const struct clpipe_rows *given, const float *centroids, uint32_t k, int metric,
                   const struct clpipe_watch *watch, struct clpipe_error *err)
{
    struct error why = ERROR_INIT;
    struct library_rows rows;
    struct cluster_config cluster;
    int32_t *own_labels = NULL;
    float *own_distances = NULL;
    bool done = false;
    int code;
    struct library *library = library_begin(clpipe, watch, err, &code);
    if (!library)
        return code;
    enum status status = library_rows_open(&rows, given, &why);
    const uint64_t n = status == STATUS_OK ? rows.source.rows : 0;
    if (status == STATUS_OK)
        status = library_choice(metric, 3, "metric", &why);
    if (status == STATUS_OK && (!centroids || k < 1))
        status = error_set(&why, STATUS_USAGE, "there are no centroids");
    for (size_t i = 0; status == STATUS_OK && i < (size_t)k * rows.source.dimension; i++)
        if (!isfinite(centroids[i]))
            status = error_set(&why, STATUS_FAILED, "centroid %zu is not finite",
                               i / rows.source.dimension);
    if (status == STATUS_OK && !labels)
        labels = own_labels = malloc(n * sizeof *labels + 1);
    if (status == STATUS_OK && !distances)
        distances = own_distances = malloc(n * sizeof *distances + 1);
    if (status == STATUS_OK && (!labels || !distances))
        status = error_memory(&why, n * 8, "labels");
    clustering_config_of(&cluster, &library->machine);
    cluster.metric = (enum cluster_metric)metric;
    if (status == STATUS_OK && n > 0 && n * rows.source.dimension <= HOST_WORK / k)
        status =
            label_few(&done, labels, distances, library, &rows.source, centroids, k, metric, &why);
    const struct cluster_devices devices = {library->contexts.context, library->contexts.count};
    if (status == STATUS_OK && n > 0 && !done) /* which also tells what is wrong with a row */
        status =
            cluster_assign(labels, distances, &devices, &rows.source, centroids, k, &cluster, &why);
    free(own_labels);
    free(own_distances);
    return library_end(library, status, &why, err);
}
