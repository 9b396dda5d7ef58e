/* verify.c: checks what a file says against what it must be. What makes a file unreadable was found
 * when it was opened; here it is about values, order and the scales on the axes. */
#include "file/verify.h"
#include "base/path.h"
#include "base/source_name.h"
#include "features/kind.h"
#include "features/stored.h"
#include "file/checksums.h"
#include "file/codebook_groups.h"
#include "file/parts.h"
#include "file/verify_report.h"
#include "log/workdir.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define BLOCK_BYTES (4u << 20)
/* What rounding each value to float32 can add up to, and room. */
#define TOLERANCE 1e-6

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
    verify_report_rows(verify, &raw, "/failures/path", "does not agree with path_raw, or is empty");
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

struct problems {
    struct verify_rows range, sum;
};

/* The feature that a file's attributes describe; false if they contradict each other. */
static bool parse_feature(struct feature *feature, const struct result_feature *stored)
{
    struct feature_set set = {.count = 0};
    struct error error = ERROR_INIT;
    struct result_feature described;
    if (feature_set_add(&set, stored->spec, NORMALIZE_L1, &error) || set.count != 1)
        return false;
    *feature = set.feature[0];
    result_feature_describe(&described, feature, stored->decode_scale);
    bool same = described.dimension == stored->dimension;
    for (int t = 0; t < RESULT_FEATURE_TEXTS; t++)
        same = same && strcmp((const char *)&described + result_feature_text[t].offset,
                              (const char *)stored + result_feature_text[t].offset) == 0;
    return same;
}

/* Rows of `size` that belong to cell `cell` of `cells`. */
static uint64_t cell_extent(uint64_t size, uint64_t cell, uint64_t cells)
{
    return ((cell + 1) * size + cells - 1) / cells - (cell * size + cells - 1) / cells;
}

/* How far the sum of a histogram's shares, or of their squares, can be from 1, by the errors of the type
 * that they are stored in: the sum of their roots is at most sqrt(bins). */
static double tolerance(const struct feature *feature, uint32_t bins)
{
    switch (feature->store) {
    case STORE_FLOAT16:
        return 0x1p-10 + bins * 0x1p-24;
    case STORE_UINT8:
        return 2 * (sqrt(bins) + bins / 1020.0) / stored_scale(false);
    default:
        return TOLERANCE;
    }
}

/* Checks one histogram of `bins` values of a cell with `pixels` pixels (UINT64_MAX: unknown). */
static void check_histogram(struct problems *problems, const struct feature *feature,
                            const void *values, uint32_t bins, uint64_t pixels, uint64_t row)
{
    if (feature->normalize == NORMALIZE_NONE) {
        const uint32_t *counts = values;
        uint64_t sum = 0;
        for (uint32_t i = 0; i < bins; i++)
            sum += counts[i];
        if (pixels != UINT64_MAX && sum != pixels)
            verify_row(&problems->sum, row);
        return;
    }
    const float *shares = values;
    double sum = 0;
    bool in_range = true;
    for (uint32_t i = 0; i < bins; i++) {
        double share = shares[i];
        in_range = in_range && share >= 0 && share <= 1;
        sum += feature->normalize == NORMALIZE_L1 ? share : share * share;
    }
    if (!in_range)
        verify_row(&problems->range, row);
    bool empty = sum == 0 && (pixels == 0 || pixels == UINT64_MAX);
    bool full = fabs(sum - 1) <= tolerance(feature, bins) && pixels != 0;
    if (in_range && !empty && !full)
        verify_row(&problems->sum, row);
}

static void check_row(struct problems *problems, const struct feature *feature,
                      const uint8_t *values, const struct result_image *image, bool full_size,
                      uint64_t row)
{
    /* Every pixel of a cell is counted once in each of the cell's histograms, unless they add up
     * weights. How many pixels a cell has is known for pictures that were decoded at full size. */
    const uint32_t histograms = feature_histograms(feature);
    const uint32_t bins = histograms ? feature->cell_bins / histograms : 0;
    uint64_t sums = problems->sum.count, ranges = problems->range.count;
    uint32_t width = image->width, height = image->height, rows, columns;
    feature_image_size(&width, &height, &feature->image);
    for (unsigned level = 0; feature_grid(&rows, &columns, feature, level); level++) {
        for (uint32_t cell = 0; cell < rows * columns; cell++) {
            const uint64_t pixels =
                full_size && feature_counts_pixels(feature)
                    ? cell_extent(height, cell / columns, rows) *
                          cell_extent(width, cell % columns, columns)
                    : UINT64_MAX;
            for (uint32_t h = 0; h < histograms; h++, values += 4 * (size_t)bins)
                check_histogram(problems, feature, values, bins, pixels, row);
        }
    }
    /* A row counts once. */
    problems->sum.count = problems->sum.count > sums ? sums + 1 : sums;
    problems->range.count = problems->range.count > ranges ? ranges + 1 : ranges;
}

