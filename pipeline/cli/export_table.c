/* export_table.c: one line for each image, cluster or value of k.
 *
 * Several threads format values of features, a range of rows each; the calling thread uses HDF5 and
 * writes the output. */
#include "cli/export_table.h"
#include "base/compare.h"
#include "base/decimal.h"
#include "base/path.h"
#include "base/text.h"
#include "base/workers.h"
#include "cli/compute.h"
#include "cli/signals.h"
#include "jobs/folders.h"
#include "matrix/npy.h"
#include "result/choose.h"
#include "result/feature_matrix.h"
#include "result/flags.h"
#include "result/selections.h"
#include "result/sidecars.h"
#include "result/words.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- rows ------------------------------------------------------------------------------------ */

static enum status check_stop(struct error *err)
{
    if (stop_requested(signals_stop()) == STOP_NONE)
        return STATUS_OK;
    return error_set(err, STATUS_INTERRUPTED,
                     "interrupted: the table is incomplete; run the same command again");
}

static void show(struct export *export, uint64_t done, uint64_t total)
{
    progress_phase(&export->own->common.call->progress, "rows", done, total);
}

/* Absolute with --absolute-paths. */
static enum status put_path(struct export *export, const char *path, const char *path_raw,
                            unsigned source, struct error *err)
{
    const char *absolute;
    if (!export->own->absolute_paths) {
        table_text(&export->table, path);
        return STATUS_OK;
    }
    enum status status =
        locate_image(&export->locator, &absolute, export->result, source, path_raw, err);
    if (status != STATUS_OK)
        return status;
    const size_t length = strlen(absolute);
    char *text = path_utf8(absolute, length);
    if (!text)
        return error_memory(err, 4 * length + 1, "a file name");
    table_text(&export->table, text);
    free(text);
    return STATUS_OK;
}

/* The columns path and source. */
static enum status put_file(struct export *export, const char *path, const char *path_raw,
                            unsigned source, struct error *err)
{
    const enum status status = put_path(export, path, path_raw, source, err);
    if (status == STATUS_OK)
        table_text(&export->table,
                   source < export->result->source_count ? export->result->sources[source] : "");
    return status;
}

/* The same for an image. */
static enum status put_image(struct result_image *image, struct export *export, uint64_t row,
                             struct error *err)
{
    const enum status status = result_image_at(export->result, row, image, err);
    return status == STATUS_OK ? put_file(export, image->path, image->path_raw, image->source, err)
                               : status;
}

/* Writes a table of `rows` rows; `put` writes the fields of one. */
static enum status put_rows(struct export *export, const char *const *names, uint64_t rows,
                            enum status (*put)(struct export *export, uint64_t row, void *context,
                                               struct error *err),
                            void *context, struct error *err)
{
    struct table *table = &export->table;
    table->names = names;
    table_begin(table, NULL, 0);
    for (uint64_t row = 0; row < rows && !export->sink.closed; row++) {
        enum status status = check_stop(err);
        if (status != STATUS_OK)
            return status;
        table_row(table);
        status = put(export, row, context, err);
        if (status != STATUS_OK)
            return status;
        table_end_row(table);
        export->rows++;
        show(export, row + 1, rows);
    }
    return STATUS_OK;
}

/* --- tables ---------------------------------------------------------------------------------- */

/* Columns of every image, before those of its sidecar files. */
#define IMAGE_FIELDS 10

static enum status put_sidecars(struct export *export, uint64_t row, struct error *err)
{
    const char *text[SIDECAR_COLUMNS];
    const enum status status = sidecar_reader_row(export->sidecars, row, text, err);
    for (unsigned i = 0; i < SIDECAR_COLUMNS && status == STATUS_OK; i++)
        if (*text[i])
            table_text(&export->table, text[i]);
        else
            table_nothing(&export->table);
    return status;
}

static enum status put_image_row(struct export *export, uint64_t row, void *context,
                                 struct error *err)
{
    struct table *table = &export->table;
    struct result_image image;
    char format[sizeof image.format + 1], digest[40];
    const bool *only_paths = context;
    const enum status status = put_image(&image, export, row, err);
    if (status != STATUS_OK || *only_paths)
        return status;
    snprintf(format, sizeof format, "%.*s", (int)sizeof image.format, image.format);
    snprintf(digest, sizeof digest, "%016" PRIx64 "%016" PRIx64, image.digest[0], image.digest[1]);
    table_uint(table, image.width);
    table_uint(table, image.height);
    table_uint(table, image.orientation);
    table_uint(table, image.channels);
    table_text(table, format);
    table_uint(table, image.bytes);
    table_int(table, image.mtime_ns);
    table_text(table, digest);
    return export->sidecars ? put_sidecars(export, row, err) : STATUS_OK;
}

