/* verify_clusters.c: labels, sizes, distances and the rows nearest to each centroid. */
#include "base/hash.h"
#include "file/feature_matrix.h"
#include "file/sweep_group.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 65536
/* Distances are computed again for about this much work: rows x clusters x dimension. */
#define SAMPLE_WORK 100000000.0
#define SAMPLE_MOST 256
/* Of a distance, relative to the lengths of the vectors that it is between. */
#define DISTANCE_TOLERANCE 1e-5
/* Of the sum of distances, each of which was rounded to float32. */
#define INERTIA_TOLERANCE 1e-6
/* What is lost of a weight, relative to the largest. */
#define WEIGHT_UNIT 0x1p-40

/* One clustering in memory, but for what has a row for each image. */
struct clustering {
    struct verify *verify;
    const struct result_cluster_entry *entry;
    const struct result_clusters *c;
    char where[FEATURE_NAME_MAX + 16];
    float *centroids;
    uint64_t *sizes;
    int64_t *nearest;
    uint64_t *members; /* counted */
    float *least;      /* distance of a member to its centroid */
};

static enum status read_part(struct clustering *k, enum cluster_part part, uint64_t first,
                             uint64_t count, void *data, struct error *err)
{
    return h5_read_rows(k->entry->part[part], cluster_part_kind[part].type, first, count, data,
                        k->verify->result->path, err);
}

static enum status load(struct clustering *k, struct error *err)
{
    const struct result_clusters *c = k->c;
    /* That the file is large enough for them was checked when it was opened. */
    k->centroids = malloc((size_t)c->k * c->dimension * sizeof *k->centroids);
    k->sizes = malloc(c->k * sizeof *k->sizes);
    k->nearest = malloc(c->k * sizeof *k->nearest * NEAREST_COUNT);
    k->members = calloc(c->k, sizeof *k->members);
    k->least = malloc(c->k * sizeof *k->least);
    if (!k->centroids || !k->sizes || !k->nearest || !k->members || !k->least)
        return error_memory(err, (size_t)c->k * c->dimension * sizeof *k->centroids, "centroids");
    for (uint32_t i = 0; i < c->k; i++)
        k->least[i] = FLT_MAX;
    enum status status = read_part(k, PART_CENTROIDS, 0, c->k, k->centroids, err);
    if (!status)
        status = read_part(k, PART_SIZES, 0, c->k, k->sizes, err);
    if (!status)
        status = read_part(k, PART_NEAREST, 0, c->k, k->nearest, err);
    return status;
}

/* The stored inertia against the sum of weights times distances. Weights count as multiples of a
 * unit (docs/clustering.md), so `heaviest`, the largest weight times the sum of distances, has a
 * part in the tolerance. Files of before had the digest of weights alone. */
static void check_inertia(struct clustering *k, double sum, double heaviest)
{
    const struct result_clusters *c = k->c;
    if (!c->weighted && strstr(c->parameters, "\"weights\":"))
        return;
    if (!(fabs(sum - c->inertia) <=
          INERTIA_TOLERANCE * (sum + DBL_MIN) + (c->weighted ? WEIGHT_UNIT * heaviest : 0)))
        verify_broken(k->verify, "%s: the inertia is %.9g, the %sdistances add up to %.9g",
                      k->where, c->inertia, c->weighted ? "weighted " : "", sum);
}

static void check_weights_digest(struct clustering *k, const struct murmur3 *state)
{
    char wanted[64];
    uint64_t digest[2];
    murmur3_final(state, digest);
    snprintf(wanted, sizeof wanted, "\"weights\":\"murmur3-%016llx%016llx\"",
             (unsigned long long)digest[0], (unsigned long long)digest[1]);
    if (!strstr(k->c->parameters, wanted))
        verify_broken(k->verify, "%s/weights: these are not the weights that it was made with",
                      k->where);
}

