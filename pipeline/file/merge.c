/* merge.c: one pass over the parts, in the order of their rows.
 *
 * Paths, sources and failures are copied: without them nothing could be said of a row whose part is
 * lost. All other columns, features and thumbnails are
 * virtual datasets, or are copied, too. */
#include "file/merge.h"
#include "base/clock.h"
#include "base/output.h"
#include "base/path.h"
#include "base/process.h"
#include "file/checksums.h"
#include "file/chunks.h"
#include "file/codebook_groups.h"
#include "file/codebooks.h"
#include "file/columns.h"
#include "file/merge_inputs.h"
#include "file/names.h"
#include "file/sidecars.h"
#include "version_generated.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES (8u << 20)
#define END_BLOCK   4096
#define TELL_ROWS   4096

struct merge {
    const struct merge_config *config;
    struct merge_inputs inputs;
    const char *path; /* of the output, for messages */
    hid_t file;
    int descriptor;                   /* of the same file */
    struct part *part;                /* of each input, for the manifest */
    uint64_t *rows, *thumbnail_bytes; /* of each input */
    struct columns *images, *failures;
    struct sidecars *sidecars;     /* NULL: the parts have none */
    struct blobs *thumbnails; /* that are copied */
    hid_t ends;                    /* of those that are virtual */
    struct chunks *chunks;         /* NULL: features are contiguous, or virtual */
    hid_t feature[RESULT_MOST_FEATURES];
    uint64_t done;
    int64_t start;
};

/* --- datasets -------------------------------------------------------------------------------- */

/* A dataset with a row for each image, which shows those of the parts. The parts must agree on its
 * type; what `length` says. */
static enum status create_virtual(hid_t *dataset, struct merge *m, hid_t group,
                                  const char *absolute, const uint64_t *length, uint64_t total,
                                  struct error *err)
{
    const struct merge_inputs *inputs = &m->inputs;
    hid_t type = H5I_INVALID_HID;
    hsize_t size[2] = {total, 1};
    int rank = 1;
    enum status status = STATUS_OK;
    *dataset = H5I_INVALID_HID;
    for (unsigned i = 0; i < inputs->count && status == STATUS_OK && type <= 0; i++) {
        if (length[i] == 0)
            continue;
        hid_t file = H5I_INVALID_HID, like = H5I_INVALID_HID, space = H5I_INVALID_HID;
        hsize_t found[2] = {0, 1};
        status = h5_open_file(&file, inputs->input[i].path, false, err);
        if (status == STATUS_OK && (like = H5Dopen2(file, absolute, H5P_DEFAULT)) < 0)
            status = h5_fail(err, "H5Dopen2", "read", inputs->input[i].path);
        if (status == STATUS_OK) {
            type = H5Dget_type(like);
            space = H5Dget_space(like);
            rank = H5Sget_simple_extent_ndims(space);
            H5Sget_simple_extent_dims(space, found, NULL);
            size[1] = found[1];
        }
        h5_close(&space);
        h5_close(&like);
        h5_close(&file);
    }
    if (status == STATUS_OK)
        status = parts_create_dataset(dataset, group, strrchr(absolute, '/') + 1, absolute, type,
                                      rank, size, m->part, length, inputs->count, m->path, err);
    h5_close(&type);
    return status;
}

static enum status attach_scales(struct merge *m, hid_t dataset, const char *axis, const char *wide,
                                 uint64_t width, struct error *err)
{
    if (h5_attach_scale(m->file, dataset, 0, axis, m->path, err) ||
        (wide && (h5_create_scale(m->file, wide, width, m->path, err) ||
                  h5_attach_scale(m->file, dataset, 1, wide, m->path, err))))
        return STATUS_FAILED;
    return STATUS_OK;
}

