/* result.c: opens and reads a finished file.
 *
 * Everything that later reads rely on is checked when the file is opened: that the objects exist as
 * hard links, that their types and lengths agree, and that the file is large enough for what it
 * claims. verify.c checks whether the values make sense. */
#include "base/compare.h"
#include "base/parse.h"
#include "base/path.h"
#include "features/kind.h"
#include "features/stored.h"
#include "matrix/h5_driver.h"
#include "result/defined.h"
#include "result/parts.h"
#include "result/records.h"
#include "result/result_internal.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* An argument has at most 128 KiB, four times that if no byte of it is UTF-8. */
#define MOST_SOURCE_BYTES (512u << 10)
/* More values of k count as damage. */
#define MOST_SWEEP_VALUES (1u << 24)

#define COUNT(table) (sizeof(table) / sizeof *(table))

#define TEXT(type, field, optional)                                                                \
    {                                                                                              \
#field, VALUE_TEXT, offsetof(struct type, field), sizeof((struct type *)0)->field,         \
            optional, 0, 0                                                                         \
    }
#define LONG_TEXT(type, field, name)                                                               \
    {                                                                                              \
        name, VALUE_TEXT, offsetof(struct type, field), 0, false, 0, 0                             \
    }
#define NUMBER(type, field, value, optional, least, most)                                          \
    {                                                                                              \
#field, value, offsetof(struct type, field), 0, optional, least, most                      \
    }

const struct attribute result_feature_attribute[RESULT_FEATURE_TEXTS + 1] = {
    TEXT(result_feature, spec, false),
    TEXT(result_feature, kind, false),
    TEXT(result_feature, bins, false),
    TEXT(result_feature, grid, false),
    TEXT(result_feature, normalize, false),
    NUMBER(result_feature, decode_scale, VALUE_U32, false, 0, 64)};

const struct attribute result_agreement_attribute[RESULT_AGREEMENT_ATTRIBUTES] = {
    NUMBER(result_clusters, folders, VALUE_U32, false, 2, UINT32_MAX),
    {"purity", VALUE_F64, offsetof(struct result_clusters, agreement.purity), 0, false, -1, 1},
    {"nmi", VALUE_F64, offsetof(struct result_clusters, agreement.nmi), 0, false, -1, 1},
    {"ari", VALUE_F64, offsetof(struct result_clusters, agreement.ari), 0, false, -1, 1}};

const struct attribute result_origin_attribute[RESULT_ORIGIN_ATTRIBUTES] = {
    {"source_bytes", VALUE_U64, offsetof(struct result_origin, bytes), 0, true, 0, 0},
    {"source_mtime_ns", VALUE_I64, offsetof(struct result_origin, mtime_ns), 0, true, 0, 0},
    {"source_sample", VALUE_TEXT, offsetof(struct result_origin, sample), 65, true, 0, 0}};

const struct attribute result_clusters_attribute[RESULT_CLUSTERS_ATTRIBUTES] = {
    TEXT(result_clusters, feature, false),
    TEXT(result_clusters, init, false),
    TEXT(result_clusters, metric, false),
    LONG_TEXT(result_clusters, parameters, "parameters"),
    TEXT(result_clusters, content, false),
    NUMBER(result_clusters, k, VALUE_U32, false, 0, INT32_MAX),
    NUMBER(result_clusters, seed, VALUE_I64, false, 0, 0),
    NUMBER(result_clusters, iterations, VALUE_U32, false, 0, UINT32_MAX),
    NUMBER(result_clusters, converged, VALUE_U8, false, 0, 1),
    NUMBER(result_clusters, inertia, VALUE_F64, false, 0, 0),
    NUMBER(result_clusters, fitted_rows, VALUE_U64, true, 1, INT64_MAX),
    NUMBER(result_clusters, level, VALUE_U32, true, 0, RESULT_MOST_LEVELS),
    TEXT(result_clusters, parent, true),
    TEXT(result_clusters, space, true)};

const struct attribute result_sweep_attribute[RESULT_SWEEP_ATTRIBUTES] = {
    TEXT(cluster_sweep, measure, false), TEXT(cluster_sweep, reason, false),
    NUMBER(cluster_sweep, sample, VALUE_U32, false, 0, UINT32_MAX)};

const struct attribute result_run_attribute[RESULT_RUN_TEXTS + 1] = {
    LONG_TEXT(store_run, command, "command"), LONG_TEXT(store_run, json, "details"),
    LONG_TEXT(store_run, device, "device"),   LONG_TEXT(store_run, driver, "driver"),
    LONG_TEXT(store_run, host, "host"),       NUMBER(store_run, seconds, VALUE_F64, false, 0, 0)};