/* One pass over labels, distances and weights. */
static enum status check_rows(struct clustering *k, struct error *err)
{
    const struct result_clusters *c = k->c;
    struct verify_rows label = {0}, distance = {0}, weight = {0};
    int32_t *labels = malloc(BLOCK * sizeof *labels);
    float *distances = malloc(BLOCK * sizeof *distances);
    float *weights = malloc(BLOCK * sizeof *weights);
    enum status status = labels && distances && weights
                             ? STATUS_OK
                             : error_memory(err, BLOCK * sizeof *labels, "labels");
    double sum = 0, plain = 0, largest = 0;
    struct murmur3 digest;
    murmur3_init(&digest);
    for (uint64_t i = 0; !status && i < BLOCK; i++)
        weights[i] = 1;
    for (uint64_t first = 0; !status && first < c->rows; first += BLOCK) {
        uint64_t count = c->rows - first < BLOCK ? c->rows - first : BLOCK;
        status = read_part(k, PART_LABELS, first, count, labels, err);
        if (!status)
            status = read_part(k, PART_DISTANCES, first, count, distances, err);
        if (!status && c->weighted)
            status = read_part(k, PART_WEIGHTS, first, count, weights, err);
        if (!status && c->weighted)
            murmur3_update(&digest, weights, count * sizeof *weights);
        for (uint64_t i = 0; !status && i < count; i++) {
            if (!(weights[i] >= 0) || !isfinite(weights[i]))
                verify_row(&weight, first + i);
            if (!(distances[i] >= 0) || !isfinite(distances[i]))
                verify_row(&distance, first + i);
            sum += (double)weights[i] * (double)distances[i];
            plain += (double)distances[i];
            largest = fmax(largest, (double)weights[i]);
            if (labels[i] < 0 || (uint32_t)labels[i] >= c->k) {
                verify_row(&label, first + i);
                continue;
            }
            k->members[labels[i]]++;
            if (distances[i] < k->least[labels[i]])
                k->least[labels[i]] = distances[i];
        }
    }
    free(labels);
    free(distances);
    free(weights);
    if (status)
        return status;
    verify_report_rows(k->verify, &label, k->where, "has a label that is no cluster");
    verify_report_rows(k->verify, &distance, k->where, "has a distance that is no distance");
    verify_report_rows(k->verify, &weight, k->where, "has a weight that is no weight");
    if (label.count || distance.count || weight.count)
        return STATUS_OK;
    if (c->weighted)
        check_weights_digest(k, &digest);
    check_inertia(k, sum, largest * plain);
    for (uint32_t i = 0; i < c->k; i++)
        if (k->members[i] != k->sizes[i]) {
            verify_broken(k->verify, "%s/sizes: cluster %u has %llu rows, not %llu", k->where, i,
                          (unsigned long long)k->members[i], (unsigned long long)k->sizes[i]);
            break;
        }
    return STATUS_OK;
}

/* Whether the rows said to be nearest to centroid `i` can be. */
static enum status check_nearest(struct clustering *k, uint32_t i, bool *right, struct error *err)
{
    const int64_t *nearest = k->nearest + (size_t)i * NEAREST_COUNT;
    float before = k->least[i];
    *right = true;
    for (unsigned n = 0; n < NEAREST_COUNT; n++) {
        if (n >= k->members[i]) {
            *right = *right && nearest[n] == -1;
            continue;
        }
        if (nearest[n] < 0 || (uint64_t)nearest[n] >= k->c->rows) {
            *right = false;
            return STATUS_OK;
        }
        int32_t label;
        float distance;
        enum status status = read_part(k, PART_LABELS, (uint64_t)nearest[n], 1, &label, err);
        if (!status)
            status = read_part(k, PART_DISTANCES, (uint64_t)nearest[n], 1, &distance, err);
        if (status)
            return status;
        if (label != (int32_t)i || distance < before || (n == 0 && distance != before))
            *right = false;
        before = distance;
    }
    return STATUS_OK;
}

/* Brings a row into the space of the metric, as double. */
static void transform(double *out, const float *row, uint32_t dimension, const char *metric)
{
    double length = 0;
    for (uint32_t i = 0; i < dimension; i++) {
        out[i] = strcmp(metric, "hellinger") == 0 ? sqrt(fmax(row[i], 0)) : row[i];
        length += out[i] * out[i];
    }
    if (strcmp(metric, "cosine") == 0 && length > 0)
        for (uint32_t i = 0; i < dimension; i++)
            out[i] /= sqrt(length);
}

/* Whether label and distance of a row are those that its values and the centroids give. */
static bool check_distance(const struct clustering *k, const double *row, int32_t label,
                           float stored)
{
    const struct result_clusters *c = k->c;
    double own = 0, least = HUGE_VAL, scale = 0;
    for (uint32_t j = 0; j < c->k; j++) {
        double sum = 0, lengths = 0;
        const float *centroid = k->centroids + (size_t)j * c->dimension;
        for (uint32_t i = 0; i < c->dimension; i++) {
            double difference = row[i] - centroid[i];
            sum += difference * difference;
            lengths += row[i] * row[i] + (double)centroid[i] * centroid[i];
        }
        if ((int32_t)j == label)
            own = sum;
        if (sum < least)
            least = sum;
        scale = fmax(scale, lengths);
    }
    return fabs(own - stored) <= DISTANCE_TOLERANCE * scale &&
           own - least <= DISTANCE_TOLERANCE * scale;
}

