/* carry.c: everything with a value for each image follows the row map. */
#include "file/carry.h"
#include "base/labelled.h"
#include "base/log.h"
#include "base/minmax.h"
#include "base/parse.h"
#include "base/path.h"
#include "features/stored.h"
#include "file/clusters.h"
#include "file/copies.h"
#include "file/defined.h"
#include "file/imported.h"
#include "file/preset_join.h"
#include "file/selections.h"
#include "matrix/joined.h"
#include <hdf5_hl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES (8u << 20)
#define MAP_CHUNK   16384 /* values of a row map that are compressed together */
#define MOST_GRAPHS 4096

static uint64_t rows_in_block(size_t row_bytes)
{
    return row_bytes < BLOCK_BYTES ? BLOCK_BYTES / (row_bytes ? row_bytes : 1) : 1;
}

/* Rows [first, first + *count) of the new file that lie together in the old one, or have no row
 * there; *count is at most `most` and `left`. Returns the old row of the first, or -1. */
static int64_t next_run(const struct row_map *map, uint64_t first, uint64_t most, uint64_t *count)
{
    const int64_t start = map->earlier[first];
    uint64_t n = 1;
    while (n < most && first + n < map->rows &&
           map->earlier[first + n] == (start < 0 ? -1 : start + (int64_t)n))
        n++;
    *count = n;
    return start;
}

static struct copies copies_of(const struct carry *c)
{
    return (struct copies){
        .from = c->from, .to = c->file, .path = c->path, .rows = c->map->same ? NULL : c->rows};
}

/* --- imported features ----------------------------------------------------------------------- */

enum status carry_imported(struct carry *c, struct error *err)
{
    const struct copies copies = copies_of(c);
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < c->from->feature_count && !status; i++) {
        const struct result_feature *feature = &c->from->features[i].feature;
        char name[FEATURE_NAME_MAX + 16];
        snprintf(name, sizeof name, "/features/%s", feature->name);
        if (!result_feature_imported(feature))
            continue;
        if (h5_is_object(c->file, name, H5O_TYPE_DATASET)) {
            log_message(LOG_NOTICE,
                        "notice: the imported feature %s is removed: a feature that is computed "
                        "has its name now",
                        feature->name);
            continue;
        }
        status = copies_make(&copies, name, err);
        c->imported += c->map->fresh > 0;
    }
    return status;
}

/* --- rows to be labelled --------------------------------------------------------------------- */

/* Features of the file that is written, joined as the name of a clustering's feature says. */
struct space {
    unsigned parts;
    struct {
        hid_t dataset;
        uint32_t dimension;
        bool is_float;
        enum feature_store store;
        bool is_signed, blank;
        double weight;
    } part[JOINED_MOST];
    uint32_t dimension, widest;
    bool is_unit; /* of the preset */
    struct joined_unit unit;
    float *buffer; /* rows of one part */
};

static void space_close(struct space *space)
{
    for (unsigned i = 0; i < space->parts; i++)
        h5_close(&space->part[i].dataset);
    free(space->buffer);
}

/* False: the feature is not there. */
static bool space_add(struct space *space, const struct carry *c, const char *name, double weight)
{
    char where[FEATURE_NAME_MAX + 16];
    hsize_t size[2] = {0, 0};
    snprintf(where, sizeof where, "features/%s", name);
    if (space->parts == JOINED_MOST || !schema_name_valid(name) ||
        !h5_is_object(c->file, where, H5O_TYPE_DATASET))
        return false;
    const unsigned i = space->parts++;
    space->part[i].weight = weight;
    space->part[i].dataset = H5Dopen2(c->file, where, H5P_DEFAULT);
    hid_t extent = H5Dget_space(space->part[i].dataset),
          type = H5Dget_type(space->part[i].dataset);
    H5Sget_simple_extent_dims(extent, size, NULL);
    const struct result_feature *same = result_feature_find(c->from, name);
    space->part[i].is_float = H5Tget_class(type) == H5T_FLOAT || H5Tget_size(type) == 1;
    space->part[i].store = H5Tget_size(type) == 1   ? STORE_UINT8
                           : H5Tget_size(type) == 2 ? STORE_FLOAT16
                                                    : STORE_FLOAT32;
    space->part[i].is_signed = same && same->is_signed;
    space->part[i].blank = same && same->blank;
    space->part[i].dimension = (uint32_t)size[1];
    space->dimension += (uint32_t)size[1];
    space->widest = size[1] > space->widest ? (uint32_t)size[1] : space->widest;
    h5_close(&type);
    h5_close(&extent);
    return size[0] == c->map->rows && size[1] > 0;
}