static enum status open_sidecars(struct export *export, struct error *err)
{
    return sidecar_reader_open(&export->sidecars, export->result, err);
}

static enum status write_images(struct export *export, struct error *err)
{
    static const char *const paths[] = {"path", "source", NULL};
    const char *names[] = {"path",     "source", "width", "height",   "orientation",
                           "channels", "format", "bytes", "mtime_ns", "digest",
                           "key",      "cls",    "json",  "txt",      NULL};
    bool only_paths = export->result->named;
    if (!export->sidecars)
        names[IMAGE_FIELDS] = NULL;
    return put_rows(export, only_paths ? paths : names, result_images(export->result),
                    put_image_row, &only_paths, err);
}

const struct export_kind export_images = {
    .takes = TAKES_PATHS, .open = open_sidecars, .write = write_images};

static enum status put_failure(struct export *export, uint64_t row, void *context,
                               struct error *err)
{
    struct result_failure failure;
    (void)context;
    enum status status = result_failure_at(export->result, row, &failure, err);
    if (status == STATUS_OK)
        status = put_file(export, failure.row->path, failure.path_raw, failure.row->source, err);
    if (status != STATUS_OK)
        return status;
    table_text(&export->table, reason_name(failure.reason));
    table_text(&export->table, failure.row->message);
    table_uint(&export->table, failure.row->bytes);
    table_int(&export->table, failure.row->error_number);
    return STATUS_OK;
}

static enum status write_failures(struct export *export, struct error *err)
{
    static const char *const names[] = {"path",  "source", "reason", "message",
                                        "bytes", "errno",  NULL};
    return put_rows(export, names, result_failures(export->result), put_failure, NULL, err);
}

const struct export_kind export_failures = {.takes = TAKES_PATHS, .write = write_failures};

static enum status put_quality(struct export *export, uint64_t row, void *context,
                               struct error *err)
{
    const struct flags *flags = context;
    struct table *table = &export->table;
    struct result_image image;
    uint32_t values[QUALITY_VALUES];
    char text[FLAGS_TEXT];
    enum status status = put_image(&image, export, row, err);
    if (status == STATUS_OK && flags->feature)
        status = result_feature_read_counts(flags->feature, row, 1, values, err);
    if (status != STATUS_OK)
        return status;
    for (unsigned i = 0; i < QUALITY_VALUES && flags->feature; i++)
        table_uint(table, values[i]);
    table_uint(table, image.width);
    table_uint(table, image.height);
    table_double(table, round(1e4 * image.width / image.height) / 1e4);
    table_double(table, round(1e4 * (double)image.bytes / image.width / image.height) / 1e4);
    table_text(table, flags_text(text, flags->of[row], ' '));
    return STATUS_OK;
}

/* The values of the kind quality, then those derived from size and bytes, then the flags. */
static enum status write_quality(struct export *export, struct error *err)
{
    static const char *const more[] = {"width",           "height", "aspect",
                                       "bytes_per_pixel", "flags",  NULL};
    const char *names[2 + QUALITY_VALUES + sizeof more / sizeof *more] = {"path", "source"};
    struct flags flags;
    enum status status = flags_read(&flags, export->result, err);
    const unsigned count = flags.feature ? QUALITY_VALUES : 0;
    memcpy(names + 2, quality_names, count * sizeof *names);
    memcpy(names + 2 + count, more, sizeof more);
    if (status == STATUS_OK)
        status = put_rows(export, names, flags.of ? result_images(export->result) : 0, put_quality,
                          &flags, err);
    flags_clear(&flags);
    return status;
}

const struct export_kind export_quality = {.takes = TAKES_PATHS, .write = write_quality};

/* --- clusterings ----------------------------------------------------------------------------- */

static enum status open_clusters(struct export *export, struct error *err)
{
    return choose_clusters(&export->clusters, export->result, export->own->name, err);
}

