/* repair.c: lists the intact rows of a file or of logs, then writes a file of them.
 *
 *   INPUT opens: verify marks rows ─> locations in INPUT ─┐
 *                                                         ├─> order ─> build ─> OUTPUT
 *   INPUT.partial: whole blocks, sorted, the latest of ───┘
 *   each path ─> locations in the logs
 *
 * If rows of a finished file are dropped, its clusters are dropped too, since they belong to all
 * rows; if only a clustering is damaged, only that is dropped. Logs are only read: the next run of
 * their command resumes from them. */
#include "result/repair.h"
#include "base/cpus.h"
#include "base/output.h"
#include "base/path.h"
#include "base/process.h"
#include "base/source_name.h"
#include "result/carry.h"
#include "result/codebooks.h"
#include "result/foreign.h"
#include "result/records.h"
#include "result/rewrite.h"
#include "result/row_map.h"
#include "result/shown.h"
#include "result/sidecars.h"
#include "result/signature.h"
#include "result/verify_report.h"
#include "result/workdir.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SAVED_ROWS 1024 /* of the log, read at once */

struct repair {
    const struct repair_config *config;
    struct repair_report *report;
    struct workdir *work;
    struct result *result;
    struct codebooks codebooks;
    struct signature_parts parts; /* the content of the new file */
    struct records log;
    struct row_lists lists;
    uint64_t codes;            /* images that have one */
    struct sidecars *sidecars; /* NULL: none, or unreadable */
    bool *leave_out;           /* of the result's clusterings */
};

/* --- a finished file ------------------------------------------------------------------------- */

/* Adds an intact row. */
static enum status add_row(struct repair *r, uint64_t location, bool image, struct error *err)
{
    if (image)
        r->report->images++;
    else
        r->report->failures++;
    return row_lists_add(&r->lists, location, err);
}

/* Marks rows that are out of order. Of two neighbours in the wrong order, the first is marked if
 * the second follows the row before it. */
static enum status mark_order(struct repair *r, struct rows *rows, uint8_t *bad, struct error *err)
{
    const struct result *result = r->result;
    struct place {
        uint64_t row;
        uint16_t source;
        char *path;
    } last[2] = {{0}}; /* the last intact row, and the one before it */
    unsigned known = 0;
    enum status status = STATUS_FAILED;
    for (uint64_t i = 0; i < rows->count; i++) {
        const void *found;
        const char *path;
        if (rows_at(rows, i, &found, &path, err))
            goto out;
        if (bad[i])
            continue;
        uint16_t source = rows == result->images ? ((const struct result_image *)found)->source
                                                 : ((const struct failure_row *)found)->source;
        const bool list = source_is_list(result->sources[source]);
        bool after[2];
        for (unsigned p = 0; p < 2; p++)
            after[p] =
                p >= known || source > last[p].source ||
                (source == last[p].source && (list || source_row_follows(last[p].path, path)));
        if (!after[0] && !after[1]) {
            bad[i] = 1;
            continue;
        }
        struct place now = {i, source, strdup(path)};
        if (!now.path) {
            error_memory(err, strlen(path), "a path");
            goto out;
        }
        if (!after[0]) {
            bad[last[0].row] = 1;
            free(last[0].path);
        } else {
            free(last[1].path);
            last[1] = last[0];
            known += known < 2;
        }
        last[0] = now;
    }
    status = STATUS_OK;
out:
    free(last[0].path);
    free(last[1].path);
    return status;
}

static enum status take_rows(struct repair *r, uint64_t rows, const uint8_t *bad,
                             enum location_kind kind, uint64_t *lost, struct error *err)
{
    const bool images = kind == LOCATION_IMAGE;
    enum status status = STATUS_OK;
    for (uint64_t i = 0; i < rows && !status; i++) {
        *lost += bad[i] != 0;
        r->codes += !bad[i] && images && result_has_codes(r->result);
        if (!bad[i])
            status = add_row(r, location_of(kind, i), images, err);
    }
    return status;
}