/* By the preset's rule, whose weights come after all parts are there. */
static bool space_add_preset(struct space *space, const struct carry *c)
{
    struct preset_join join;
    bool right = preset_join_read(&join, result_preset(c->from), NULL) == STATUS_OK;
    for (unsigned i = 0; i < join.count && right; i++) {
        const struct result_feature *feature = result_feature_find(c->from, join.name[i]);
        right = feature && space_add(space, c, join.name[i], 1);
        space->unit.columns[i] = space->part[i].dimension;
        space->unit.weight[i] = join.weight[i];
        space->unit.roots[i] = feature && strcmp(feature->normalize, "l1") == 0;
        space->unit.parts = i + 1;
    }
    return right;
}

/* False: not all of them are there. */
static bool space_open(struct space *space, const struct carry *c, const char *feature,
                       uint64_t block)
{
    char copy[FEATURE_NAME_MAX];
    *space = (struct space){.parts = 0};
    snprintf(copy, sizeof copy, "%s", feature);
    space->is_unit = result_preset(c->from) && strcmp(feature, RESULT_PRESET) == 0 &&
                     !result_feature_find(c->from, RESULT_PRESET);
    if (space->is_unit && !space_add_preset(space, c))
        return false;
    for (char *at = space->is_unit ? NULL : copy, *end; at; at = end) {
        double value = 1;
        end = strchr(at, '+');
        if (end)
            *end++ = 0;
        char *weight = strchr(at, ':');
        if (weight)
            *weight++ = 0;
        if ((weight && !parse_double(&value, weight)) || !space_add(space, c, at, value))
            return false;
    }
    space->buffer = malloc(block * space->widest * sizeof *space->buffer);
    return space->buffer;
}

/* The same bits as joined.c gives, and for one feature those that it has. */
static enum status space_read(const struct space *space, const struct carry *c, bool joined,
                              uint64_t first, uint64_t count, float *rows, struct error *err)
{
    size_t offset = 0;
    for (unsigned p = 0; p < space->parts; p++) {
        const uint32_t columns = space->part[p].dimension;
        static const enum value_type types[] = {VALUE_F32, VALUE_F16, VALUE_U8};
        const enum feature_store store = space->part[p].store;
        const size_t values = (size_t)count * columns;
        uint8_t *at = (uint8_t *)space->buffer +
                      values * (sizeof *space->buffer - stored_size(store));
        if (h5_read_rows(space->part[p].dataset,
                         space->part[p].is_float ? types[store] : VALUE_U32, first, count, at,
                         c->path, err))
            return STATUS_FAILED;
        stored_decode_in_place(space->buffer, store, space->part[p].is_signed, values);
        for (uint64_t i = 0; i < count * columns; i++) {
            float value = space->buffer[i];
            uint32_t number;
            memcpy(&number, &space->buffer[i], sizeof number);
            if (!space->part[p].is_float)
                value = (float)number;
            rows[i / columns * space->dimension + offset + i % columns] =
                joined ? (float)((double)value * space->part[p].weight) : value;
        }
        offset += columns;
    }
    for (uint64_t i = 0; i < count && space->is_unit; i++)
        joined_unit_row(rows + i * space->dimension, &space->unit);
    /* Rows that say nothing get no label. */
    for (uint64_t i = 0; i < count; i++) {
        float *row = rows + i * space->dimension;
        bool blank = space->is_unit && matrix_row_is_zero(row, space->dimension);
        for (unsigned p = 0, at = 0; p < space->parts && !space->is_unit; p++) {
            blank |= space->part[p].blank && matrix_row_is_zero(row + at, space->part[p].dimension);
            at += space->part[p].dimension;
        }
        if (blank)
            row[0] = NAN;
    }
    return STATUS_OK;
}

