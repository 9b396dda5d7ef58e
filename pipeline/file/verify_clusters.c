/* verify_clusters.c: labels, sizes, distances and the rows nearest to each centroid. */
#include "base/hash.h"
#include "file/checksums.h"
#include "file/feature_matrix.h"
#include "file/identity.h"
#include "file/parameters.h"
#include "file/verify_report.h"
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
    uint64_t *members;       /* counted */
    float *least;            /* distance of a member to its centroid */
    char weights_digest[64]; /* of the weights that it was made with; "" */
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
    if (read_part(k, PART_CENTROIDS, 0, c->k, k->centroids, err) ||
        read_part(k, PART_SIZES, 0, c->k, k->sizes, err) ||
        read_part(k, PART_NEAREST, 0, c->k, k->nearest, err))
        return STATUS_FAILED;
    return STATUS_OK;
}

/* What one pass over the rows finds. */
struct row_pass {
    struct verify_rows label, distance, weight;
    double sum, plain, largest;
    struct murmur3 digest;
};

static void check_row(struct clustering *k, struct row_pass *pass, uint64_t row, int32_t label,
                      float distance, float weight)
{
    /* Rows that cannot be compared have no label; of those that came after the fit weights are unknown. */
    const bool later = k->c->fitted_rows > 0;
    if ((!(weight >= 0) || !isfinite(weight)) && !(later && isnan(weight)))
        verify_row(&pass->weight, row);
    if (label == -1 && isnan(distance))
        return;
    if (!(distance >= 0) || !isfinite(distance))
        verify_row(&pass->distance, row);
    pass->sum += (double)weight * (double)distance;
    pass->plain += (double)distance;
    pass->largest = fmax(pass->largest, (double)weight);
    if (label < 0 || (uint32_t)label >= k->c->k) {
        verify_row(&pass->label, row);
        return;
    }
    k->members[label]++;
    if (distance < k->least[label])
        k->least[label] = distance;
}

static void report_rows(struct clustering *k, const struct row_pass *pass)
{
    const struct result_clusters *c = k->c;
    char digest_text[64];
    uint64_t digest[2];
    verify_report_rows(k->verify, &pass->label, k->where, "has a label that is not a cluster");
    verify_report_rows(k->verify, &pass->distance, k->where, "has an invalid distance");
    verify_report_rows(k->verify, &pass->weight, k->where, "has an invalid weight");
    if (pass->label.count || pass->distance.count || pass->weight.count)
        return;
    murmur3_final(&pass->digest, digest);
    snprintf(digest_text, sizeof digest_text, "murmur3-%016llx%016llx",
             (unsigned long long)digest[0], (unsigned long long)digest[1]);
    if (c->weighted && c->fitted_rows == 0 && strcmp(k->weights_digest, digest_text) != 0)
        verify_broken(k->verify, "%s/weights: these are not the weights that it was made with",
                      k->where);
    /* Weights count as multiples of a unit (docs/clustering.md), so the largest one times the sum of
     * distances has a part in the tolerance. Older files had the digest of weights alone. */
    double tolerance = INERTIA_TOLERANCE * (pass->sum + DBL_MIN) +
                       (c->weighted ? WEIGHT_UNIT * pass->largest * pass->plain : 0);
    if (c->fitted_rows == 0 && (c->weighted || !*k->weights_digest) && !(fabs(pass->sum - c->inertia) <= tolerance))
        verify_broken(k->verify, "%s: the inertia is %.9g, the %sdistances add up to %.9g",
                      k->where, c->inertia, c->weighted ? "weighted " : "", pass->sum);
    for (uint32_t i = 0; i < c->k; i++)
        if (k->members[i] != k->sizes[i]) {
            verify_broken(k->verify, "%s/sizes: cluster %u has %llu rows, not %llu", k->where, i,
                          (unsigned long long)k->members[i], (unsigned long long)k->sizes[i]);
            break;
        }
}