static enum status create_feature(struct merge *m, hid_t group, unsigned i, struct error *err)
{
    const struct result_feature *feature = result_feature_at(m->inputs.first, i);
    char axis[AXIS_NAME_MAX], absolute[FEATURE_NAME_MAX + 16];
    const hsize_t size[2] = {m->inputs.images, feature->dimension};
    hid_t *dataset = &m->feature[i];
    axis_name(axis, "feature", feature->name);
    snprintf(absolute, sizeof absolute, "/features/%s", feature->name);
    if (m->chunks ? chunks_create(m->chunks, dataset, group, feature, err)
        : m->config->copy
            ? h5_create_dataset(dataset, group, feature->name, result_feature_type(feature), 2,
                                size, m->path, err)
            : create_virtual(dataset, m, group, absolute, m->rows, m->inputs.images, err))
        return STATUS_FAILED;
    if (attach_scales(m, *dataset, image_table.axis, axis, feature->dimension, err))
        return STATUS_FAILED;
    return result_feature_put_attributes(*dataset, feature, m->path, err);
}

static enum status open_chunks(struct merge *m, struct error *err)
{
    const struct result *first = m->inputs.first;
    struct chunks_config config = {
        .rows = m->inputs.images, .threads = m->config->threads, .path = m->path};
    bool compress = m->config->compress;
    for (unsigned i = 0; i < m->inputs.count; i++)
        compress = compress || m->inputs.input[i].compressed;
    for (unsigned i = 0; i < result_feature_count(first); i++) {
        const struct result_feature *feature = result_feature_at(first, i);
        const size_t bytes = result_feature_row_bytes(feature);
        if (result_feature_imported(feature))
            continue;
        config.datasets++;
        config.widest = bytes > config.widest ? bytes : config.widest;
    }
    if (!m->config->copy || !compress || config.rows == 0 || config.datasets == 0)
        return STATUS_OK;
    return config.datasets <= FEATURE_MAX
               ? chunks_open(&m->chunks, &config, err)
               : h5_damaged(err, first->path, "it has more than %d features", FEATURE_MAX);
}

static enum status create_features(struct merge *m, struct error *err)
{
    hid_t group = H5I_INVALID_HID;
    enum status status = STATUS_FAILED;
    if (open_chunks(m, err) ||
        h5_create_scale(m->file, image_table.axis, m->inputs.images, m->path, err) ||
        h5_create_group(&group, m->file, "features", m->path, err))
        goto out;
    for (unsigned i = 0; i < result_feature_count(m->inputs.first); i++)
        if (!result_feature_imported(result_feature_at(m->inputs.first, i)) &&
            create_feature(m, group, i, err))
            goto out;
    status = STATUS_OK;
out:
    h5_close(&group);
    return status;
}

/* Every image must have a code for the column to be there. */
static bool has_codes(const struct merge_inputs *inputs)
{
    for (unsigned i = 0; i < inputs->count; i++)
        if (inputs->input[i].part.rows > 0 && !inputs->input[i].codes)
            return false;
    return true;
}

static enum status create_columns(struct merge *m, hid_t group, struct error *err)
{
    for (unsigned c = 0; c < image_table.count; c++) {
        const struct column *column = &image_table.column[c];
        char absolute[64];
        hid_t dataset;
        if (strcmp(column->name, "path") == 0 || strcmp(column->name, "source") == 0 ||
            (column->optional && !has_codes(&m->inputs)))
            continue;
        snprintf(absolute, sizeof absolute, "/images/%s", column->name);
        if (create_virtual(&dataset, m, group, absolute, m->rows, m->inputs.images, err))
            return STATUS_FAILED;
        const enum status status =
            attach_scales(m, dataset, image_table.axis, column->axis, column->width, err);
        h5_close(&dataset);
        if (status)
            return status;
    }
    return STATUS_OK;
}