static enum status check_sample(struct clustering *k, const struct matrix_source *rows,
                                struct error *err)
{
    const struct result_clusters *c = k->c;
    double most = SAMPLE_WORK / ((double)c->k * c->dimension);
    uint64_t count = most > SAMPLE_MOST ? SAMPLE_MOST : most < 1 ? 1 : (uint64_t)most;
    if (count > c->rows)
        count = c->rows;
    struct verify_rows wrong = {0};
    float *row = malloc(c->dimension * sizeof *row);
    double *point = malloc(c->dimension * sizeof *point);
    enum status status =
        row && point ? STATUS_OK : error_memory(err, c->dimension * sizeof *point, "a row");
    for (uint64_t s = 0; !status && s < count; s++) {
        uint64_t at = (uint64_t)((double)s / (double)count * (double)c->rows);
        int32_t label;
        float distance;
        status = matrix_read(rows, at, 1, row, err);
        if (!status)
            status = read_part(k, PART_LABELS, at, 1, &label, err);
        if (!status)
            status = read_part(k, PART_DISTANCES, at, 1, &distance, err);
        if (status)
            break;
        transform(point, row, c->dimension, c->metric);
        if (!check_distance(k, point, label, distance))
            verify_row(&wrong, at);
    }
    free(row);
    free(point);
    verify_report_rows(k->verify, &wrong, k->where,
                       "has another nearest centroid or distance than stored (of a sample)");
    return status;
}

static enum status check_feature(struct clustering *k, struct error *err)
{
    struct verify *verify = k->verify;
    const struct result_clusters *c = k->c;
    struct matrix_source rows;
    struct result_feature about;
    if (feature_matrix_open(&rows, &about, verify->result, c->feature, NULL) != STATUS_OK) {
        verify_broken(verify, "%s: its feature '%s' is not in the file", k->where, c->feature);
        return STATUS_OK;
    }
    enum status status = STATUS_OK;
    char content[65];
    if (rows.dimension != c->dimension) {
        verify_broken(verify, "%s: it has dimension %u, its feature %u", k->where, c->dimension,
                      rows.dimension);
        goto out;
    }
    status = rows.identity(rows.context, content, err);
    if (status != STATUS_OK)
        goto out;
    if (strcmp(content, c->content) != 0)
        verify_broken(verify, "%s: these clusters were made from other rows", k->where);
    else
        status = check_sample(k, &rows, err);
out:
    matrix_close(&rows);
    return status;
}

static enum status check_axes(struct clustering *k, struct error *err)
{
    const char *name = k->c->name;
    const struct result *result = k->verify->result;
    char clusters[AXIS_NAME_MAX], iterations[AXIS_NAME_MAX], rows[AXIS_NAME_MAX],
        values[AXIS_NAME_MAX];
    axis_name(clusters, "cluster", name);
    axis_name(iterations, "iteration", name);
    axis_name(rows, "row", name);
    axis_name(values, "dimension", name);
    if (result->has_images)
        snprintf(rows, sizeof rows, "%s", image_table.axis);
    if (result_feature_find(result, k->c->feature))
        axis_name(values, "feature", k->c->feature);
    enum status status = STATUS_OK;
    for (int p = 0; !status && p < PART_COUNT; p++) {
        char where[FEATURE_NAME_MAX + 48];
        if (p == PART_WEIGHTS && !k->c->weighted)
            continue;
        snprintf(where, sizeof where, "%s/%s", k->where, cluster_part_kind[p].name);
        status = verify_axis(k->verify, k->entry->part[p], where, 0,
                             cluster_part_of_rows(p) ? rows
                             : p == PART_HISTORY     ? iterations
                                                     : clusters,
                             err);
        if (!status && cluster_part_kind[p].rank == 2)
            status = verify_axis(k->verify, k->entry->part[p], where, 1,
                                 p == PART_CENTROIDS ? values : RANK_AXIS, err);
    }
    return status;
}

enum status verify_clustering(struct verify *verify, const struct result_cluster_entry *entry,
                              struct error *err)
{
    struct clustering k = {.verify = verify, .entry = entry, .c = &entry->clusters};
    snprintf(k.where, sizeof k.where, "/clusters/%s", entry->clusters.name);
    enum status status = load(&k, err);
    if (!status)
        status = check_axes(&k, err);
    if (!status)
        status = sweep_group_verify(verify, k.c, k.where, err);
    for (size_t i = 0; !status && i < (size_t)k.c->k * k.c->dimension; i++)
        if (!isfinite(k.centroids[i])) {
            verify_broken(verify, "%s/centroids: cluster %zu has a value that is no number",
                          k.where, i / k.c->dimension);
            break;
        }
    uint64_t before = verify->count;
    if (!status)
        status = check_rows(&k, err);
    /* What follows stands on labels that are right. */
    for (uint32_t i = 0; !status && verify->count == before && i < k.c->k; i++) {
        bool right;
        status = check_nearest(&k, i, &right, err);
        if (!status && !right)
            verify_broken(verify, "%s/nearest: the rows of cluster %u are not its nearest", k.where,
                          i);
    }
    if (!status && verify->count == before && verify->result->has_images)
        status = check_feature(&k, err);
    free(k.centroids);
    free(k.sizes);
    free(k.nearest);
    free(k.members);
    free(k.least);
    return status;
}