static enum status check_rows(struct clustering *k, struct error *err)
{
    enum status status = STATUS_FAILED;
    const struct result_clusters *c = k->c;
    struct row_pass pass = {.sum = 0};
    murmur3_init(&pass.digest);
    int32_t *labels = malloc(BLOCK * sizeof *labels);
    float *distances = malloc(BLOCK * sizeof *distances);
    float *weights = malloc(BLOCK * sizeof *weights);
    if (!labels || !distances || !weights) {
        error_memory(err, BLOCK * sizeof *labels, "labels");
        goto out;
    }
    for (uint64_t i = 0; i < BLOCK; i++)
        weights[i] = 1;
    for (uint64_t first = 0; first < c->rows; first += BLOCK) {
        uint64_t count = c->rows - first < BLOCK ? c->rows - first : BLOCK;
        if (read_part(k, PART_LABELS, first, count, labels, err) ||
            read_part(k, PART_DISTANCES, first, count, distances, err) ||
            (c->weighted && read_part(k, PART_WEIGHTS, first, count, weights, err)))
            goto out;
        if (c->weighted)
            murmur3_update(&pass.digest, weights, count * sizeof *weights);
        for (uint64_t i = 0; i < count; i++)
            check_row(k, &pass, first + i, labels[i], distances[i], weights[i]);
    }
    report_rows(k, &pass);
    status = STATUS_OK;
out:
    free(labels);
    free(distances);
    free(weights);
    return status;
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
        if (read_part(k, PART_LABELS, (uint64_t)nearest[n], 1, &label, err) ||
            read_part(k, PART_DISTANCES, (uint64_t)nearest[n], 1, &distance, err))
            return STATUS_FAILED;
        if (label != (int32_t)i || distance < before || (n == 0 && distance != before))
            *right = false;
        before = distance;
    }
    return STATUS_OK;
}

void verify_point(double *out, const float *row, uint32_t dimension, const char *metric)
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
    enum status status = STATUS_FAILED;
    const struct result_clusters *c = k->c;
    double most = SAMPLE_WORK / ((double)c->k * c->dimension);
    uint64_t count = most > SAMPLE_MOST ? SAMPLE_MOST : most < 1 ? 1 : (uint64_t)most;
    if (count > c->rows)
        count = c->rows;
    struct verify_rows wrong = {0};
    float *row = malloc(c->dimension * sizeof *row);
    double *point = malloc(c->dimension * sizeof *point);
    if (!row || !point) {
        error_memory(err, c->dimension * sizeof *point, "a row");
        goto out;
    }
    for (uint64_t s = 0; s < count; s++) {
        uint64_t at = (uint64_t)((double)s / (double)count * (double)c->rows);
        int32_t label;
        float distance;
        if (matrix_read(rows, at, 1, row, err) || read_part(k, PART_LABELS, at, 1, &label, err) ||
            read_part(k, PART_DISTANCES, at, 1, &distance, err))
            goto out;
        if (label < 0)
            continue;
        verify_point(point, row, c->dimension, c->metric);
        if (!check_distance(k, point, label, distance))
            verify_row(&wrong, at);
    }
    status = STATUS_OK;
out:
    free(row);
    free(point);
    verify_report_rows(k->verify, &wrong, k->where,
                       "does not match its stored label or distance (in a sample)");
    return status;
}

static enum status check_feature(struct clustering *k, struct error *err)
{
    enum status status = STATUS_FAILED;
    struct verify *verify = k->verify;
    const struct result_clusters *c = k->c;
    struct matrix_source rows;
    struct result_feature about;
    char content[65];
    if (feature_matrix_open(&rows, &about, verify->result, c->feature, NULL)) {
        verify_broken(verify, "%s: its feature '%s' is not in the file", k->where, c->feature);
        return STATUS_OK;
    }
    const uint32_t columns = c->columns ? c->columns : c->dimension;
    if (rows.dimension != columns) {
        verify_broken(verify, "%s: it has dimension %u, its feature %u", k->where, columns,
                      rows.dimension);
        status = STATUS_OK;
        goto out;
    }
    const struct matrix_source plain = rows;
    if (result_clusters_project(&rows, &plain, verify->result, c, err))
        return STATUS_FAILED;
    /* It may be from before an update gave the file its format. */
    result_identity_rule(verify->result, c->content);
    const enum status identified = rows.identity(rows.context, content, err);
    result_identity_rule(verify->result, NULL);
    if (identified)
        goto out;
    if (c->fitted_rows > 0 || strcmp(content, c->content) == 0) {
        status = check_sample(k, &rows, err);
    } else {
        verify_broken(verify, "%s: these clusters were made from other rows", k->where);
        status = STATUS_OK;
    }
out:
    matrix_close(&rows);
    return status;
}

