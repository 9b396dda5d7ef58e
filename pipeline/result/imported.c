/* imported.c: adds a feature to a copy of a file, block by block. */
#include "result/imported.h"
#include "base/minmax.h"
#include "base/path.h"
#include "result/change.h"
#include "result/result_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool feature_is_part(const char *feature, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = feature; *at; at += *at == '+') {
        if (strncmp(at, name, length) == 0 && strchr("+:", at[length]))
            return true;
        at += strcspn(at, "+");
    }
    return false;
}

enum status imported_check(struct result *result, const char *name, bool replace, struct error *err)
{
    char where[FEATURE_NAME_MAX + 16];
    const char *shown = PATH_TEXT(result->path);
    if (schema_check_name(name, "feature", err) != STATUS_OK)
        return err->status;
    if (!result->has_images || result_images(result) == 0)
        return error_set(err, STATUS_FAILED,
                         "%s has no images that the rows of a feature could belong to", shown);
    const struct result_feature *old = result_feature_find(result, name);
    snprintf(where, sizeof where, "features/%s", name);
    if (old && result_feature_imported(old) && replace)
        return STATUS_OK;
    if (old && result_feature_imported(old)) {
        error_set(err, STATUS_USAGE, "%s already has an imported feature '%s'", shown, name);
        error_remedy(err, REMEDY_REPLACE_FEATURE);
        return STATUS_USAGE;
    }
    if (strcmp(name, RESULT_PRESET) == 0)
        return error_set(err, STATUS_USAGE, RESULT_PRESET_TAKEN);
    if (old || H5Lexists(result->file, where, H5P_DEFAULT) > 0)
        return error_set(err, STATUS_USAGE, "%s already has /%s, which %s: choose another name",
                         shown, where,
                         old ? "clpipe computed from the images" : "another program stored");
    return STATUS_OK;
}

/* Reads all rows and writes them to `dataset` or, if `equal` is not NULL, compares them with its rows up to
 * the first difference. */
static enum status visit_rows(bool *equal, hid_t dataset, const struct imported_feature *feature,
                              struct error *err)
{
    const struct matrix_source *rows = feature->rows;
    const uint64_t step = min_u64(feature->rows_at_once, rows->rows);
    const size_t values = (size_t)step * rows->dimension;
    float *block = malloc(2 * values * sizeof *block);
    enum status status = block ? STATUS_OK : error_memory(err, 2 * values * sizeof *block, "rows");
    for (uint64_t first = 0; first < rows->rows && !status && !(equal && !*equal); first += step) {
        const uint64_t count = min_u64(rows->rows - first, step);
        watch_show(&feature->watch, "importing rows", first, rows->rows);
        status = watch_check(&feature->watch, "importing rows", err);
        if (status == STATUS_OK)
            status = matrix_read(rows, first, count, block, err);
        if (status == STATUS_OK)
            status = equal ? h5_read_rows(dataset, VALUE_F32, first, count, block + values, err)
                           : h5_write_rows(dataset, VALUE_F32, first, count, block, err);
        if (equal)
            *equal =
                status == STATUS_OK &&
                memcmp(block, block + values, (size_t)count * rows->dimension * sizeof *block) == 0;
    }
    free(block);
    return status;
}

enum status imported_equal(bool *equal, struct result *result,
                           const struct imported_feature *feature, struct error *err)
{
    const struct result_feature *old = result_feature_find(result, feature->name);
    *equal = old && result_feature_imported(old) && old->dimension == feature->rows->dimension &&
             strcmp(old->imported_from, feature->from) == 0;
    return *equal ? visit_rows(equal, old->dataset, feature, err) : STATUS_OK;
}

static enum status put_attributes(hid_t dataset, const struct imported_feature *feature,
                                  struct error *err)
{
    const struct result_feature about = {
        .spec = FEATURE_IMPORTED, .kind = FEATURE_IMPORTED, .decode_scale = 1};
    char digest[65];
    return feature->rows->identity(feature->rows->context, digest, err) ||
                   h5_put_attributes(dataset, result_feature_attribute, RESULT_FEATURE_TEXTS + 1,
                                     &about, err) ||
                   h5_put_text(dataset, "imported_from", feature->from, err) ||
                   h5_put_text(dataset, "imported_digest", digest, err)
               ? STATUS_FAILED
               : STATUS_OK;
}

struct importing {
    const struct result *result;
    const struct imported_feature *feature;
};

static enum status write_feature(void *context, hid_t file, struct error *err)
{
    const struct imported_feature *feature = ((const struct importing *)context)->feature;
    char axis[AXIS_NAME_MAX];
    const char *const axes[] = {image_table.axis, axis};
    const hsize_t size[2] = {feature->rows->rows, feature->rows->dimension};
    H5_SCOPED hid_t group = H5Gopen2(file, "features", H5P_DEFAULT), dataset = H5I_INVALID_HID;
    axis_name(axis, "feature", feature->name);
    if (group < 0)
        return h5_failed(err, "H5Gopen2", "write", file);
    enum status status =
        h5_create_on_scales(&dataset, file, group, feature->name, VALUE_F32, 2, size, axes, err);
    if (status == STATUS_OK)
        status = visit_rows(NULL, dataset, feature, err);
    if (status == STATUS_OK)
        status = put_attributes(dataset, feature, err);
    return status ? status : h5_finish_dataset(&dataset, err);
}

/* Whether the object is the old feature, or was made from its rows. */
static bool is_replaced(const void *context, const char *name)
{
    const struct importing *importing = context;
    const char *feature = importing->feature->name, *member = strrchr(name, '/') + 1;
    const struct result_clusters *clusters = result_clusters_find(importing->result, member);
    const size_t group = (size_t)(member - name);
    if (strncmp(name, "/clusters/", group) == 0)
        return clusters && feature_is_part(clusters->feature, feature);
    return strcmp(member, feature) == 0 &&
           (strncmp(name, "/features/", group) == 0 || strncmp(name, "/neighbours/", group) == 0);
}

enum status imported_write(struct result *result, const struct imported_feature *feature,
                           struct error *err)
{
    struct importing importing = {result, feature};
    const struct change change = {
        .output = result->path,
        .base = result,
        .leave_out = result_feature_find(result, feature->name) ? is_replaced : NULL,
        .add = write_feature,
        .context = &importing};
    return change_make(&change, err);
}