/* Adds the sidecar texts of intact rows. Unreadable columns are left out: the command that made the file
 * restores them. */
static enum status take_sidecars(struct repair *r, struct verify *verify, struct error *err)
{
    const char *text[SIDECAR_COLUMNS];
    const uint64_t rows = result_images(r->result);
    struct sidecar_reader *reader;
    struct error why = ERROR_INIT;
    enum status damaged = sidecar_reader_open(&reader, r->result, &why), status = STATUS_OK;
    if (reader)
        status = sidecars_open(&r->sidecars, process_temporary_directory(), err);
    for (uint64_t i = 0; reader && !status && !damaged && i < rows; i++) {
        if (verify->bad_images[i] || (damaged = sidecar_reader_row(reader, i, text, &why)))
            continue;
        status = sidecars_row_of(r->sidecars, text, err);
    }
    if (damaged) {
        verify_broken(verify, "/images: the columns of --sidecar are lost: %s", why.sentence);
        sidecars_close(&r->sidecars);
    }
    sidecar_reader_close(&reader);
    return status;
}

/* Rows stay without their codebook, but no rows can be added. */
static void lose_codebook(struct repair *r, struct verify *verify, const struct feature *feature,
                          const char *why)
{
    verify_broken(verify, "/codebooks/%s: %s; the feature keeps its rows", feature->name,
                  *why ? why : "it is missing");
    r->report->codebooks_lost++;
}

static void read_codebooks(struct repair *r, struct verify *verify)
{
    struct feature_set *features = &r->parts.features;
    for (unsigned i = 0; i < features->count; i++) {
        struct feature *feature = &features->feature[i];
        struct codebooks one;
        struct error why = ERROR_INIT;
        if (!feature->codebook_digest[0])
            continue;
        if (codebooks_read(&one, r->result, feature->name, &why) != STATUS_OK || one.count == 0 ||
            codebooks_add(&r->codebooks, feature, &one.stored[0].codebook, &why) != STATUS_OK)
            lose_codebook(r, verify, feature, why.sentence);
        codebooks_clear(&one);
    }
}

/* Marks all rows of the ranges that are unreadable, or in which no other check has found the damaged
 * rows. */
static void mark_ranges(struct verify *verify)
{
    for (unsigned i = 0; i < verify->ranges; i++) {
        const struct verify_range *range = &verify->range[i];
        uint8_t *bad = range->failures ? verify->bad_failures : verify->bad_images;
        bool found = false;
        for (uint64_t row = range->first; row <= range->last; row++)
            found = found || (bad[row] && !range->unreadable);
        for (uint64_t row = range->first; !found && row <= range->last; row++)
            bad[row] = 1;
    }
}

static enum status look_at_result(struct repair *r, struct error *err)
{
    struct result *result = r->result;
    struct repair_report *report = r->report;
    struct verify verify = {
        .result = result, .broken = r->config->broken, .context = r->config->context};
    verify.bad_images = calloc(result->images->count + 1, 1);
    verify.bad_failures = calloc(result->failures->count + 1, 1);
    r->leave_out = calloc(result->clusters_count + 1, sizeof *r->leave_out);
    enum status status = STATUS_FAILED;
    if (!verify.bad_images || !verify.bad_failures || !r->leave_out) {
        error_memory(err, result->images->count, "a mark for each row");
        goto out;
    }
    if ((status = foreign_check(result->file, err)) ||
        (status = signature_parts_of(&r->parts, result, err)))
        goto out;
    read_codebooks(r, &verify);
    status = STATUS_FAILED;
    if (verify_content(&verify, err) || shown_verify(&verify, err) ||
        mark_order(r, result->images, verify.bad_images, err) ||
        mark_order(r, result->failures, verify.bad_failures, err))
        goto out;
    mark_ranges(&verify);
    if (take_rows(r, result_images(result), verify.bad_images, LOCATION_IMAGE, &report->images_lost,
                  err) ||
        take_rows(r, result_failures(result), verify.bad_failures, LOCATION_FAILURE,
                  &report->failures_lost, err) ||
        take_sidecars(r, &verify, err))
        goto out;
    for (unsigned i = 0; i < result->clusters_count; i++) {
        struct error why = ERROR_INIT;
        uint64_t before = verify.count;
        if (verify_clustering(&verify, &result->clusters[i], &why))
            verify_broken(&verify, "/clusters/%s: %s", result->clusters[i].name, why.sentence);
        r->leave_out[i] = report->images_lost > 0 || verify.count > before;
        report->clusters_lost += r->leave_out[i];
        report->clusters += !r->leave_out[i];
    }
    verify_calls(&verify);
    report->whole = verify.count == 0;
    status = STATUS_OK;
out:
    free(verify.bad_images);
    free(verify.bad_failures);
    free(verify.range);
    return status;
}

