/* test_clusters_common.h: adds valid clusterings to files of generated records. */
#ifndef TEST_CLUSTERS_COMMON_H
#define TEST_CLUSTERS_COMMON_H

#include "result/clusters.h"
#include "test_store_common.h"
#include <math.h>

#define ITEMS 90
#define K     3

/* A valid clustering of a feature of the file with k arbitrary centroids. */
struct clustered {
    struct result_clustering clustering;
    float *centroids, *distances;
    int32_t *labels;
    uint64_t sizes[K];
    int64_t nearest[3 * K];
    double history[2];
};

static inline void cluster(struct clustered *c, const char *path, const char *feature_name,
                           const char *metric)
{
    struct error error = ERROR_INIT;
    struct result *result;
    memset(c, 0, sizeof *c);
    assert_ok(result_open(&result, path, &error));
    const struct result_feature *feature = result_feature_find(result, feature_name);
    assert_non_null(feature);
    uint32_t d = feature->dimension;
    uint64_t n = feature->rows;
    float *rows = calloc(n * d + 1, sizeof *rows);
    assert_ok(read_feature(result, feature, 0, n, rows, &error));
    for (uint64_t i = 0; i < n; i++) {
        double length = 0;
        for (uint32_t j = 0; j < d; j++)
            length += rows[i * d + j] * rows[i * d + j];
        for (uint32_t j = 0; j < d; j++)
            if (strcmp(metric, "hellinger") == 0)
                rows[i * d + j] = sqrtf(rows[i * d + j]);
            else if (strcmp(metric, "cosine") == 0)
                rows[i * d + j] /= (float)sqrt(length);
    }
    c->centroids = malloc(K * d * sizeof *c->centroids);
    c->labels = malloc((n + 1) * sizeof *c->labels);
    c->distances = malloc((n + 1) * sizeof *c->distances);
    for (uint32_t k = 0; k < K; k++)
        memcpy(c->centroids + k * d, rows + (k * 7 + 1) * d, d * sizeof *rows);
    for (int i = 0; i < 3 * K; i++)
        c->nearest[i] = -1;
    double inertia = 0;
    for (uint64_t i = 0; i < n; i++) {
        double best = HUGE_VAL;
        for (uint32_t k = 0; k < K; k++) {
            double sum = 0;
            for (uint32_t j = 0; j < d; j++)
                sum += pow((double)rows[i * d + j] - c->centroids[k * d + j], 2);
            if (sum < best) {
                best = sum;
                c->labels[i] = (int32_t)k;
            }
        }
        c->distances[i] = (float)best;
        inertia += c->distances[i];
        c->sizes[c->labels[i]]++;
        /* Inserts the row into the three nearest. */
        int64_t row = (int64_t)i, *nearest = c->nearest + 3 * c->labels[i];
        for (int p = 0; p < 3; p++)
            if (nearest[p] < 0 || c->distances[row] < c->distances[nearest[p]]) {
                int64_t swap = nearest[p];
                nearest[p] = row;
                row = swap;
                if (row < 0)
                    break;
            }
    }
    free(rows);
    c->history[0] = inertia * 2;
    c->history[1] = inertia;
    c->clustering = (struct result_clustering){.clusters = {.name = "kmeans",
                                                            .init = "kmeans++",
                                                            .parameters = "{\"k\":3}",
                                                            .k = K,
                                                            .dimension = d,
                                                            .iterations = 2,
                                                            .rows = n,
                                                            .seed = -5,
                                                            .converged = true,
                                                            .inertia = inertia},
                                               .value = {[PART_CENTROIDS] = c->centroids,
                                                         [PART_LABELS] = c->labels,
                                                         [PART_DISTANCES] = c->distances,
                                                         [PART_SIZES] = c->sizes,
                                                         [PART_NEAREST] = c->nearest,
                                                         [PART_HISTORY] = c->history}};
    struct result_clusters *about = &c->clustering.clusters;
    snprintf(about->feature, sizeof about->feature, "%s", feature_name);
    snprintf(about->metric, sizeof about->metric, "%s", metric);
    assert_ok(result_feature_identity(result, feature, about->content, &error));
    result_close(&result);
}

static inline void rename_clustering(struct clustered *c, const char *name)
{
    snprintf(c->clustering.clusters.name, sizeof c->clustering.clusters.name, "%s", name);
}

static inline void clustered_clear(struct clustered *c)
{
    free(c->centroids);
    free(c->labels);
    free(c->distances);
}

static inline void ingest(struct fixture *f, uint64_t count, struct store_summary *summary)
{
    unsigned counts[3] = {0};
    run_items(f, 0, count, 1, 0, summary, counts);
}

/* Checks that the file contains the clustering as it was given. */

#endif