static const struct attribute root_attribute[] = {
    LONG_TEXT(result, version, "clpipe_version"),
    LONG_TEXT(result, created, "created"),
    LONG_TEXT(result, parameters, "parameters"),
    {"preset", VALUE_TEXT, offsetof(struct result, preset), 0, true, 0, 0}};

#define SHARE(name, field)                                                                         \
    {                                                                                              \
        name, VALUE_U64, offsetof(struct list_share, field), 0, false, 0, INT64_MAX                \
    }
const struct attribute result_share_attribute[RESULT_SHARE_ATTRIBUTES] = {
    SHARE("shard_index", index),     SHARE("shard_count", count),
    SHARE("shard_first", first),     SHARE("shard_last", last),
    SHARE("list_count", list_count), TEXT(list_share, list_digest, false)};

#define SWEEP(name, field, type)                                                                   \
    {                                                                                              \
        name, type, 1, offsetof(struct cluster_sweep_value, field), NULL, false                    \
    }
const struct column sweep_column[SWEEP_COLUMNS] = {
    SWEEP("k", k, VALUE_U32),
    SWEEP("iterations", iterations, VALUE_U32),
    SWEEP("converged", converged, VALUE_U8),
    SWEEP("inertia", inertia, VALUE_F64),
    SWEEP("silhouette", measures.silhouette, VALUE_F64),
    SWEEP("simplified_silhouette", measures.simplified_silhouette, VALUE_F64),
    SWEEP("davies_bouldin", measures.davies_bouldin, VALUE_F64),
    SWEEP("calinski_harabasz", measures.calinski_harabasz, VALUE_F64),
    SWEEP("purity", agreement.purity, VALUE_F64),
    SWEEP("nmi", agreement.nmi, VALUE_F64),
    SWEEP("ari", agreement.ari, VALUE_F64),
};

const struct cluster_part_kind cluster_part_kind[PART_COUNT] = {
    [PART_CENTROIDS] = {"centroids", VALUE_F32, 2},
    [PART_LABELS] = {"labels", VALUE_I32, 1},
    [PART_DISTANCES] = {"distances", VALUE_F32, 1},
    [PART_SIZES] = {"sizes", VALUE_U64, 1},
    [PART_NEAREST] = {"nearest", VALUE_I64, 2},
    [PART_HISTORY] = {"inertia_history", VALUE_F64, 1},
    [PART_WEIGHTS] = {"weights", VALUE_F32, 1},
    [PART_MEAN] = {"mean", VALUE_F32, 1},
    [PART_COMPONENTS] = {"components", VALUE_F32, 2},
    [PART_PARENTS] = {"parents", VALUE_I32, 1},
};

void result_feature_describe(struct result_feature *out, const struct feature *feature,
                             uint32_t decode_scale)
{
    *out = (struct result_feature){.dimension = feature->dimension,
                                   .is_float = feature->normalize != NORMALIZE_NONE,
                                   .store = feature->store,
                                   .is_signed = feature->normalize == NORMALIZE_UNIT,
                                   .decode_scale = decode_scale};
    snprintf(out->name, sizeof out->name, "%s", feature->name);
    snprintf(out->spec, sizeof out->spec, "%s", feature->spec);
    snprintf(out->kind, sizeof out->kind, "%s", feature->kind->name);
    feature_bins_text(out->bins, sizeof out->bins, feature);
    feature_grid_text(out->grid, sizeof out->grid, feature);
    snprintf(out->normalize, sizeof out->normalize, "%s",
             feature_normalize_name(feature->normalize));
}

/* Sets an attribute from the value of `key` in a spec, if there is one. */
static enum status put_spec_part(hid_t dataset, const char *name, const char *spec, const char *key,
                                 struct error *err)
{
    char text[80];
    const char *at = strstr(spec, key);
    if (!at)
        return STATUS_OK;
    at += strlen(key);
    snprintf(text, sizeof text, "%.*s", (int)strcspn(at, ","), at);
    return h5_put_text(dataset, name, text, err);
}

enum status result_feature_put_attributes(hid_t dataset, const struct result_feature *feature,
                                          struct error *err)
{
    const uint32_t zero = stored_zero(feature->is_signed), scale = stored_scale(feature->is_signed);
    if (h5_put_attributes(dataset, result_feature_attribute, RESULT_FEATURE_TEXTS + 1, feature,
                          err))
        return STATUS_FAILED;
    if (feature->store == STORE_UINT8 && (h5_put_number(dataset, "zero", VALUE_U32, &zero, err) ||
                                          h5_put_number(dataset, "scale", VALUE_U32, &scale, err)))
        return STATUS_FAILED;
    const enum status status =
        put_spec_part(dataset, "model_digest", feature->spec, ",model=", err);
    return status ? status
                  : put_spec_part(dataset, "model_runtime", feature->spec, ",runtime=", err);
}

/* --- opening --------------------------------------------------------------------------------- */