/* --- clusterings ----------------------------------------------------------------------------- */

/* One clustering in memory, with a value for each row of the new file. */
struct continued {
    const struct result_clusters *old;
    float *centroids, *distances, *weights;
    int32_t *labels, *parents;
    uint64_t *sizes;
    int64_t *nearest;
    double *history;
    struct projection projection; /* where rows are projected */
    uint64_t unlabelled;
};

static void continued_clear(struct continued *k)
{
    free(k->centroids);
    free(k->distances);
    free(k->weights);
    free(k->labels);
    free(k->parents);
    free(k->sizes);
    free(k->nearest);
    free(k->history);
    projection_clear(&k->projection);
}

/* Moves a part with a value of 4 bytes for each row; `missing` is that of new rows. */
static enum status move_part(const struct carry *c, void *to, hid_t from, enum value_type type,
                             const void *missing, struct error *err)
{
    uint8_t *bytes = to;
    for (uint64_t first = 0, count; first < c->map->rows; first += count) {
        const int64_t old = next_run(c->map, first, UINT64_MAX, &count);
        if (old >= 0 && h5_read_rows(from, type, (uint64_t)old, count, bytes + 4 * first,
                                     c->from->path, err))
            return STATUS_FAILED;
        for (uint64_t i = 0; old < 0 && i < count; i++)
            memcpy(bytes + 4 * (first + i), missing, 4);
    }
    return STATUS_OK;
}

/* Clusterings have the same memory as `cluster` took to make them. */
static enum status load_continued(struct continued *k, const struct carry *c, struct error *err)
{
    const struct result_clusters *old = k->old;
    const struct result_cluster_entry *entry = result_cluster_entry(old);
    const size_t rows = (size_t)c->map->rows;
    const int32_t no_label = -1;
    const float unknown = NAN;
    k->centroids = malloc((size_t)old->k * old->dimension * sizeof *k->centroids);
    k->labels = malloc(rows * sizeof *k->labels + 1);
    k->distances = malloc(rows * sizeof *k->distances + 1);
    k->weights = old->weighted ? malloc(rows * sizeof *k->weights + 1) : NULL;
    k->parents = old->parents ? malloc(old->k * sizeof *k->parents) : NULL;
    k->sizes = calloc(old->k, sizeof *k->sizes);
    k->nearest = malloc((size_t)old->k * NEAREST_COUNT * sizeof *k->nearest);
    k->history = malloc((old->iterations + 1) * sizeof *k->history);
    if (!k->centroids || !k->labels || !k->distances || !k->sizes || !k->nearest || !k->history ||
        (old->weighted && !k->weights) || (old->parents && !k->parents))
        return error_memory(err, rows * 8, "labels");
    if ((old->columns && result_projection_read(&k->projection, c->from, old, err)) ||
        result_clusters_read(c->from, old, k->centroids, NULL, NULL, NULL, NULL, err) ||
        h5_read_rows(entry->part[PART_HISTORY], VALUE_F64, 0, old->iterations, k->history,
                     c->from->path, err) ||
        move_part(c, k->labels, entry->part[PART_LABELS], VALUE_I32, &no_label, err) ||
        move_part(c, k->distances, entry->part[PART_DISTANCES], VALUE_F32, &unknown, err) ||
        (old->parents && h5_read_rows(entry->part[PART_PARENTS], VALUE_I32, 0, old->k, k->parents,
                                      c->from->path, err)) ||
        (old->weighted &&
         move_part(c, k->weights, entry->part[PART_WEIGHTS], VALUE_F32, &unknown, err)))
        return STATUS_FAILED;
    return STATUS_OK;
}