static enum status create_virtual_thumbnails(struct merge *m, uint32_t size, uint64_t bytes,
                                             struct error *err)
{
    hid_t group = H5I_INVALID_HID, data = H5I_INVALID_HID;
    const hsize_t rows = m->inputs.images, byte_count = bytes;
    enum status status = STATUS_FAILED;
    if (h5_create_scale(m->file, THUMBNAIL_AXIS, bytes, m->path, err) ||
        h5_create_group(&group, m->file, THUMBNAIL_GROUP, m->path, err) ||
        thumbnails_put_size(m->file, size, m->path, err) ||
        (bytes > 0
             ? create_virtual(&data, m, group, "/" THUMBNAIL_GROUP "/data", m->thumbnail_bytes,
                              bytes, err)
             : h5_create_dataset(&data, group, "data", VALUE_U8, 1, &byte_count, m->path, err)) ||
        h5_attach_scale(m->file, data, 0, THUMBNAIL_AXIS, m->path, err) ||
        h5_create_dataset(&m->ends, group, "end", VALUE_U64, 1, &rows, m->path, err) ||
        h5_attach_scale(m->file, m->ends, 0, image_table.axis, m->path, err))
        goto out;
    status = STATUS_OK;
out:
    h5_close(&data);
    h5_close(&group);
    return status;
}

static enum status create_tables(struct merge *m, struct error *err)
{
    const struct merge_inputs *inputs = &m->inputs;
    const bool copy = m->config->copy;
    const uint32_t size = inputs->input[0].thumbnail_size;
    struct text_size texts[2][TABLE_TEXTS_MOST] = {{{0, 0}}};
    uint64_t bytes = 0;
    hid_t images = H5I_INVALID_HID, failures = H5I_INVALID_HID;
    enum status status = STATUS_FAILED;
    for (unsigned i = 0; i < inputs->count; i++) {
        bytes += inputs->input[i].part.thumbnail_bytes;
        for (int t = 0; t < TABLE_TEXTS_MOST; t++) {
            text_size_join(&texts[0][t], &inputs->input[i].texts[0][t]);
            text_size_join(&texts[1][t], &inputs->input[i].texts[1][t]);
        }
    }
    if (columns_create(&m->images, &images, m->file, copy ? &image_table : &name_table,
                       inputs->images, has_codes(inputs), texts[0], m->path, err) ||
        (!copy && create_columns(m, images, err)) ||
        sources_write(m->file, images, (const char *const *)inputs->source,
                      (const char *const *)inputs->directory, inputs->source_count, m->path, err) ||
        columns_create(&m->failures, &failures, m->file, &failure_table, inputs->failures, false,
                       texts[1], m->path, err))
        goto out;
    status = size == 0 ? STATUS_OK
             : copy    ? thumbnails_create(&m->thumbnails, m->file, size, inputs->images, bytes,
                                           m->path, err)
                       : create_virtual_thumbnails(m, size, bytes, err);
out:
    h5_close(&images);
    h5_close(&failures);
    return status;
}

/* --- rows ------------------------------------------------------------------------------------ */

static enum status tell(struct merge *m, uint64_t more, struct error *err)
{
    const struct merge_config *config = m->config;
    m->done += more;
    if (config->progress && more > 0)
        config->progress(config->progress_context, "merging", m->done,
                         m->inputs.images + m->inputs.failures);
    return stop_check(config->stop, "merging", err);
}

/* Rows of a table of a part, with their sources as they are now numbered. */
static enum status add_rows(struct merge *m, struct columns *columns, struct rows *rows,
                            const struct table *table, const struct merge_input *input,
                            unsigned sources, struct error *err)
{
    union {
        struct result_image image;
        struct failure_row failure;
    } row;
    const bool failures = table == &failure_table;
    for (uint64_t i = 0; i < rows_count(rows); i++) {
        const void *found;
        const char *raw;
        if (rows_at(rows, i, &found, &raw, err))
            return STATUS_FAILED;
        memcpy(&row, found, table->row_size);
        uint16_t *source = failures ? &row.failure.source : &row.image.source;
        if (*source >= sources)
            return h5_damaged(err, input->path, "/%s/source: row %llu names no source",
                              table->group, (unsigned long long)i);
        *source = (uint16_t)(*source + input->first_source);
        if (columns_add(columns, &row, err))
            return STATUS_FAILED;
        if (i % TELL_ROWS == TELL_ROWS - 1) {
            const enum status status = tell(m, TELL_ROWS, err);
            if (status)
                return status;
        }
    }
    return tell(m, rows_count(rows) % TELL_ROWS, err);
}

