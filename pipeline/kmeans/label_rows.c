/* label_rows.c: transform, then the canonical distance to every centroid. No filter: the rows come
 * from images just decoded by an update, which takes far longer. */
#include "kmeans/label_rows.h"
#include "base/held.h"
#include "base/workers.h"
#include "kmeans.h"
#include "kmeans/canonical.h"
#include "kmeans/transform.h"
#include "matrix/projected.h"
#include <math.h>
#include <string.h>

/* Rows that one thread takes at a time. */
#define ROWS_PART 64

struct job {
    struct transform transform;
    int32_t *labels;
    float *distances;
    const float *rows, *given,
        *centroids; /* given: k x dimension; centroids: k x stride, if wanted */
    uint64_t count;
    uint32_t k;
    float *space; /* per part: a row and a centroid */
    struct stop *stop;
};

static void label_part(void *context, uint64_t part)
{
    const struct job *job = context;
    const uint32_t dimension = job->transform.dimension, stride = job->transform.stride;
    float *row = job->space + 2 * part * stride, *own = row + stride;
    const uint64_t first = part * ROWS_PART;
    const uint64_t end = job->count - first > ROWS_PART ? first + ROWS_PART : job->count;
    if (stop_requested(job->stop) != STOP_NONE)
        return;
    for (uint64_t i = first; i < end; i++) {
        double distance = NAN;
        if (transform_rows(&job->transform, NULL, row, job->rows + i * dimension, i, 1, NULL) !=
            STATUS_OK)
            job->labels[i] = -1;
        else if (job->labels[i] < 0)
            job->labels[i] =
                (int32_t)canonical_nearest(&distance, row, job->centroids, job->k, stride);
        else {
            memcpy(own, job->given + (size_t)job->labels[i] * dimension, dimension * sizeof *own);
            distance = canonical_distance(row, own, stride);
        }
        job->distances[i] = (float)distance;
    }
}

enum status label_rows(int32_t *labels, float *distances, const float *rows, uint64_t count,
                       uint32_t dimension, const float *centroids, uint32_t k, const char *metric,
                       unsigned threads, struct stop *stop, struct error *err)
{
    const uint32_t stride = (dimension + KMEANS_LANES - 1) / KMEANS_LANES * KMEANS_LANES;
    const uint64_t parts = (count + ROWS_PART - 1) / ROWS_PART;
    enum projection_space space;
    if (!projection_space(&space, metric))
        return error_set(err, STATUS_FAILED, "there is no metric '%s'", metric);
    struct workers *workers = NULL;
    uint64_t known = 0;
    while (known < count && labels[known] >= 0)
        known++;
    const uint32_t searched = known < count ? k : 0;
    SCOPED_HELD held = {0};
    float *padded = held_array(&held, (uint64_t)searched * stride, sizeof *padded);
    struct job job = {.transform = {.metric = (enum cluster_metric)space,
                                    .dimension = dimension,
                                    .stride = stride,
                                    .what = "row"},
                      .labels = labels,
                      .distances = distances,
                      .rows = rows,
                      .given = centroids,
                      .centroids = padded,
                      .count = count,
                      .k = k,
                      .space = held_array(&held, 2 * parts, stride * sizeof *job.space),
                      .stop = stop};
    if (held_check(&held, "labels", err) != STATUS_OK)
        return err->status;
    for (uint32_t c = 0; c < searched; c++)
        memcpy(padded + (size_t)c * stride, centroids + (size_t)c * dimension,
               dimension * sizeof *padded);
    if (parts > 1 && threads > 1 && workers_open(&workers, threads, NULL) == STATUS_OK)
        workers_run(workers, label_part, &job, parts);
    else
        for (uint64_t part = 0; part < parts; part++)
            label_part(&job, part);
    workers_close(&workers);
    return stop_check(stop, "labelling new images", err);
}
