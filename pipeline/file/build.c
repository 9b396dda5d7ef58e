/* build.c: one pass over the rows (gather.h), into HDF5.
 *
 * The features' datasets come first in the file, contiguous and each in one piece, then the tables
 * with their texts, then clusters and runs; chunks that are compressed come between the texts, in the
 * order of their rows. So the bytes before /runs depend on nothing but the content. */
#include "file/build.h"
#include "base/clock.h"
#include "base/output.h"
#include "base/path.h"
#include "features/kind.h"
#include "file/carry.h"
#include "file/checksums.h"
#include "file/chunks.h"
#include "file/codebook_groups.h"
#include "file/columns.h"
#include "file/gather.h"
#include "file/names.h"
#include "file/result_internal.h"
#include "version_generated.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Older runs are forgotten. */
#define MOST_RUNS 100

/* The file that is being written. */
struct build {
    const struct build_config *config;
    const struct feature_set *features;
    const char *path; /* the final one, for messages */
    hid_t file;
    struct columns *images, *failures;
    struct blobs *thumbnails;
    struct chunks *chunks; /* NULL: features are contiguous */
    hid_t feature[FEATURE_MAX];
};

/* A text of any bytes, which are mostly UTF-8. */
static enum status put_text(hid_t object, const char *name, const char *text, const char *path,
                            struct error *err)
{
    const size_t length = text ? strlen(text) : 0;
    if (utf8_valid(text ? text : "", length))
        return h5_put_text(object, name, text ? text : "", path, err);
    char *copy = malloc(4 * length + 1);
    if (!copy)
        return error_memory(err, 4 * length + 1, "a text");
    path_to_utf8(copy, 4 * length + 1, text, length);
    enum status status = h5_put_text(object, name, copy, path, err);
    free(copy);
    return status;
}

static enum status create_feature(struct build *b, hid_t group, unsigned i, struct error *err)
{
    const struct feature *feature = &b->features->feature[i];
    struct result_feature described;
    char axis[AXIS_NAME_MAX];
    const hsize_t size[2] = {b->config->images, feature->dimension};
    hid_t *dataset = &b->feature[i];
    axis_name(axis, "feature", feature->name);
    result_feature_describe(&described, feature, b->config->content->decode_scale);
    if (h5_create_scale(b->file, axis, feature->dimension, b->path, err) ||
        (b->chunks ? chunks_create(b->chunks, dataset, group, &described, err)
                   : h5_create_dataset(dataset, group, feature->name,
                                       result_feature_type(&described), 2, size, b->path, err)) ||
        h5_attach_scale(b->file, *dataset, 0, image_table.axis, b->path, err) ||
        h5_attach_scale(b->file, *dataset, 1, axis, b->path, err))
        return STATUS_FAILED;
    return result_feature_put_attributes(*dataset, &described, b->path, err);
}

static enum status open_chunks(struct build *b, struct error *err)
{
    struct chunks_config config = {.rows = b->config->images,
                                   .datasets = b->features->count,
                                   .threads = b->config->threads,
                                   .path = b->path};
    for (unsigned i = 0; i < b->features->count; i++) {
        const size_t bytes = feature_row_bytes(&b->features->feature[i]);
        config.widest = bytes > config.widest ? bytes : config.widest;
    }
    return b->config->compress && config.rows > 0 ? chunks_open(&b->chunks, &config, err)
                                                  : STATUS_OK;
}

static enum status create_features(struct build *b, struct error *err)
{
    enum status status = STATUS_FAILED;
    hid_t group = H5I_INVALID_HID;
    if (open_chunks(b, err) ||
        h5_create_scale(b->file, image_table.axis, b->config->images, b->path, err) ||
        h5_create_group(&group, b->file, "features", b->path, err))
        goto out;
    for (unsigned i = 0; i < b->features->count; i++)
        if (create_feature(b, group, i, err))
            goto out;
    status = STATUS_OK;
out:
    h5_close(&group);
    return status;
}

static enum status create_tables(struct build *b, struct error *err)
{
    enum status status = STATUS_FAILED;
    const struct build_config *c = b->config;
    hid_t images = H5I_INVALID_HID, failures = H5I_INVALID_HID;
    const bool codes = c->codes == c->images && c->images > 0;
    if (columns_create(&b->images, &images, b->file, &image_table, c->images, codes, c->image_texts,
                       b->path, err) ||
        sources_write(b->file, images, c->content->sources, c->content->directories,
                      c->content->source_count, b->path, err))
        goto out;
    h5_close(&images);
    if (columns_create(&b->failures, &failures, b->file, &failure_table, c->failures, false,
                       c->failure_texts, b->path, err))
        goto out;
    status = c->content->thumbnail_size > 0
                 ? thumbnails_create(&b->thumbnails, b->file, c->content->thumbnail_size, c->images,
                                     c->thumbnail_bytes, b->path, err)
                 : STATUS_OK;
out:
    h5_close(&images);
    h5_close(&failures);
    return status;
}