/* New rows of a level are where the level below, which is carried before, has their clusters. */
static enum status label_by_level_below(struct continued *k, const struct carry *c, struct error *err)
{
    const struct result_clusters *below = result_clusters_below(c->from, k->old), *above;
    char name[FEATURE_NAME_MAX + 32];
    int32_t *parents, *labels = NULL;
    hsize_t rows;
    hid_t dataset = H5I_INVALID_HID;
    snprintf(name, sizeof name, "/clusters/%s/labels", below ? below->name : "");
    if (!below || !h5_is_object(c->file, name, H5O_TYPE_DATASET))
        return STATUS_OK;
    enum status status = result_parents_read(&parents, &above, c->from, below, err);
    if (status == STATUS_OK && !(labels = malloc((size_t)c->map->rows * sizeof *labels + 1)))
        status = error_memory(err, (size_t)c->map->rows * sizeof *labels, "labels");
    if (status == STATUS_OK &&
        (h5_open_dataset(&dataset, c->file, name, VALUE_I32, 1, &rows, name, c->path, err) ||
         h5_read_rows(dataset, VALUE_I32, 0, c->map->rows, labels, c->path, err)))
        status = STATUS_FAILED;
    for (uint64_t i = 0; status == STATUS_OK && i < c->map->rows; i++)
        if (c->map->earlier[i] < 0 && labels[i] >= 0 && (uint32_t)labels[i] < below->k)
            k->labels[i] = parents[labels[i]];
    h5_close(&dataset);
    free(labels);
    free(parents);
    return status;
}

static enum status label_new_rows(struct continued *k, const struct carry *c, struct error *err)
{
    const struct result_clusters *old = k->old;
    const bool joined = strpbrk(old->feature, "+:") != NULL;
    const uint32_t columns = old->columns ? old->columns : old->dimension;
    const uint64_t block = rows_in_block((size_t)columns * sizeof(float));
    struct space space;
    float *rows = NULL, *projected = NULL;
    enum status status = STATUS_OK;
    if (c->map->fresh == 0 || !c->label)
        return STATUS_OK;
    if (label_by_level_below(k, c, err))
        return err->status;
    if (!space_open(&space, c, old->feature, block) || space.dimension != columns)
        goto out;
    rows = malloc(block * columns * sizeof *rows);
    projected = old->columns ? malloc(block * old->dimension * sizeof *rows) : rows;
    if (!rows || !projected) {
        status = error_memory(err, block * columns * sizeof *rows, "new rows");
        goto out;
    }
    for (uint64_t first = 0, count; first < c->map->rows && !status; first += count) {
        if (next_run(c->map, first, block, &count) >= 0)
            continue;
        status = space_read(&space, c, joined, first, count, rows, err);
        if (!status && old->columns)
            projection_rows(&k->projection, projected, rows, count);
        if (!status)
            status = c->label(c->context, k->labels + first, k->distances + first, projected, count,
                              old->dimension, k->centroids, old->k, old->metric, err);
    }
out:
    space_close(&space);
    if (projected != rows)
        free(projected);
    free(rows);
    return status;
}

static enum status write_continued(const struct continued *k, const struct carry *c,
                                   struct error *err)
{
    const struct result_clusters *old = k->old;
    struct result_sweep sweep;
    if (result_sweep_read(&sweep, c->from, old, err))
        return STATUS_FAILED;
    const struct result_clustering clustering = {
        .name = old->name,
        .feature = old->feature,
        .init = old->init,
        .metric = old->metric,
        .parameters = old->parameters,
        .content = old->content,
        .k = old->k,
        .dimension = old->dimension,
        .iterations = old->iterations,
        .rows = c->map->rows,
        .fitted_rows = old->fitted_rows ? old->fitted_rows : old->rows,
        .seed = old->seed,
        .converged = old->converged,
        .weighted = old->weighted,
        .inertia = old->inertia,
        .centroids = k->centroids,
        .labels = k->labels,
        .distances = k->distances,
        .sizes = k->sizes,
        .nearest = k->nearest,
        .inertia_history = k->history,
        .weights = k->weights,
        .parents = k->parents,
        .parent = *old->parent ? old->parent : NULL,
        .level = old->level,
        .projection = old->columns ? &k->projection : NULL,
        .sweep = sweep.values ? &sweep : NULL};
    enum status status = clusters_write(c->file, &clustering, c->path, err);
    result_sweep_clear(&sweep);
    return status;
}