/* --- the log of an unfinished run ------------------------------------------------------------ */

/* A record in the logs. */
struct saved {
    uint64_t location, sequence;
    uint32_t log;
    uint16_t source, thumbnail_size;
    bool has_code;
    char *path;
};

/* By source and path; for equal paths, the latest first. */
static int by_path(const void *a, const void *b)
{
    const struct saved *x = a, *y = b;
    if (x->source != y->source)
        return x->source < y->source ? -1 : 1;
    int order = strcmp(x->path, y->path);
    return order ? order : (x->log < y->log) - (x->log > y->log);
}

/* The order of the walk: by path, except in lists and within an archive. */
static int by_walk(const void *a, const void *b, void *context)
{
    const struct content *content = context;
    const struct saved *x = a, *y = b;
    if (x->source != y->source)
        return x->source < y->source ? -1 : 1;
    const size_t archive = archive_prefix(x->path);
    if (!source_is_list(content->sources[x->source]) &&
        (archive == 0 || strncmp(x->path, y->path, archive) != 0))
        return strcmp(x->path, y->path);
    return x->sequence != y->sequence ? (x->sequence < y->sequence ? -1 : 1)
                                      : (x->log > y->log) - (x->log < y->log);
}

/* In walk order, each path once; returns how many. */
static uint64_t sort_saved(struct saved *saved, uint64_t count, struct content *content)
{
    uint64_t kept = 0;
    if (count > 0)
        qsort(saved, count, sizeof *saved, by_path);
    for (uint64_t i = 0; i < count; i++) {
        struct saved *last = kept ? &saved[kept - 1] : NULL, *now = &saved[i];
        if (now->source >= content->source_count ||
            (last && last->source == now->source && strcmp(last->path, now->path) == 0))
            free(now->path);
        else
            saved[kept++] = *now;
    }
    if (kept > 0)
        qsort_r(saved, kept, sizeof *saved, by_walk, content);
    return kept;
}

/* All rows of the logs. */
static enum status read_saved(const struct records *log, struct saved *saved, uint64_t *count,
                              struct error *err)
{
    struct records_cursor cursor = {.records = log, .window = SAVED_ROWS};
    enum status status = STATUS_OK;
    for (uint64_t b = 0; b < log->blocks; b++)
        for (int table = 0; table < 2; table++)
            for (uint64_t i = 0; i < log->block[b].rows[table] && !status; i++) {
                const uint64_t row = log->block[b].first[table] + i;
                const struct log_row *found;
                if ((status = records_at(&cursor, table, row, &found, err)))
                    break;
                saved[*count] = (struct saved){
                    .location = location_of(
                        table == RECORDS_IMAGES ? LOCATION_LOG_IMAGE : LOCATION_LOG_FAILURE, row),
                    .sequence = found->sequence,
                    .log = log->block[b].log,
                    .source = table ? found->failure.source : found->image.source,
                    .has_code = !table && found->image.has_code,
                    .thumbnail_size = found->thumbnail_size,
                    .path = strdup(found->image.path)};
                if (!saved[(*count)++].path)
                    status = error_memory(err, strlen(found->image.path), "a path");
            }
    records_cursor_clear(&cursor);
    return status;
}

