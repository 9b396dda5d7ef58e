/* carry.c: copies everything that has a value per image according to the row map. */
#include "result/carry.h"
#include "base/held.h"
#include "base/labelled.h"
#include "base/log.h"
#include "base/minmax.h"
#include "base/parse.h"
#include "result/copies.h"
#include "result/feature_matrix.h"
#include "result/imported.h"
#include "result/objects.h"
#include "result/selections.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES (8u << 20)
#define MAP_CHUNK   16384 /* values of a row map per chunk */

static uint64_t rows_in_block(size_t row_bytes)
{
    return row_bytes < BLOCK_BYTES ? BLOCK_BYTES / (row_bytes ? row_bytes : 1) : 1;
}

/* --- clusterings ----------------------------------------------------------------------------- */

/* The recomputed parts of a clustering in the new file. */
struct continued {
    const struct result_clusters *old;
    struct held held; /* the following */
    float *centroids, *distances;
    int32_t *labels;
    uint64_t *sizes;
    int64_t *nearest;
};

/* Reads a whole part of a clustering in the new file to `to` or, if that is NULL, writes `from`. */
static enum status move_part(const struct carry *c, const char *clusters, enum cluster_part part,
                             void *to, const void *from, struct error *err)
{
    const struct cluster_part_kind *kind = &cluster_part_kind[part];
    char name[FEATURE_NAME_MAX + 32];
    hsize_t size[2];
    H5_SCOPED hid_t dataset = H5I_INVALID_HID;
    snprintf(name, sizeof name, "/clusters/%s/%s", clusters, kind->name);
    if (h5_open_dataset(&dataset, c->file, name, kind->type, kind->rank, size, err))
        return STATUS_FAILED;
    return to ? h5_read_rows(dataset, kind->type, 0, size[0], to, err)
              : h5_write_rows(dataset, kind->type, 0, size[0], from, err);
}

/* Carrying a clustering takes no more memory than `cluster` took to make it. */
static enum status load_continued(struct continued *k, const struct carry *c, struct error *err)
{
    const struct result_clusters *old = k->old;
    const uint64_t rows = c->map->rows;
    k->centroids = held_array(&k->held, (uint64_t)old->k * old->dimension, sizeof *k->centroids);
    k->labels = held_array(&k->held, rows, sizeof *k->labels);
    k->distances = held_array(&k->held, rows, sizeof *k->distances);
    k->sizes = held_array(&k->held, old->k, sizeof *k->sizes);
    k->nearest = held_array(&k->held, (uint64_t)old->k * NEAREST_COUNT, sizeof *k->nearest);
    enum status status = held_check(&k->held, "labels", err);
    if (!status)
        status = result_part_read(k->centroids, old, PART_CENTROIDS, err);
    if (!status)
        status = move_part(c, old->name, PART_LABELS, k->labels, NULL, err);
    return status ? status : move_part(c, old->name, PART_DISTANCES, k->distances, NULL, err);
}

/* New rows of a level get the parents of their clusters one level below, which is carried first. */
static enum status label_by_level_below(struct continued *k, const struct carry *c,
                                        struct error *err)
{
    const struct result_clusters *below = result_clusters_below(c->from, k->old), *above;
    char name[FEATURE_NAME_MAX + 32];
    int32_t *parents, *labels = NULL;
    snprintf(name, sizeof name, "/clusters/%s/labels", below ? below->name : "");
    if (!below || !h5_is_object(c->file, name, H5O_TYPE_DATASET))
        return STATUS_OK;
    enum status status = result_parents_read(&parents, &above, c->from, below, err);
    if (status == STATUS_OK && !(labels = malloc((size_t)c->map->rows * sizeof *labels + 1)))
        status = error_memory(err, (size_t)c->map->rows * sizeof *labels, "labels");
    if (status == STATUS_OK)
        status = move_part(c, below->name, PART_LABELS, labels, NULL, err);
    for (uint64_t i = 0; status == STATUS_OK && i < c->map->rows; i++)
        if (c->map->earlier[i] < 0 && labels[i] >= 0 && (uint32_t)labels[i] < below->k)
            k->labels[i] = parents[labels[i]];
    free(labels);
    free(parents);
    return status;
}