static enum status continue_clusters(struct carry *c, const struct result_clusters *old,
                                     struct error *err)
{
    struct continued k = {.old = old};
    enum status status = load_continued(&k, c, err);
    if (!status)
        status = label_new_rows(&k, c, err);
    if (!status) {
        k.unlabelled = c->map->rows;
        labelled_count(k.sizes, k.nearest, NEAREST_COUNT, k.labels, k.distances, c->map->rows, old->k);
        for (uint32_t i = 0; i < old->k; i++)
            k.unlabelled -= k.sizes[i];
        const bool told = !c->remade || strcmp(c->remade, old->name) != 0;
        char *names = k.unlabelled > 0 ? c->unlabelled_names : c->names;
        const size_t used = strlen(names);
        c->continued += told && k.unlabelled == 0;
        c->unlabelled += told && k.unlabelled > 0;
        if (told)
            snprintf(names + used, sizeof c->names - used, "%s%s", used ? ", " : "", old->name);
        status = write_continued(&k, c, err);
    }
    continued_clear(&k);
    return status;
}

/* Whether `feature`, a name or several joined ("a+b:0.5", or the name of the preset), has other
 * values now, although the images are the same. */
static bool is_outdated(const struct carry *c, const char *what, const char *name,
                        const char *feature)
{
    for (unsigned i = 0; c->features && i < c->features->count; i++) {
        const struct feature *now = &c->features->feature[i];
        const struct result_feature *before = result_feature_find(c->from, now->name);
        bool named = strcmp(feature, RESULT_PRESET) == 0;
        for (const char *at = feature; *at && !named;) {
            const size_t length = strcspn(at, "+:");
            named = strlen(now->name) == length && strncmp(now->name, at, length) == 0;
            at += strcspn(at, "+");
            at += *at == '+';
        }
        if (!named || !before || strcmp(before->spec, now->spec) == 0)
            continue;
        if (!c->remade || strcmp(c->remade, name) != 0)
            log_message(LOG_NOTICE, "notice: %s/%s is removed: the codebook of %s is a new one",
                        what, name, now->name);
        return true;
    }
    return false;
}

static enum status copy_clusters(const struct carry *c, const char *name, struct error *err)
{
    const struct copies copies = copies_of(c);
    hid_t group;
    if (h5_make_group(&group, c->file, "clusters", c->path, err))
        return STATUS_FAILED;
    h5_close(&group);
    return copies_make(&copies, name, err);
}

enum status carry_clusters(struct carry *c, struct error *err)
{
    enum status status = STATUS_OK;
    unsigned coarsest = 0;
    for (unsigned i = 0; i < c->from->clusters_count; i++)
        coarsest = max_u32(coarsest, c->from->clusters[i].clusters.level);
    for (unsigned at = 0; at < (coarsest + 1) * c->from->clusters_count && !status; at++) {
        const unsigned i = at % c->from->clusters_count;
        const struct result_clusters *old = &c->from->clusters[i].clusters;
        if (old->level != at / c->from->clusters_count || (c->leave_out && c->leave_out[i]) ||
            is_outdated(c, "clusters", old->name, old->feature))
            continue;
        char name[FEATURE_NAME_MAX + 16];
        snprintf(name, sizeof name, "/clusters/%s", old->name);
        status = c->map->same ? copy_clusters(c, name, err) : continue_clusters(c, old, err);
    }
    return status;
}

/* --- neighbours ------------------------------------------------------------------------------ */

struct graph {
    hid_t rows, distances; /* datasets of the new file */
    hsize_t size[2];
    uint64_t old_rows;
    const int64_t *now; /* of each old row; -1: it is gone */
};

/* The row numbers as they are now; neighbours that are gone are left out. */
static void renumber_row(const struct graph *g, int64_t *rows, float *distances)
{
    const uint64_t n = g->size[1];
    uint64_t kept = 0;
    for (uint64_t i = 0; i < n; i++)
        if (rows[i] >= 0 && (uint64_t)rows[i] < g->old_rows && g->now[rows[i]] >= 0) {
            rows[kept] = g->now[rows[i]];
            distances[kept++] = distances[i];
        }
    for (; kept < n; kept++) {
        rows[kept] = -1;
        distances[kept] = NAN;
    }
}