/* Opens clpipe's own members of a group at the root, if it exists, after making room for `size`
 * bytes for each of them. */
static enum status open_members(struct result *result, const char *name, void *room, size_t size,
                                enum status (*open_member)(struct result *result, hid_t group,
                                                           const char *name, struct error *err),
                                struct error *err)
{
    H5_SCOPED hid_t group = H5I_INVALID_HID;
    H5_SCOPED_NAMES names = {0};
    if (H5Lexists(result->file, name, H5P_DEFAULT) <= 0)
        return STATUS_OK;
    if (!h5_is_object(result->file, name, H5O_TYPE_GROUP))
        return h5_damaged(err, result->path, "/%s is not a group of the file itself", name);
    enum status status = defined_list(&names, &group, result->file, name, err);
    void *members = calloc(names.count ? names.count : 1, size);
    if (!status && !members)
        status = error_memory(err, names.count * size, name);
    memcpy(room, &members, sizeof members);
    for (unsigned i = 0; i < names.count && !status; i++)
        status = open_member(result, group, names.name[i], err);
    return status;
}

/* The attributes of a shard, if it is one. */
static enum status open_share(struct result *result, struct error *err)
{
    struct list_share *share = &result->share;
    if (H5Aexists(result->file, "shard_count") <= 0)
        return STATUS_OK;
    if (h5_get_attributes(share, result->file, result_share_attribute, RESULT_SHARE_ATTRIBUTES,
                          err))
        return STATUS_FAILED;
    return share->index < share->count && share->first <= share->last &&
                   share->last <= share->list_count
               ? STATUS_OK
               : h5_damaged(err, result->path, "its attributes of a shard contradict each other");
}

static enum status open_root(struct result *result, struct error *err)
{
    const char *shown = PATH_TEXT(result->path);
    int64_t format;
    if (!h5_get_integer(result->file, "clpipe_format", &format))
        return error_set(err, STATUS_FAILED, "%s is an HDF5 file, but not a clpipe file", shown);
    if (format < SCHEMA_FORMAT)
        return error_set(
            err, STATUS_FAILED,
            "%s has format %lld, of an older clpipe: tools/convert %s -o NEW.h5 writes it in "
            "format %d",
            shown, (long long)format, shown, SCHEMA_FORMAT);
    if (format != SCHEMA_FORMAT)
        return error_set(err, STATUS_FAILED,
                         "%s has format %lld, but this clpipe reads format %d: use the clpipe that "
                         "wrote it, or a newer one",
                         shown, (long long)format, SCHEMA_FORMAT);
    if (!(result->axes = malloc(sizeof *result->axes)))
        return error_memory(err, sizeof *result->axes, "a result");
    axes_init(result->axes, result->file);
    if (h5_get_attributes(result, result->file, root_attribute, COUNT(root_attribute), err))
        return STATUS_FAILED;
    return open_share(result, err);
}

/* The texts of a column with a row for each source. */
static enum status read_sources(char ***out, hsize_t *count, struct result *result,
                                const char *name, struct error *err)
{
    H5_SCOPED hid_t dataset = H5I_INVALID_HID;
    if (h5_open_dataset(&dataset, result->file, name, VALUE_TEXT, 1, count, err))
        return STATUS_FAILED;
    if (*count > UINT16_MAX + 1 || h5_text_width(dataset) > MOST_SOURCE_BYTES)
        return h5_damaged(err, result->path,
                          "it has more than 65,536 sources, or an impossible one");
    return h5_read_texts(out, dataset, *count, "sources", err);
}

static enum status open_sources(struct result *result, struct error *err)
{
    hsize_t count, places;
    enum status status = read_sources(&result->sources, &count, result, "/images/sources", err);
    if (!status)
        status = read_sources(&result->directories, &places, result, "/images/" DIRECTORIES, err);
    if (status)
        return status;
    if (places != count)
        return h5_damaged(err, result->path,
                          "/images/" DIRECTORIES " does not have one value for each source");
    result->source_count = (unsigned)count;
    result->source_names = calloc(count + 1, sizeof *result->source_names);
    for (unsigned i = 0; result->source_names && i < count; i++) {
        if (!(result->source_names[i] = strdup(result->sources[i])))
            return error_memory(err, 256, "sources");
        path_from_utf8(result->source_names[i]);
    }
    return result->source_names ? STATUS_OK : error_memory(err, count, "sources");
}

static enum status open_thumbnails(struct result *result, struct error *err)
{
    int64_t size = 0;
    if (blob_reader_open(&result->thumbnails, result->file, THUMBNAIL_GROUP, result->images->count,
                         RECORDS_MOST_THUMBNAIL, err))
        return STATUS_FAILED;
    if (!result->thumbnails)
        return STATUS_OK;
    H5_SCOPED hid_t group = H5Gopen2(result->file, THUMBNAIL_GROUP, H5P_DEFAULT);
    const bool right = h5_get_integer(group, "size", &size) && size >= 1 && size <= UINT16_MAX;
    result->thumbnail_size = (uint32_t)size;
    return right ? STATUS_OK
                 : h5_damaged(err, result->path,
                              "/thumbnails: its attribute 'size' is missing or out of range");
}

