/* verify.c: checks the invariants of a file. Opening a file has already checked that it is readable;
 * this checks values and order. Computed values are not recomputed: checksums detect changes. */
#include "base/held.h"
#include "base/path.h"
#include "base/source_name.h"
#include "result/checksums.h"
#include "result/class_layer.h"
#include "result/codebooks.h"
#include "result/defined.h"
#include "result/feature_matrix.h"
#include "result/graph.h"
#include "result/parts.h"
#include "result/shown.h"
#include "result/verify_report.h"
#include "result/workdir.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define BLOCK_ROWS  65536
#define BLOCK_BYTES (4u << 20)

/* --- reports --------------------------------------------------------------------------------- */

void verify_broken(struct verify *verify, const char *format, ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    verify->count++;
    verify->broken(line, verify->context);
}

static herr_t visit(hid_t at, const char *name, const H5O_info_t *info, void *context)
{
    (void)at, (void)name, (void)info, (void)context;
    return 0;
}

void verify_calls(struct verify *verify)
{
    /* Lists the file like other programs, which visits parts of groups that a look-up by name does not
     * read. */
    H5Ovisit(verify->result->file, H5_INDEX_NAME, H5_ITER_INC, visit, NULL);
    if (verify->count == 0 && h5_failed_calls() > verify->result->failed_calls)
        verify_broken(verify, "HDF5 cannot read all metadata of the contents");
}

/* --- rules for rows --------------------------------------------------------------------------- */

/* The tables that rows belong to. */
enum { IMAGES = 1, FAILURES = 2, NAMES = 4, THUMBNAILS = 8, LABELS = 16, NEIGHBOURS = 32 };

struct checked_row {
    struct result *result;
    uint64_t number;
    /* Rows of /images or /failures or, in a file of clusters, of its paths: only path and
     * source. */
    const struct result_image *image;
    const struct failure_row *failure;
    uint16_t source, source_before;
    const char *text, *path; /* as stored, and its bytes */
    const char *path_before; /* NULL: this is the first */
    /* Rows of a clustering. */
    const struct result_clusters *clusters;
    int32_t label;
    float distance, weight;
    /* Of neighbours. */
    const struct graph *graph;
    const int64_t *rows;
    const float *squared;
};

/* By source and, within a source that is not a list, by path. */
static bool is_in_order(const struct checked_row *row)
{
    if (!row->path_before || row->source > row->source_before)
        return true;
    return row->source == row->source_before &&
           (row->source >= row->result->source_count ||
            source_is_list(row->result->sources[row->source]) ||
            source_row_follows(row->path_before, row->path));
}

static bool has_source(const struct checked_row *row)
{
    return row->source < row->result->source_count;
}

static bool has_size(const struct checked_row *row)
{
    return row->image->width > 0 && row->image->height > 0 && row->image->bytes > 0;
}

static bool has_kind(const struct checked_row *row)
{
    const struct result_image *image = row->image;
    return image->orientation >= 1 && image->orientation <= 8 && image->channels >= 1 &&
           image->channels <= 4 && image->format[0] > ' ' && image->format[0] <= '~';
}

static bool has_reason(const struct checked_row *row)
{
    enum reason named;
    return failure_row_reason(&named, row->failure);
}

/* The stored text of a path must be the canonical one for its bytes. */
static bool has_path(const struct checked_row *row)
{
    char *expected = row->text == row->path ? NULL : path_utf8(row->path, strlen(row->path));
    const bool same = !expected || strcmp(expected, row->text) == 0;
    free(expected);
    return *row->path && same;
}

static bool has_message(const struct checked_row *row)
{
    return *row->failure->message;
}

static bool has_thumbnail(const struct checked_row *row)
{
    struct error why = ERROR_INIT;
    uint64_t length;
    const uint8_t *jpeg;
    if (result_thumbnail_read(row->result, row->number, &jpeg, &length, &why))
        return false;
    /* The start and the end of a JPEG file. */
    return length == 0 || (length >= 4 && jpeg[0] == 0xff && jpeg[1] == 0xd8 &&
                           jpeg[length - 2] == 0xff && jpeg[length - 1] == 0xd9);
}

