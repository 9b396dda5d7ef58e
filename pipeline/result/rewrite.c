/* rewrite.c: writes the parts of a result file in a fixed order.
 *
 * Datasets of rows get their space at once and are filled by move_rows.h, so the bytes before /runs depend
 * on nothing but the content. */
#include "result/rewrite.h"
#include "base/clock.h"
#include "base/path.h"
#include "features/kind.h"
#include "matrix/h5_driver.h"
#include "result/carry.h"
#include "result/checksums.h"
#include "result/class_layer.h"
#include "result/codebooks.h"
#include "result/copies.h"
#include "result/parts.h"
#include "result/shown.h"
#include "version_generated.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Older runs are dropped. */
#define MOST_RUNS 100
/* Bytes of a chunk of a feature, and of the chunks of all of them for the same rows. Chunks of 1
 * MiB make files at most 2 % smaller than those of 256 KiB, four of which fit in HDF5's cache of 1
 * MiB. */
#define CHUNK_BYTES  (256u << 10)
#define CHUNKS_BYTES (1u << 20)

/* The file that is being written. */
struct writing {
    const struct rewrite *rewrite;
    const struct new_rows *rows;
    const struct content *content;
    struct rewrite_report *report;
    const char *path; /* the final one, for messages */
    hid_t file;
    struct move_column column[ROW_COLUMNS];
    char name[ROW_COLUMNS][2][ROW_NAME_MAX]; /* of each one's dataset, and of that of its blobs */
    hid_t dataset[ROW_COLUMNS][2];
    unsigned columns;
};

/* --- columns ----------------------------------------------------------------------------------- */

static void add_column(struct writing *w, unsigned number, const struct row_list *list)
{
    struct move_column *column = &w->column[w->columns];
    row_column_name(w->name[w->columns++][0], number, w->content->features);
    *column = row_column(number, w->content->features, w->rows->input);
    column->list = list;
}

static void add_table(struct writing *w, const struct table *table, unsigned first,
                      const struct row_list *list)
{
    for (unsigned i = 0; i < table->count; i++)
        if (!table->column[i].optional || w->rows->codes)
            add_column(w, first + i, list);
}

/* The group of a column of blobs, and the scale of their bytes. */
static const struct sidecar_blob *blobs_of(const struct move_column *column)
{
    static const struct sidecar_blob thumbnails = {THUMBNAIL_GROUP, THUMBNAIL_AXIS};
    const unsigned texts = SIDECAR_COLUMNS - SIDECAR_BLOBS;
    return column->number == ROW_THUMBNAIL ? &thumbnails
                                           : &sidecar_blob[column->number - ROW_SIDECAR - texts];
}

static enum status list_columns(struct writing *w, struct error *err)
{
    struct sidecars *sidecars = w->rewrite->sidecars;
    for (unsigned i = 0; i < w->content->features->count; i++)
        add_column(w, ROW_FEATURE + i, &w->rows->lists.images);
    add_table(w, &image_table, ROW_IMAGE, &w->rows->lists.images);
    add_table(w, &failure_table, ROW_FAILURE, &w->rows->lists.failures);
    if (w->content->thumbnail_size > 0)
        add_column(w, ROW_THUMBNAIL, &w->rows->lists.images);
    if (sidecars && sidecars_columns(&w->column[w->columns], sidecars, err))
        return STATUS_FAILED;
    for (unsigned i = 0; i < SIDECAR_COLUMNS && sidecars; i++)
        snprintf(w->name[w->columns++][0], ROW_NAME_MAX, "/images/%s", sidecar_names[i]);
    for (unsigned i = 0; i < w->columns; i++)
        if (w->column[i].kind == MOVE_BLOB) {
            snprintf(w->name[i][0], ROW_NAME_MAX, "/%s/end", blobs_of(&w->column[i])->group);
            snprintf(w->name[i][1], ROW_NAME_MAX, "/%s/data", blobs_of(&w->column[i])->group);
        }
    return STATUS_OK;
}

static enum status open_rows(struct writing *w, struct raw **to, struct row_tree **tree,
                             hid_t dataset, struct error *err)
{
    const enum status status = raw_open(to, dataset, w->path, err);
    return status
               ? status
               : row_tree_open(tree, ROW_TREE_SHA256, (*to)->rows, (size_t)(*to)->row_bytes, err);
}

/* Attaches the existing scales of rows and of values (NULL: none) to a new dataset, and opens it
 * for writing rows unless they are those of parts. Takes ownership of the dataset. */