static enum status read_feature_attributes(struct result_feature *feature, struct result *result,
                                           hid_t group, struct error *err)
{
    H5_SCOPED hid_t plain = H5Dopen2(group, feature->name, H5P_DEFAULT);
    if (plain < 0)
        return h5_fail(err, "H5Dopen2", "read", result->path);
    if (h5_get_attributes(feature, plain, result_feature_attribute, RESULT_FEATURE_TEXTS + 1, err))
        return STATUS_FAILED;
    return result_feature_imported(feature)
               ? h5_get_short_text(feature->imported_from, sizeof feature->imported_from, plain,
                                   "imported_from", err)
               : STATUS_OK;
}

static enum status open_feature(struct result *result, hid_t group, const char *name,
                                struct error *err)
{
    struct result_feature *feature = &result->features[result->feature_count];
    if (!schema_name_valid(name))
        return h5_damaged(err, result->path, "a feature has an impossible name");
    snprintf(feature->name, sizeof feature->name, "%s", name);
    if (read_feature_attributes(feature, result, group, err))
        return STATUS_FAILED;
    /* The type follows from the normalisation. */
    /* Unnormalised values are counts, except those of networks. */
    feature->is_float =
        strcmp(feature->normalize, "none") != 0 || strcmp(feature->kind, "net") == 0;
    feature->is_signed = strcmp(feature->normalize, "unit") == 0;
    feature->blank = feature_zeros_say_nothing(feature->kind, feature->normalize);
    feature->store = feature->is_float ? feature_store_of_spec(feature->spec) : STORE_FLOAT32;
    hsize_t size[2];
    if (h5_open_dataset(&feature->dataset, group, name, result_feature_type(feature), 2, size, err))
        return STATUS_FAILED;
    result->feature_count++;
    if (size[0] != result->images->count)
        return h5_wrong(err, feature->dataset, "has a different number of rows than /images");
    if (size[1] < 1 || size[1] > FEATURE_DIMENSION_MAX)
        return h5_wrong(err, feature->dataset, "has an impossible dimension");
    feature->rows = size[0];
    feature->dimension = (uint32_t)size[1];
    return STATUS_OK;
}

static enum status read_clustering_attributes(struct result_clusters *c, hid_t group,
                                              struct error *err)
{
    struct result_origin *origin = &c->origin;
    if (h5_get_attributes(c, group, result_clusters_attribute, RESULT_CLUSTERS_ATTRIBUTES, err) ||
        h5_get_attributes(origin, group, result_origin_attribute, RESULT_ORIGIN_ATTRIBUTES, err))
        return STATUS_FAILED;
    /* The attributes count only if they are complete. */
    if (!*origin->sample || origin->bytes == 0)
        *origin = (struct result_origin){0};
    return H5Aexists(group, "folders") > 0 ? h5_get_attributes(c, group, result_agreement_attribute,
                                                               RESULT_AGREEMENT_ATTRIBUTES, err)
                                           : STATUS_OK;
}

bool cluster_part_of_rows(enum cluster_part part)
{
    return part == PART_LABELS || part == PART_DISTANCES || part == PART_WEIGHTS;
}

bool cluster_part_size(hsize_t size[2], enum cluster_part part, const struct result_clusters *c)
{
    size[0] = cluster_part_of_rows(part) ? c->rows
              : part == PART_HISTORY     ? c->iterations
              : part == PART_MEAN        ? c->columns
              : part == PART_COMPONENTS  ? c->dimension
                                         : c->k;
    size[1] = part == PART_CENTROIDS    ? c->dimension
              : part == PART_COMPONENTS ? c->columns
                                        : NEAREST_COUNT;
    return part == PART_WEIGHTS      ? c->weighted
           : part == PART_MEAN       ? c->columns > 0
           : part == PART_COMPONENTS ? c->columns > 0 && c->components
           : part == PART_PARENTS    ? c->parents
                                     : true;
}