enum status export_open_labels(struct export *export, struct error *err)
{
    const enum status status = open_clusters(export, err);
    if (status != STATUS_OK)
        return status;
    const uint64_t rows = export->clusters->rows;
    export->labels = held_array(&export->held, rows, sizeof *export->labels);
    export->distances = held_array(&export->held, rows, sizeof *export->distances);
    if (held_check(&export->held, "labels", err) != STATUS_OK)
        return STATUS_FAILED;
    return result_clusters_read_rows(export->clusters, 0, rows, export->labels, export->distances,
                                     err);
}

bool export_has_images(const struct export *export)
{
    return result_images(export->result) > 0 &&
           result_images(export->result) == export->clusters->rows;
}

static float length_of(float squared)
{
    return (float)sqrt((double)squared);
}

#define LABEL_BLOCK 4096 /* rows */

/* Labels and squared distances of some rows. */
struct label_block {
    uint64_t first, count;
    int32_t labels[LABEL_BLOCK];
    float distances[LABEL_BLOCK];
};

/* The block that begins at `first`. */
static enum status read_labels(struct label_block *block, struct export *export, uint64_t first,
                               struct error *err)
{
    const uint64_t left = export->clusters->rows - first;
    block->first = first;
    block->count = left < LABEL_BLOCK ? left : LABEL_BLOCK;
    return result_clusters_read_rows(export->clusters, first, block->count, block->labels,
                                     block->distances, err);
}

static enum status put_label(struct export *export, uint64_t row, void *context, struct error *err)
{
    struct label_block *block = context;
    struct result_image image;
    enum status status = STATUS_OK;
    if (row == block->first + block->count)
        status = read_labels(block, export, row, err);
    if (status == STATUS_OK && export_has_images(export))
        status = put_image(&image, export, row, err);
    else
        table_uint(&export->table, row);
    if (status != STATUS_OK)
        return status;
    const float squared = block->distances[row - block->first];
    table_int(&export->table, block->labels[row - block->first]);
    table_float(&export->table, length_of(squared));
    table_float(&export->table, squared);
    return STATUS_OK;
}

/* Common properties of a cluster's rows. */
struct cluster_summary {
    double sum, largest;    /* of lengths */
    uint64_t folder_images; /* images in the most frequent folder, */
    uint64_t folder_row;    /* an image in it; */
    uint64_t folders;       /* and the number of folders */
};

/* The images of each cluster by folder: one key for each image, sorted. */
static enum status count_folders(struct cluster_summary *summary, const struct export *export,
                                 const struct classes *folders, struct error *err)
{
    const uint64_t rows = export->clusters->rows;
    SCOPED_HELD held = {0};
    uint64_t *keys = held_array(&held, rows, sizeof *keys);
    uint64_t *first = held_array(&held, folders->count, sizeof *first);
    uint64_t used = 0;
    const enum status status = held_check(&held, "the folders of images", err);
    if (status != STATUS_OK)
        return status;
    for (uint64_t row = rows; row-- > 0;) {
        first[folders->of_row[row]] = row;
        if (export->labels[row] >= 0 && (uint32_t) export->labels[row] < export->clusters->k)
            keys[used++] = (uint64_t) export->labels[row] << 32 | folders->of_row[row];
    }
    qsort(keys, (size_t)used, sizeof *keys, compare_u64);
    for (uint64_t at = 0, next; at < used; at = next) {
        struct cluster_summary *of = &summary[keys[at] >> 32];
        for (next = at; next < used && keys[next] == keys[at];)
            next++;
        of->folders++;
        if (next - at > of->folder_images) {
            of->folder_images = next - at;
            of->folder_row = first[keys[at] & UINT32_MAX];
        }
    }
    return status;
}

/* Writes a row, by name if it is an image. */
static enum status put_nearest(struct export *export, int64_t row, struct error *err)
{
    struct result_image image;
    if (row < 0)
        table_nothing(&export->table);
    else if (!export_has_images(export))
        table_int(&export->table, row);
    if (row < 0 || !export_has_images(export))
        return STATUS_OK;
    const enum status status = result_image_at(export->result, (uint64_t)row, &image, err);
    return status == STATUS_OK ? put_path(export, image.path, image.path_raw, image.source, err)
                               : status;
}