static bool is_labelled(const struct checked_row *row)
{
    return row->label >= 0 && (uint32_t)row->label < row->clusters->k;
}

/* Rows that cannot be compared have no label. */
static bool has_no_label(const struct checked_row *row)
{
    return row->label == -1 && isnan(row->distance);
}

static bool has_label(const struct checked_row *row)
{
    return is_labelled(row) || has_no_label(row);
}

static bool has_distance(const struct checked_row *row)
{
    return has_no_label(row) || (row->distance >= 0 && isfinite(row->distance));
}

/* Rows added after the fit have unknown weights. */
static bool has_weight(const struct checked_row *row)
{
    return (row->weight >= 0 && isfinite(row->weight)) ||
           (row->clusters->fitted_rows > 0 && isnan(row->weight));
}

/* Valid row numbers, without duplicates or the row itself, in order. */
static bool has_neighbours(const struct checked_row *row)
{
    const int64_t *rows = row->rows;
    const float *squared = row->squared;
    bool ended = false;
    for (uint32_t i = 0; i < row->graph->n; i++) {
        if (rows[i] == -1) {
            ended = true;
            if (!isnan(squared[i]))
                return false;
            continue;
        }
        if (ended || rows[i] < 0 || (uint64_t)rows[i] >= row->graph->rows ||
            (uint64_t)rows[i] == row->number || !(squared[i] >= 0))
            return false;
        if (i > 0 && (squared[i] < squared[i - 1] || rows[i] == rows[i - 1]))
            return false;
    }
    return true;
}

static const struct rule {
    unsigned of;
    const char *column, *otherwise;
    bool (*holds)(const struct checked_row *row);
    bool of_place; /* among the others: either of two rows may be wrong */
} rules[] = {
    {IMAGES | FAILURES, "", "does not come after the previous one", is_in_order, true},
    {IMAGES | FAILURES | NAMES, "/source", "names a source that is not in the list", has_source,
     false},
    {IMAGES, "", "has no width, height or bytes", has_size, false},
    {IMAGES, "", "has an impossible orientation, number of channels or format", has_kind, false},
    {FAILURES, "/reason", "has a reason that does not exist", has_reason, false},
    {IMAGES | FAILURES | NAMES, "/path", "is empty, or has an escape that leads to another name",
     has_path, false},
    {FAILURES, "/message", "is empty", has_message, false},
    {THUMBNAILS, "", "has a thumbnail that is not a JPEG file", has_thumbnail, false},
    {LABELS, "", "has a label that is not a cluster", has_label, true},
    {LABELS, "", "has an invalid distance", has_distance, true},
    {LABELS, "", "has an invalid weight", has_weight, true},
    {NEIGHBOURS, "", "has neighbours that do not exist or are not in order", has_neighbours, false},
};
#define RULES (sizeof rules / sizeof *rules)

/* Checks the rows of one table. */
struct table_check {
    unsigned of;
    uint8_t *bad; /* of each row, or NULL */
    struct {
        uint64_t count, first; /* rows that break a rule, and the first of them */
    } broken[RULES];
};

static void check_row(struct table_check *check, const struct checked_row *row)
{
    for (size_t r = 0; r < RULES; r++) {
        if (!(rules[r].of & check->of) || rules[r].holds(row))
            continue;
        if (check->broken[r].count++ == 0)
            check->broken[r].first = row->number;
        if (check->bad && !rules[r].of_place)
            check->bad[row->number] = 1;
    }
}

/* A line for each rule. */
static void report_rows(struct verify *verify, const struct table_check *check, const char *where)
{
    for (size_t r = 0; r < RULES; r++) {
        const unsigned long long count = check->broken[r].count, first = check->broken[r].first;
        const char *column = rules[r].column, *otherwise = rules[r].otherwise;
        if (count == 1)
            verify_broken(verify, "%s%s: row %llu %s", where, column, first, otherwise);
        else if (count > 1)
            verify_broken(verify, "%s%s: %llu rows, the first is %llu: each %s", where, column,
                          count, first, otherwise);
    }
}

/* --- tables ---------------------------------------------------------------------------------- */