/* Opens the new file's rows of the feature that a clustering was made from; false: features are
 * missing. */
static bool open_rows(struct matrix_source *rows, const struct carry *c,
                      const struct result_clusters *old)
{
    struct result_feature about;
    const char *preset = c->from->preset;
    const bool joined = preset && strcmp(old->feature, RESULT_PRESET) == 0 &&
                        !result_feature_find(c->from, RESULT_PRESET);
    return (joined ? feature_matrix_open_preset(rows, &about, c->now, preset, NULL)
                   : feature_matrix_open(rows, &about, c->now, old->feature, NULL)) == STATUS_OK;
}

static enum status label_new_rows(struct continued *k, const struct carry *c, struct error *err)
{
    const struct result_clusters *old = k->old;
    const uint32_t columns = old->columns ? old->columns : old->dimension;
    const uint64_t block = rows_in_block((size_t)columns * sizeof(float));
    struct projection projection = {.columns = 0};
    struct matrix_source matrix;
    SCOPED_HELD held = {0};
    if (!c->now)
        return STATUS_OK;
    enum status status = label_by_level_below(k, c, err);
    if (status || !open_rows(&matrix, c, old))
        return status;
    if (matrix.dimension != columns) {
        matrix_close(&matrix);
        return STATUS_OK;
    }
    float *rows = held_array(&held, block * columns, sizeof *rows),
          *projected =
              old->columns ? held_array(&held, block * old->dimension, sizeof *rows) : rows;
    status = held_check(&held, "new rows", err);
    if (!status && old->columns)
        status = result_projection_read(&projection, c->from, old, err);
    for (uint64_t r = 0; r < c->rows->runs && !status; r++) {
        const struct row_run *run = &c->rows->run[r];
        const uint64_t end = run->row + run->count;
        for (uint64_t first = run->row, count;
             run->input == ROW_LIST_NONE && first < end && !status; first += count) {
            count = min_u64(block, end - first);
            status = matrix_read(&matrix, first, count, rows, err);
            /* Rows without information get no label. */
            for (uint64_t i = 0; i < count && !status; i++)
                if (matrix_is_blank(&matrix, rows + i * columns))
                    rows[i * columns] = NAN;
            if (!status && old->columns)
                projection_rows(&projection, projected, rows, count);
            if (!status)
                status = c->label(k->labels + first, k->distances + first, projected, count,
                                  old->dimension, k->centroids, old->k, old->metric, c->threads,
                                  c->stop, err);
        }
    }
    matrix_close(&matrix);
    projection_clear(&projection);
    return status;
}

/* Recomputes what depends on the current rows. */
static enum status write_continued(const struct continued *k, const struct carry *c,
                                   struct error *err)
{
    const struct result_clusters *old = k->old;
    char name[FEATURE_NAME_MAX + 16];
    H5_SCOPED hid_t group = H5I_INVALID_HID;
    if (move_part(c, old->name, PART_LABELS, NULL, k->labels, err) ||
        move_part(c, old->name, PART_DISTANCES, NULL, k->distances, err) ||
        move_part(c, old->name, PART_SIZES, NULL, k->sizes, err) ||
        move_part(c, old->name, PART_NEAREST, NULL, k->nearest, err))
        return STATUS_FAILED;
    snprintf(name, sizeof name, "/clusters/%s", old->name);
    enum status status = h5_open_group(&group, c->file, name, err);
    if (!status && !old->fitted_rows)
        status = h5_put_number(group, "fitted_rows", VALUE_U64, &old->rows, err);
    return status;
}

static enum status continue_clusters(struct carry *c, const struct result_clusters *old,
                                     struct error *err)
{
    struct continued k = {.old = old};
    uint64_t unlabelled = 0; /* new rows */
    enum status status = load_continued(&k, c, err);
    if (!status)
        status = label_new_rows(&k, c, err);
    if (!status) {
        labelled_count(k.sizes, k.nearest, NEAREST_COUNT, k.labels, k.distances, c->map->rows, 0,
                       old->k);
        for (uint64_t i = 0; i < c->map->rows; i++)
            unlabelled += c->map->earlier[i] < 0 && k.labels[i] < 0;
        const bool told = !c->remade || strcmp(c->remade, old->name) != 0;
        char *names = unlabelled > 0 ? c->unlabelled_names : c->names;
        c->continued += told && unlabelled == 0;
        c->unlabelled += told && unlabelled > 0;
        if (told)
            text_add_name(names, sizeof c->names, old->name);
        status = write_continued(&k, c, err);
    }
    held_free(&k.held);
    return status;
}

