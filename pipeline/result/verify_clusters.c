/* verify_clusters.c: labels, sizes, distances and the rows nearest to each centroid: ranges and counts; what
 * they are computed from is not computed again, checksums vouch for it. */
#include "result/checksums.h"
#include "result/feature_matrix.h"
#include "result/verify_report.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 65536

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
    if (!k->centroids || !k->sizes || !k->nearest || !k->members)
        return error_memory(err, (size_t)c->k * c->dimension * sizeof *k->centroids, "centroids");
    if (read_part(k, PART_CENTROIDS, 0, c->k, k->centroids, err) ||
        read_part(k, PART_SIZES, 0, c->k, k->sizes, err) ||
        read_part(k, PART_NEAREST, 0, c->k, k->nearest, err))
        return STATUS_FAILED;
    return STATUS_OK;
}

/* What one pass over the rows finds. */
struct row_pass {
    struct verify_rows label, distance, weight;
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
    if (label < 0 || (uint32_t)label >= k->c->k) {
        verify_row(&pass->label, row);
        return;
    }
    k->members[label]++;
}

static void report_rows(struct clustering *k, const struct row_pass *pass)
{
    const struct result_clusters *c = k->c;
    verify_report_rows(k->verify, &pass->label, k->where, "has a label that is not a cluster");
    verify_report_rows(k->verify, &pass->distance, k->where, "has an invalid distance");
    verify_report_rows(k->verify, &pass->weight, k->where, "has an invalid weight");
    if (pass->label.count || pass->distance.count || pass->weight.count)
        return;
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
    struct row_pass pass = {0};
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

/* Are the rows said to be nearest to centroid `i` members of its cluster, and as many as there can be? */
static enum status check_nearest(struct clustering *k, uint32_t i, bool *right, struct error *err)
{
    const int64_t *nearest = k->nearest + (size_t)i * NEAREST_COUNT;
    *right = true;
    for (unsigned n = 0; n < NEAREST_COUNT && *right; n++) {
        int32_t label;
        if (n >= k->members[i]) {
            *right = nearest[n] == -1;
            continue;
        }
        *right = nearest[n] >= 0 && (uint64_t)nearest[n] < k->c->rows;
        if (*right && read_part(k, PART_LABELS, (uint64_t)nearest[n], 1, &label, err))
            return STATUS_FAILED;
        *right = *right && label == (int32_t)i;
    }
    return STATUS_OK;
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
    status = c->fitted_rows > 0 ? STATUS_OK : rows.identity(rows.context, content, err);
    if (c->fitted_rows == 0 && status == STATUS_OK && strcmp(content, c->content) != 0)
        verify_broken(verify, "%s: these clusters were made from other rows", k->where);
out:
    matrix_close(&rows);
    return status;
}

/* That each cluster of a level is below one of the next. */
static void check_parents(struct clustering *k, struct error *err)
{
    const struct result_clusters *above;
    int32_t *parents = NULL;
    if (k->c->parents && result_parents_read(&parents, &above, k->verify->result, k->c, err) != STATUS_OK)
        verify_broken(k->verify, "%s/parents: %s", k->where, err->sentence);
    free(parents);
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
    if (load(&k, err) || check_sweep(&k, err))
        goto out;
    for (size_t i = 0; i < (size_t)k.c->k * k.c->dimension; i++)
        if (!isfinite(k.centroids[i])) {
            verify_broken(verify, "%s/centroids: cluster %zu has a value that is not a number",
                          k.where, i / k.c->dimension);
            break;
        }
    struct error why = ERROR_INIT, parents = ERROR_INIT;
    check_parents(&k, &parents);
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
    return status;
}