static enum status check_table(struct verify *verify, unsigned table, struct error *err)
{
    const bool failures = table == FAILURES;
    struct rows *rows = failures ? verify->result->failures : verify->result->images;
    struct table_check check = {.of = table,
                                .bad = failures ? verify->bad_failures : verify->bad_images};
    struct checked_row row = {.result = verify->result};
    char *before = NULL;
    enum status status = STATUS_OK;
    for (; row.number < rows->count; row.number++) {
        const void *found;
        status = rows_at(rows, row.number, &found, &row.path, err);
        if (status != STATUS_OK)
            break;
        row.image = failures ? NULL : found;
        row.failure = failures ? found : NULL;
        row.source = failures ? row.failure->source : row.image->source;
        row.text = failures ? row.failure->path : row.image->path;
        check_row(&check, &row);
        free(before);
        if (!(before = strdup(row.path))) {
            status = error_memory(err, strlen(row.path), "a path");
            break;
        }
        row.path_before = before;
        row.source_before = row.source;
    }
    free(before);
    report_rows(verify, &check, failures ? "/failures" : "/images");
    return status;
}

/* --- features ------------------------------------------------------------------------------- */

/* Whether the attributes of a feature agree with its dimension. */
static bool attributes_agree(const struct result_feature *stored)
{
    struct feature_set set = {.count = 0};
    struct error error = ERROR_INIT;
    struct result_feature described;
    if (feature_set_add(&set, stored->spec, NORMALIZE_L1, &error) || set.count != 1)
        return false;
    result_feature_describe(&described, &set.feature[0], stored->decode_scale);
    bool same = described.dimension == stored->dimension;
    for (int t = 0; t < RESULT_FEATURE_TEXTS; t++)
        same = same && strcmp((const char *)&described + result_feature_attribute[t].offset,
                              (const char *)stored + result_feature_attribute[t].offset) == 0;
    return same;
}

static void check_thumbnails(struct verify *verify)
{
    struct table_check check = {.of = THUMBNAILS, .bad = verify->bad_images};
    struct checked_row row = {.result = verify->result};
    const uint64_t rows = verify->result->thumbnail_size > 0 ? result_images(verify->result) : 0;
    for (; row.number < rows; row.number++)
        check_row(&check, &row);
    report_rows(verify, &check, "/thumbnails");
}

static enum status check_content(struct verify *verify, struct error *err)
{
    struct result *result = verify->result;
    if (check_table(verify, IMAGES, err) || check_table(verify, FAILURES, err))
        return STATUS_FAILED;
    check_thumbnails(verify);
    if (result->feature_count == 0)
        verify_broken(verify, "/features: there is no feature");
    if (result->source_count == 0)
        verify_broken(verify, "/images/sources: there is no source");
    for (unsigned i = 0; i < result->feature_count; i++) {
        const struct result_feature *feature = &result->features[i];
        if (!result_feature_imported(feature) && !attributes_agree(feature))
            verify_broken(verify,
                          "/features/%s: its attributes and its dimension contradict each other",
                          feature->name);
    }
    return STATUS_OK;
}

enum status verify_content(struct verify *verify, struct error *err)
{
    struct error why = ERROR_INIT;
    enum status status = check_content(verify, &why);
    const uint64_t before = verify->count;
    if (checksums_verify(verify, "/", err))
        return STATUS_FAILED;
    /* Data that is unreadable because of damage is reported like other damage. */
    if (status && verify->count > before) {
        verify_broken(verify, "%s", why.sentence);
        return STATUS_OK;
    }
    if (status && err)
        *err = why;
    return status;
}

/* --- clusterings ----------------------------------------------------------------------------- */

/* A clustering in memory, except what has a row per image. */
struct clustering {
    struct verify *verify;
    const struct result_clusters *c;
    char where[FEATURE_NAME_MAX + 16];
    float *centroids;
    uint64_t *sizes;
    int64_t *nearest;
    uint64_t *members; /* counted */
};