static enum status check_axes(struct clustering *k, struct error *err)
{
    const char *name = k->c->name;
    const struct result *result = k->verify->result;
    char clusters[AXIS_NAME_MAX], iterations[AXIS_NAME_MAX], rows[AXIS_NAME_MAX],
        values[AXIS_NAME_MAX], columns[AXIS_NAME_MAX];
    axis_name(columns, "column", name);
    axis_name(clusters, "cluster", name);
    axis_name(iterations, "iteration", name);
    axis_name(rows, "row", name);
    axis_name(values, "dimension", name);
    if (result->images)
        snprintf(rows, sizeof rows, "%s", image_table.axis);
    if (k->c->columns == 0 && result_feature_find(result, k->c->feature))
        axis_name(values, "feature", k->c->feature);
    for (int p = 0; p < PART_COUNT; p++) {
        char where[FEATURE_NAME_MAX + 48];
        if (k->entry->part[p] <= 0)
            continue;
        snprintf(where, sizeof where, "%s/%s", k->where, cluster_part_kind[p].name);
        if (verify_axis(k->verify, k->entry->part[p], where, 0,
                        cluster_part_of_rows(p) ? rows
                        : p == PART_HISTORY     ? iterations
                        : p == PART_MEAN        ? columns
                        : p == PART_COMPONENTS  ? values
                                                : clusters,
                        err) ||
            (cluster_part_kind[p].rank == 2 &&
             verify_axis(k->verify, k->entry->part[p], where, 1,
                         p == PART_CENTROIDS    ? values
                         : p == PART_COMPONENTS ? columns
                                                : RANK_AXIS,
                         err)))
            return STATUS_FAILED;
    }
    return STATUS_OK;
}

/* --- the sweep ------------------------------------------------------------------------------- */

static bool in_range(double value, double least, double most)
{
    return isnan(value) || (value >= least && value <= most);
}

static bool plausible(const struct result_sweep_value *value, bool has_folders)
{
    const struct result_agreement *agreement = &value->agreement;
    return value->inertia >= 0 && isfinite(value->inertia) && value->converged <= 1 &&
           in_range(value->silhouette, -1, 1) && in_range(value->simplified_silhouette, -1, 1) &&
           in_range(value->davies_bouldin, 0, HUGE_VAL) &&
           in_range(value->calinski_harabasz, 0, HUGE_VAL) &&
           (!has_folders ||
            (agreement->purity > 0 && agreement->purity <= 1 && agreement->nmi >= 0 &&
             agreement->nmi <= 1 && agreement->ari >= -1 && agreement->ari <= 1));
}

/* That the sweep's values make sense beside the clustering. */
static enum status check_sweep(struct clustering *k, struct error *err)
{
    struct verify *verify = k->verify;
    const struct result_clusters *c = k->c;
    struct result_sweep sweep;
    if (result_sweep_read(&sweep, verify->result, c, err))
        return STATUS_FAILED;
    bool ascending = true, right = true, own = !sweep.values;
    for (uint32_t i = 0; i < sweep.count; i++) {
        const struct result_sweep_value *value = &sweep.values[i];
        ascending = ascending && value->k > (i > 0 ? sweep.values[i - 1].k : 0);
        right = right && plausible(value, sweep.has_folders);
        own = own || (value->k == c->k && value->iterations == c->iterations &&
                      value->converged == c->converged && value->inertia == c->inertia);
    }
    if (!ascending)
        verify_broken(verify, "%s/sweep/k: the values do not ascend", k->where);
    if (!right)
        verify_broken(verify, "%s/sweep: a measure has a value that it cannot have", k->where);
    if (!own)
        verify_broken(verify, "%s/sweep: the k of the clustering is missing", k->where);
    result_sweep_clear(&sweep);
    return STATUS_OK;
}

enum status verify_clustering(struct verify *verify, const struct result_cluster_entry *entry,
                              struct error *err)
{
    enum status status = STATUS_FAILED;
    struct clustering k = {.verify = verify, .entry = entry, .c = &entry->clusters};
    snprintf(k.where, sizeof k.where, "/clusters/%s", entry->clusters.name);
    parameters_text(k.weights_digest, sizeof k.weights_digest, k.c->parameters, "weights");
    if (load(&k, err) || check_axes(&k, err) || check_sweep(&k, err))
        goto out;
    for (size_t i = 0; i < (size_t)k.c->k * k.c->dimension; i++)
        if (!isfinite(k.centroids[i])) {
            verify_broken(verify, "%s/centroids: cluster %zu has a value that is not a number",
                          k.where, i / k.c->dimension);
            break;
        }
    struct error why = ERROR_INIT;
    uint64_t before = verify->count;
    if (check_rows(&k, err))
        goto out;
    /* What follows stands on labels that are right. */
    for (uint32_t i = 0; verify->count == before && i < k.c->k; i++) {
        bool right;
        if (check_nearest(&k, i, &right, err))
            goto out;
        if (!right)
            verify_broken(verify, "%s/nearest: the rows of cluster %u are not its nearest", k.where,
                          i);
    }
    if (verify->count == before && verify->result->has_images && check_feature(&k, &why) &&
        verify_unreadable(verify, k.where, &why, err))
        goto out;
    status = checksums_verify(verify, k.where, err);
out:
    free(k.centroids);
    free(k.sizes);
    free(k.nearest);
    free(k.members);
    free(k.least);
    return status;
}