/* Rows from elsewhere: finite, or NaN throughout for an image without values. */
static enum status check_imported(struct verify *verify, const struct result_feature *stored,
                                  const char *where, struct error *err)
{
    const size_t columns = stored->dimension, row_bytes = columns * sizeof(float);
    const uint64_t block = row_bytes < BLOCK_BYTES ? BLOCK_BYTES / row_bytes : 1;
    struct verify_rows bad = {0};
    enum status status = STATUS_OK;
    float *values = malloc(block * row_bytes);
    if (!values)
        return error_memory(err, block * row_bytes, "rows");
    for (uint64_t first = 0; first < stored->rows && status == STATUS_OK; first += block) {
        const uint64_t count = stored->rows - first < block ? stored->rows - first : block;
        status = result_feature_read_raw(verify->result, stored, first, count, values, err);
        for (uint64_t i = 0; i < count && status == STATUS_OK; i++) {
            size_t finite = 0, nan = 0;
            for (size_t j = 0; j < columns; j++) {
                finite += isfinite(values[i * columns + j]) != 0;
                nan += isnan(values[i * columns + j]) != 0;
            }
            if (finite != columns && nan != columns)
                verify_row(&bad, first + i);
        }
    }
    free(values);
    verify_report_rows(verify, &bad, where, "has values that are not finite");
    return status;
}

static enum status check_feature(struct verify *verify, const struct result_feature *stored,
                                 struct error *err)
{
    char where[FEATURE_NAME_MAX + 16], axis[AXIS_NAME_MAX];
    struct feature feature;
    snprintf(where, sizeof where, "/features/%s", stored->name);
    axis_name(axis, "feature", stored->name);
    if (check_scale(verify, axis, stored->dimension, err) ||
        verify_axis(verify, result_feature_dataset(stored), where, 0, image_table.axis, err) ||
        verify_axis(verify, result_feature_dataset(stored), where, 1, axis, err))
        return STATUS_FAILED;
    if (result_feature_imported(stored))
        return check_imported(verify, stored, where, err);
    if (!parse_feature(&feature, stored)) {
        verify_broken(verify, "%s: its attributes and its dimension contradict each other", where);
        return STATUS_OK;
    }
    struct result *result = verify->result;
    size_t row_bytes = 4 * (size_t)stored->dimension;
    uint64_t block = row_bytes < BLOCK_BYTES ? BLOCK_BYTES / row_bytes : 1;
    uint8_t *values = malloc(block * row_bytes);
    if (!values)
        return error_memory(err, block * row_bytes, "rows");
    struct problems problems = {.range = {.bad = verify->bad_images},
                                .sum = {.bad = verify->bad_images}};
    enum status status = STATUS_FAILED;
    for (uint64_t first = 0; first < stored->rows; first += block) {
        uint64_t count = stored->rows - first < block ? stored->rows - first : block;
        if (stored->is_float
                ? result_feature_read(result, stored, first, count, (float *)(void *)values, err)
                : result_feature_read_raw(result, stored, first, count, values, err))
            goto out;
        for (uint64_t i = 0; i < count; i++) {
            const void *image;
            const char *path;
            if (rows_at(result->images, first + i, &image, &path, err))
                goto out;
            check_row(&problems, &feature, values + i * row_bytes, image, stored->decode_scale == 1,
                      first + i);
        }
    }
    status = STATUS_OK;
out:
    free(values);
    verify_report_rows(verify, &problems.range, where, "has values that are not from 0 to 1");
    verify_report_rows(verify, &problems.sum, where,
                       feature.normalize == NORMALIZE_NONE
                           ? "has counts that do not add up to the pixels of their cells"
                           : "has values that do not add up to 1 (0 in a cell without pixels)");
    return status;
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
    verify_report_rows(verify, &raw, "/images/path", "does not agree with path_raw, or is empty");
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
    if ((result->named && check_names(&verify, err)) || codebook_groups_verify(&verify, err))
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