static enum status load(struct clustering *k, struct held *held, struct error *err)
{
    const struct result_clusters *c = k->c;
    /* Opening has checked that the file is large enough for them. */
    k->centroids = held_array(held, (uint64_t)c->k * c->dimension, sizeof *k->centroids);
    k->sizes = held_array(held, c->k, sizeof *k->sizes);
    k->nearest = held_array(held, (uint64_t)c->k * NEAREST_COUNT, sizeof *k->nearest);
    k->members = held_array(held, c->k, sizeof *k->members);
    return held_check(held, "centroids", err) ||
                   result_part_read(k->centroids, c, PART_CENTROIDS, err) ||
                   result_part_read(k->sizes, c, PART_SIZES, err) ||
                   result_part_read(k->nearest, c, PART_NEAREST, err)
               ? STATUS_FAILED
               : STATUS_OK;
}

/* Checks labels, distances, weights and sizes of clusters. */
static enum status check_labels(struct clustering *k, struct error *err)
{
    const struct result_clusters *c = k->c;
    struct result *result = k->verify->result;
    const uint64_t before = k->verify->count;
    struct table_check check = {.of = LABELS};
    struct checked_row row = {.result = result, .clusters = c};
    SCOPED_HELD held = {0};
    int32_t *labels = held_array(&held, BLOCK_ROWS, sizeof *labels);
    float *distances = held_array(&held, BLOCK_ROWS, sizeof *distances),
          *weights = held_array(&held, BLOCK_ROWS, sizeof *weights);
    enum status status = held_check(&held, "labels", err);
    for (uint64_t first = 0; first < c->rows && !status; first += BLOCK_ROWS) {
        const uint64_t count = c->rows - first < BLOCK_ROWS ? c->rows - first : BLOCK_ROWS;
        status = result_clusters_read_rows(c, first, count, labels, distances, err);
        if (!status && c->weighted)
            status = h5_read_rows(c->part[PART_WEIGHTS], VALUE_F32, first, count, weights, err);
        for (uint64_t i = 0; i < count && !status; i++) {
            row.number = first + i;
            row.label = labels[i];
            row.distance = distances[i];
            row.weight = c->weighted ? weights[i] : 1;
            check_row(&check, &row);
            if (is_labelled(&row))
                k->members[row.label]++;
        }
    }
    if (status)
        return status;
    report_rows(k->verify, &check, k->where);
    for (uint32_t i = 0; k->verify->count == before && i < c->k; i++)
        if (k->members[i] != k->sizes[i])
            verify_broken(k->verify, "%s/sizes: cluster %u has %llu rows, not %llu", k->where, i,
                          (unsigned long long)k->members[i], (unsigned long long)k->sizes[i]);
    return STATUS_OK;
}

/* Whether the rows nearest to centroid `i` are members of its cluster, and there are as many as
 * possible. */
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
        if (*right && result_clusters_read_rows(k->c, (uint64_t)nearest[n], 1, &label, NULL, err))
            return STATUS_FAILED;
        *right = *right && label == (int32_t)i;
    }
    return STATUS_OK;
}

static enum status check_rows_of(struct clustering *k, struct error *err)
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

/* Checks that each cluster of a level has a parent in the next. */
static void check_parents(struct clustering *k, struct error *err)
{
    const struct result_clusters *above;
    int32_t *parents = NULL;
    if (k->c->parents &&
        result_parents_read(&parents, &above, k->verify->result, k->c, err) != STATUS_OK)
        verify_broken(k->verify, "%s/parents: %s", k->where, err->sentence);
    free(parents);
}

static bool in_range(double value, double least, double most)
{
    return isnan(value) || (value >= least && value <= most);
}

static bool plausible(const struct cluster_sweep_value *value, bool has_folders)
{
    const struct cluster_measures *measures = &value->measures;
    const struct cluster_agreement *agreement = &value->agreement;
    return value->inertia >= 0 && isfinite(value->inertia) && value->converged <= 1 &&
           in_range(measures->silhouette, -1, 1) &&
           in_range(measures->simplified_silhouette, -1, 1) &&
           in_range(measures->davies_bouldin, 0, HUGE_VAL) &&
           in_range(measures->calinski_harabasz, 0, HUGE_VAL) &&
           (!has_folders ||
            (agreement->purity > 0 && agreement->purity <= 1 && agreement->nmi >= 0 &&
             agreement->nmi <= 1 && agreement->ari >= -1 && agreement->ari <= 1));
}