static enum status open_parts(struct result *result, struct result_clusters *c, hid_t group,
                              struct error *err)
{
    hsize_t size[PART_COUNT][2] = {{0}}, wanted[2];
    c->weighted = H5Lexists(group, cluster_part_kind[PART_WEIGHTS].name, H5P_DEFAULT) > 0;
    c->components = H5Lexists(group, cluster_part_kind[PART_COMPONENTS].name, H5P_DEFAULT) > 0;
    c->parents = H5Lexists(group, cluster_part_kind[PART_PARENTS].name, H5P_DEFAULT) > 0;
    c->columns = *c->space != 0; /* until they are known */
    for (int p = 0; p < PART_COUNT; p++) {
        const struct cluster_part_kind *kind = &cluster_part_kind[p];
        if (cluster_part_size(wanted, p, c) &&
            h5_open_dataset(&c->part[p], group, kind->name, kind->type, kind->rank, size[p], err))
            return STATUS_FAILED;
    }
    if (size[PART_CENTROIDS][1] < 1 || size[PART_CENTROIDS][1] > UINT32_MAX || c->k < 1)
        return h5_damaged(err, result->path, "/clusters/%s has an impossible size", c->name);
    c->dimension = (uint32_t)size[PART_CENTROIDS][1];
    c->rows = size[PART_LABELS][0];
    c->columns = size[PART_MEAN][0] < UINT32_MAX ? (uint32_t)size[PART_MEAN][0] : 0;
    if (*c->space && (c->columns < 1 || (!c->components && c->columns != c->dimension)))
        return h5_damaged(err, result->path, "/clusters/%s/mean has an impossible size", c->name);
    for (int p = 0; p < PART_COUNT; p++)
        if (cluster_part_size(wanted, p, c) &&
            (size[p][0] != wanted[0] ||
             (cluster_part_kind[p].rank == 2 && size[p][1] != wanted[1])))
            return h5_damaged(err, result->path,
                              "/clusters/%s/%s has a different size than the rest", c->name,
                              cluster_part_kind[p].name);
    if (result->images && c->rows != result->images->count)
        return h5_damaged(err, result->path,
                          "/clusters/%s has a different number of rows than /images", c->name);
    return STATUS_OK;
}

static enum status open_clustering(struct result *result, hid_t group, const char *name,
                                   struct error *err)
{
    struct result_clusters *clusters = &result->clusters[result->clusters_count];
    if (!schema_name_valid(name))
        return h5_damaged(err, result->path, "a clustering has an impossible name");
    result->clusters_count++;
    snprintf(clusters->name, sizeof clusters->name, "%s", name);
    H5_SCOPED hid_t member = H5I_INVALID_HID;
    if (h5_open_group(&member, group, name, err))
        return STATUS_FAILED;
    enum status status = read_clustering_attributes(clusters, member, err);
    return status ? status : open_parts(result, clusters, member, err);
}

static enum status open_run(struct result *result, hid_t group, const char *name, struct error *err)
{
    (void)group;
    (void)err;
    result->run_count += parse_u64(&result->runs[result->run_count], name, 0, UINT32_MAX);
    return STATUS_OK;
}

static enum status open_images(struct result *result, struct error *err)
{
    if (rows_open(&result->images, result->file, &image_table, err) ||
        rows_open(&result->failures, result->file, &failure_table, err) ||
        open_sources(result, err) || open_thumbnails(result, err) ||
        open_members(result, "features", &result->features, sizeof *result->features, open_feature,
                     err))
        return STATUS_FAILED;
    return result->features ? STATUS_OK : h5_damaged(err, result->path, "it has no /features");
}

static enum status open_runs(struct result *result, struct error *err)
{
    H5_SCOPED hid_t runs = H5I_INVALID_HID;
    enum status status =
        open_members(result, "runs", &result->runs, sizeof *result->runs, open_run, err);
    if (status || !h5_is_object(result->file, "runs", H5O_TYPE_GROUP))
        return status;
    status = h5_open_group(&runs, result->file, "runs", err);
    if (!status)
        status = h5_get_text(&result->run_clusters, runs, RUN_CLUSTERS, false, err);
    if (result->run_count > 1)
        qsort(result->runs, result->run_count, sizeof *result->runs, compare_u64);
    return status;
}

/* Reads the structure of the open file. */
static enum status open_objects(struct result *result, struct error *err)
{
    if (open_root(result, err) || parts_attach(result->file, result->path, err))
        return STATUS_FAILED;
    const htri_t images = H5Lexists(result->file, "images", H5P_DEFAULT);
    if (images < 0)
        return h5_fail(err, "H5Lexists", "read", result->path);
    result->named = images > 0 && H5Lexists(result->file, "features", H5P_DEFAULT) <= 0 &&
                    H5Lexists(result->file, "images/width", H5P_DEFAULT) <= 0;
    result->has_images = images > 0 && !result->named;
    if ((result->named && (rows_open(&result->images, result->file, &name_table, err) ||
                           open_sources(result, err))) ||
        (result->has_images && open_images(result, err)) ||
        open_members(result, "clusters", &result->clusters, sizeof *result->clusters,
                     open_clustering, err))
        return STATUS_FAILED;
    return open_runs(result, err);
}

