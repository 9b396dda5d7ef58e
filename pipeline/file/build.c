/* build.c: one pass over the rows, into HDF5.
 *
 * The features' datasets come first in the file, contiguous and each in one piece, then the tables
 * with their texts, then clusters and runs; so the bytes before /runs depend on nothing but the
 * content. */
#include "file/build.h"
#include "base/clock.h"
#include "base/output.h"
#include "base/path.h"
#include "features/kind.h"
#include "file/clusters.h"
#include "file/columns.h"
#include "version_generated.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Values are written in blocks of about this size. */
#define BLOCK_BYTES (8u << 20)
#define MOST_ROWS   4096
/* Older runs are forgotten. */
#define MOST_RUNS 100

/* The file that is being written. */
struct build {
    const struct build_config *config;
    const struct feature_set *features;
    const char *path; /* the final one, for messages */
    hid_t file;
    struct columns *images, *failures;
    hid_t feature[FEATURE_MAX];
    uint8_t *block[FEATURE_MAX];
    unsigned block_rows, filled;
    uint64_t written;
};

/* The same text as UTF-8; free it. */
static char *utf8(const char *text)
{
    size_t length = strlen(text), size = 4 * length + 1;
    char *copy = malloc(size);
    if (copy)
        path_to_utf8(copy, size, text, length);
    return copy;
}

static enum status put_text(hid_t object, const char *name, const char *text, const char *path,
                            struct error *err)
{
    char *copy = utf8(text ? text : "");
    if (!copy)
        return error_memory(err, strlen(text) * 4, "a text");
    enum status status = h5_put_text(object, name, copy, path, err);
    free(copy);
    return status;
}

static enum status put_root(struct build *b, struct error *err)
{
    int32_t format = SCHEMA_FORMAT;
    char created[32];
    clock_iso8601(created, clock_created());
    enum status status = h5_put_number(b->file, "clpipe_format", VALUE_I32, &format, b->path, err);
    if (!status)
        status = h5_put_text(b->file, "clpipe_version", CLPIPE_VERSION, b->path, err);
    if (!status)
        status = h5_put_text(b->file, "created", created, b->path, err);
    if (!status)
        status = put_text(b->file, "parameters", b->config->config->parameters, b->path, err);
    return status;
}

static enum status create_feature(struct build *b, hid_t group, unsigned i, struct error *err)
{
    const struct feature *feature = &b->features->feature[i];
    char axis[AXIS_NAME_MAX], bins[32], grid[24];
    snprintf(grid, sizeof grid, "%ux%u", feature->grid_rows, feature->grid_columns);
    feature_bins_text(bins, sizeof bins, feature);
    const char *const texts[][2] = {{"spec", feature->spec},
                                    {"kind", feature->kind->name},
                                    {"bins", bins},
                                    {"grid", grid},
                                    {"normalize", feature_normalize_name(feature->normalize)}};
    uint32_t scale = b->config->config->decode_scale;
    hsize_t size[2] = {b->config->images, feature->dimension};
    hid_t *dataset = &b->feature[i];
    axis_name(axis, "feature", feature->name);
    enum status status = h5_create_scale(b->file, axis, feature->dimension, b->path, err);
    if (!status)
        status = h5_create_dataset(dataset, group, feature->name,
                                   feature->normalize == NORMALIZE_NONE ? VALUE_U32 : VALUE_F32, 2,
                                   size, b->path, err);
    if (!status)
        status = h5_attach_scale(b->file, *dataset, 0, image_table.axis, b->path, err);
    if (!status)
        status = h5_attach_scale(b->file, *dataset, 1, axis, b->path, err);
    for (size_t t = 0; !status && t < sizeof texts / sizeof *texts; t++)
        status = h5_put_text(*dataset, texts[t][0], texts[t][1], b->path, err);
    if (!status)
        status = h5_put_number(*dataset, "decode_scale", VALUE_U32, &scale, b->path, err);
    b->block[i] = malloc(4 * (size_t)feature->dimension * b->block_rows);
    if (!status && !b->block[i])
        status = error_memory(err, 4 * (size_t)feature->dimension * b->block_rows, "rows");
    return status;
}