/* Of both datasets, whose rows have moved. */
static enum status renumber_graph(const struct carry *c, const struct graph *g, struct error *err)
{
    const uint64_t n = g->size[1], block = rows_in_block(12 * n);
    int64_t *rows = malloc(block * n * sizeof *rows);
    float *distances = malloc(block * n * sizeof *distances);
    enum status status =
        rows && distances ? STATUS_OK : error_memory(err, 12 * block * n, "neighbours");
    for (uint64_t first = 0, count; first < c->map->rows && !status; first += count) {
        count = c->map->rows - first < block ? c->map->rows - first : block;
        if (h5_read_rows(g->rows, VALUE_I64, first, count, rows, c->path, err) ||
            h5_read_rows(g->distances, VALUE_F32, first, count, distances, c->path, err))
            status = STATUS_FAILED;
        for (uint64_t i = 0; i < count && !status; i++)
            renumber_row(g, rows + i * n, distances + i * n);
        if (!status && (h5_write_rows(g->rows, VALUE_I64, first, count, rows, c->path, err) ||
                        h5_write_rows(g->distances, VALUE_F32, first, count, distances, c->path, err)))
            status = STATUS_FAILED;
    }
    free(rows);
    free(distances);
    return status;
}

static enum status carry_graph(struct carry *c, const char *feature, int64_t *now, struct error *err)
{
    const struct copies copies = copies_of(c);
    struct graph g = {
        .rows = H5I_INVALID_HID, .distances = H5I_INVALID_HID, .old_rows = result_images(c->from),
        .now = now};
    hsize_t distances[2];
    hid_t group = H5I_INVALID_HID;
    char name[FEATURE_NAME_MAX + 16];
    snprintf(name, sizeof name, "/neighbours/%s", feature);
    enum status status = copies_make(&copies, name, err);
    if (status || c->map->same)
        return status;
    c->neighbours++;
    status = STATUS_FAILED;
    if (h5_open_group(&group, c->file, name, c->path, err) ||
        h5_open_dataset(&g.rows, group, "rows", VALUE_I64, 2, g.size, name, c->path, err) ||
        h5_open_dataset(&g.distances, group, "distances", VALUE_F32, 2, distances, name, c->path, err))
        goto out;
    status = g.size[0] == c->map->rows && distances[0] == g.size[0] && distances[1] == g.size[1]
                 ? renumber_graph(c, &g, err)
                 : h5_damaged(err, c->from->path, "%s has an impossible size", name);
out:
    h5_close(&group);
    h5_close(&g.rows);
    h5_close(&g.distances);
    return status;
}

/* The number of each old row; -1: it is gone. Free it. */
static enum status find_rows_now(int64_t **out, const struct carry *c, struct error *err)
{
    const uint64_t old_rows = result_images(c->from);
    int64_t *now = *out = malloc(old_rows * sizeof *now + 1);
    if (!now)
        return error_memory(err, old_rows * sizeof *now, "numbers of rows");
    for (uint64_t i = 0; i < old_rows; i++)
        now[i] = -1;
    for (uint64_t i = 0; i < c->map->rows; i++)
        if (c->map->earlier[i] >= 0)
            now[c->map->earlier[i]] = (int64_t)i;
    return STATUS_OK;
}

enum status carry_neighbours(struct carry *c, struct error *err)
{
    if (!h5_is_object(c->from->file, "neighbours", H5O_TYPE_GROUP))
        return STATUS_OK;
    struct h5_names names = {NULL, 0};
    hid_t from = H5I_INVALID_HID, all = H5I_INVALID_HID;
    int64_t *now;
    enum status status = find_rows_now(&now, c, err);
    if (status != STATUS_OK)
        goto out;
    status = STATUS_FAILED;
    if (h5_open_group(&from, c->from->file, "neighbours", c->from->path, err) ||
        h5_list(&names, from, MOST_GRAPHS, c->from->path, err) ||
        h5_create_group(&all, c->file, "neighbours", c->path, err))
        goto out;
    status = STATUS_OK;
    for (unsigned i = 0; i < names.count && !status; i++) {
        bool own;
        status = h5_is_marked(&own, from, names.name[i], H5O_TYPE_GROUP, "content", c->from->path, err);
        if (!status && own && !is_outdated(c, "neighbours", names.name[i], names.name[i]))
            status = carry_graph(c, names.name[i], now, err);
    }
out:
    h5_free_names(&names);
    h5_close(&all);
    h5_close(&from);
    free(now);
    return status;
}