/* Takes ownership of `file`; if it is invalid, opens `path`. */
static enum status open_result(struct result **out, hid_t file, const char *path, struct error *err)
{
    struct result *result = *out = calloc(1, sizeof *result);
    enum status status = STATUS_OK;
    if (!result || !(result->path = strdup(path)))
        status = error_memory(err, sizeof *result, "a result");
    if (result) {
        result->file = file;
        result->failed_calls = h5_failed_calls();
    }
    if (!status && file < 0)
        status = h5_open_file(&result->file, path, err);
    if (!status)
        status = open_objects(result, err);
    if (status)
        result_close(out);
    return status;
}

enum status result_open(struct result **out, const char *path, struct error *err)
{
    struct stat st;
    *out = NULL;
    const char *shown = PATH_TEXT(path);
    if (stat(path, &st) && (errno == ENOENT || errno == ENOTDIR))
        return error_set(err, STATUS_USAGE, "there is no file %s", shown);
    if (stat(path, &st))
        return error_errno(err, STATUS_FAILED, errno, "stat", "cannot read %s", shown);
    if (!S_ISREG(st.st_mode))
        return error_set(err, STATUS_FAILED, "cannot read %s: it is not a regular file", shown);
    return open_result(out, H5I_INVALID_HID, path, err);
}

enum status result_open_unfinished(struct result **out, hid_t file, struct error *err)
{
    *out = NULL;
    if (h5_flush_file(file, err))
        return STATUS_FAILED;
    H5Iinc_ref(file);
    return open_result(out, file, h5_path(file), err);
}

enum status result_check_current(const struct result *result, struct error *err)
{
    struct stat open, named;
    if (fstat(h5_driver_descriptor(result->file), &open) == 0 && stat(result->path, &named) == 0 &&
        (open.st_ino != named.st_ino || open.st_dev != named.st_dev))
        return error_set(err, STATUS_FAILED,
                         "%s was replaced by another process while it was read: run the command "
                         "again",
                         PATH_TEXT(result->path));
    return STATUS_OK;
}

static void clear_run(struct result *r)
{
    for (unsigned i = 0; i < RESULT_RUN_TEXTS; i++) {
        char *text;
        memcpy(&text, (char *)&r->run + result_run_attribute[i].offset, sizeof text);
        free(text);
    }
    r->run = (struct store_run){.command = NULL};
}

void result_close(struct result **result)
{
    if (!result || !*result)
        return;
    struct result *r = *result;
    *result = NULL;
    for (unsigned i = 0; i < r->clusters_count; i++) {
        for (int p = 0; p < PART_COUNT; p++)
            h5_close(&r->clusters[i].part[p]);
        free((void *)(uintptr_t)r->clusters[i].parameters);
    }
    free(r->clusters);
    for (unsigned i = 0; i < r->feature_count; i++)
        h5_close(&r->features[i].dataset);
    free(r->features);
    texts_free(r->sources);
    texts_free(r->source_names);
    texts_free(r->directories);
    clear_run(r);
    free(r->runs);
    free(r->run_clusters);
    blob_reader_close(&r->thumbnails);
    rows_close(&r->images);
    rows_close(&r->failures);
    if (r->axes)
        axes_clear(r->axes);
    free(r->axes);
    parts_detach(r->file);
    h5_close(&r->file);
    free(r->version);
    free(r->created);
    free(r->parameters);
    free(r->preset);
    free(r->path);
    free(r);
}

/* --- what there is ---------------------------------------------------------------------------- */

uint64_t result_images(const struct result *result)
{
    return result->images ? result->images->count : 0;
}

unsigned result_parts(const struct result *result)
{
    return parts_count(result->file);
}

uint64_t result_failures(const struct result *result)
{
    return result->has_images ? result->failures->count : 0;
}

bool result_feature_imported(const struct result_feature *feature)
{
    return strcmp(feature->kind, FEATURE_IMPORTED) == 0;
}

bool result_feature_describes(const struct result_feature *feature)
{
    return strcmp(feature->kind, feature_quality.name) == 0;
}

const struct result_feature *result_feature_find(const struct result *result, const char *name)
{
    for (unsigned i = 0; i < result->feature_count; i++)
        if (strcmp(result->features[i].name, name) == 0)
            return &result->features[i];
    return NULL;
}

const struct result_clusters *result_clusters_find(const struct result *result, const char *name)
{
    for (unsigned i = 0; i < result->clusters_count; i++)
        if (strcmp(result->clusters[i].name, name) == 0)
            return &result->clusters[i];
    return NULL;
}

bool result_clusters_by_run(const struct result *result, const struct result_clusters *clusters)
{
    return result->run_clusters && strcmp(result->run_clusters, clusters->name) == 0;
}

const char *result_feature_type_name(const struct result_feature *feature)
{
    return feature->is_float ? feature_store_name(feature->store) : "uint32";
}

