/* verify.c: checks what a file says against what it must be. What makes a file unreadable was found
 * when it was opened; here it is about values, order and the scales on the axes. */
#include "file/verify.h"
#include "base/path.h"
#include "file/verify_clusters.h"
#include "file/verify_features.h"
#include "log/workdir.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A scale must have the length of the axes it is on. */
static enum status check_scale(struct verify *verify, const char *name, uint64_t length,
                               struct error *err)
{
    struct result *result = verify->result;
    if (!h5_is_object(result->file, name, H5O_TYPE_DATASET)) {
        verify_broken(verify, "/%s: the dimension scale is missing", name);
        return STATUS_OK;
    }
    hid_t dataset = H5Dopen2(result->file, name, H5P_DEFAULT);
    if (dataset < 0)
        return h5_fail(err, "H5Dopen2", "read", result->path);
    hid_t space = H5Dget_space(dataset);
    if (H5Sget_simple_extent_npoints(space) != (hssize_t)length)
        verify_broken(verify, "/%s: the dimension scale has length %lld, its axes %llu", name,
                      (long long)H5Sget_simple_extent_npoints(space), (unsigned long long)length);
    h5_close(&space);
    h5_close(&dataset);
    return STATUS_OK;
}

/* --- tables ---------------------------------------------------------------------------------- */

/* The order of a table's rows: by source, and within a source that is no list by the path. */
struct order {
    uint16_t source;
    char *path; /* of the row before */
    size_t capacity;
};

static bool in_order(struct verify *verify, struct order *order, uint64_t row, uint16_t source,
                     const char *path)
{
    const struct result *result = verify->result;
    bool right = true;
    if (row > 0 && source < order->source)
        right = false;
    if (row > 0 && source == order->source && source < result->source_count) {
        const char *name = result->sources[source];
        bool list = name[0] == '@' || strcmp(name, "-") == 0;
        right = list || strcmp(order->path, path) < 0;
    }
    order->source = source;
    size_t size = strlen(path) + 1;
    if (size > order->capacity) {
        char *more = realloc(order->path, 2 * size);
        if (!more)
            return right;
        order->path = more;
        order->capacity = 2 * size;
    }
    memcpy(order->path, path, size);
    return right;
}

/* The stored text of a path must be what its bytes give. */
static bool same_path(const char *text, const char *raw)
{
    if (text == raw)
        return true;
    size_t length = strlen(raw), size = 4 * length + 1;
    char *expected = malloc(size);
    bool same = !expected;
    if (expected) {
        path_to_utf8(expected, size, raw, length);
        same = strcmp(expected, text) == 0 && !utf8_valid(raw, length);
    }
    free(expected);
    return same;
}

static enum status check_images(struct verify *verify, struct error *err)
{
    enum status status = STATUS_FAILED;
    struct result *result = verify->result;
    uint8_t *bad = verify->bad_images;
    struct verify_rows order = {0}, source = {.bad = bad}, size = {.bad = bad}, kind = {.bad = bad},
                       raw = {.bad = bad};
    struct order before = {0};
    for (uint64_t i = 0; i < rows_count(result->images); i++) {
        const void *found;
        const char *path;
        if (rows_at(result->images, i, &found, &path, err))
            goto out;
        const struct image_row *row = found;
        if (row->source >= result->source_count)
            verify_row(&source, i);
        if (!in_order(verify, &before, i, row->source, path))
            verify_row(&order, i);
        if (row->width == 0 || row->height == 0 || row->bytes == 0)
            verify_row(&size, i);
        if (row->orientation < 1 || row->orientation > 8 || row->channels < 1 ||
            row->channels > 4 || row->format[0] <= ' ' || row->format[0] > '~')
            verify_row(&kind, i);
        if (!*path || !same_path(row->path, path))
            verify_row(&raw, i);
    }
    status = STATUS_OK;
out:
    free(before.path);
    verify_report_rows(verify, &order, "/images", "does not come after the one before it");
    verify_report_rows(verify, &source, "/images/source", "names a source that is not in the list");
    verify_report_rows(verify, &size, "/images", "has no width, height or bytes");
    verify_report_rows(verify, &kind, "/images",
                       "has an impossible orientation, number of channels or format");
    verify_report_rows(verify, &raw, "/images/path", "does not agree with path_raw, or is empty");
    return status;
}