static enum status add_to_chunks(void *context, uint8_t *const values[FEATURE_MAX], uint64_t count,
                                 struct error *err)
{
    struct build *b = context;
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < b->features->count && !status; i++)
        status = chunks_add(b->chunks, b->feature[i], values[i], count, err);
    return status;
}

/* Which row of the file that is updated it was. */
static uint64_t earlier_row(const struct feed_item *item)
{
    return location_kind(item->location) == LOCATION_IMAGE ? location_row(item->location)
                                                           : SIDECAR_NO_ROW;
}

/* The values go straight to their place in the file, or into chunks; the tables through HDF5. */
static enum status write_rows(struct build *b, struct error *err)
{
    struct gather *gather = NULL;
    const struct feed_item *item;
    const uint64_t images = b->config->images;
    struct gather_config config = {
        .feed = &b->config->feed,
        .threads = b->config->threads,
        .thumbnail_bytes = images > 0 ? (size_t)(b->config->thumbnail_bytes / images) : 0,
        .take = b->chunks ? add_to_chunks : NULL,
        .context = b,
        .fd = -1,
        .path = b->path};
    for (unsigned i = 0; images > 0 && !config.take && i < b->features->count; i++)
        if (h5_find_rows(&config.fd, &config.start[i], b->feature[i], b->path, err))
            return STATUS_FAILED;
    enum status status = gather_open(&gather, &config, err);
    while (!status && !(status = gather_next(gather, &item, err))) {
        status = columns_add_named(item->is_image ? b->images : b->failures,
                             item->is_image ? (const void *)&item->image : &item->failure,
                             item->path, item->path_length, err);
        if (!status && item->is_image && b->config->sidecars)
            status = sidecars_row(b->config->sidecars, item->image.source, item->path,
                                  item->path_length, earlier_row(item), err);
        if (!status && item->is_image && b->thumbnails)
            status = blobs_add(b->thumbnails, item->thumbnail, item->thumbnail_length, err);
    }
    gather_close(&gather);
    if (status != STATUS_END)
        return status;
    if ((b->chunks && chunks_finish(b->chunks, err)) ||
        (b->thumbnails && blobs_finish(b->thumbnails, err)) ||
        columns_finish(b->images, err) || columns_finish(b->failures, err))
        return STATUS_FAILED;
    return STATUS_OK;
}

/* `map` is that of this run, `earlier` the group of a run that is copied; either may be missing. */
static enum status write_run(struct build *b, hid_t runs, uint64_t number,
                             const struct store_run *run, const char *version, const char *finished,
                             const struct row_map *map, hid_t earlier, struct error *err)
{
    enum status status = STATUS_FAILED;
    char name[32];
    const char *const texts[][2] = {{"command", run->command}, {"details", run->json},
                                    {"device", run->device},   {"driver", run->driver},
                                    {"host", run->host},       {"clpipe_version", version},
                                    {"finished", finished}};
    hid_t group;
    snprintf(name, sizeof name, "%llu", (unsigned long long)number);
    if (h5_create_group(&group, runs, name, b->path, err))
        return STATUS_FAILED;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (put_text(group, texts[i][0], texts[i][1], b->path, err))
            goto out;
    if (h5_put_number(group, "seconds", VALUE_F64, &run->seconds, b->path, err) ||
        (map && carry_write_map(group, map, b->path, err)) ||
        (earlier > 0 && carry_copy_map(group, earlier, b->path, err)))
        goto out;
    status = STATUS_OK;
out:
    h5_close(&group);
    return status;
}

/* Copies one run of the file that is updated. */
static enum status copy_run(struct build *b, hid_t runs, struct result *from, unsigned i,
                            struct error *err)
{
    enum status status = STATUS_FAILED;
    struct store_run run;
    char name[32], *version = NULL, *finished = NULL;
    snprintf(name, sizeof name, "runs/%llu", (unsigned long long)from->runs[i]);
    hid_t group;
    if (h5_open_group(&group, from->file, name, from->path, err))
        return STATUS_FAILED;
    if (result_run_at(from, i, &run, err) ||
        h5_get_text(&version, group, "clpipe_version", false, from->path, err) ||
        h5_get_text(&finished, group, "finished", false, from->path, err))
        goto out;
    status = write_run(b, runs, from->runs[i], &run, version, finished, NULL, group, err);
out:
    free(version);
    free(finished);
    h5_close(&group);
    return status;
}