enum value_type result_feature_type(const struct result_feature *feature)
{
    static const enum value_type types[] = {VALUE_F32, VALUE_F16, VALUE_U8};
    return feature->is_float ? types[feature->store] : VALUE_U32;
}

/* --- reading --------------------------------------------------------------------------------- */

enum status result_feature_read_counts(const struct result_feature *feature, uint64_t first,
                                       uint64_t count, uint32_t *rows, struct error *err)
{
    assert(!feature->is_float && first <= feature->rows && count <= feature->rows - first);
    return h5_read_rows(feature->dataset, VALUE_U32, first, count, rows, err);
}

enum status result_image_at(struct result *result, uint64_t row, struct result_image *image,
                            struct error *err)
{
    assert(row < result_images(result));
    const void *found;
    const char *raw;
    if (rows_at(result->images, row, &found, &raw, err))
        return STATUS_FAILED;
    *image = *(const struct result_image *)found;
    image->path_raw = raw;
    image->format[sizeof image->format - 1] = 0;
    image->has_code = result_has_codes(result);
    if (image->source >= result->source_count)
        return h5_damaged(err, result->path, "image %llu has a source that is not in the list",
                          (unsigned long long)row);
    return STATUS_OK;
}

bool result_has_codes(const struct result *result)
{
    return result->has_images && result->images->dataset[IMAGE_CODE] > 0;
}

enum status result_codes_read(struct result *result, uint64_t first, uint64_t count, uint8_t *codes,
                              struct error *err)
{
    assert(result_has_codes(result) && first <= result_images(result) &&
           count <= result_images(result) - first);
    return h5_read_rows(result->images->dataset[IMAGE_CODE], VALUE_U8, first, count, codes, err);
}

bool result_compressed(const struct result *result)
{
    for (unsigned i = 0; i < result->feature_count; i++)
        if (!result_feature_imported(&result->features[i]) &&
            h5_is_compressed(result->features[i].dataset))
            return true;
    return false;
}

uint64_t result_feature_stored_bytes(const struct result_feature *feature)
{
    return H5Dget_storage_size(feature->dataset);
}

size_t result_feature_row_bytes(const struct result_feature *feature)
{
    return feature->dimension * value_size(result_feature_type(feature));
}

enum status result_thumbnail_read(struct result *result, uint64_t row, const uint8_t **jpeg,
                                  uint64_t *length, struct error *err)
{
    *jpeg = NULL;
    *length = 0;
    return result->thumbnails ? blob_reader_read(result->thumbnails, row, jpeg, length, err)
                              : STATUS_OK;
}

enum status result_failure_at(struct result *result, uint64_t row, struct result_failure *failure,
                              struct error *err)
{
    assert(row < result_failures(result));
    const void *found;
    const char *raw;
    if (rows_at(result->failures, row, &found, &raw, err))
        return STATUS_FAILED;
    const struct failure_row *from = found;
    enum reason reason;
    if (!failure_row_reason(&reason, from))
        return h5_damaged(err, result->path, "failure %llu has a reason that does not exist",
                          (unsigned long long)row);
    if (from->source >= result->source_count)
        return h5_damaged(err, result->path, "failure %llu has a source that is not in the list",
                          (unsigned long long)row);
    *failure = (struct result_failure){from, raw, reason};
    return STATUS_OK;
}

enum status result_part_read(void *to, const struct result_clusters *clusters,
                             enum cluster_part part, struct error *err)
{
    hsize_t size[2];
    cluster_part_size(size, part, clusters);
    return h5_read_rows(clusters->part[part], cluster_part_kind[part].type, 0, size[0], to, err);
}

enum status result_parents_read(int32_t **parents, const struct result_clusters **above,
                                struct result *result, const struct result_clusters *clusters,
                                struct error *err)
{
    const struct result_clusters *coarser = result_clusters_find(result, clusters->parent);
    const size_t bytes = clusters->k * sizeof **parents;
    *parents = NULL;
    *above = coarser;
    if (!*clusters->parent)
        return STATUS_END;
    if (!clusters->parents || !coarser || coarser == clusters)
        return h5_damaged(err, result->path, "/clusters/%s/parents does not fit the level above",
                          clusters->name);
    if (!(*parents = malloc(bytes)))
        return error_memory(err, bytes, "clusters of a level");
    enum status status = result_part_read(*parents, clusters, PART_PARENTS, err);
    for (uint32_t i = 0; status == STATUS_OK && i < clusters->k; i++)
        if ((*parents)[i] < 0 || (uint32_t)(*parents)[i] >= coarser->k)
            status = h5_damaged(err, result->path,
                                "/clusters/%s/parents names a cluster that does not exist",
                                clusters->name);
    if (status != STATUS_OK) {
        free(*parents);
        *parents = NULL;
    }
    return status;
}