static enum status complete_column(struct writing *w, struct move_column *column, hid_t dataset,
                                   const char *rows, const char *values, bool referred,
                                   struct error *err)
{
    enum status status = STATUS_OK;
    w->dataset[column - w->column][0] = dataset;
    if (!referred)
        status = open_rows(w, &column->to, &column->tree, dataset, err);
    if (!status)
        status = h5_attach_scale(w->file, dataset, 0, rows, err);
    return status || !values ? status : h5_attach_scale(w->file, dataset, 1, values, err);
}

static bool chunk_rows(uint64_t *rows, const struct writing *w, size_t row_bytes)
{
    const size_t share =
        CHUNKS_BYTES / (w->content->features->count ? w->content->features->count : 1);
    const uint64_t images = w->rows->lists.images.rows,
                   fit = (share < CHUNK_BYTES ? share : CHUNK_BYTES) / row_bytes;
    *rows = fit < 1 ? 1 : fit < images ? fit : images;
    return w->rewrite->compress && images > 0;
}

/* Creates a dataset that shows the rows of parts. */
static enum status refer(const struct writing *w, hid_t *dataset, hid_t group, const char *name,
                         enum value_type type, int rank, uint64_t columns, struct error *err)
{
    return parts_create_dataset(dataset, group, name, type, rank, columns, w->rewrite->parts,
                                w->rewrite->part_count, err);
}

static enum status create_feature(struct writing *w, hid_t group, struct move_column *column,
                                  struct error *err)
{
    const struct feature *feature = &w->content->features->feature[column->number - ROW_FEATURE];
    struct result_feature described;
    char axis[AXIS_NAME_MAX];
    const hsize_t size[2] = {column->list->rows, feature->dimension};
    hid_t dataset = H5I_INVALID_HID;
    uint64_t chunk;
    axis_name(axis, "feature", feature->name);
    result_feature_describe(&described, feature, w->content->decode_scale);
    const enum value_type type = result_feature_type(&described);
    /* Whole values recur in shares of counts, which shuffled bytes hide; the votes of hog are weighted. */
    const bool shares = type == VALUE_F32 && strcmp(described.kind, feature_hog.name) != 0 &&
                        strcmp(described.normalize, feature_normalize_name(NORMALIZE_UNIT)) != 0;
    if (h5_create_scale(w->file, axis, feature->dimension, err) ||
        (w->rewrite->parts
             ? refer(w, &dataset, group, w->name[column - w->column][0], type, 2, size[1], err)
         : chunk_rows(&chunk, w, column->row_bytes)
             ? h5_create_chunked(&dataset, group, feature->name, type, size, chunk,
                                 !shares && value_size(type) > 1, err)
             : h5_create_dataset(&dataset, group, feature->name, type, 2, size, err)) ||
        complete_column(w, column, dataset, image_table.axis, axis, w->rewrite->parts, err))
        return STATUS_FAILED;
    return result_feature_put_attributes(dataset, &described, err);
}

static enum status create_column(struct writing *w, hid_t group, const struct table *table,
                                 unsigned first, struct move_column *column, struct error *err)
{
    const struct column *kind = &table->column[column->number - first];
    const hsize_t size[2] = {column->list->rows, kind->width};
    const struct text_size texts = {column->row_bytes, column->bytes};
    hid_t dataset = H5I_INVALID_HID;
    const bool wide = kind->width > 1,
               referred = w->rewrite->parts && row_is_referred(column->number);
    if ((wide && h5_create_scale(w->file, kind->axis, kind->width, err)) ||
        (referred ? refer(w, &dataset, group, w->name[column - w->column][0], kind->type,
                          wide ? 2 : 1, kind->width, err)
         : column->kind == MOVE_TEXT
             ? h5_create_texts(&dataset, group, kind->name, size[0], &texts, err)
             : h5_create_dataset(&dataset, group, kind->name, kind->type, wide ? 2 : 1, size, err)))
        return STATUS_FAILED;
    return complete_column(w, column, dataset, table->axis, wide ? kind->axis : NULL, referred,
                           err);
}

static enum status create_blobs(struct writing *w, struct move_column *column, struct error *err)
{
    const struct sidecar_blob *blobs = blobs_of(column);
    const bool thumbnails = column->number == ROW_THUMBNAIL,
               referred = w->rewrite->parts && thumbnails;
    const uint32_t made_for = w->content->thumbnail_size;
    const hsize_t rows = column->list->rows, bytes = column->bytes;
    H5_SCOPED hid_t group = H5I_INVALID_HID;
    hid_t *data = &w->dataset[column - w->column][1], end;
    if (h5_create_scale(w->file, blobs->axis, bytes, err) ||
        h5_create_group(&group, w->file, blobs->group, err) ||
        (thumbnails && h5_put_number(group, "size", VALUE_U32, &made_for, err)) ||
        (referred && bytes > 0
             ? refer(w, data, group, w->name[column - w->column][1], VALUE_U8, 1, 1, err)
             : h5_create_dataset(data, group, "data", VALUE_U8, 1, &bytes, err)) ||
        h5_create_dataset(&end, group, "end", VALUE_U64, 1, &rows, err) ||
        complete_column(w, column, end, image_table.axis, NULL, false, err) ||
        (!referred && open_rows(w, &column->data, &column->data_tree, *data, err)))
        return STATUS_FAILED;
    return h5_attach_scale(w->file, *data, 0, blobs->axis, err);
}