static enum status check_failures(struct verify *verify, struct error *err)
{
    enum status status = STATUS_FAILED;
    struct result *result = verify->result;
    uint8_t *bad = verify->bad_failures;
    struct verify_rows order = {0}, source = {.bad = bad}, reason = {.bad = bad},
                       raw = {.bad = bad}, message = {.bad = bad};
    struct order before = {0};
    for (uint64_t i = 0; i < rows_count(result->failures); i++) {
        const void *found;
        const char *path;
        if (rows_at(result->failures, i, &found, &path, err))
            goto out;
        const struct failure_row *row = found;
        char name[sizeof row->reason + 1] = "";
        memcpy(name, row->reason, sizeof row->reason);
        enum reason number = reason_from_name(name);
        if (number == REASON_NONE || number == REASON_COUNT)
            verify_row(&reason, i);
        if (row->source >= result->source_count)
            verify_row(&source, i);
        if (!in_order(verify, &before, i, row->source, path))
            verify_row(&order, i);
        if (!*path || !same_path(row->path, path))
            verify_row(&raw, i);
        if (!*row->message)
            verify_row(&message, i);
    }
    status = STATUS_OK;
out:
    free(before.path);
    verify_report_rows(verify, &order, "/failures", "does not come after the one before it");
    verify_report_rows(verify, &source, "/failures/source",
                       "names a source that is not in the list");
    verify_report_rows(verify, &reason, "/failures/reason", "has a reason that does not exist");
    verify_report_rows(verify, &raw, "/failures/path", "does not agree with path_raw, or is empty");
    verify_report_rows(verify, &message, "/failures/message", "says nothing");
    return status;
}

static enum status check_table_axes(struct verify *verify, const struct rows *rows,
                                    const struct table *table, struct error *err)
{
    if (check_scale(verify, table->axis, rows_count(rows), err))
        return STATUS_FAILED;
    for (unsigned c = 0; c < table->count; c++) {
        char where[64];
        snprintf(where, sizeof where, "/%s/%s", table->group, table->column[c].name);
        if (verify_axis(verify, rows_dataset(rows, c), where, 0, table->axis, err) ||
            (table->column[c].width > 1 &&
             verify_axis(verify, rows_dataset(rows, c), where, 1, DIGEST_AXIS, err)))
            return STATUS_FAILED;
    }
    return STATUS_OK;
}

static enum status check_feature(struct verify *verify, const struct result_feature *feature,
                                 struct error *err)
{
    char where[FEATURE_NAME_MAX + 16], axis[AXIS_NAME_MAX];
    snprintf(where, sizeof where, "/features/%s", feature->name);
    axis_name(axis, "feature", feature->name);
    if (check_scale(verify, axis, feature->dimension, err) ||
        verify_axis(verify, result_feature_dataset(feature), where, 0, image_table.axis, err) ||
        verify_axis(verify, result_feature_dataset(feature), where, 1, axis, err))
        return STATUS_FAILED;
    return verify_feature(verify, feature, err);
}

enum status verify_content(struct verify *verify, struct error *err)
{
    struct result *result = verify->result;
    if (check_table_axes(verify, result->images, &image_table, err) ||
        check_table_axes(verify, result->failures, &failure_table, err) ||
        check_scale(verify, SOURCE_AXIS, result->source_count, err) ||
        verify_axis(verify, result->sources_dataset, "/images/sources", 0, SOURCE_AXIS, err) ||
        check_images(verify, err) || check_failures(verify, err))
        return STATUS_FAILED;
    if (result->feature_count == 0)
        verify_broken(verify, "/features: there is no feature");
    if (result->source_count == 0)
        verify_broken(verify, "/images/sources: there is no source");
    for (unsigned i = 0; i < result->feature_count; i++)
        if (check_feature(verify, &result->features[i].feature, err))
            return STATUS_FAILED;
    return STATUS_OK;
}

/* Work that a run has left unfinished. */
static void check_leftover(struct verify *verify)
{
    char shown[256];
    struct stat st;
    char *name;
    if (workdir_name(&name, verify->result->path, NULL))
        return;
    if (lstat(name, &st) == 0)
        verify_broken(verify,
                      "%s is there: a run is under way, or was ended early; the same command "
                      "goes on from there",
                      path_for_message(shown, sizeof shown, name));
    free(name);
}

enum status result_verify(struct result *result, void (*broken)(const char *line, void *context),
                          void *context, uint64_t *count, struct error *err)
{
    enum status status = STATUS_FAILED;
    struct verify verify = {.result = result, .broken = broken, .context = context};
    if (result->has_images && verify_content(&verify, err))
        goto out;
    for (unsigned i = 0; i < result->clusters_count; i++)
        if (verify_clustering(&verify, &result->clusters[i], err))
            goto out;
    check_leftover(&verify);
    status = STATUS_OK;
out:
    *count = verify.count;
    return status;
}