/* --- neighbours ------------------------------------------------------------------------------ */

/* Renumbers rows (now[]: the new number of each old row, -1: removed); leaves out removed neighbours. */
static void renumber_row(const int64_t *now, uint64_t old_rows, int64_t *rows, float *distances,
                         uint64_t n)
{
    uint64_t kept = 0;
    for (uint64_t i = 0; i < n; i++)
        if (rows[i] >= 0 && (uint64_t)rows[i] < old_rows && now[rows[i]] >= 0) {
            rows[kept] = now[rows[i]];
            distances[kept++] = distances[i];
        }
    for (; kept < n; kept++) {
        rows[kept] = -1;
        distances[kept] = NAN;
    }
}

static enum status renumber_graph(struct carry *c, const char *name, struct error *err)
{
    H5_SCOPED hid_t group = H5I_INVALID_HID, rows_dataset = H5I_INVALID_HID,
                    distances_dataset = H5I_INVALID_HID;
    hsize_t size[2], other[2];
    c->neighbours++;
    if (h5_open_group(&group, c->file, name, err) ||
        h5_open_dataset(&rows_dataset, group, "rows", VALUE_I64, 2, size, err) ||
        h5_open_dataset(&distances_dataset, group, "distances", VALUE_F32, 2, other, err))
        return STATUS_FAILED;
    if (size[0] != c->map->rows || other[0] != size[0] || other[1] != size[1])
        return h5_damaged(err, c->from->path, "%s has an impossible size", name);
    const uint64_t n = size[1], block = rows_in_block(12 * n);
    SCOPED_HELD held = {0};
    int64_t *rows = held_array(&held, block * n, sizeof *rows);
    float *distances = held_array(&held, block * n, sizeof *distances);
    enum status status = held_check(&held, "neighbours", err);
    for (uint64_t first = 0, count; first < c->map->rows && !status; first += count) {
        count = c->map->rows - first < block ? c->map->rows - first : block;
        if (h5_read_rows(rows_dataset, VALUE_I64, first, count, rows, err) ||
            h5_read_rows(distances_dataset, VALUE_F32, first, count, distances, err))
            status = STATUS_FAILED;
        for (uint64_t i = 0; i < count && !status; i++)
            renumber_row(c->row_now, result_images(c->from), rows + i * n, distances + i * n, n);
        if (!status && (h5_write_rows(rows_dataset, VALUE_I64, first, count, rows, err) ||
                        h5_write_rows(distances_dataset, VALUE_F32, first, count, distances, err)))
            status = STATUS_FAILED;
    }
    return status;
}

static enum status find_rows_now(struct carry *c, struct error *err)
{
    const uint64_t old_rows = result_images(c->from);
    int64_t *now = c->row_now = malloc(old_rows * sizeof *now + 1);
    if (!now)
        return error_memory(err, old_rows * sizeof *now, "numbers of rows");
    for (uint64_t i = 0; i < old_rows; i++)
        now[i] = -1;
    for (uint64_t i = 0; i < c->map->rows; i++)
        if (c->map->earlier[i] >= 0)
            now[c->map->earlier[i]] = (int64_t)i;
    return STATUS_OK;
}

/* --- all objects ------------------------------------------------------------------------------- */

/* Whether the values of the object's feature, one or several joined ("a+b:0.5", or the name of the
 * preset), have changed although the images are the same. */
static bool is_outdated(const struct carry *c, const struct object *object, const char *name)
{
    for (unsigned i = 0; c->features && i < c->features->count; i++) {
        const struct feature *now = &c->features->feature[i];
        const struct result_feature *before = result_feature_find(c->from, now->name);
        const bool named = strcmp(object->feature, RESULT_PRESET) == 0 ||
                           feature_is_part(object->feature, now->name);
        if (!named || !before || strcmp(before->spec, now->spec) == 0)
            continue;
        if (!c->remade || strcmp(c->remade, name) != 0)
            log_message(LOG_NOTICE, "notice: %s is removed: the codebook of %s is a new one",
                        object->name, now->name);
        return true;
    }
    return false;
}

