/* result.c: opens a finished file and learns what is inside.
 *
 * Everything that later reads rely on is checked here: that the objects are there as hard links,
 * their types, that lengths agree, and that the file is large enough for what it claims. Whether
 * the values make sense is verify's business. */
#include "base/parse.h"
#include "base/path.h"
#include "file/sweep_group.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* An argument has at most 128 KiB, four times that if no byte of it is UTF-8. */
#define MOST_SOURCE_BYTES (512u << 10)

enum status result_damaged(const struct result *result, struct error *err, const char *format, ...)
{
    char what[400], shown[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return error_set(err, STATUS_FAILED, "%s is damaged or not clpipe's: %s",
                     path_for_message(shown, sizeof shown, result->path), what);
}

/* A short text attribute into a fixed buffer. */
static enum status short_text(char *buffer, size_t size, struct result *result, hid_t object,
                              const char *name, struct error *err)
{
    char *text;
    enum status status = vlen_text_attribute(&text, result->vlen, object, name, true, err);
    if (status)
        return status;
    if (strlen(text) >= size || !utf8_valid(text, strlen(text)))
        status = result_damaged(result, err, "its attribute '%s' is longer than it can be", name);
    else
        strcpy(buffer, text);
    free(text);
    return status;
}

/* A non-negative integer attribute of at most `most`. */
static enum status number(uint32_t *value, struct result *result, hid_t object, const char *name,
                          uint32_t most, struct error *err)
{
    int64_t found;
    if (!h5_get_integer(object, name, &found) || found < 0 || found > most)
        return result_damaged(result, err, "its attribute '%s' is missing or out of range", name);
    *value = (uint32_t)found;
    return STATUS_OK;
}

/* Opens a group at the root and lists it; *there is false, and nothing open, if there is none. */
static enum status list_group(hid_t *group, struct h5_names *names, bool *there,
                              struct result *result, const char *name, unsigned most,
                              struct error *err)
{
    *group = H5I_INVALID_HID;
    *names = (struct h5_names){0};
    *there = H5Lexists(result->file, name, H5P_DEFAULT) > 0;
    if (!*there)
        return STATUS_OK;
    if (!h5_is_object(result->file, name, H5O_TYPE_GROUP))
        return result_damaged(result, err, "/%s is no group of its own", name);
    *group = H5Gopen2(result->file, name, H5P_DEFAULT);
    if (*group < 0)
        return h5_fail(err, "H5Gopen2", "read", result->path);
    return h5_list(names, *group, most, result->path, err);
}

static enum status open_root(struct result *result, struct error *err)
{
    char shown[256];
    path_for_message(shown, sizeof shown, result->path);
    int64_t format;
    if (!h5_get_integer(result->file, "clpipe_format", &format))
        return error_set(err, STATUS_FAILED, "%s is an HDF5 file, but not one of clpipe's", shown);
    if (format != SCHEMA_FORMAT)
        return error_set(err, STATUS_FAILED,
                         "%s has format %lld, this clpipe reads format %d: use the clpipe that "
                         "wrote it, or a newer one",
                         shown, (long long)format, SCHEMA_FORMAT);
    enum status status = vlen_open(&result->vlen, result->file, result->path, err);
    static const char *const names[3] = {"clpipe_version", "created", "parameters"};
    char **const texts[3] = {&result->version, &result->created, &result->parameters};
    for (int i = 0; !status && i < 3; i++) {
        status = vlen_text_attribute(texts[i], result->vlen, result->file, names[i], true, err);
        if (!status && !utf8_valid(*texts[i], strlen(*texts[i])))
            status = result_damaged(result, err, "its attribute '%s' is not UTF-8", names[i]);
    }
    return status;
}

static enum status open_sources(struct result *result, struct error *err)
{
    hsize_t count;
    enum status status =
        h5_open_dataset(&result->sources_dataset, result->file, "images/sources", VALUE_TEXT, 1,
                        &count, "/images/sources", result->path, err);
    if (status)
        return status;
    if (count > UINT16_MAX + 1)
        return result_damaged(result, err, "it has more than 65,536 sources");
    result->sources = calloc(count ? count : 1, sizeof *result->sources);
    if (!result->sources)
        return error_memory(err, count * sizeof *result->sources, "sources");
    for (; result->source_count < count; result->source_count++) {
        uint8_t descriptor[VLEN_DESCRIPTOR];
        const uint8_t *bytes;
        uint32_t length;
        status = vlen_descriptors(result->vlen, result->sources_dataset, result->source_count, 1,
                                  descriptor, err);
        if (!status)
            status = vlen_element(result->vlen, descriptor, 1, &bytes, &length, err);
        if (status)
            return status;
        if (!utf8_valid((const char *)bytes, length) || length > MOST_SOURCE_BYTES)
            return result_damaged(result, err, "a source is no text");
        char *source = strndup((const char *)bytes, length);
        if (!source)
            return error_memory(err, length, "sources");
        result->sources[result->source_count] = source;
    }
    return STATUS_OK;
}

static enum status open_feature(struct result *result, hid_t group, const char *name,
                                struct error *err)
{
    struct result_feature *feature = &result->features[result->feature_count];
    hid_t *dataset = &result->feature_dataset[result->feature_count];
    if (!schema_name_valid(name))
        return result_damaged(result, err, "a feature has an impossible name");
    snprintf(feature->name, sizeof feature->name, "%s", name);
    /* The normalisation says which of the two types it must be. */
    char where[FEATURE_NAME_MAX + 16];
    snprintf(where, sizeof where, "/features/%s", name);
    if (!h5_is_object(group, name, H5O_TYPE_DATASET))
        return result_damaged(result, err, "%s is no dataset of its own", where);
    hid_t plain = H5Dopen2(group, name, H5P_DEFAULT);
    enum status status = STATUS_OK;
    if (plain < 0)
        return h5_fail(err, "H5Dopen2", "read", result->path);
    status = short_text(feature->spec, sizeof feature->spec, result, plain, "spec", err);
    if (!status)
        status = short_text(feature->kind, sizeof feature->kind, result, plain, "kind", err);
    if (!status)
        status = short_text(feature->bins, sizeof feature->bins, result, plain, "bins", err);
    if (!status)
        status = short_text(feature->grid, sizeof feature->grid, result, plain, "grid", err);
    if (!status)
        status = short_text(feature->normalize, sizeof feature->normalize, result, plain,
                            "normalize", err);
    if (!status)
        status = number(&feature->decode_scale, result, plain, "decode_scale", 64, err);
    h5_close(&plain);
    if (status)
        return status;
    feature->is_float = strcmp(feature->normalize, "none") != 0;
    hsize_t size[2];
    status = h5_open_dataset(dataset, group, name, feature->is_float ? VALUE_F32 : VALUE_U32, 2,
                             size, where, result->path, err);
    if (status)
        return status;
    result->feature_count++;
    if (size[0] != rows_count(result->images))
        return result_damaged(result, err, "%s has another number of rows than /images", where);
    if (size[1] < 1 || size[1] > FEATURE_DIMENSION_MAX)
        return result_damaged(result, err, "%s has an impossible dimension", where);
    feature->rows = size[0];
    feature->dimension = (uint32_t)size[1];
    return STATUS_OK;
}

static enum status open_features(struct result *result, struct error *err)
{
    hid_t group;
    struct h5_names names;
    bool there;
    enum status status =
        list_group(&group, &names, &there, result, "features", RESULT_MOST_FEATURES, err);
    if (!status && !there)
        status = result_damaged(result, err, "it has no /features");
    if (!status) {
        result->features = calloc(names.count ? names.count : 1, sizeof *result->features);
        result->feature_dataset =
            calloc(names.count ? names.count : 1, sizeof *result->feature_dataset);
        if (!result->features || !result->feature_dataset)
            status = error_memory(err, names.count * sizeof *result->features, "features");
    }
    for (unsigned i = 0; !status && i < names.count; i++)
        status = open_feature(result, group, names.name[i], err);
    h5_free_names(&names);
    h5_close(&group);
    return status;
}

/* The attributes of /clusters/NAME. */
static enum status open_clustering(struct result *result, struct result_cluster_entry *entry,
                                   hid_t group, struct error *err)
{
    struct result_clusters *c = &entry->clusters;
    uint32_t converged = 0;
    enum status status = short_text(c->feature, sizeof c->feature, result, group, "feature", err);
    if (!status)
        status = short_text(c->metric, sizeof c->metric, result, group, "metric", err);
    if (!status)
        status = short_text(c->init, sizeof c->init, result, group, "init", err);
    if (!status)
        status = short_text(c->content, sizeof c->content, result, group, "content", err);
    if (!status)
        status = number(&c->k, result, group, "k", INT32_MAX, err);
    if (!status)
        status = number(&c->iterations, result, group, "iterations", UINT32_MAX, err);
    if (!status)
        status = number(&converged, result, group, "converged", 1, err);
    if (!status && !h5_get_integer(group, "seed", &c->seed))
        status = result_damaged(result, err, "its attribute 'seed' is missing");
    if (!status && !h5_get_real(group, "inertia", &c->inertia))
        status = result_damaged(result, err, "its attribute 'inertia' is missing");
    if (!status)
        status =
            vlen_text_attribute(&entry->parameters, result->vlen, group, "parameters", true, err);
    if (!status)
        status = sweep_group_agreement(&c->has_agreement, &c->agreement, result, group, err);
    c->converged = converged;
    c->parameters = entry->parameters;
    return status;
}

static enum status open_parts(struct result *result, struct result_cluster_entry *entry,
                              hid_t group, struct error *err)
{
    struct result_clusters *c = &entry->clusters;
    hsize_t size[PART_COUNT][2] = {{0}};
    enum status status = STATUS_OK;
    c->weighted = H5Lexists(group, cluster_part_kind[PART_WEIGHTS].name, H5P_DEFAULT) > 0;
    for (int p = 0; !status && p < PART_COUNT; p++) {
        const struct cluster_part_kind *kind = &cluster_part_kind[p];
        if (p == PART_WEIGHTS && !c->weighted)
            continue;
        char where[FEATURE_NAME_MAX + 48];
        snprintf(where, sizeof where, "/clusters/%s/%s", c->name, kind->name);
        status = h5_open_dataset(&entry->part[p], group, kind->name, kind->type, kind->rank,
                                 size[p], where, result->path, err);
    }
    if (status)
        return status;
    if (size[PART_CENTROIDS][1] < 1 || size[PART_CENTROIDS][1] > UINT32_MAX || c->k < 1)
        return result_damaged(result, err, "/clusters/%s has an impossible size", c->name);
    c->dimension = (uint32_t)size[PART_CENTROIDS][1];
    c->rows = size[PART_LABELS][0];
    struct cluster_shape shape = {c->k, c->dimension, c->iterations, c->rows};
    for (int p = 0; p < PART_COUNT; p++) {
        hsize_t wanted[2];
        if (p == PART_WEIGHTS && !c->weighted)
            continue;
        cluster_part_dimensions(wanted, p, &shape);
        if (size[p][0] != wanted[0] || (cluster_part_kind[p].rank == 2 && size[p][1] != wanted[1]))
            return result_damaged(result, err, "/clusters/%s/%s has another size than the rest",
                                  c->name, cluster_part_kind[p].name);
    }
    if (result->has_images && c->rows != rows_count(result->images))
        return result_damaged(result, err, "/clusters/%s has another number of rows than /images",
                              c->name);
    return STATUS_OK;
}

static enum status open_clusters(struct result *result, struct error *err)
{
    hid_t group;
    struct h5_names names;
    bool there;
    enum status status =
        list_group(&group, &names, &there, result, "clusters", RESULT_MOST_CLUSTERS, err);
    if (!status) {
        result->clusters = calloc(names.count ? names.count : 1, sizeof *result->clusters);
        if (!result->clusters)
            status = error_memory(err, names.count * sizeof *result->clusters, "clusters");
    }
    for (unsigned i = 0; !status && i < names.count; i++) {
        struct result_cluster_entry *entry = &result->clusters[result->clusters_count];
        if (!schema_name_valid(names.name[i]) ||
            !h5_is_object(group, names.name[i], H5O_TYPE_GROUP)) {
            status = result_damaged(result, err, "/clusters has a member that is no clustering");
            break;
        }
        result->clusters_count++;
        snprintf(entry->clusters.name, sizeof entry->clusters.name, "%s", names.name[i]);
        hid_t member = H5Gopen2(group, names.name[i], H5P_DEFAULT);
        status = member > 0 ? open_clustering(result, entry, member, err)
                            : h5_fail(err, "H5Gopen2", "read", result->path);
        if (!status)
            status = open_parts(result, entry, member, err);
        h5_close(&member);
    }
    h5_free_names(&names);
    h5_close(&group);
    return status;
}

static int compare_numbers(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static enum status open_runs(struct result *result, struct error *err)
{
    hid_t group;
    struct h5_names names;
    bool there;
    enum status status = list_group(&group, &names, &there, result, "runs", RESULT_MOST_RUNS, err);
    if (!status) {
        result->runs = calloc(names.count ? names.count : 1, sizeof *result->runs);
        if (!result->runs)
            status = error_memory(err, names.count * sizeof *result->runs, "runs");
    }
    for (unsigned i = 0; !status && i < names.count; i++)
        if (parse_u64(&result->runs[result->run_count], names.name[i], 0, UINT32_MAX) &&
            h5_is_object(group, names.name[i], H5O_TYPE_GROUP))
            result->run_count++;
    if (result->run_count > 1)
        qsort(result->runs, result->run_count, sizeof *result->runs, compare_numbers);
    h5_free_names(&names);
    h5_close(&group);
    return status;
}

enum status result_open(struct result **out, const char *path, struct error *err)
{
    *out = NULL;
    char shown[256];
    path_for_message(shown, sizeof shown, path);
    struct stat st;
    if (stat(path, &st))
        return error_errno(err, STATUS_FAILED, errno, "stat", "cannot read %s", shown);
    if (!S_ISREG(st.st_mode))
        return error_set(err, STATUS_FAILED, "cannot read %s: it is no regular file", shown);
    struct result *result = calloc(1, sizeof *result);
    if (!result)
        return error_memory(err, sizeof *result, "a result");
    result->path = strdup(path);
    enum status status =
        result->path ? STATUS_OK : error_memory(err, strlen(path) + 1, "a file name");
    if (!status)
        status = h5_open_file(&result->file, path, false, err);
    if (status && err && H5Fis_hdf5(path) == 0)
        error_set(err, STATUS_FAILED, "%s is not an HDF5 file", shown);
    if (!status)
        status = open_root(result, err);
    if (!status && H5Lexists(result->file, "images", H5P_DEFAULT) > 0) {
        result->has_images = true;
        status = rows_open(&result->images, result->file, result->vlen, &image_table, path, err);
        if (!status)
            status =
                rows_open(&result->failures, result->file, result->vlen, &failure_table, path, err);
        if (!status)
            status = open_sources(result, err);
        if (!status)
            status = open_features(result, err);
    }
    if (!status)
        status = open_clusters(result, err);
    if (!status)
        status = open_runs(result, err);
    if (status)
        result_close(&result);
    *out = result;
    return status;
}

enum status result_check_current(const struct result *result, struct error *err)
{
    int *descriptor = NULL;
    struct stat open, named;
    char shown[256];
    if (H5Fget_vfd_handle(result->file, H5P_DEFAULT, (void **)&descriptor) >= 0 && descriptor &&
        fstat(*descriptor, &open) == 0 && stat(result->path, &named) == 0 &&
        (open.st_ino != named.st_ino || open.st_dev != named.st_dev))
        return error_set(err, STATUS_FAILED,
                         "%s was replaced by another process while it was read: run the command "
                         "again",
                         path_for_message(shown, sizeof shown, result->path));
    return STATUS_OK;
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
        free(r->clusters[i].parameters);
    }
    free(r->clusters);
    for (unsigned i = 0; i < r->feature_count; i++)
        h5_close(&r->feature_dataset[i]);
    free(r->feature_dataset);
    free(r->features);
    for (unsigned i = 0; i < r->source_count; i++)
        free(r->sources[i]);
    free(r->sources);
    for (unsigned i = 0; i < sizeof r->run_text / sizeof *r->run_text; i++)
        free(r->run_text[i]);
    free(r->runs);
    h5_close(&r->sources_dataset);
    rows_close(&r->images);
    rows_close(&r->failures);
    vlen_close(&r->vlen);
    h5_close(&r->file);
    free(r->version);
    free(r->created);
    free(r->parameters);
    free(r->path);
    free(r);
}

uint64_t result_images(const struct result *result)
{
    return result->has_images ? rows_count(result->images) : 0;
}

uint64_t result_failures(const struct result *result)
{
    return result->has_images ? rows_count(result->failures) : 0;
}

const char *result_path(const struct result *result)
{
    return result->path;
}

const char *result_parameters(const struct result *result)
{
    return result->parameters;
}

const char *result_version(const struct result *result)
{
    return result->version;
}

const char *result_created(const struct result *result)
{
    return result->created;
}

unsigned result_source_count(const struct result *result)
{
    return result->source_count;
}

const char *result_source(const struct result *result, unsigned i)
{
    return result->sources[i];
}

unsigned result_feature_count(const struct result *result)
{
    return result->feature_count;
}

const struct result_feature *result_feature_at(const struct result *result, unsigned i)
{
    return &result->features[i];
}

const struct result_feature *result_feature_find(const struct result *result, const char *name)
{
    for (unsigned i = 0; i < result->feature_count; i++)
        if (strcmp(result->features[i].name, name) == 0)
            return &result->features[i];
    return NULL;
}

unsigned result_clusters_count(const struct result *result)
{
    return result->clusters_count;
}

const struct result_clusters *result_clusters_at(const struct result *result, unsigned i)
{
    return &result->clusters[i].clusters;
}

const struct result_clusters *result_clusters_find(const struct result *result, const char *name)
{
    for (unsigned i = 0; i < result->clusters_count; i++)
        if (strcmp(result->clusters[i].clusters.name, name) == 0)
            return &result->clusters[i].clusters;
    return NULL;
}

uint64_t result_run_count(const struct result *result)
{
    return result->run_count;
}
