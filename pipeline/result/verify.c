/* verify.c: checks what a file says against what it must be. What makes a file unreadable was found
 * when it was opened; here it is about values and order. */
#include "result/verify.h"
#include "base/path.h"
#include "base/source_name.h"
#include "result/checksums.h"
#include "result/class_groups.h"
#include "result/codebook_groups.h"
#include "result/parts.h"
#include "result/shown.h"
#include "result/verify_report.h"
#include "result/workdir.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --- rows of tables -------------------------------------------------------------------------- */

/* A row of /images or /failures, or, of a file of clusters alone, of its paths. */
struct checked_row {
    const struct result *result;
    const struct result_image *image; /* one of these; of a path only path and source */
    const struct failure_row *failure;
    uint16_t source;
    const char *text, *path; /* as stored, and its bytes */
    bool first;
    uint16_t source_before;
    const char *path_before;
};

/* By source, and within a source that is no list by the path. */
static bool is_in_order(const struct checked_row *row)
{
    if (row->first || row->source > row->source_before)
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

/* The stored text of a path must be the one that its bytes give. */
static bool has_path(const struct checked_row *row)
{
    const size_t length = strlen(row->path), size = 4 * length + 1;
    char *expected = row->text == row->path ? NULL : malloc(size);
    if (expected)
        path_to_utf8(expected, size, row->path, length);
    const bool same = !expected || strcmp(expected, row->text) == 0;
    free(expected);
    return *row->path && same;
}

static bool has_message(const struct checked_row *row)
{
    return *row->failure->message;
}

enum { IMAGES = 1, FAILURES = 2, NAMES = 4 };

/* What every row of these tables must be. */
static const struct rule {
    unsigned tables;
    const char *column, *otherwise;
    bool (*holds)(const struct checked_row *row);
    bool of_place; /* among the others: either of two rows may be wrong */
} rules[] = {
    {IMAGES | FAILURES, "", "does not come after the one before it", is_in_order, true},
    {IMAGES | FAILURES | NAMES, "/source", "names a source that is not in the list", has_source, false},
    {IMAGES, "", "has no width, height or bytes", has_size, false},
    {IMAGES, "", "has an impossible orientation, number of channels or format", has_kind, false},
    {FAILURES, "/reason", "has a reason that does not exist", has_reason, false},
    {IMAGES | FAILURES | NAMES, "/path", "is empty, or has an escape that leads to another name",
     has_path, false},
    {FAILURES, "/message", "is empty", has_message, false},
};
#define RULES (sizeof rules / sizeof *rules)

static enum status check_rows(struct verify *verify, unsigned table, struct error *err)
{
    const bool failures = table == FAILURES;
    struct rows *rows = failures ? verify->result->failures : verify->result->images;
    struct verify_rows broken[RULES] = {{0}};
    struct checked_row row = {.result = verify->result, .first = true};
    char *before = NULL;
    size_t capacity = 0;
    enum status status = STATUS_OK;
    for (size_t r = 0; r < RULES; r++)
        broken[r].bad = rules[r].of_place ? NULL
                        : failures        ? verify->bad_failures
                                          : verify->bad_images;
    for (uint64_t i = 0; i < rows_count(rows) && status == STATUS_OK; i++) {
        const void *found;
        status = rows_at(rows, i, &found, &row.path, err);
        if (status != STATUS_OK)
            break;
        row.image = failures ? NULL : found;
        row.failure = failures ? found : NULL;
        row.source = failures ? row.failure->source : row.image->source;
        row.text = failures ? row.failure->path : row.image->path;
        for (size_t r = 0; r < RULES; r++)
            if ((rules[r].tables & table) && !rules[r].holds(&row))
                verify_row(&broken[r], i);
        const size_t size = strlen(row.path) + 1;
        char *larger = size > capacity ? realloc(before, 2 * size) : before;
        if (!larger) {
            status = error_memory(err, 2 * size, "a path");
            break;
        }
        capacity = size > capacity ? 2 * size : capacity;
        row.path_before = before = memcpy(larger, row.path, size);
        row.source_before = row.source;
        row.first = false;
    }
    free(before);
    for (size_t r = 0; r < RULES; r++) {
        char where[64];
        snprintf(where, sizeof where, "/%s%s", failures ? failure_table.group : image_table.group,
                 rules[r].column);
        verify_report_rows(verify, &broken[r], where, rules[r].otherwise);
    }
    return status;
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

static void check_feature(struct verify *verify, const struct result_feature *stored)
{
    if (!result_feature_imported(stored) && !attributes_agree(stored))
        verify_broken(verify, "/features/%s: its attributes and its dimension contradict each other",
                      stored->name);
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
    if (check_rows(verify, IMAGES, err) || check_rows(verify, FAILURES, err))
        return STATUS_FAILED;
    check_thumbnails(verify);
    if (result->feature_count == 0)
        verify_broken(verify, "/features: there is no feature");
    if (result->source_count == 0)
        verify_broken(verify, "/images/sources: there is no source");
    for (unsigned i = 0; i < result->feature_count; i++)
        check_feature(verify, &result->features[i].feature);
    return STATUS_OK;
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
    if ((result->named && check_rows(&verify, NAMES, err)) || codebook_groups_verify(&verify, err) ||
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
    if (!status)
        verify_calls(&verify);
out:
    *count = verify.count;
    return status;
}