static enum status take_saved(struct repair *r, const struct saved *saved, struct error *err)
{
    const bool image = location_kind(saved->location) == LOCATION_LOG_IMAGE;
    /* Only thumbnails of the first size found are saved. */
    if (r->parts.content.thumbnail_size == 0)
        r->parts.content.thumbnail_size = saved->thumbnail_size;
    r->codes += saved->has_code;
    return add_row(r, saved->location, image, err);
}

static enum status look_at_log(struct repair *r, struct error *err)
{
    struct repair_report *report = r->report;
    struct error why = ERROR_INIT;
    uint32_t widths[FEATURE_MAX];
    enum status status = signature_parse(&r->parts, r->log.signature, err);
    if (status)
        return status;
    if (codebooks_read_log(&r->codebooks, r->work->path, &why) != STATUS_OK ||
        codebooks_bind(&r->codebooks, &r->parts.features, "the unfinished run", &why) !=
            STATUS_OK) {
        r->config->broken(ERROR_LINE(&why), r->config->context);
        report->codebooks_lost++;
    }
    for (unsigned i = 0; i < r->parts.features.count; i++)
        widths[i] = (uint32_t)feature_row_bytes(&r->parts.features.feature[i]);
    if ((status = records_scan(&r->log, widths, r->parts.features.count, NULL, err)))
        return status;
    report->damaged_bytes = r->log.damaged + r->log.torn;
    uint64_t count = 0;
    struct saved *saved = calloc(r->log.rows[0] + r->log.rows[1] + 1, sizeof *saved);
    status = saved ? read_saved(&r->log, saved, &count, err)
                   : error_memory(err, r->log.rows[0] * sizeof *saved, "the log's records");
    if (!status)
        count = sort_saved(saved, count, &r->parts.content);
    for (uint64_t i = 0; i < count; i++) {
        if (!status)
            status = take_saved(r, &saved[i], err);
        free(saved[i].path);
    }
    free(saved);
    if (status)
        return status;
    if (report->damaged_bytes > 0) {
        char damage[128];
        snprintf(damage, sizeof damage, "the log of the unfinished run: %llu bytes are damaged",
                 (unsigned long long)report->damaged_bytes);
        r->config->broken(damage, r->config->context);
    }
    return report->images > 0
               ? STATUS_OK
               : error_set(err, STATUS_FAILED, "the unfinished run has no image to save yet");
}

/* --- writing --------------------------------------------------------------------------------- */

/* Links the damaged file to a second name, so that replacing it loses nothing. */
static enum status keep_damaged(struct repair *r, struct error *err)
{
    const char *input = r->config->input;
    char *kept = r->report->kept;
    const char *shown = PATH_TEXT(input);
    if (access(input, F_OK))
        return STATUS_OK;
    if (snprintf(kept, sizeof r->report->kept, "%s.damaged", input) >= (int)sizeof r->report->kept)
        return error_set(err, STATUS_FAILED, "%s: the name is too long: name another output",
                         shown);
    if (link(input, kept) == 0)
        return STATUS_OK;
    int failed = errno;
    kept[0] = 0;
    if (failed == EEXIST)
        return error_set(
            err, STATUS_FAILED,
            "%s.damaged exists from an earlier repair: move it away, or name another output",
            shown);
    return error_errno(err, STATUS_FAILED, failed, "link",
                       "cannot keep the damaged file as %s.damaged; name another output", shown);
}