/* Agreement with folders is unknown if rows were added or removed. */
static bool is_agreement(const char *attribute)
{
    bool is = false;
    for (int i = 0; i < RESULT_AGREEMENT_ATTRIBUTES; i++)
        is = is || strcmp(attribute, result_agreement_attribute[i].name) == 0;
    return is;
}

static enum status copy_object(const struct carry *c, const char *name, struct error *err)
{
    const struct copies copies = {.from = c->from,
                                  .to = c->file,
                                  .left_out_attribute = c->map->same ? NULL : is_agreement,
                                  .rows = c->map->same ? NULL : c->rows};
    char above[OBJECT_NAME_MAX + 1];
    H5_SCOPED hid_t group = H5I_INVALID_HID;
    snprintf(above, sizeof above, "%.*s", (int)(strrchr(name, '/') - name), name);
    const enum status status = h5_make_group(&group, c->file, above, err);
    return status ? status : copies_make(&copies, name, err);
}

static enum status carry_object(struct carry *c, const struct object *object, struct error *err)
{
    const char *member = strchr(object->name, '/') + 1;
    char name[OBJECT_NAME_MAX + 1];
    snprintf(name, sizeof name, "/%s", object->name);
    if (object->kind == OBJECT_FEATURE && h5_is_object(c->file, name, H5O_TYPE_DATASET)) {
        log_message(
            LOG_NOTICE,
            "notice: the imported feature %s is removed: a computed feature now has its name",
            member);
        return STATUS_OK;
    }
    if (is_outdated(c, object, member))
        return STATUS_OK;
    const enum status status = copy_object(c, name, err);
    c->imported += object->kind == OBJECT_FEATURE && c->map->fresh > 0;
    if (status || c->map->same)
        return status;
    return object->kind == OBJECT_CLUSTERS
               ? continue_clusters(c, result_clusters_find(c->from, member), err)
           : object->kind == OBJECT_NEIGHBOURS ? renumber_graph(c, name, err)
                                               : STATUS_OK;
}

/* Objects of a kind; of clusterings those of a level. */
static enum status carry_kind(struct carry *c, const struct objects *objects, enum object_kind kind,
                              unsigned level, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < objects->count && !status; i++) {
        const struct object *object = &objects->object[i];
        const struct result_clusters *clusters =
            kind == OBJECT_CLUSTERS ? result_clusters_find(c->from, strchr(object->name, '/') + 1)
                                    : NULL;
        if (object->kind != kind ||
            (clusters && (clusters->level != level ||
                          (c->leave_out && c->leave_out[clusters - c->from->clusters]))))
            continue;
        status = carry_object(c, object, err);
    }
    return status;
}

static enum status carry_clusters(struct carry *c, const struct objects *objects, struct error *err)
{
    enum status status = STATUS_OK;
    unsigned coarsest = 0;
    for (unsigned i = 0; i < c->from->clusters_count; i++)
        coarsest = max_u32(coarsest, c->from->clusters[i].level);
    if (c->from->clusters_count > 0 && c->map->fresh > 0 && c->label)
        status = result_open_unfinished(&c->now, c->file, err);
    for (unsigned level = 0; level <= coarsest && !status; level++)
        status = carry_kind(c, objects, OBJECT_CLUSTERS, level, err);
    result_close(&c->now);
    return status;
}

/* If rows have moved. */
static enum status carry_selections(const struct carry *c, struct error *err)
{
    uint64_t gone = 0;
    const enum status status = selections_carry(c->file, c->from, c->row_now, &gone, err);
    if (gone > 0)
        log_message(LOG_NOTICE, "notice: selections leave out %s: the files are gone",
                    NUMBER_OF(gone, "image"));
    return status;
}