static enum status copy_feature(struct merge *m, struct result *part, unsigned i, uint64_t first,
                                void *block, struct error *err)
{
    const struct result_feature *to = result_feature_at(m->inputs.first, i);
    const struct result_feature *from = result_feature_find(part, to->name);
    const enum value_type type = result_feature_type(to);
    const uint64_t step = BLOCK_BYTES / (4 * (uint64_t)to->dimension) + 1;
    for (uint64_t at = 0; at < from->rows; at += step) {
        const uint64_t left = from->rows - at, count = left < step ? left : step;
        if (result_feature_read_raw(part, from, at, count, block, err) ||
            (m->chunks ? chunks_add(m->chunks, m->feature[i], block, count, err)
                       : h5_write_rows(m->feature[i], type, first + at, count, block, m->path, err)))
            return STATUS_FAILED;
        const enum status status = tell(m, 0, err);
        if (status)
            return status;
    }
    return STATUS_OK;
}

static enum status copy_features(struct merge *m, struct result *part, uint64_t first,
                                 struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < result_feature_count(m->inputs.first) && status == STATUS_OK; i++) {
        const struct result_feature *feature = result_feature_at(m->inputs.first, i);
        if (result_feature_imported(feature))
            continue;
        const size_t bytes = BLOCK_BYTES + 4 * (size_t)feature->dimension;
        void *block = malloc(bytes);
        status =
            block ? copy_feature(m, part, i, first, block, err) : error_memory(err, bytes, "rows");
        free(block);
    }
    return status;
}

/* The thumbnails of a part are all of their data: those of the next one begin behind it. */
static enum status check_thumbnails(const struct result *part, uint64_t end, uint64_t bytes,
                                    struct error *err)
{
    return end == bytes ? STATUS_OK
                        : h5_damaged(err, part->path,
                                     "/thumbnails/end ends at %llu, but /thumbnails/data at %llu",
                                     (unsigned long long)end, (unsigned long long)bytes);
}

static enum status copy_thumbnails(struct merge *m, struct result *part, uint64_t bytes,
                                   struct error *err)
{
    const uint8_t *jpeg;
    uint64_t length, end = 0;
    for (uint64_t i = 0; i < result_images(part); i++) {
        if (result_thumbnail_read(part, i, &jpeg, &length, err) ||
            blobs_add(m->thumbnails, jpeg, length, err))
            return STATUS_FAILED;
        end += length;
    }
    return check_thumbnails(part, end, bytes, err);
}

/* Where thumbnails end, counted from the first part's on. */
static enum status write_ends(struct merge *m, struct result *part, uint64_t first, uint64_t start,
                              uint64_t bytes, struct error *err)
{
    uint64_t ends[END_BLOCK], last = 0;
    hsize_t rows;
    hid_t dataset;
    if (h5_open_dataset(&dataset, part->file, THUMBNAIL_GROUP "/end", VALUE_U64, 1, &rows,
                        "/" THUMBNAIL_GROUP "/end", part->path, err))
        return STATUS_FAILED;
    enum status status = STATUS_OK;
    for (uint64_t at = 0; at < rows && status == STATUS_OK; at += END_BLOCK) {
        const uint64_t count = rows - at < END_BLOCK ? rows - at : END_BLOCK;
        if ((status = h5_read_rows(dataset, VALUE_U64, at, count, ends, part->path, err)))
            break;
        last = ends[count - 1];
        for (uint64_t i = 0; i < count; i++)
            ends[i] += start;
        status = h5_write_rows(m->ends, VALUE_U64, first + at, count, ends, m->path, err);
    }
    h5_close(&dataset);
    return status ? status : check_thumbnails(part, last, bytes, err);
}