static enum status put_folder(struct export *export, const struct cluster_summary *summary,
                              struct error *err)
{
    struct table *table = &export->table;
    struct result_image image;
    for (int i = 0; i < 3 && summary->folders == 0; i++)
        table_nothing(table);
    if (summary->folders == 0)
        return STATUS_OK;
    const enum status status = result_image_at(export->result, summary->folder_row, &image, err);
    if (status != STATUS_OK)
        return status;
    const char *slash = strrchr(image.path, '/');
    char *folder = slash ? strndup(image.path, (size_t)(slash - image.path))
                         : strdup(export->result->sources[image.source]);
    if (!folder)
        return error_memory(err, strlen(image.path) + 1, "a file name");
    table_text(table, folder);
    free(folder);
    table_uint(table, summary->folder_images);
    table_uint(table, summary->folders);
    return STATUS_OK;
}

/* All clusters, the largest first. */
struct cluster_rows {
    uint32_t *order;
    uint64_t *sizes;
    int64_t *nearest; /* three of each */
    struct cluster_summary *summary;
    struct words *words;
};

static enum status put_cluster(struct export *export, uint64_t row, void *context,
                               struct error *err)
{
    const struct cluster_rows *rows = context;
    struct table *table = &export->table;
    const uint32_t i = rows->order[row];
    const double size = (double)rows->sizes[i], all = (double)export->clusters->rows;
    struct word word[WORDS_MOST];
    enum status status = STATUS_OK;
    table_uint(table, i);
    table_uint(table, rows->sizes[i]);
    table_double(table, all > 0 ? size / all : 0);
    for (size_t j = 0; status == STATUS_OK && j < 3; j++)
        status = put_nearest(export, rows->nearest[3 * (size_t)i + j], err);
    if (status != STATUS_OK)
        return status;
    table_double(table, size > 0 ? rows->summary[i].sum / size : 0);
    table_double(table, rows->summary[i].largest);
    status = put_folder(export, &rows->summary[i], err);
    if (status != STATUS_OK)
        return status;
    const unsigned count = words_of_cluster(word, rows->words, i);
    for (unsigned j = 0; j < 2 * WORDS_MOST; j++)
        if (j % WORDS_MOST >= count)
            table_nothing(table);
        else if (j < WORDS_MOST)
            table_text(table, word[j].text);
        else
            table_double(table, word[j - WORDS_MOST].share);
    return STATUS_OK;
}

static enum status read_cluster_rows(struct cluster_rows *rows, struct export *export,
                                     struct error *err)
{
    const struct result_clusters *clusters = export->clusters;
    const size_t k = clusters->k;
    struct classes folders = {0};
    rows->sizes = held_array(&export->held, k, sizeof *rows->sizes);
    rows->nearest = held_array(&export->held, 3 * k, sizeof *rows->nearest);
    rows->summary = held_array(&export->held, k, sizeof *rows->summary);
    if (held_check(&export->held, "the clusters", err) != STATUS_OK)
        return STATUS_FAILED;
    enum status status = result_part_read(rows->sizes, clusters, PART_SIZES, err);
    if (status == STATUS_OK)
        status = result_part_read(rows->nearest, clusters, PART_NEAREST, err);
    if (status == STATUS_OK && !(rows->order = clusters_by_size(rows->sizes, clusters->k)))
        status = error_memory(err, k * 4, "clusters");
    if (status == STATUS_OK && export_has_images(export))
        status = words_open(&rows->words, export->result, clusters, err);
    if (status == STATUS_OK && export_has_images(export))
        status = folders_read(&folders, export->result, NULL, err);
    if (status == STATUS_OK && folders.of_row)
        status = count_folders(rows->summary, export, &folders, err);
    classes_clear(&folders);
    for (uint64_t row = 0; row < clusters->rows; row++) {
        const int32_t label = export->labels[row];
        if (label < 0 || (uint32_t)label >= clusters->k)
            continue;
        const double length = sqrt((double)export->distances[row]);
        rows->summary[label].sum += length;
        rows->summary[label].largest = fmax(rows->summary[label].largest, length);
    }
    return status;
}

static enum status write_clusters(struct export *export, struct error *err)
{
    static const char *const names[] = {
        "cluster",      "size",        "share",         "nearest_1",
        "nearest_2",    "nearest_3",   "mean_distance", "largest_distance",
        "folder",       "folder_size", "folders",       "word_1",
        "word_2",       "word_3",      "word_share_1",  "word_share_2",
        "word_share_3", NULL};
    struct cluster_rows rows = {.order = NULL};
    enum status status = read_cluster_rows(&rows, export, err);
    if (status == STATUS_OK)
        status = put_rows(export, names, export->clusters->k, put_cluster, &rows, err);
    words_close(&rows.words);
    free(rows.order);
    return status;
}