/* --- what comes next --------------------------------------------------------------------------- */

static enum status carry_selections(const struct carry *c, const struct copies *copies,
                                    struct error *err)
{
    int64_t *now;
    uint64_t gone = 0;
    char images[40];
    if (H5Lexists(c->from->file, "selections", H5P_DEFAULT) <= 0)
        return STATUS_OK;
    if (c->map->same)
        return copies_make(copies, "/selections", err);
    enum status status = find_rows_now(&now, c, err);
    if (status == STATUS_OK)
        status = selections_carry(c->file, c->path, c->from, now, &gone, err);
    if (gone > 0)
        log_message(LOG_NOTICE, "notice: selections leave out %s: the files are gone",
                    format_number_of(images, sizeof images, gone, "image"));
    free(now);
    return status;
}

enum status carry_next(struct carry *c, struct error *err)
{
    static const char flags[] = "/images/flags";
    const struct copies copies = copies_of(c);
    enum status status = carry_selections(c, &copies, err);
    if (status || H5Lexists(c->from->file, flags, H5P_DEFAULT) <= 0)
        return status;
    if (c->map->same)
        return copies_make(&copies, flags, err);
    log_message(LOG_NOTICE, "notice: %s is removed: rows have come, gone or moved", flags);
    return STATUS_OK;
}

/* --- the map --------------------------------------------------------------------------------- */

enum status carry_write_map(hid_t run, const struct row_map *map, const char *path,
                            struct error *err)
{
    const hsize_t rows = map->rows, chunk = rows < MAP_CHUNK ? (rows ? rows : 1) : MAP_CHUNK;
    hid_t list = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, &rows, NULL),
          dataset = H5I_INVALID_HID;
    enum status status = STATUS_FAILED;
    H5Pset_obj_track_times(list, false);
    /* Rows mostly follow each other: the map takes a byte or two for a hundred of them. */
    if (H5Zfilter_avail(H5Z_FILTER_DEFLATE) > 0) {
        H5Pset_chunk(list, 1, &chunk);
        H5Pset_shuffle(list);
        H5Pset_deflate(list, 4);
    }
    dataset = H5Dcreate2(run, "row_map", H5T_STD_I64LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
    if (dataset < 0) {
        h5_fail(err, "H5Dcreate2", "write", path);
        goto out;
    }
    if (h5_write_rows(dataset, VALUE_I64, 0, rows, map->earlier, path, err))
        goto out;
    status = h5_finish_dataset(&dataset, path, err);
out:
    h5_close(&dataset);
    h5_close(&space);
    h5_close(&list);
    return status;
}

/* --- notices --------------------------------------------------------------------------------- */

void carry_tell(const struct carry *c)
{
    char images[40];
    const unsigned long long gone = c->map->gone;
    format_number_of(images, sizeof images, c->map->fresh, "new image");
    if (c->continued > 0 && c->map->fresh > 0)
        log_message(LOG_NOTICE,
                    "notice: clusters %s are continued: %s labelled by the stored centroids%s; "
                    "clpipe cluster fits them to all images",
                    c->names, images, gone > 0 ? ", rows that are gone left out" : "");
    else if (c->continued > 0)
        log_message(LOG_NOTICE, "notice: clusters %s are continued without rows that are gone",
                    c->names);
    if (c->unlabelled > 0)
        log_message(LOG_NOTICE,
                    "notice: clusters %s are of features that have no values for new images: these "
                    "have the label -1",
                    c->unlabelled_names);
    if (c->imported > 0)
        log_message(LOG_NOTICE,
                    "notice: %u imported feature%s NaN for %s: import %s again", c->imported,
                    c->imported == 1 ? " is" : "s are", images, c->imported == 1 ? "it" : "them");
    if (c->neighbours > 0)
        log_message(LOG_NOTICE, "notice: stored neighbours leave out %s: clpipe similar --all finds "
                                "them again",
                    c->map->fresh > 0 ? images : "rows that are gone");
}