const struct result_clusters *result_clusters_below(const struct result *result,
                                                    const struct result_clusters *clusters)
{
    for (unsigned i = 0; i < result->clusters_count; i++) {
        const struct result_clusters *c = &result->clusters[i];
        if (c != clusters && c->parents && strcmp(c->parent, clusters->name) == 0)
            return c;
    }
    return NULL;
}

enum status result_clusters_read_rows(const struct result_clusters *clusters, uint64_t first,
                                      uint64_t count, int32_t *labels, float *distances,
                                      struct error *err)
{
    if (labels && h5_read_rows(clusters->part[PART_LABELS], VALUE_I32, first, count, labels, err))
        return STATUS_FAILED;
    return distances ? h5_read_rows(clusters->part[PART_DISTANCES], VALUE_F32, first, count,
                                    distances, err)
                     : STATUS_OK;
}

enum status result_projection_read(struct projection *out, struct result *result,
                                   const struct result_clusters *clusters, struct error *err)
{
    const uint32_t columns = clusters->columns, dimension = clusters->dimension;
    *out = (struct projection){.columns = columns, .dimension = dimension};
    if (!projection_space(&out->space, clusters->space))
        return h5_damaged(err, result->path, "/clusters/%s has an unknown space", clusters->name);
    out->mean = malloc(columns * sizeof *out->mean);
    if (clusters->components)
        out->components = malloc((size_t)dimension * columns * sizeof *out->components);
    if (!out->mean || (clusters->components && !out->components))
        return error_memory(err, (size_t)dimension * columns * sizeof *out->mean, "a projection");
    if (result_part_read(out->mean, clusters, PART_MEAN, err))
        return STATUS_FAILED;
    return out->components ? result_part_read(out->components, clusters, PART_COMPONENTS, err)
                           : STATUS_OK;
}

static enum status read_sweep_column(struct cluster_sweep *sweep, hid_t group,
                                     const struct column *column, struct error *err)
{
    const size_t size = value_size(column->type);
    H5_SCOPED hid_t dataset = H5I_INVALID_HID;
    hsize_t length;
    if (h5_open_dataset(&dataset, group, column->name, column->type, 1, &length, err))
        return STATUS_FAILED;
    if (!sweep->values && length <= MOST_SWEEP_VALUES)
        sweep->count = (uint32_t)length;
    if (length != sweep->count || length == 0)
        return h5_wrong(err, dataset, "has an impossible size");
    if (!sweep->values)
        sweep->values = calloc(length, sizeof *sweep->values);
    uint8_t *values = malloc(length * size);
    enum status status = sweep->values && values
                             ? h5_read_rows(dataset, column->type, 0, length, values, err)
                             : error_memory(err, length * sizeof *sweep->values, "the values of k");
    for (uint32_t i = 0; i < sweep->count && !status; i++)
        memcpy((uint8_t *)&sweep->values[i] + column->offset, values + i * size, size);
    free(values);
    return status;
}

enum status result_sweep_read(struct cluster_sweep *out, struct result *result,
                              const struct result_clusters *clusters, struct error *err)
{
    char path[FEATURE_NAME_MAX + 32];
    H5_SCOPED hid_t group = H5I_INVALID_HID;
    *out = (struct cluster_sweep){0};
    snprintf(path, sizeof path, "clusters/%s/sweep", clusters->name);
    if (H5Lexists(result->file, path, H5P_DEFAULT) <= 0)
        return STATUS_OK;
    if (!h5_is_object(result->file, path, H5O_TYPE_GROUP))
        return h5_damaged(err, result->path, "/%s is not a group of the file itself", path);
    if (h5_open_group(&group, result->file, path, err))
        return STATUS_FAILED;
    out->has_classes = H5Lexists(group, "purity", H5P_DEFAULT) > 0;
    const int columns = out->has_classes ? SWEEP_COLUMNS : SWEEP_COLUMNS_PLAIN;
    enum status status =
        h5_get_attributes(out, group, result_sweep_attribute, RESULT_SWEEP_ATTRIBUTES, err);
    for (int i = 0; i < columns && !status; i++)
        status = read_sweep_column(out, group, &sweep_column[i], err);
    if (status)
        cluster_sweep_clear(out);
    return status;
}

enum status result_run_at(struct result *result, uint64_t i, struct store_run *run,
                          struct error *err)
{
    assert(i < result->run_count);
    char name[32];
    H5_SCOPED hid_t group = H5I_INVALID_HID;
    snprintf(name, sizeof name, "runs/%llu", (unsigned long long)result->runs[i]);
    if (h5_open_group(&group, result->file, name, err))
        return STATUS_FAILED;
    clear_run(result);
    enum status status =
        h5_get_attributes(&result->run, group, result_run_attribute, RESULT_RUN_TEXTS + 1, err);
    *run = result->run;
    return status;
}