/* Creates the columns of a table, and its group unless it exists. */
static enum status create_table(struct writing *w, const struct table *table, unsigned first,
                                struct error *err)
{
    const struct row_lists *lists = &w->rows->lists;
    const struct content *c = w->content;
    H5_SCOPED hid_t group = H5I_INVALID_HID;
    if (h5_create_scale(w->file, table->axis,
                        (table == &failure_table ? &lists->failures : &lists->images)->rows, err) ||
        h5_make_group(&group, w->file, table->group, err))
        return STATUS_FAILED;
    for (unsigned i = 0; i < w->columns; i++)
        if (w->column[i].number - first < table->count &&
            create_column(w, group, table, first, &w->column[i], err))
            return STATUS_FAILED;
    return table == &image_table ? schema_put_sources(w->file, group, c->sources, c->directories,
                                                      c->source_count, err)
                                 : STATUS_OK;
}

static enum status create_datasets(struct writing *w, struct error *err)
{
    const struct sidecars *sidecars = w->rewrite->sidecars;
    const struct table *beside =
        sidecars && sidecars_numbered(sidecars) ? &sidecar_number_table : &sidecar_text_table;
    H5_SCOPED hid_t group = H5I_INVALID_HID;
    if (h5_create_scale(w->file, image_table.axis, w->rows->lists.images.rows, err) ||
        h5_create_group(&group, w->file, "features", err))
        return STATUS_FAILED;
    for (unsigned i = 0; i < w->columns; i++)
        if (w->column[i].number >= ROW_FEATURE && create_feature(w, group, &w->column[i], err))
            return STATUS_FAILED;
    if (create_table(w, &image_table, ROW_IMAGE, err) ||
        create_table(w, &failure_table, ROW_FAILURE, err) ||
        (sidecars && create_table(w, beside, ROW_SIDECAR, err)))
        return STATUS_FAILED;
    for (unsigned i = 0; i < w->columns; i++)
        if (w->column[i].kind == MOVE_BLOB && create_blobs(w, &w->column[i], err))
            return STATUS_FAILED;
    return STATUS_OK;
}

/* Detects a lack of space before the rows are written. */
static enum status reserve(const struct writing *w, struct error *err)
{
    hsize_t size = 0;
    if (H5Fget_filesize(w->file, &size) < 0 || size == 0 ||
        fallocate(h5_driver_descriptor(w->file), 0, 0, (off_t)size) == 0 || errno != ENOSPC)
        return STATUS_OK;
    return error_errno(err, STATUS_FAILED, ENOSPC, "fallocate", "cannot write %s (free some space)",
                       PATH_TEXT(w->path));
}

static enum status write_rows(struct writing *w, struct error *err)
{
    const struct rewrite *rewrite = w->rewrite;
    if (list_columns(w, err))
        return STATUS_FAILED;
    struct move move = {.column = w->column,
                        .columns = w->columns,
                        .threads = rewrite->threads,
                        .watch.stop = rewrite->watch.stop};
    if (watch_check(&rewrite->watch, "writing the file", err))
        return STATUS_INTERRUPTED;
    enum status status = move_measure(&move, err);
    if (!status)
        status = create_datasets(w, err);
    if (!status)
        status = reserve(w, err);
    move.watch = rewrite->watch;
    return status ? status : move_rows(&move, err);
}

static void close_columns(struct writing *w)
{
    for (unsigned i = 0; i < w->columns; i++) {
        struct move_column *column = &w->column[i];
        free(column->before);
        row_tree_close(&column->tree);
        row_tree_close(&column->data_tree);
        raw_close(&column->to);
        raw_close(&column->data);
        h5_close(&w->dataset[i][0]);
        h5_close(&w->dataset[i][1]);
    }
}

/* Uses the digests of the rows just written. */
static enum status write_checksums(const struct writing *w, struct error *err)
{
    struct checksums_known known[2 * ROW_COLUMNS];
    unsigned count = 0;
    for (unsigned i = 0; i < w->columns; i++) {
        if (w->column[i].tree)
            known[count++] = (struct checksums_known){w->name[i][0], w->column[i].tree};
        if (w->column[i].data_tree)
            known[count++] = (struct checksums_known){w->name[i][1], w->column[i].data_tree};
    }
    return checksums_write(w->file, NULL, known, count, err);
}

