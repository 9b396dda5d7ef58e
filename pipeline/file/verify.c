/* verify.c: checks what a file says against what it must be. What makes a file unreadable was found
 * when it was opened; here it is about values, order and the scales on the axes. */
#include "file/verify.h"
#include "base/path.h"
#include "base/source_name.h"
#include "file/checksums.h"
#include "file/class_groups.h"
#include "file/codebook_groups.h"
#include "file/parts.h"
#include "file/shown.h"
#include "file/verify_report.h"
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
        right = source_is_list(result->sources[source]) || source_row_follows(order->path, path);
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

/* The stored text of a path must be the one that its bytes give. */
static bool same_path(const char *text, const char *raw)
{
    const size_t length = strlen(raw), size = 4 * length + 1;
    char *expected = text == raw ? NULL : malloc(size);
    if (expected)
        path_to_utf8(expected, size, raw, length);
    const bool same = !expected || strcmp(expected, text) == 0;
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
        const struct result_image *row = found;
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
    verify_report_rows(verify, &raw, "/images/path", "is empty, or has an escape that leads to another name");
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
        enum reason named;
        if (!failure_row_reason(&named, row))
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
    verify_report_rows(verify, &raw, "/failures/path", "is empty, or has an escape that leads to another name");
    verify_report_rows(verify, &message, "/failures/message", "is empty");
    return status;
}

static enum status check_table_axes(struct verify *verify, const struct rows *rows,
                                    const struct table *table, struct error *err)
{
    if (check_scale(verify, table->axis, rows_count(rows), err))
        return STATUS_FAILED;
    for (unsigned c = 0; c < table->count; c++) {
        char where[64];
        if (rows_dataset(rows, c) <= 0)
            continue;
        snprintf(where, sizeof where, "/%s/%s", table->group, table->column[c].name);
        if (verify_axis(verify, rows_dataset(rows, c), where, 0, table->axis, err) ||
            (table->column[c].width > 1 &&
             verify_axis(verify, rows_dataset(rows, c), where, 1, table->column[c].axis,
                         err)))
            return STATUS_FAILED;
    }
    return STATUS_OK;
}

/* --- features ------------------------------------------------------------------------------- */

/* Do the attributes and the dimension of a feature say the same? */
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
        same = same && strcmp((const char *)&described + result_feature_text[t].offset,
                              (const char *)stored + result_feature_text[t].offset) == 0;
    return same;
}

static enum status check_feature(struct verify *verify, const struct result_feature *stored,
                                 struct error *err)
{
    char where[FEATURE_NAME_MAX + 16], axis[AXIS_NAME_MAX];
    snprintf(where, sizeof where, "/features/%s", stored->name);
    axis_name(axis, "feature", stored->name);
    if (check_scale(verify, axis, stored->dimension, err) ||
        verify_axis(verify, result_feature_dataset(stored), where, 0, image_table.axis, err) ||
        verify_axis(verify, result_feature_dataset(stored), where, 1, axis, err))
        return STATUS_FAILED;
    if (!result_feature_imported(stored) && !attributes_agree(stored))
        verify_broken(verify, "%s: its attributes and its dimension contradict each other", where);
    return STATUS_OK;
}

/* --- thumbnails ------------------------------------------------------------------------------ */

/* The start and the end of a JPEG file. */
static bool is_jpeg(const uint8_t *bytes, uint64_t length)
{
    return length >= 4 && bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[length - 2] == 0xff &&
           bytes[length - 1] == 0xd9;
}

static void check_thumbnails(struct verify *verify)
{
    struct result *result = verify->result;
    struct verify_rows broken = {.bad = verify->bad_images};
    uint64_t length;
    const uint8_t *jpeg;
    for (uint64_t i = 0; result_thumbnail_size(result) > 0 && i < result_images(result); i++) {
        struct error why = ERROR_INIT;
        if (result_thumbnail_read(result, i, &jpeg, &length, &why) ||
            (length > 0 && !is_jpeg(jpeg, length)))
            verify_row(&broken, i);
    }
    verify_report_rows(verify, &broken, "/thumbnails", "has a thumbnail that is no JPEG file");
}

/* --- all of it ------------------------------------------------------------------------------- */