static enum status create_features(struct build *b, struct error *err)
{
    size_t row_bytes = 4 * (size_t)b->features->counters;
    b->block_rows = row_bytes < BLOCK_BYTES ? (unsigned)(BLOCK_BYTES / row_bytes) : 1;
    if (b->block_rows > MOST_ROWS)
        b->block_rows = MOST_ROWS;
    hid_t group = H5I_INVALID_HID;
    enum status status =
        h5_create_scale(b->file, image_table.axis, b->config->images, b->path, err);
    if (!status)
        status = h5_create_group(&group, b->file, "features", b->path, err);
    for (unsigned i = 0; !status && i < b->features->count; i++)
        status = create_feature(b, group, i, err);
    h5_close(&group);
    return status;
}

static enum status write_sources(struct build *b, hid_t images, struct error *err)
{
    const struct store_config *config = b->config->config;
    hsize_t count = config->source_count;
    hid_t dataset = H5I_INVALID_HID;
    enum status status = h5_create_scale(b->file, SOURCE_AXIS, count, b->path, err);
    if (!status)
        status =
            h5_create_dataset(&dataset, images, "sources", VALUE_TEXT, 1, &count, b->path, err);
    if (!status)
        status = h5_attach_scale(b->file, dataset, 0, SOURCE_AXIS, b->path, err);
    for (unsigned i = 0; !status && i < config->source_count; i++) {
        char *text = utf8(config->sources[i]);
        if (!text)
            status = error_memory(err, 4 * strlen(config->sources[i]), "a source");
        else
            status = h5_write_rows(dataset, VALUE_TEXT, i, 1, &text, b->path, err);
        free(text);
    }
    return status ? status : h5_finish_dataset(&dataset, b->path, err);
}

static enum status create_tables(struct build *b, struct error *err)
{
    const struct build_config *c = b->config;
    hid_t group;
    enum status status = h5_create_scale(b->file, DIGEST_AXIS, 2, b->path, err);
    if (!status)
        status = columns_create(&b->images, &group, b->file, &image_table, c->images,
                                c->raw_images.rows, c->raw_images.bytes, b->path, err);
    if (status)
        return status;
    status = write_sources(b, group, err);
    h5_close(&group);
    if (!status)
        status = columns_create(&b->failures, &group, b->file, &failure_table, c->failures,
                                c->raw_failures.rows, c->raw_failures.bytes, b->path, err);
    h5_close(&group);
    return status;
}

static enum status flush_values(struct build *b, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned i = 0; !status && i < b->features->count; i++)
        status = h5_write_rows(b->feature[i],
                               b->features->feature[i].normalize == NORMALIZE_NONE ? VALUE_U32
                                                                                   : VALUE_F32,
                               b->written, b->filled, b->block[i], b->path, err);
    b->written += b->filled;
    b->filled = 0;
    return status;
}

static enum status write_rows(struct build *b, struct error *err)
{
    struct feed *feed;
    struct feed_item item;
    uint64_t location;
    enum status status = feed_open(&feed, &b->config->feed, err);
    while (!status && !(status = feed_next_location(feed, &location, err))) {
        status = feed_read(feed, location, &item, err);
        if (status)
            break;
        if (!item.is_image) {
            status = columns_add(b->failures, &item.failure, item.path, item.path_length, err);
            continue;
        }
        for (unsigned i = 0; i < b->features->count; i++) {
            size_t bytes = 4 * (size_t)b->features->feature[i].dimension;
            memcpy(b->block[i] + b->filled * bytes,
                   (const uint8_t *)item.values + 4 * (size_t)b->features->feature[i].offset,
                   bytes);
        }
        if (++b->filled == b->block_rows)
            status = flush_values(b, err);
        if (!status)
            status = columns_add(b->images, &item.image, item.path, item.path_length, err);
    }
    feed_close(&feed);
    if (status != STATUS_END)
        return status;
    status = flush_values(b, err);
    if (!status)
        status = columns_finish(b->images, err);
    if (!status)
        status = columns_finish(b->failures, err);
    return status;
}