/* What lies beside the pictures is copied, like all texts. */
static enum status add_sidecars(struct merge *m, struct result *part, bool is_first,
                                struct error *err)
{
    const char *text[SIDECAR_COLUMNS];
    struct sidecar_reader *reader;
    enum status status = sidecar_reader_open(&reader, part, err);
    if (status == STATUS_OK && !is_first && !reader != !m->sidecars)
        status =
            h5_damaged(err, part->path, "only one has /images/key, cls, json and txt: it or %s",
                       m->inputs.input[0].path);
    if (status == STATUS_OK && reader && !m->sidecars)
        status = sidecars_open(&m->sidecars, process_temporary_directory(), err);
    for (uint64_t row = 0; reader && row < result_images(part) && status == STATUS_OK; row++) {
        status = sidecar_reader_row(reader, row, text, err);
        if (status == STATUS_OK)
            status = sidecars_row_of(m->sidecars, text, err);
    }
    sidecar_reader_close(&reader);
    return status;
}

static enum status merge_part(struct merge *m, unsigned i, uint64_t first, uint64_t first_byte,
                              struct error *err)
{
    const struct merge_input *input = &m->inputs.input[i];
    struct result *part;
    struct rows *names = NULL;
    char identity[65];
    const bool copy = m->config->copy;
    enum status status = result_open(&part, input->path, err);
    if (status)
        return status;
    const unsigned sources = result_source_count(part);
    if (!parts_identity(identity, part->file) || strcmp(identity, input->part.identity) != 0)
        status = h5_damaged(err, input->path, "it has changed while it was merged");
    if (status == STATUS_OK && !copy)
        status = rows_open(&names, part->file, &name_table, input->path, err);
    if (status == STATUS_OK)
        status = add_rows(m, m->images, copy ? part->images : names,
                          copy ? &image_table : &name_table, input, sources, err);
    if (status == STATUS_OK)
        status = add_rows(m, m->failures, part->failures, &failure_table, input, sources, err);
    if (status == STATUS_OK)
        status = add_sidecars(m, part, i == 0, err);
    if (status == STATUS_OK && copy)
        status = copy_features(m, part, first, err);
    if (status == STATUS_OK && m->thumbnails)
        status = copy_thumbnails(m, part, input->part.thumbnail_bytes, err);
    if (status == STATUS_OK && m->ends > 0)
        status = write_ends(m, part, first, first_byte, input->part.thumbnail_bytes, err);
    rows_close(&names);
    result_close(&part);
    return status;
}

static enum status merge_parts(struct merge *m, struct error *err)
{
    uint64_t first = 0, first_byte = 0;
    for (unsigned i = 0; i < m->inputs.count; i++) {
        const enum status status = merge_part(m, i, first, first_byte, err);
        if (status)
            return status;
        /* The disk need not wait for the end. */
        if (m->descriptor >= 0)
            sync_file_range(m->descriptor, 0, 0, SYNC_FILE_RANGE_WRITE);
        first += m->rows[i];
        first_byte += m->thumbnail_bytes[i];
    }
    if ((m->chunks && chunks_finish(m->chunks, err)) ||
        (m->thumbnails && blobs_finish(m->thumbnails, err)) ||
        columns_finish(m->images, err) ||
        (m->sidecars && sidecars_write(m->sidecars, m->file, m->path, err)))
        return STATUS_FAILED;
    return columns_finish(m->failures, err);
}

/* --- what belongs to the file ---------------------------------------------------------------- */

static enum status write_codebooks(struct merge *m, struct error *err)
{
    struct result *first = m->inputs.first;
    struct codebooks codebooks = {.stored = NULL};
    struct feature_set *features = calloc(1, sizeof *features);
    enum status status = features ? codebooks_read(&codebooks, first, NULL, err)
                                  : error_memory(err, sizeof *features, "features");
    for (unsigned i = 0; i < result_feature_count(first) && status == STATUS_OK; i++) {
        const struct result_feature *feature = result_feature_at(first, i);
        char spec[FEATURE_NAME_MAX + sizeof feature->spec];
        snprintf(spec, sizeof spec, "%s=%s", feature->name, feature->spec);
        if (!result_feature_imported(feature))
            status = feature_set_add(features, spec, NORMALIZE_L1, err);
    }
    if (status == STATUS_OK)
        status = codebooks_bind(&codebooks, features, first->path, err);
    if (status == STATUS_OK)
        status = codebook_groups_write(m->file, features, m->path, err);
    codebooks_clear(&codebooks);
    free(features);
    return status;
}