static enum status write_output(struct repair *r, struct error *err)
{
    const struct repair_config *config = r->config;
    const char *output = config->output ? config->output : config->input;
    const struct content *content = &r->parts.content;
    struct row_input input[2] = {{0}};
    const struct new_rows rows = {.content = content,
                                  .lists = r->lists,
                                  .input = input,
                                  .codes = r->codes > 0 && r->codes == r->report->images};
    struct row_map map = {.earlier = NULL};
    struct carry carry = {.leave_out = r->leave_out};
    struct log_input log;
    struct file_input file;
    struct rewrite_report report;
    struct rewrite rewrite = {.output = output,
                              .rows = &rows,
                              .compress = r->result && result_compressed(r->result),
                              .threads = cpus_available(),
                              .sidecars = r->sidecars,
                              .run = config->run,
                              .replaced = r->result};
    enum status status = STATUS_OK;
    log_input_init(&input[INPUT_LOG], &log, &r->log, content->thumbnail_size);
    if (r->result) {
        result_input_init(&input[INPUT_FILE], &file, r->result, content->features, NULL,
                          content->thumbnail_size);
        status =
            row_map_make(&map, &rows, r->result, NULL, process_temporary_directory(), NULL, err);
        rewrite.map = &map;
        rewrite.carry = &carry;
    }
    if (!status)
        status = config->output ? output_check_free(output, err) : keep_damaged(r, err);
    if (!status)
        status = rewrite_file(&report, &rewrite, err);
    row_map_clear(&map);
    if (r->result)
        file_input_clear(&file);
    if (status && r->report->kept[0]) {
        unlink(r->report->kept);
        r->report->kept[0] = 0;
    }
    r->report->written = !status;
    return status;
}

static bool has_work(const char *input)
{
    char *name;
    struct stat st;
    bool there = workdir_name(&name, input, NULL) == STATUS_OK && lstat(name, &st) == 0;
    free(name);
    return there;
}

static enum status look(struct repair *r, struct error *err)
{
    const char *input = r->config->input;
    struct error why = ERROR_INIT;
    const char *shown = PATH_TEXT(input);
    r->report->unfinished = r->log.logs > 0;
    if (r->config->unreadable)
        error_set(&why, STATUS_FAILED, "%s: reading it crashes a library (%s)", shown,
                  r->config->unreadable);
    else if (result_open(&r->result, input, &why) == STATUS_OK) {
        if (result_parts(r->result) > 0)
            return error_set(err, STATUS_USAGE,
                             "%s shows the rows of other files: clpipe verify names what is "
                             "damaged; repair that file and run clpipe merge again",
                             shown);
        if (r->result->has_images)
            return look_at_result(r, err);
        return error_set(err, STATUS_FAILED,
                         "%s holds only clusters, which cannot be repaired: cluster again", shown);
    }
    if (r->log.logs == 0) {
        error_set(err, why.status, "nothing can be recovered: %s", ERROR_LINE(&why));
        return why.status == STATUS_FAILED ? error_remedy(err, REMEDY_START_OVER) : why.status;
    }
    r->report->from_log = true;
    if (access(input, F_OK) == 0 && !r->config->unreadable)
        r->config->broken(ERROR_LINE(&why), r->config->context);
    return look_at_log(r, err);
}

enum status store_repair(struct repair_report *report, const struct repair_config *config,
                         struct error *err)
{
    memset(report, 0, sizeof *report);
    struct repair r = {.config = config, .report = report, .log = {.directory = -1}};
    struct stat st;
    enum status status = STATUS_FAILED;
    if (config->output && lstat(config->output, &st) == 0)
        return error_set(err, STATUS_FAILED,
                         "%s exists and is not overwritten: name another output",
                         PATH_TEXT(config->output));
    /* A file that is only read may be in a read-only directory. */
    if ((!config->output || has_work(config->input)) &&
        (status = workdir_open(&r.work, config->input, err)))
        goto out;
    if (r.work && (status = records_open(&r.log, r.work->directory, r.work->path, false, err)))
        goto out;
    if ((status = look(&r, err)))
        goto out;
    if (!report->whole && !config->dry_run)
        status = write_output(&r, err);
out:
    workdir_release(&r.work);
    result_close(&r.result);
    records_clear(&r.log);
    signature_parts_clear(&r.parts);
    codebooks_clear(&r.codebooks);
    sidecars_close(&r.sidecars);
    row_lists_clear(&r.lists);
    free(r.leave_out);
    return status;
}