static enum status write_runs(struct build *b, struct error *err)
{
    enum status status = STATUS_FAILED;
    struct result *from = b->config->carry ? b->config->replaced : b->config->feed.finished;
    const struct row_map *map = b->config->map;
    uint64_t number = 0;
    char finished[32];
    hid_t runs;
    if (h5_create_group(&runs, b->file, "runs", b->path, err))
        return STATUS_FAILED;
    if (from && from->run_count > 0) {
        number = from->runs[from->run_count - 1] + 1;
        unsigned first = from->run_count >= MOST_RUNS ? from->run_count - MOST_RUNS + 1 : 0;
        for (unsigned i = first; i < from->run_count; i++)
            if (copy_run(b, runs, from, i, err))
                goto out;
    }
    if (from && from->run_clusters && b->config->carry &&
        h5_put_text(runs, RUN_CLUSTERS, from->run_clusters, b->path, err))
        goto out;
    if (b->config->foreign)
        b->config->foreign->run = number;
    clock_iso8601(finished, clock_created());
    status = write_run(b, runs, number, b->config->run, CLPIPE_VERSION, finished,
                       map && !map->same ? map : NULL, H5I_INVALID_HID, err);
out:
    h5_close(&runs);
    return status;
}

static enum status write_carried(struct build *b, struct error *err)
{
    struct carry *carry = b->config->carry;
    carry->from = b->config->replaced;
    carry->file = b->file;
    carry->path = b->path;
    carry->map = b->config->map;
    enum status status = carry_imported(carry, err);
    if (!status)
        status = carry_clusters(carry, err);
    if (!status)
        status = carry_neighbours(carry, err);
    return status ? status : carry_next(carry, err);
}

static enum status copy_foreign(struct build *b, struct error *err)
{
    struct result *from = b->config->replaced;
    struct foreign_copied copied;
    if (!from)
        return STATUS_OK;
    if (foreign_copy(&copied, from->file, from->path, b->file, b->path, "/", err))
        return STATUS_FAILED;
    if (b->config->foreign)
        b->config->foreign->copied = copied;
    return STATUS_OK;
}

static enum status put_share(struct build *b, const struct list_share *share, struct error *err)
{
    const struct {
        const char *name;
        uint64_t value;
    } number[] = {{"shard_index", share->index},
                  {"shard_count", share->count},
                  {"shard_first", share->first},
                  {"shard_last", share->last},
                  {"list_count", share->list_count}};
    if (share->count == 0)
        return STATUS_OK;
    for (size_t i = 0; i < sizeof number / sizeof *number; i++)
        if (h5_put_number(b->file, number[i].name, VALUE_U64, &number[i].value, b->path, err))
            return STATUS_FAILED;
    return put_text(b->file, "list_digest", share->list_digest, b->path, err);
}

static enum status write_content(struct build *b, struct error *err)
{
    if (schema_put_root(b->file, b->path, err) ||
        put_text(b->file, "parameters", b->config->content->parameters, b->path, err) ||
        (b->config->content->preset &&
         put_text(b->file, "preset", b->config->content->preset, b->path, err)) ||
        put_share(b, &b->config->content->share, err) || create_features(b, err) ||
        create_tables(b, err))
        return STATUS_FAILED;
    enum status status = write_rows(b, err);
    if (!status && b->config->sidecars)
        status = sidecars_write(b->config->sidecars, b->file, b->path, err);
    if (!status)
        status = codebook_groups_write(b->file, b->features, b->path, err);
    if (status)
        return status;
    if (b->config->carry && (status = write_carried(b, err)))
        return status;
    if (checksums_write(b->file, b->path, err) || write_runs(b, err) || copy_foreign(b, err))
        return STATUS_FAILED;
    /* What closing the datasets would write: there it could not fail. */
    return h5_flush_file(b->file, b->path, err);
}

enum status build_file(const struct build_config *config, struct error *err)
{
    struct build b = {
        .config = config, .features = config->content->features, .path = config->output};
    struct output *output = NULL;
    enum status status = output_open(&output, config->output, err);
    if (!status)
        status = h5_create_file(&b.file, output_temporary(output), err);
    if (!status)
        status = write_content(&b, err);
    columns_close(&b.images);
    columns_close(&b.failures);
    blobs_close(&b.thumbnails);
    chunks_close(&b.chunks);
    for (unsigned i = 0; i < FEATURE_MAX; i++)
        h5_close(&b.feature[i]);
    if (status) {
        h5_discard_file(&b.file);
        goto out;
    }
    status = h5_finish_file(&b.file, config->output, err);
    if (!status)
        status = output_commit(output, err);
out:
    output_close(&output);
    return status;
}