/* A column of the manifest: the member of struct part at `offset`. */
static enum status write_numbers(struct merge *m, hid_t group, const char *name, size_t offset,
                                 struct error *err)
{
    const hsize_t count = m->inputs.count;
    hid_t dataset = H5I_INVALID_HID;
    enum status status = STATUS_FAILED;
    if (h5_create_dataset(&dataset, group, name, VALUE_U64, 1, &count, m->path, err) ||
        h5_attach_scale(m->file, dataset, 0, PARTS_AXIS, m->path, err))
        goto out;
    for (unsigned i = 0; i < count; i++)
        if (h5_write_rows(dataset, VALUE_U64, i, 1, (const char *)&m->part[i] + offset, m->path,
                          err))
            goto out;
    status = h5_finish_dataset(&dataset, m->path, err);
out:
    h5_close(&dataset);
    return status;
}

static enum status write_texts(struct merge *m, hid_t group, const char *name, size_t offset,
                               struct error *err)
{
    const char **text = malloc(m->inputs.count * sizeof *text);
    if (!text)
        return error_memory(err, m->inputs.count * sizeof *text, "the parts");
    for (unsigned i = 0; i < m->inputs.count; i++)
        memcpy(&text[i], (const char *)&m->part[i] + offset, sizeof *text);
    const enum status status =
        h5_put_texts(m->file, group, name, text, m->inputs.count, PARTS_AXIS, m->path, err);
    free(text);
    return status;
}

static enum status write_manifest(struct merge *m, struct error *err)
{
    hid_t group = H5I_INVALID_HID;
    enum status status = STATUS_FAILED;
    if (h5_create_scale(m->file, PARTS_AXIS, m->inputs.count, m->path, err) ||
        h5_create_group(&group, m->file, PARTS_GROUP, m->path, err) ||
        write_texts(m, group, "path", offsetof(struct part, text), err) ||
        write_texts(m, group, "identity", offsetof(struct part, identity), err) ||
        write_numbers(m, group, "rows", offsetof(struct part, rows), err) ||
        write_numbers(m, group, "thumbnail_bytes", offsetof(struct part, thumbnail_bytes), err) ||
        write_numbers(m, group, "bytes", offsetof(struct part, bytes), err))
        goto out;
    status = STATUS_OK;
out:
    h5_close(&group);
    return status;
}

static enum status write_run(struct merge *m, struct error *err)
{
    const struct store_run *run = m->config->run;
    char finished[32];
    clock_iso8601(finished, clock_created());
    const char *const texts[][2] = {{"command", run->command},
                                    {"details", run->json},
                                    {"device", ""},
                                    {"driver", ""},
                                    {"host", run->host},
                                    {"clpipe_version", CLPIPE_VERSION},
                                    {"finished", finished}};
    const double seconds = (double)(clock_now() - m->start) * 1e-9;
    hid_t runs = H5I_INVALID_HID, group = H5I_INVALID_HID;
    enum status status = STATUS_FAILED;
    if (h5_create_group(&runs, m->file, "runs", m->path, err) ||
        h5_create_group(&group, runs, "0", m->path, err))
        goto out;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (h5_put_text(group, texts[i][0], texts[i][1], m->path, err))
            goto out;
    status = h5_put_number(group, "seconds", VALUE_F64, &seconds, m->path, err);
out:
    h5_close(&group);
    h5_close(&runs);
    return status;
}