const struct export_kind export_clusters = {
    .takes = TAKES_NAME | TAKES_PATHS, .open = export_open_labels, .write = write_clusters};

static enum status put_sweep(struct export *export, uint64_t row, void *context, struct error *err)
{
    const struct cluster_sweep *sweep = context;
    const struct cluster_sweep_value *value = &sweep->values[row];
    struct table *table = &export->table;
    (void)err;
    table_uint(table, value->k);
    table_bool(table, value->k == export->clusters->k);
    table_uint(table, value->iterations);
    table_bool(table, value->converged);
    table_double(table, value->inertia);
    table_double(table, value->measures.silhouette);
    table_double(table, value->measures.simplified_silhouette);
    table_double(table, value->measures.davies_bouldin);
    table_double(table, value->measures.calinski_harabasz);
    table_double(table, sweep->has_classes ? value->agreement.purity : (double)NAN);
    table_double(table, sweep->has_classes ? value->agreement.nmi : (double)NAN);
    table_double(table, sweep->has_classes ? value->agreement.ari : (double)NAN);
    return STATUS_OK;
}

static enum status write_sweep(struct export *export, struct error *err)
{
    static const char *const names[] = {"k",
                                        "chosen",
                                        "iterations",
                                        "converged",
                                        "inertia",
                                        "silhouette",
                                        "simplified_silhouette",
                                        "davies_bouldin",
                                        "calinski_harabasz",
                                        "purity",
                                        "nmi",
                                        "ari",
                                        NULL};
    struct cluster_sweep sweep;
    enum status status = result_sweep_read(&sweep, export->result, export->clusters, err);
    if (status == STATUS_OK && !sweep.values)
        status = error_set(err, STATUS_USAGE,
                           "/clusters/%s was made with one k: a sweep is stored by -k A:B",
                           export->clusters->name);
    if (status == STATUS_OK)
        status = put_rows(export, names, sweep.count, put_sweep, &sweep, err);
    cluster_sweep_clear(&sweep);
    return status;
}

const struct export_kind export_sweep = {
    .takes = TAKES_NAME, .open = open_clusters, .write = write_sweep};

/* --- values ---------------------------------------------------------------------------------- */

/* A separator and a value: a float32, or ten digits. */
#define VALUE_TEXT 18
/* Rows that a thread formats at once. */
#define FORMAT_ROWS 64

/* A block of values and its text: one string per row, `place` bytes apart. */
struct formatter {
    const struct export *export;
    const unsigned char *values;
    uint32_t dimension;
    bool is_float;
    uint64_t rows;
    char *text;
    size_t place;
};

static size_t format_uint(char *out, uint32_t value)
{
    char digits[12];
    size_t length = 0;
    do
        digits[length++] = (char)('0' + value % 10);
    while ((value /= 10) > 0);
    for (size_t i = 0; i < length; i++)
        out[i] = digits[length - 1 - i];
    return length;
}

static void format_row(const struct formatter *f, uint64_t row)
{
    const bool json = f->export->table.format == FORMAT_JSONL;
    char *at = f->text + row * f->place;
    const unsigned char *values = f->values + row * f->dimension * 4;
    for (uint32_t i = 0; i < f->dimension; i++) {
        uint32_t bits;
        float value;
        memcpy(&bits, values + (size_t)i * 4, sizeof bits);
        memcpy(&value, &bits, sizeof value);
        *at++ = !json ? f->export->table.separator : i ? ',' : '[';
        if (!f->is_float)
            at += format_uint(at, bits);
        else if (bits == 0)
            *at++ = '0';
        else if (json && !isfinite(value))
            at = stpcpy(at, "null");
        else
            at += format_float32(at, value);
    }
    if (json)
        *at++ = ']';
    *at = 0;
}

static void format_part(void *context, uint64_t part)
{
    const struct formatter *f = context;
    for (uint64_t i = part * FORMAT_ROWS; i < f->rows && i < (part + 1) * FORMAT_ROWS; i++)
        format_row(f, i);
}