static enum status carry_flags(const struct carry *c, struct error *err)
{
    static const char flags[] = "/images/flags";
    if (H5Lexists(c->from->file, flags, H5P_DEFAULT) <= 0)
        return STATUS_OK;
    if (c->map->same)
        return copy_object(c, flags, err);
    log_message(LOG_NOTICE, "notice: %s is removed: rows were added, removed or moved", flags);
    return STATUS_OK;
}

/* Which row of the earlier file each row was, as a list. */
static enum status list_earlier(struct row_list *list, const struct row_map *map, struct error *err)
{
    enum status status = STATUS_OK;
    for (uint64_t i = 0; i < map->rows && !status; i++)
        status = map->earlier[i] < 0 ? row_list_add(list, ROW_LIST_NONE, 0, 1, err)
                                     : row_list_add(list, 0, (uint64_t)map->earlier[i], 1, err);
    return status;
}

enum status carry_objects(struct carry *c, struct error *err)
{
    struct objects objects;
    struct row_list list = {.run = NULL};
    enum status status = objects_list(&objects, c->from->file, err);
    c->rows = &list;
    if (!status && !c->map->same && !(status = list_earlier(&list, c->map, err)))
        status = find_rows_now(c, err);
    if (!status && !(status = carry_kind(c, &objects, OBJECT_FEATURE, 0, err)) &&
        !(status = carry_clusters(c, &objects, err)) &&
        !(status = carry_kind(c, &objects, OBJECT_NEIGHBOURS, 0, err)) &&
        !(status = c->map->same ? carry_kind(c, &objects, OBJECT_SELECTION, 0, err)
                                : carry_selections(c, err)))
        status = carry_flags(c, err);
    row_list_clear(&list);
    objects_clear(&objects);
    free(c->row_now);
    c->row_now = NULL;
    return status;
}

/* --- the map --------------------------------------------------------------------------------- */

enum status carry_write_map(hid_t run, const struct row_map *map, struct error *err)
{
    const hsize_t rows = map->rows, chunk = rows < MAP_CHUNK ? (rows ? rows : 1) : MAP_CHUNK;
    H5_SCOPED hid_t list = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, &rows, NULL),
                    dataset = H5I_INVALID_HID;
    H5Pset_obj_track_times(list, false);
    /* Rows are mostly consecutive: the map takes a byte or two per hundred rows. */
    if (H5Zfilter_avail(H5Z_FILTER_DEFLATE) > 0) {
        H5Pset_chunk(list, 1, &chunk);
        H5Pset_shuffle(list);
        H5Pset_deflate(list, 4);
    }
    dataset = H5Dcreate2(run, "row_map", H5T_STD_I64LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
    if (dataset < 0)
        return h5_failed(err, "H5Dcreate2", "write", run);
    enum status status = h5_write_rows(dataset, VALUE_I64, 0, rows, map->earlier, err);
    return status ? status : h5_finish_dataset(&dataset, err);
}

/* --- notices --------------------------------------------------------------------------------- */

void carry_tell(const struct carry *c)
{
    const char *images = NUMBER_OF(c->map->fresh, "new image");
    const unsigned long long gone = c->map->gone;
    if (c->continued > 0 && c->map->fresh > 0)
        log_message(LOG_NOTICE,
                    "notice: clusters %s are continued: %s labelled by the stored centroids%s; "
                    "clpipe cluster fits them to all images",
                    c->names, images, gone > 0 ? "; rows that are gone are left out" : "");
    else if (c->continued > 0 && gone > 0)
        log_message(LOG_NOTICE, "notice: clusters %s are continued without rows that are gone",
                    c->names);
    if (c->unlabelled > 0)
        log_message(LOG_NOTICE,
                    "notice: clusters %s are of features that have no values for new images, which "
                    "get the label -1",
                    c->unlabelled_names);
    if (c->imported > 0)
        log_message(LOG_NOTICE, "notice: %u imported feature%s NaN for %s: import %s again",
                    c->imported, c->imported == 1 ? " is" : "s are", images,
                    c->imported == 1 ? "it" : "them");
    if (c->neighbours > 0 && (c->map->fresh > 0 || gone > 0))
        log_message(LOG_NOTICE,
                    "notice: stored neighbours leave out %s: clpipe similar --all finds "
                    "them again",
                    c->map->fresh > 0 ? images : "rows that are gone");
}