static enum status write_content(struct merge *m, const char *temporary, struct error *err)
{
    const struct result *first = m->inputs.first;
    if (schema_put_root(m->file, m->path, err) ||
        h5_put_text(m->file, "parameters", first->parameters, m->path, err) ||
        (first->preset && h5_put_text(m->file, "preset", first->preset, m->path, err)) ||
        create_features(m, err) || create_tables(m, err))
        return STATUS_FAILED;
    enum status status = merge_parts(m, err);
    if (status == STATUS_OK)
        status = write_codebooks(m, err);
    if (status)
        return status;
    if (!m->config->copy && (write_manifest(m, err) || h5_flush_file(m->file, m->path, err) ||
                             parts_attach(m->file, temporary, err)))
        return STATUS_FAILED;
    if (checksums_write(m->file, m->path, err) || write_run(m, err))
        return STATUS_FAILED;
    return h5_flush_file(m->file, m->path, err);
}

static enum status list_parts(struct merge *m, struct error *err)
{
    const unsigned count = m->inputs.count;
    m->part = calloc(count, sizeof *m->part);
    m->rows = calloc(count, sizeof *m->rows);
    m->thumbnail_bytes = calloc(count, sizeof *m->thumbnail_bytes);
    if (!m->part || !m->rows || !m->thumbnail_bytes)
        return error_memory(err, count * sizeof *m->part, "the parts");
    for (unsigned i = 0; i < count; i++) {
        m->part[i] = m->inputs.input[i].part;
        m->rows[i] = m->part[i].rows;
        m->thumbnail_bytes[i] = m->part[i].thumbnail_bytes;
    }
    return STATUS_OK;
}

static enum status write_output(struct merge *m, struct error *err)
{
    struct output *output = NULL;
    const bool unnamed = m->config->unnamed;
    enum status status = unnamed ? STATUS_OK : output_open(&output, m->path, err);
    if (status)
        return status;
    const char *temporary = unnamed ? m->path : output_temporary(output);
    m->descriptor = unnamed ? -1 : output_descriptor(output);
    status = m->config->copy ? h5_create_file(&m->file, temporary, err)
                             : h5_create_virtual_file(&m->file, temporary, err);
    if (status == STATUS_OK)
        status = write_content(m, temporary, err);
    columns_close(&m->images);
    columns_close(&m->failures);
    sidecars_close(&m->sidecars);
    blobs_close(&m->thumbnails);
    chunks_close(&m->chunks);
    h5_close(&m->ends);
    for (unsigned i = 0; i < RESULT_MOST_FEATURES; i++)
        h5_close(&m->feature[i]);
    parts_detach(m->file);
    if (status == STATUS_OK)
        status = h5_finish_file(&m->file, m->path, err);
    else if (m->file > 0)
        h5_discard_file(&m->file);
    if (status == STATUS_OK && !unnamed)
        status = output_commit(output, err);
    output_close(&output);
    return status;
}

enum status merge_files(struct merge_report *report, const struct merge_config *config,
                        struct error *err)
{
    struct merge *m = calloc(1, sizeof *m);
    *report = (struct merge_report){.parts = config->count};
    if (!m)
        return error_memory(err, sizeof *m, "a merge");
    m->config = config;
    m->start = clock_now();
    m->path = config->output;
    m->file = m->ends = H5I_INVALID_HID;
    enum status status = merge_inputs_open(&m->inputs, report, config, err);
    if (status == STATUS_OK)
        status = list_parts(m, err);
    if (status == STATUS_OK)
        status = write_output(m, err);
    report->images = m->inputs.images;
    report->failures = m->inputs.failures;
    report->shards = m->inputs.count > 0 && m->inputs.input[0].shard_count > 0;
    merge_inputs_clear(&m->inputs);
    free(m->part);
    free(m->rows);
    free(m->thumbnail_bytes);
    free(m);
    return status;
}

enum status merge_look(bool *current, const char *output, const char *const *name, unsigned count,
                       struct error *err)
{
    char shown[256];
    hid_t file;
    bool same = true;
    *current = false;
    enum status status = merge_open_output(&file, output, err);
    if (status == STATUS_OK && file > 0)
        status = parts_are(&same, current, file, output, name, count, err);
    h5_close(&file);
    if (status != STATUS_OK || same)
        return status;
    return error_set(err, STATUS_USAGE, "%s is another result, not merged from %u parts like %s",
                     path_for_message(shown, sizeof shown, output), count, name[0]);
}