/* A matrix that is read, formatted and written in blocks of rows. */
struct value_table {
    const char *name; /* of the columns, and of the array in JSON; NULL: only a numpy array */
    const char *type; /* numpy's type: "<f4", or that of other four-byte numbers */
    uint64_t rows;
    uint32_t dimension;
    const char *key; /* NULL: the rows are images; else the name of the column of row numbers */
    enum status (*read)(struct export *export, uint64_t first, uint64_t count, void *values,
                        struct error *err);
};

static enum status value_lines(struct export *export, const struct value_table *values,
                               const struct formatter *text, uint64_t first, uint64_t count,
                               struct error *err)
{
    for (uint64_t i = 0; i < count && !export->sink.closed; i++) {
        struct result_image image;
        enum status status = STATUS_OK;
        table_row(&export->table);
        if (values->key)
            table_uint(&export->table, first + i);
        else
            status = put_image(&image, export, first + i, err);
        if (status != STATUS_OK)
            return status;
        table_series(&export->table, values->name, text->text + i * text->place);
        table_end_row(&export->table);
        export->rows++;
    }
    return STATUS_OK;
}

static enum status write_values(struct export *export, const struct value_table *table,
                                struct error *err)
{
    const char *const images[] = {"path", "source", NULL}, *const numbers[] = {table->key, NULL};
    const bool npy = export->table.format == FORMAT_NPY;
    const size_t row_bytes = (size_t)table->dimension * 4;
    const uint64_t fit = ((uint64_t)4 << 20) / (row_bytes + 1) + 1;
    const uint64_t step = fit < table->rows ? fit : table->rows ? table->rows : 1;
    SCOPED_HELD held = {0};
    unsigned char *values = held_array(&held, step, row_bytes);
    struct workers *workers = NULL;
    struct formatter text = {.export = export,
                             .values = values,
                             .dimension = table->dimension,
                             .is_float = strcmp(table->type, "<f4") == 0,
                             .place = (size_t)table->dimension * VALUE_TEXT + 4};
    if (!npy)
        text.text = held_array(&held, step, text.place);
    enum status status = held_check(&held, "rows of values", err);
    export->table.names = table->key ? numbers : images;
    if (status == STATUS_OK && npy)
        status = npy_write_header(export->sink.fd, table->type, table->rows,
                                  table->name ? table->dimension : 0, export->sink.path, err);
    else if (status == STATUS_OK)
        status = workers_open(&workers, compute_threads(&export->own->common), err);
    if (status == STATUS_OK)
        table_begin(&export->table, table->name, table->dimension);
    for (uint64_t at = 0; status == STATUS_OK && at < table->rows && !export->sink.closed;) {
        const uint64_t take = table->rows - at < step ? table->rows - at : step;
        status = check_stop(err);
        if (status == STATUS_OK)
            status = table->read(export, at, take, values, err);
        if (status != STATUS_OK)
            break;
        if (npy) {
            sink_write(&export->sink, values, (size_t)take * row_bytes);
            export->rows += take;
        } else {
            text.rows = take;
            workers_run(workers, format_part, &text, (take + FORMAT_ROWS - 1) / FORMAT_ROWS);
            status = value_lines(export, table, &text, at, take, err);
        }
        at += take;
        show(export, at, table->rows);
    }
    workers_close(&workers);
    return status;
}

static enum status open_feature(struct export *export, struct error *err)
{
    return feature_matrix_open(&export->matrix, &export->feature, export->result,
                               export->own->feature, err);
}

static enum status read_features(struct export *export, uint64_t first, uint64_t count,
                                 void *values, struct error *err)
{
    if (export->feature.is_float)
        return matrix_read(&export->matrix, first, count, values, err);
    return result_feature_read_counts(result_feature_find(export->result, export->feature.name),
                                      first, count, values, err);
}

static enum status write_features(struct export *export, struct error *err)
{
    const struct result_feature *feature = &export->feature;
    const struct value_table table = {.name = feature->name,
                                      .rows = feature->rows,
                                      .dimension = feature->dimension,
                                      .type = feature->is_float ? "<f4" : "<u4",
                                      .read = read_features};
    return write_values(export, &table, err);
}

const struct export_kind export_features = {.takes = TAKES_FEATURE | TAKES_PATHS,
                                            .npy = true,
                                            .open = open_feature,
                                            .write = write_features};

static enum status read_centroids(struct export *export, uint64_t first, uint64_t count,
                                  void *values, struct error *err)
{
    (void)err;
    const size_t dimension = export->clusters->dimension;
    memcpy(values, export->centroids + first * dimension,
           (size_t)count * dimension * sizeof(float));
    return STATUS_OK;
}