/* Checks that the sweep's values agree with the clustering. */
static enum status check_sweep(struct clustering *k, struct error *err)
{
    struct verify *verify = k->verify;
    const struct result_clusters *c = k->c;
    struct cluster_sweep sweep;
    if (result_sweep_read(&sweep, verify->result, c, err))
        return STATUS_FAILED;
    bool ascending = true, right = true, own = !sweep.values;
    for (uint32_t i = 0; i < sweep.count; i++) {
        const struct cluster_sweep_value *value = &sweep.values[i];
        ascending = ascending && value->k > (i > 0 ? sweep.values[i - 1].k : 0);
        right = right && plausible(value, sweep.has_classes);
        own = own || (value->k == c->k && value->iterations == c->iterations &&
                      value->converged == c->converged && value->inertia == c->inertia);
    }
    if (!ascending)
        verify_broken(verify, "%s/sweep/k: the values do not ascend", k->where);
    if (!right)
        verify_broken(verify, "%s/sweep: a measure has a value that it cannot have", k->where);
    if (!own)
        verify_broken(verify, "%s/sweep: the k of the clustering is missing", k->where);
    cluster_sweep_clear(&sweep);
    return STATUS_OK;
}

enum status verify_clustering(struct verify *verify, const struct result_clusters *clusters,
                              struct error *err)
{
    SCOPED_HELD held = {0};
    struct clustering k = {.verify = verify, .c = clusters};
    snprintf(k.where, sizeof k.where, "/clusters/%s", clusters->name);
    if (load(&k, &held, err) || check_sweep(&k, err))
        return STATUS_FAILED;
    for (size_t i = 0; i < (size_t)k.c->k * k.c->dimension; i++)
        if (!isfinite(k.centroids[i])) {
            verify_broken(verify, "%s/centroids: cluster %zu has a value that is not a number",
                          k.where, i / k.c->dimension);
            break;
        }
    struct error why = ERROR_INIT, parents = ERROR_INIT;
    check_parents(&k, &parents);
    uint64_t before = verify->count;
    if (check_labels(&k, err))
        return STATUS_FAILED;
    /* The following checks need correct labels. */
    for (uint32_t i = 0; verify->count == before && i < k.c->k; i++) {
        bool right;
        if (check_nearest(&k, i, &right, err))
            return STATUS_FAILED;
        if (!right)
            verify_broken(verify, "%s/nearest: the rows of cluster %u are not its nearest", k.where,
                          i);
    }
    if (verify->count == before && verify->result->has_images && check_rows_of(&k, &why)) {
        /* Data that cannot be read counts as damage if there is other damage. */
        if (verify->count == 0) {
            if (err)
                *err = why;
            return STATUS_FAILED;
        }
        verify_broken(verify, "%s: %s", k.where, why.sentence);
    }
    return checksums_verify(verify, k.where, err);
}

/* --- neighbours ------------------------------------------------------------------------------ */

static enum status check_neighbours(struct verify *verify, struct graph *graph, const char *where,
                                    struct error *err)
{
    const uint32_t n = graph->n;
    const uint64_t step = BLOCK_BYTES / (12 * (uint64_t)n) + 1;
    struct table_check check = {.of = NEIGHBOURS, .bad = verify->bad_images};
    struct checked_row row = {.result = verify->result, .graph = graph};
    SCOPED_HELD held = {0};
    int64_t *rows = held_array(&held, step * n, sizeof *rows);
    float *squared = held_array(&held, step * n, sizeof *squared);
    enum status status = held_check(&held, "neighbours", err);
    for (uint64_t first = 0; first < graph->rows && !status; first += step) {
        const uint64_t left = graph->rows - first, count = left < step ? left : step;
        status = graph_read(graph, first, count, rows, squared, err);
        for (uint64_t i = 0; i < count && !status; i++) {
            row.number = first + i;
            row.rows = rows + i * n;
            row.squared = squared + i * n;
            check_row(&check, &row);
        }
    }
    if (!status)
        report_rows(verify, &check, where);
    return status;
}