static enum status check_content(struct verify *verify, struct error *err)
{
    struct result *result = verify->result;
    if (check_table_axes(verify, result->images, &image_table, err) ||
        check_table_axes(verify, result->failures, &failure_table, err) ||
        check_scale(verify, SOURCE_AXIS, result->source_count, err) ||
        verify_axis(verify, result->sources_dataset, "/images/sources", 0, SOURCE_AXIS, err) ||
        check_images(verify, err) || check_failures(verify, err))
        return STATUS_FAILED;
    check_thumbnails(verify);
    if (result->feature_count == 0)
        verify_broken(verify, "/features: there is no feature");
    if (result->source_count == 0)
        verify_broken(verify, "/images/sources: there is no source");
    for (unsigned i = 0; i < result->feature_count; i++)
        if (check_feature(verify, &result->features[i].feature, err))
            return STATUS_FAILED;
    return STATUS_OK;
}

/* The paths of a file of clusters alone. */
static enum status check_names(struct verify *verify, struct error *err)
{
    struct result *result = verify->result;
    struct verify_rows source = {0}, raw = {0};
    enum status status = check_table_axes(verify, result->images, &name_table, err);
    if (status == STATUS_OK)
        status = check_scale(verify, SOURCE_AXIS, result->source_count, err);
    for (uint64_t i = 0; i < rows_count(result->images) && status == STATUS_OK; i++) {
        const void *found;
        const char *path;
        status = rows_at(result->images, i, &found, &path, err);
        if (status != STATUS_OK)
            break;
        const struct result_image *row = found;
        if (row->source >= result->source_count)
            verify_row(&source, i);
        if (!*path || !same_path(row->path, path))
            verify_row(&raw, i);
    }
    verify_report_rows(verify, &source, "/images/source", "names a source that is not in the list");
    verify_report_rows(verify, &raw, "/images/path", "is empty, or has an escape that leads to another name");
    return status;
}

enum status verify_content(struct verify *verify, struct error *err)
{
    struct error why = ERROR_INIT;
    enum status status = check_content(verify, &why);
    const uint64_t before = verify->count;
    if (checksums_verify(verify, "/", err))
        return STATUS_FAILED;
    /* Something that cannot be read because it is damaged is damage like any other. */
    if (status && verify->count > before) {
        verify_broken(verify, "%s", why.sentence);
        return STATUS_OK;
    }
    if (status && err)
        *err = why;
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
    char shown[256], whole[1400];
    snprintf(whole, sizeof whole, "%s: %s", path_for_message(shown, sizeof shown, of->name), line);
    of->verify->broken(whole, of->verify->context);
}

/* The rows that a merged file shows are those of its parts' checksums, which the manifest stands for. */
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

enum status result_verify(struct result *result, void (*broken)(const char *line, void *context),
                          void *context, uint64_t *count, struct error *err)
{
    enum status status = STATUS_FAILED;
    struct verify verify = {.result = result, .broken = broken, .context = context};
    char shown[256], *name;
    struct stat st;
    if (result->has_images ? verify_content(&verify, err) : checksums_verify(&verify, "/", err))
        goto out;
    if (shown_verify(&verify, err))
        goto out;
    if ((result->named && check_names(&verify, err)) || codebook_groups_verify(&verify, err) ||
        class_groups_verify(&verify, err))
        goto out;
    if (verify_parts(&verify, err))
        goto out;
    for (unsigned i = 0; i < result->clusters_count; i++)
        if (verify_clustering(&verify, &result->clusters[i], err))
            goto out;
    if (checksums_verify(&verify, "/neighbours", err))
        goto out;
    if (result->has_images && verify_graphs(&verify, err))
        goto out;
    /* Work that a run has left unfinished. */
    if (workdir_name(&name, result->path, NULL) == STATUS_OK && lstat(name, &st) == 0)
        verify_broken(
            &verify,
            "%s exists: a run is in progress or was interrupted; the same command resumes it",
            path_for_message(shown, sizeof shown, name));
    free(name);
    /* What cannot be read is not verified. */
    status = verify.count > 0 ? STATUS_OK : h5_check_reads(err);
out:
    *count = verify.count;
    return status;
}