static enum status write_centroids(struct export *export, struct error *err)
{
    const struct result_clusters *clusters = export->clusters;
    float *centroids =
        held_array(&export->held, (uint64_t)clusters->k * clusters->dimension, sizeof *centroids);
    if (held_check(&export->held, "the centroids", err) != STATUS_OK)
        return STATUS_FAILED;
    export->centroids = centroids;
    const struct value_table table = {.name = clusters->feature,
                                      .rows = clusters->k,
                                      .dimension = clusters->dimension,
                                      .type = "<f4",
                                      .key = "cluster",
                                      .read = read_centroids};
    enum status status = result_part_read(centroids, clusters, PART_CENTROIDS, err);
    return status == STATUS_OK ? write_values(export, &table, err) : status;
}

const struct export_kind export_centroids = {
    .takes = TAKES_NAME, .npy = true, .open = open_clusters, .write = write_centroids};

static enum status read_label_array(struct export *export, uint64_t first, uint64_t count,
                                    void *values, struct error *err)
{
    return result_clusters_read_rows(export->clusters, first, count, values, NULL, err);
}

static enum status write_labels(struct export *export, struct error *err)
{
    static const char *const names[] = {"path",     "source",           "label",
                                        "distance", "squared_distance", NULL};
    /* Clusters in a separate file have rows but no images. */
    static const char *const numbered[] = {"row", "label", "distance", "squared_distance", NULL};
    const struct value_table array = {
        .type = "<i4", .rows = export->clusters->rows, .dimension = 1, .read = read_label_array};
    struct label_block block = {.count = 0};
    if (export->table.format == FORMAT_NPY)
        return write_values(export, &array, err);
    return put_rows(export, export_has_images(export) ? names : numbered, export->clusters->rows,
                    put_label, &block, err);
}

const struct export_kind export_labels = {
    .takes = TAKES_NAME | TAKES_PATHS, .npy = true, .open = open_clusters, .write = write_labels};

/* The chosen images, in order, and the reasons. */
struct chosen {
    int64_t *rows;
    char **reasons;
};

static enum status put_chosen(struct export *export, uint64_t row, void *context, struct error *err)
{
    const struct chosen *chosen = context;
    struct result_image image;
    const enum status status = put_image(&image, export, (uint64_t)chosen->rows[row], err);
    if (status != STATUS_OK)
        return status;
    table_int(&export->table, chosen->rows[row]);
    table_text(&export->table, chosen->reasons[row]);
    return STATUS_OK;
}

static enum status write_chosen(struct export *export, const struct selection_about *about,
                                struct error *err)
{
    static const char *const names[] = {"path", "source", "row", "reason", NULL};
    struct chosen chosen = {held_array(&export->held, about->rows, sizeof *chosen.rows), NULL};
    enum status status = held_check(&export->held, "a selection", err);
    if (status == STATUS_OK)
        status = selections_read(export->result, about, chosen.rows, &chosen.reasons, err);
    if (status == STATUS_OK)
        status = put_rows(export, names, about->rows, put_chosen, &chosen, err);
    texts_free(chosen.reasons);
    return status;
}

static enum status write_selection(struct export *export, struct error *err)
{
    struct selections selections;
    const char *name = export->own->name;
    char names[512] = "";
    enum status status = selections_list(&selections, export->result, err);
    const struct selection_about *about = name ? selections_find(&selections, name)
                                          : selections.count == 1 ? selections.about
                                                                  : NULL;
    for (unsigned i = 0; i < selections.count; i++)
        text_add_name(names, sizeof names, selections.about[i].name);
    const char *shown = PATH_TEXT(export->result->path);
    if (status == STATUS_OK && about)
        status = write_chosen(export, about, err);
    else if (status == STATUS_OK && selections.count == 0)
        status =
            error_set(err, STATUS_USAGE, "%s holds no selections: clpipe select makes one", shown);
    else if (status == STATUS_OK)
        status = error_set(err, STATUS_USAGE, "%s %s%s; name one with --name: %s", shown,
                           name ? "holds no selection " : "holds several selections",
                           name ? name : "", names);
    selections_clear(&selections);
    return status;
}

const struct export_kind export_selection = {.takes = TAKES_NAME | TAKES_PATHS,
                                             .write = write_selection};