static enum status check_graph(struct verify *verify, const char *feature, struct error *err)
{
    struct result *result = verify->result;
    struct graph graph;
    struct matrix_source matrix = {0};
    struct result_feature about;
    struct error why = ERROR_INIT;
    char where[FEATURE_NAME_MAX + 16];
    snprintf(where, sizeof where, "/neighbours/%s", feature);
    if (graph_open(&graph, result, feature, &why)) {
        verify_broken(verify, "%s", why.sentence);
        return STATUS_OK;
    }
    enum status status = check_neighbours(verify, &graph, where, err);
    if (status == STATUS_OK && feature_matrix_open(&matrix, &about, result, feature, NULL))
        verify_broken(verify, "%s: its feature is not in the file", where);
    matrix_close(&matrix);
    graph_close(&graph);
    return status;
}

static enum status verify_graphs(struct verify *verify, struct error *err)
{
    struct result *result = verify->result;
    H5_SCOPED_NAMES names = {0};
    H5_SCOPED hid_t group = H5I_INVALID_HID;
    enum status status = defined_list(&names, &group, result->file, "neighbours", err);
    for (unsigned i = 0; i < names.count && status == STATUS_OK; i++)
        if (schema_name_valid(names.name[i]))
            status = check_graph(verify, names.name[i], err);
    return status;
}

/* --- parts ----------------------------------------------------------------------------------- */

struct of_part {
    const struct verify *verify;
    const char *name;
};

static void broken_in_part(const char *line, void *context)
{
    const struct of_part *of = context;
    char whole[1400];
    snprintf(whole, sizeof whole, "%s: %s", PATH_TEXT(of->name), line);
    of->verify->broken(whole, of->verify->context);
}

/* Checks the rows of a merged file with its parts' checksums, which the manifest covers. */
static enum status verify_parts(struct verify *verify, struct error *err)
{
    const hid_t file = verify->result->file;
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < parts_count(file) && status == STATUS_OK; i++) {
        const struct part part = parts_at(file, i);
        struct of_part of = {verify, part.name};
        struct verify own = {.broken = broken_in_part, .context = &of};
        status = result_open(&own.result, part.path, err);
        if (status == STATUS_OK)
            status = checksums_verify(&own, "/", err);
        result_close(&own.result);
        verify->count += own.count;
    }
    return status;
}

/* --- all of it ------------------------------------------------------------------------------- */

static enum status verify_all(struct verify *verify, struct error *err)
{
    struct result *result = verify->result;
    char *name;
    struct stat st;
    if ((result->has_images ? verify_content(verify, err) : checksums_verify(verify, "/", err)) ||
        shown_verify(verify, err) || (result->named && check_table(verify, NAMES, err)) ||
        codebook_groups_verify(verify, err))
        return STATUS_FAILED;
    class_groups_verify(verify);
    if (verify_parts(verify, err))
        return STATUS_FAILED;
    for (unsigned i = 0; i < result->clusters_count; i++)
        if (verify_clustering(verify, &result->clusters[i], err))
            return STATUS_FAILED;
    if (checksums_verify(verify, "/neighbours", err) ||
        (result->has_images && verify_graphs(verify, err)))
        return STATUS_FAILED;
    /* Reports unfinished work of a run. */
    if (workdir_name(&name, result->path, NULL) == STATUS_OK && lstat(name, &st) == 0)
        verify_broken(
            verify,
            "%s exists: a run is in progress or was interrupted; the same command resumes it",
            PATH_TEXT(name));
    free(name);
    /* Unreadable data cannot be verified. */
    const enum status status = verify->count > 0 ? STATUS_OK : h5_check_reads(err);
    if (!status)
        verify_calls(verify);
    return status;
}

enum status result_verify(struct result *result, void (*broken)(const char *line, void *context),
                          void *context, uint64_t *count, struct error *err)
{
    struct verify verify = {.result = result, .broken = broken, .context = context};
    const enum status status = verify_all(&verify, err);
    *count = verify.count;
    return status;
}