/* --- what else there is ------------------------------------------------------------------------ */

static enum status write_run(struct writing *w, hid_t runs, uint64_t number, struct error *err)
{
    const struct row_map *map = w->rewrite->map;
    struct store_run run = *w->rewrite->run;
    char name[32], finished[32], host[128] = "";
    clock_iso8601(finished, clock_created());
    gethostname(host, sizeof host - 1);
    run.json = run.json ? run.json : "{}";
    run.host = run.host ? run.host : host;
    if (w->rewrite->began)
        run.seconds = clock_seconds_since(w->rewrite->began);
    H5_SCOPED hid_t group = H5I_INVALID_HID;
    snprintf(name, sizeof name, "%llu", (unsigned long long)number);
    if (h5_create_group(&group, runs, name, err) ||
        h5_put_attributes(group, result_run_attribute, RESULT_RUN_TEXTS + 1, &run, err) ||
        h5_put_text(group, "clpipe_version", CLPIPE_VERSION, err) ||
        h5_put_text(group, "finished", finished, err))
        return STATUS_FAILED;
    return map && !map->same ? carry_write_map(group, map, err) : STATUS_OK;
}

static enum status write_runs(struct writing *w, struct error *err)
{
    struct result *from = w->rewrite->carry ? w->rewrite->replaced : NULL;
    const unsigned count = from ? from->run_count : 0;
    H5_SCOPED hid_t runs = H5I_INVALID_HID;
    if (copies_runs(&runs, w->file, from, count >= MOST_RUNS ? count - MOST_RUNS + 1 : 0,
                    from ? from->run_clusters : NULL, err))
        return STATUS_FAILED;
    w->report->run = count > 0 ? from->runs[count - 1] + 1 : 0;
    return write_run(w, runs, w->report->run, err);
}

static enum status write_content(struct writing *w, const char *path, struct error *err)
{
    const struct rewrite *rewrite = w->rewrite;
    const struct content *content = w->content;
    struct result *replaced = rewrite->replaced;
    if (schema_put_root(w->file, err) ||
        h5_put_text(w->file, "parameters", content->parameters, err) ||
        (content->preset && h5_put_text(w->file, "preset", content->preset, err)) ||
        (content->share.count > 0 &&
         h5_put_attributes(w->file, result_share_attribute, RESULT_SHARE_ATTRIBUTES,
                           &content->share, err)))
        return STATUS_FAILED;
    enum status status = write_rows(w, err);
    if (!status)
        status = codebook_groups_write(w->file, content->features, err);
    if (!status)
        status = class_groups_write(w->file, content->features,
                                    rewrite->carry ? replaced : rewrite->classes_of, err);
    if (!status && rewrite->carry) {
        rewrite->carry->from = replaced;
        rewrite->carry->file = w->file;
        rewrite->carry->map = rewrite->map;
        status = carry_objects(rewrite->carry, err);
    }
    if (!status && rewrite->parts &&
        (parts_write(w->file, rewrite->parts, rewrite->part_count, err) ||
         h5_flush_file(w->file, err) || parts_attach(w->file, path, err)))
        return STATUS_FAILED;
    if (status)
        return status;
    const hid_t others_of = replaced ? replaced->file : rewrite->others_of;
    if (write_checksums(w, err) || write_runs(w, err) || shown_write(w->file, err) ||
        (others_of > 0 && foreign_copy(&w->report->foreign, others_of, w->file, err)))
        return STATUS_FAILED;
    /* Flushes what closing would write, since closing cannot report failures. */
    return h5_flush_file(w->file, err);
}

static enum status write_file(void *context, hid_t file, const char *path, struct error *err)
{
    struct writing *w = context;
    w->file = file;
    const enum status status = write_content(w, path, err);
    close_columns(w);
    parts_detach(file);
    return status;
}

enum status rewrite_file(struct rewrite_report *report, const struct rewrite *rewrite,
                         struct error *err)
{
    struct writing *w = calloc(1, sizeof *w);
    *report = (struct rewrite_report){.run = 0};
    if (!w)
        return error_memory(err, sizeof *w, "a file");
    w->rewrite = rewrite;
    w->rows = rewrite->rows;
    w->content = rewrite->rows->content;
    w->report = report;
    w->path = rewrite->output;
    const enum status status = h5_write_file(rewrite->output, rewrite->unnamed,
                                             rewrite->parts != NULL, write_file, w, err);
    free(w);
    return status;
}