static enum status write_run(struct build *b, hid_t runs, uint64_t number,
                             const struct store_run *run, const char *version, const char *finished,
                             struct error *err)
{
    char name[32];
    const char *const texts[][2] = {{"command", run->command}, {"details", run->json},
                                    {"device", run->device},   {"driver", run->driver},
                                    {"host", run->host},       {"clpipe_version", version},
                                    {"finished", finished}};
    hid_t group;
    snprintf(name, sizeof name, "%llu", (unsigned long long)number);
    enum status status = h5_create_group(&group, runs, name, b->path, err);
    for (size_t i = 0; !status && i < sizeof texts / sizeof *texts; i++)
        status = put_text(group, texts[i][0], texts[i][1], b->path, err);
    if (!status)
        status = h5_put_number(group, "seconds", VALUE_F64, &run->seconds, b->path, err);
    h5_close(&group);
    return status;
}

/* Copies one run of the file that is updated. */
static enum status copy_run(struct build *b, hid_t runs, struct result *from, unsigned i,
                            struct error *err)
{
    struct result_run run;
    char name[32], *version = NULL, *finished = NULL;
    snprintf(name, sizeof name, "runs/%llu", (unsigned long long)from->runs[i]);
    hid_t group = H5Gopen2(from->file, name, H5P_DEFAULT);
    if (group < 0)
        return h5_fail(err, "H5Gopen2", "read", from->path);
    enum status status = result_run_at(from, i, &run, err);
    if (!status)
        status = vlen_text_attribute(&version, from->vlen, group, "clpipe_version", false, err);
    if (!status)
        status = vlen_text_attribute(&finished, from->vlen, group, "finished", false, err);
    struct store_run copy = {.command = run.command,
                             .json = run.json,
                             .device = run.device,
                             .driver = run.driver,
                             .host = run.host,
                             .seconds = run.seconds};
    if (!status)
        status = write_run(b, runs, from->runs[i], &copy, version, finished, err);
    free(version);
    free(finished);
    h5_close(&group);
    return status;
}

static enum status write_runs(struct build *b, bool keep_clusters, struct error *err)
{
    struct result *from = keep_clusters ? b->config->replaced : b->config->feed.finished;
    uint64_t number = 0;
    char finished[32];
    hid_t runs;
    enum status status = h5_create_group(&runs, b->file, "runs", b->path, err);
    if (status)
        return status;
    if (from && from->run_count > 0) {
        number = from->runs[from->run_count - 1] + 1;
        unsigned first = from->run_count >= MOST_RUNS ? from->run_count - MOST_RUNS + 1 : 0;
        for (unsigned i = first; !status && i < from->run_count; i++)
            status = copy_run(b, runs, from, i, err);
    }
    clock_iso8601(finished, clock_created());
    if (!status)
        status = write_run(b, runs, number, b->config->run, CLPIPE_VERSION, finished, err);
    h5_close(&runs);
    return status;
}

static enum status write_content(struct build *b, bool keep_clusters, struct error *err)
{
    struct result *from = b->config->replaced;
    enum status status = put_root(b, err);
    if (!status)
        status = create_features(b, err);
    if (!status)
        status = create_tables(b, err);
    if (!status)
        status = write_rows(b, err);
    for (unsigned i = 0; !status && keep_clusters && i < from->clusters_count; i++)
        if (!b->config->leave_out || !b->config->leave_out[i])
            status = clusters_copy(b->file, b->path, from, &from->clusters[i].clusters, err);
    if (!status)
        status = write_runs(b, keep_clusters, err);
    /* What closing the datasets would write: there it could not fail. */
    if (!status && H5Fflush(b->file, H5F_SCOPE_GLOBAL) < 0)
        status = h5_fail(err, "H5Fflush", "write", b->path);
    return status;
}

enum status build_file(const struct build_config *config, bool keep_clusters, struct error *err)
{
    struct build b = {
        .config = config, .features = config->config->features, .path = config->output};
    struct output *output;
    enum status status = output_open(&output, config->output, err);
    if (status)
        return status;
    status = h5_create_file(&b.file, output_temporary(output), err);
    if (!status)
        status = write_content(&b, keep_clusters, err);
    if (status)
        h5_abandon_file(b.file);
    columns_close(&b.images);
    columns_close(&b.failures);
    for (unsigned i = 0; i < FEATURE_MAX; i++) {
        h5_close(&b.feature[i]);
        free(b.block[i]);
    }
    if (!status)
        status = h5_finish_file(&b.file, config->output, err);
    else
        h5_discard_file(&b.file);
    if (!status)
        status = output_commit(output, err);
    output_close(&output);
    return status;
}
