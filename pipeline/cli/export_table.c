/* export_table.c: one line for each image, cluster or value of k.
 *
 * Values of features are formatted by several threads, a stretch of rows each, while HDF5 and the
 * output belong to the calling thread. */
#include "cli/export_table.h"
#include "base/decimal.h"
#include "base/json.h"
#include "base/path.h"
#include "cli/call.h"
#include "cli/clean.h"
#include "cli/report_json.h"
#include "cli/signals.h"
#include "jobs/folders.h"
#include "matrix/npy.h"
#include "result/flags.h"
#include "result/selections.h"
#include "result/sidecars.h"
#include "result/words.h"
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- fields ---------------------------------------------------------------------------------- */
/* A field knows its name, for JSON, and whether it is the first of its line. */

struct line {
    struct export *export;
    struct json json;
    bool first, lines_of_json;
};

static void line_end(struct line *line)
{
    if (line->lines_of_json) {
        json_close_object(&line->json);
        const char *text = json_finish(&line->json);
        sink_text(&line->export->sink, text ? text : "{}");
        if (!text && !line->export->sink.closed) {
            error_memory(&line->export->sink.error, line->json.length, "a line of JSON");
            line->export->sink.closed = true;
        }
        json_clear(&line->json);
    }
    sink_text(&line->export->sink, "\n");
    line->export->rows++;
}

static void separate(struct line *line)
{
    if (!line->first)
        sink_write(&line->export->sink, &line->export->separator, 1);
    line->first = false;
}

static void field_text(struct line *line, const char *name, const char *text)
{
    if (line->lines_of_json) {
        report_bytes(&line->json, name, text);
        return;
    }
    separate(line);
    sink_field(&line->export->sink, text, line->export->separator);
}

static void field_int(struct line *line, const char *name, int64_t value)
{
    if (line->lines_of_json) {
        json_int(&line->json, name, value);
        return;
    }
    separate(line);
    sink_printf(&line->export->sink, "%" PRId64, value);
}

static void field_uint(struct line *line, const char *name, uint64_t value)
{
    if (line->lines_of_json) {
        json_uint(&line->json, name, value);
        return;
    }
    separate(line);
    sink_printf(&line->export->sink, "%" PRIu64, value);
}

static void field_float(struct line *line, const char *name, float value)
{
    char text[FLOAT32_TEXT];
    format_float32(text, value);
    if (line->lines_of_json) {
        json_raw(&line->json, name, isfinite(value) ? text : "null");
        return;
    }
    separate(line);
    sink_text(&line->export->sink, text);
}

static void field_bool(struct line *line, const char *name, bool value)
{
    if (line->lines_of_json)
        json_bool(&line->json, name, value);
    else
        field_uint(line, name, value);
}

/* There is no value. */
static void field_nothing(struct line *line, const char *name)
{
    if (line->lines_of_json)
        json_null(&line->json, name);
    else
        separate(line);
}

/* Absolute where --absolute-paths asks for it. */
static enum status field_path(struct line *line, const char *name, const char *path,
                              const char *path_raw, unsigned source, struct error *err)
{
    struct export *export = line->export;
    const char *absolute;
    if (!export->own->absolute_paths) {
        field_text(line, name, path);
        return STATUS_OK;
    }
    enum status status =
        locate_image(&export->locator, &absolute, export->result, source, path_raw, err);
    if (status != STATUS_OK)
        return status;
    const size_t length = strlen(absolute), size = 4 * length + 1;
    char *text = malloc(size);
    if (!text)
        return error_memory(err, size, "a file name");
    path_to_utf8(text, size, absolute, length);
    field_text(line, name, text);
    free(text);
    return STATUS_OK;
}

static void field_double(struct line *line, const char *name, double value)
{
    char text[32];
    if (line->lines_of_json) {
        json_double(&line->json, name, value);
        return;
    }
    if (!isfinite(value)) {
        field_nothing(line, name);
        return;
    }
    separate(line);
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    sink_text(&line->export->sink, text);
}

/* And `values` columns NAME_0, NAME_1... */
static void header(struct export *export, const char *const *names, const char *name,
                   uint32_t values)
{
    if (export->format == FORMAT_JSONL)
        return;
    for (int i = 0; names[i]; i++)
        sink_printf(&export->sink, "%.*s%s", i > 0, &export->separator, names[i]);
    for (uint32_t i = 0; i < values; i++)
        sink_printf(&export->sink, "%c%s_%u", export->separator, name, i);
    sink_text(&export->sink, "\n");
}

/* Begins with "path" and "source" where the rows are files, else path is NULL. After a failure the
 * line needs no end. */
static enum status line_begin(struct line *line, struct export *export, const char *path,
                              const char *path_raw, unsigned source, struct error *err)
{
    *line = (struct line){
        .export = export, .first = true, .lines_of_json = export->format == FORMAT_JSONL};
    if (line->lines_of_json) {
        json_init(&line->json, true);
        json_open_object(&line->json, NULL);
    }
    if (!path)
        return STATUS_OK;
    enum status status = field_path(line, "path", path, path_raw, source, err);
    if (status != STATUS_OK) {
        if (line->lines_of_json)
            json_clear(&line->json);
        return status;
    }
    field_text(line, "source",
               source < result_source_count(export->result) ? result_source(export->result, source)
                                                            : "");
    return STATUS_OK;
}

static void show(struct export *export, const char *phase, uint64_t done, uint64_t total)
{
    progress_phase(&export->options->call->progress, phase, done, total);
}

static enum status check_stop(struct error *err)
{
    if (stop_requested(signals_stop()) == STOP_NONE)
        return STATUS_OK;
    return error_set(err, STATUS_INTERRUPTED,
                     "interrupted: the table is incomplete; run the same command again");
}

/* --- tables ---------------------------------------------------------------------------------- */

/* Columns of every image, before those of what lies beside it. */
#define IMAGE_FIELDS 10

static enum status field_sidecars(struct line *line, uint64_t row, struct error *err)
{
    const char *text[SIDECAR_COLUMNS];
    enum status status = sidecar_reader_row(line->export->sidecars, row, text, err);
    for (unsigned i = 0; i < SIDECAR_COLUMNS; i++) {
        if (status != STATUS_OK || !*text[i])
            field_nothing(line, sidecar_names[i]);
        else
            field_text(line, sidecar_names[i], text[i]);
    }
    return status;
}

static enum status export_images(struct export *export, struct error *err)
{
    static const char *const names[] = {"path",        "source",   "width",  "height",
                                        "orientation", "channels", "format", "bytes",
                                        "mtime_ns",    "digest",   "key",    "cls",
                                        "json",        "txt",      NULL};
    static const char *const paths[] = {"path", "source", NULL};
    const bool only_paths = result_is_named(export->result);
    const char *shown[sizeof names / sizeof *names];
    memcpy(shown, names, sizeof names);
    if (!export->sidecars)
        shown[IMAGE_FIELDS] = NULL;
    header(export, only_paths ? paths : shown, NULL, 0);
    for (uint64_t row = 0; row < result_images(export->result) && !export->sink.closed; row++) {
        struct result_image image;
        struct line line;
        char format[sizeof image.format + 1], digest[40];
        enum status status = check_stop(err);
        if (status != STATUS_OK)
            return status;
        status = result_image_at(export->result, row, &image, err);
        if (status != STATUS_OK)
            return status;
        status = line_begin(&line, export, image.path, image.path_raw, image.source, err);
        if (status != STATUS_OK)
            return status;
        if (only_paths) {
            line_end(&line);
            continue;
        }
        snprintf(format, sizeof format, "%.*s", (int)sizeof image.format, image.format);
        snprintf(digest, sizeof digest, "%016" PRIx64 "%016" PRIx64, image.digest[0],
                 image.digest[1]);
        field_uint(&line, "width", image.width);
        field_uint(&line, "height", image.height);
        field_uint(&line, "orientation", image.orientation);
        field_uint(&line, "channels", image.channels);
        field_text(&line, "format", format);
        field_uint(&line, "bytes", image.bytes);
        field_int(&line, "mtime_ns", image.mtime_ns);
        field_text(&line, "digest", digest);
        status = export->sidecars ? field_sidecars(&line, row, err) : STATUS_OK;
        line_end(&line);
        if (status != STATUS_OK)
            return status;
        show(export, "rows", row + 1, result_images(export->result));
    }
    return STATUS_OK;
}

static enum status export_failures(struct export *export, struct error *err)
{
    static const char *const names[] = {"path",  "source", "reason", "message",
                                        "bytes", "errno",  NULL};
    header(export, names, NULL, 0);
    for (uint64_t row = 0; row < result_failures(export->result) && !export->sink.closed; row++) {
        struct result_failure failure;
        struct line line;
        enum status status = check_stop(err);
        if (status != STATUS_OK)
            return status;
        status = result_failure_at(export->result, row, &failure, err);
        if (status != STATUS_OK)
            return status;
        status = line_begin(&line, export, failure.path, failure.path_raw, failure.source, err);
        if (status != STATUS_OK)
            return status;
        field_text(&line, "reason", reason_name(failure.reason));
        field_text(&line, "message", failure.message);
        field_uint(&line, "bytes", failure.bytes);
        field_int(&line, "errno", failure.error_number);
        line_end(&line);
    }
    return STATUS_OK;
}

/* What the kind quality has, then what follows from size and bytes, then the flags. */
static enum status export_quality(struct export *export, struct error *err)
{
    static const char *const more[] = {"width", "height", "aspect", "bytes_per_pixel", "flags", NULL};
    const char *names[2 + QUALITY_VALUES + sizeof more / sizeof *more] = {"path", "source"};
    uint32_t values[QUALITY_VALUES];
    char text[FLAGS_TEXT];
    struct flags flags;
    enum status status = flags_read(&flags, export->result, err);
    const unsigned count = flags.feature ? QUALITY_VALUES : 0;
    memcpy(names + 2, quality_names, count * sizeof *names);
    memcpy(names + 2 + count, more, sizeof more);
    if (status == STATUS_OK)
        header(export, names, NULL, 0);
    for (uint64_t row = 0; row < result_images(export->result) && flags.of && status == STATUS_OK &&
                           !export->sink.closed; row++) {
        struct result_image image;
        struct line line;
        status = check_stop(err);
        if (status == STATUS_OK && flags.feature)
            status = result_feature_read_counts(export->result, flags.feature, row, 1, values, err);
        if (status == STATUS_OK)
            status = result_image_at(export->result, row, &image, err);
        if (status == STATUS_OK)
            status = line_begin(&line, export, image.path, image.path_raw, image.source, err);
        if (status != STATUS_OK)
            break;
        for (unsigned i = 0; i < count; i++)
            field_uint(&line, quality_names[i], values[i]);
        field_uint(&line, "width", image.width);
        field_uint(&line, "height", image.height);
        field_double(&line, "aspect", round(1e4 * image.width / image.height) / 1e4);
        field_double(&line, "bytes_per_pixel",
                     round(1e4 * (double)image.bytes / image.width / image.height) / 1e4);
        field_text(&line, "flags", flags_text(text, flags.of[row], ' '));
        line_end(&line);
        show(export, "rows", row + 1, result_images(export->result));
    }
    flags_clear(&flags);
    return status;
}

/* --- clusterings ----------------------------------------------------------------------------- */

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
    return result_clusters_read_rows(export->result, export->clusters, first, block->count,
                                     block->labels, block->distances, err);
}

static enum status export_labels(struct export *export, struct error *err)
{
    struct label_block block = {.count = 0};
    static const char *const names[] = {"path",     "source", "label", "distance",
                                        "squared_distance", NULL};
    /* Clusters of a file of their own have rows but no images. */
    const bool named = export_has_images(export);
    static const char *const numbered[] = {"row", "label", "distance", "squared_distance", NULL};
    header(export, named ? names : numbered, NULL, 0);
    for (uint64_t row = 0; row < export->clusters->rows && !export->sink.closed; row++) {
        struct result_image image = {.path = NULL};
        struct line line;
        enum status status = check_stop(err);
        if (status == STATUS_OK && row == block.first + block.count)
            status = read_labels(&block, export, row, err);
        if (status == STATUS_OK && named)
            status = result_image_at(export->result, row, &image, err);
        if (status == STATUS_OK)
            status = line_begin(&line, export, image.path, image.path_raw, image.source, err);
        if (status != STATUS_OK)
            return status;
        if (!named)
            field_uint(&line, "row", row);
        const float squared = block.distances[row - block.first];
        field_int(&line, "label", block.labels[row - block.first]);
        field_float(&line, "distance", length_of(squared));
        field_float(&line, "squared_distance", squared);
        line_end(&line);
        show(export, "rows", row + 1, export->clusters->rows);
    }
    return STATUS_OK;
}

/* What the rows of a cluster have in common. */
struct cluster_summary {
    double sum, largest;    /* of lengths */
    uint64_t folder_images; /* in the folder that most of them are in, */
    uint64_t folder_row;    /* an image of which this is; */
    uint64_t folders;       /* and how many folders there are */
};

static int compare_keys(const void *a, const void *b)
{
    const uint64_t one = *(const uint64_t *)a, two = *(const uint64_t *)b;
    return (one > two) - (one < two);
}

/* The images of each cluster by folder: one key for each image, sorted. */
static enum status count_folders(struct cluster_summary *summary, const struct export *export,
                                 const struct folders *folders, struct error *err)
{
    const uint64_t rows = export->clusters->rows;
    uint64_t *keys = malloc((size_t)rows * sizeof *keys);
    uint64_t *first = malloc((folders->count + (size_t)1) * sizeof *first);
    uint64_t used = 0;
    if (!keys || !first) {
        free(keys);
        free(first);
        return error_memory(err, (size_t)rows * sizeof *keys, "the folders of images");
    }
    for (uint64_t row = rows; row-- > 0;) {
        first[folders->of_row[row]] = row;
        if (export->labels[row] >= 0 && (uint32_t)export->labels[row] < export->clusters->k)
            keys[used++] = (uint64_t)export->labels[row] << 32 | folders->of_row[row];
    }
    qsort(keys, (size_t)used, sizeof *keys, compare_keys);
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
    free(keys);
    free(first);
    return STATUS_OK;
}

static enum status field_nearest(struct line *line, struct export *export, const char *name,
                                 int64_t row, bool named, struct error *err)
{
    struct result_image image;
    if (row < 0) {
        field_nothing(line, name);
        return STATUS_OK;
    }
    if (!named) {
        field_int(line, name, row);
        return STATUS_OK;
    }
    enum status status = result_image_at(export->result, (uint64_t)row, &image, err);
    return status == STATUS_OK
               ? field_path(line, name, image.path, image.path_raw, image.source, err)
               : status;
}

static enum status field_folder(struct line *line, struct export *export,
                                const struct cluster_summary *summary, struct error *err)
{
    struct result_image image;
    if (summary->folders == 0) {
        field_nothing(line, "folder");
        field_nothing(line, "folder_size");
        field_nothing(line, "folders");
        return STATUS_OK;
    }
    enum status status = result_image_at(export->result, summary->folder_row, &image, err);
    if (status != STATUS_OK)
        return status;
    const char *slash = strrchr(image.path, '/');
    char *folder = slash ? strndup(image.path, (size_t)(slash - image.path))
                         : strdup(result_source(export->result, image.source));
    if (!folder)
        return error_memory(err, strlen(image.path) + 1, "a file name");
    field_text(line, "folder", folder);
    free(folder);
    field_uint(line, "folder_size", summary->folder_images);
    field_uint(line, "folders", summary->folders);
    return STATUS_OK;
}

static enum status write_clusters(struct export *export, struct cluster_summary *summary,
                                  const uint64_t *sizes, const int64_t *nearest, struct error *err)
{
    static const char *const names[] = {"cluster",   "size",          "share",
                                        "nearest_1", "nearest_2",     "nearest_3",
                                        "mean_distance", "largest_distance", "folder",
                                        "folder_size", "folders",     "word_1",
                                        "word_2",      "word_3",      "word_share_1",
                                        "word_share_2", "word_share_3", NULL};
    uint32_t *order = clusters_by_size(sizes, export->clusters->k);
    struct words *words = NULL;
    const bool named = export_has_images(export);
    struct folders folders = {0};
    enum status status = order ? STATUS_OK : error_memory(err, export->clusters->k * 4, "clusters");
    if (status == STATUS_OK && named)
        status = words_open(&words, export->result, export->clusters, err);
    if (status == STATUS_OK && named)
        status = folders_read(&folders, export->result, err);
    if (status == STATUS_OK && folders.of_row)
        status = count_folders(summary, export, &folders, err);
    folders_clear(&folders);
    for (uint64_t row = 0; row < export->clusters->rows; row++) {
        const int32_t label = export->labels[row];
        if (label < 0 || (uint32_t)label >= export->clusters->k)
            continue;
        const double length = sqrt((double)export->distances[row]);
        summary[label].sum += length;
        summary[label].largest = fmax(summary[label].largest, length);
    }
    header(export, names, NULL, 0);
    for (uint32_t at = 0; status == STATUS_OK && at < export->clusters->k; at++) {
        const uint32_t i = order[at];
        struct line line;
        struct word word[WORDS_MOST];
        const double size = (double)sizes[i], rows = (double)export->clusters->rows;
        status = check_stop(err);
        if (status != STATUS_OK)
            break;
        line_begin(&line, export, NULL, NULL, 0, err);
        field_uint(&line, "cluster", i);
        field_uint(&line, "size", sizes[i]);
        field_double(&line, "share", rows > 0 ? size / rows : 0);
        for (int j = 0; status == STATUS_OK && j < 3; j++)
            status = field_nearest(&line, export, names[3 + j], nearest[3 * (size_t)i + (size_t)j],
                                   named, err);
        field_double(&line, "mean_distance", size > 0 ? summary[i].sum / size : 0);
        field_double(&line, "largest_distance", summary[i].largest);
        if (status == STATUS_OK)
            status = field_folder(&line, export, &summary[i], err);
        const unsigned count = words_of_cluster(word, words, i);
        for (unsigned j = 0; j < WORDS_MOST; j++)
            if (j < count)
                field_text(&line, names[11 + j], word[j].text);
            else
                field_nothing(&line, names[11 + j]);
        for (unsigned j = 0; j < WORDS_MOST; j++)
            if (j < count)
                field_double(&line, names[11 + WORDS_MOST + j], word[j].share);
            else
                field_nothing(&line, names[11 + WORDS_MOST + j]);
        line_end(&line);
    }
    words_close(&words);
    free(order);
    return status;
}

static enum status export_clusters(struct export *export, struct error *err)
{
    const size_t k = export->clusters->k;
    uint64_t *sizes = malloc(k * sizeof *sizes);
    int64_t *nearest = malloc(3 * k * sizeof *nearest);
    struct cluster_summary *summary = calloc(k, sizeof *summary);
    enum status status =
        sizes && nearest && summary
            ? result_clusters_read(export->result, export->clusters, NULL, NULL, NULL, sizes,
                                   nearest, err)
            : error_memory(err, k * (sizeof *summary + 4 * sizeof *sizes), "the clusters");
    if (status == STATUS_OK)
        status = write_clusters(export, summary, sizes, nearest, err);
    free(sizes);
    free(nearest);
    free(summary);
    return status;
}

static enum status export_sweep(struct export *export, struct error *err)
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
    struct result_sweep sweep;
    enum status status = result_sweep_read(&sweep, export->result, export->clusters, err);
    if (status == STATUS_OK && !sweep.values) {
        status = error_set(err, STATUS_USAGE,
                           "/clusters/%s was made with one k: a sweep is stored by -k A:B",
                           export->clusters->name);
    }
    if (status != STATUS_OK)
        goto out;
    header(export, names, NULL, 0);
    for (uint32_t i = 0; i < sweep.count; i++) {
        const struct result_sweep_value *value = &sweep.values[i];
        struct line line;
        line_begin(&line, export, NULL, NULL, 0, err);
        field_uint(&line, "k", value->k);
        field_bool(&line, "chosen", value->k == export->clusters->k);
        field_uint(&line, "iterations", value->iterations);
        field_bool(&line, "converged", value->converged);
        field_double(&line, "inertia", value->inertia);
        field_double(&line, "silhouette", value->silhouette);
        field_double(&line, "simplified_silhouette", value->simplified_silhouette);
        field_double(&line, "davies_bouldin", value->davies_bouldin);
        field_double(&line, "calinski_harabasz", value->calinski_harabasz);
        field_double(&line, "purity", sweep.has_folders ? value->agreement.purity : (double)NAN);
        field_double(&line, "nmi", sweep.has_folders ? value->agreement.nmi : (double)NAN);
        field_double(&line, "ari", sweep.has_folders ? value->agreement.ari : (double)NAN);
        line_end(&line);
    }
out:
    result_sweep_clear(&sweep);
    return status;
}

/* --- values ---------------------------------------------------------------------------------- */

#define MOST_THREADS 64
/* A separator and a value: a float32, or ten digits. */
#define VALUE_TEXT 18

/* Rows [first, last) of a stretch of values, as text: one string for each row, at `place` bytes from
 * each other. */
struct formatter {
    const struct export *export;
    const unsigned char *values;
    uint32_t dimension;
    bool is_float;
    uint64_t first, last;
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

static void *format_rows(void *context)
{
    const struct formatter *f = context;
    const bool json = f->export->format == FORMAT_JSONL;
    for (uint64_t row = f->first; row < f->last; row++) {
        char *at = f->text + row * f->place;
        const unsigned char *values = f->values + row * f->dimension * 4;
        for (uint32_t i = 0; i < f->dimension; i++) {
            uint32_t bits;
            float value;
            memcpy(&bits, values + (size_t)i * 4, sizeof bits);
            memcpy(&value, &bits, sizeof value);
            *at++ = !json ? f->export->separator : i ? ',' : '[';
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
    return NULL;
}

static void format_all(const struct formatter *all, uint64_t rows, unsigned threads)
{
    struct formatter part[MOST_THREADS];
    pthread_t thread[MOST_THREADS];
    bool runs[MOST_THREADS] = {false};
    threads = threads > MOST_THREADS ? MOST_THREADS : threads > rows ? (unsigned)rows : threads;
    for (unsigned i = 0; i < threads; i++) {
        part[i] = *all;
        part[i].first = rows * i / threads;
        part[i].last = rows * (i + 1) / threads;
        /* The last part is the caller's own; so is one for which there is no thread. */
        runs[i] = i + 1 < threads && pthread_create(&thread[i], NULL, format_rows, &part[i]) == 0;
        if (!runs[i])
            format_rows(&part[i]);
    }
    for (unsigned i = 0; i < threads; i++)
        if (runs[i])
            pthread_join(thread[i], NULL);
}

/* Rows of a matrix that are read, formatted and written stretch by stretch. */
struct value_table {
    const char *name; /* of the columns, and of the array in JSON */
    uint64_t rows;
    uint32_t dimension;
    bool is_float;
    const char *key; /* NULL: the rows are images; else how the number of a row is called */
    enum status (*read)(struct export *export, uint64_t first, uint64_t count, void *values,
                        struct error *err);
};

static enum status value_lines(struct export *export, const struct value_table *table,
                               const struct formatter *text, uint64_t first, uint64_t count,
                               struct error *err)
{
    for (uint64_t i = 0; i < count && !export->sink.closed; i++) {
        struct result_image image = {.path = NULL};
        struct line line;
        const char *values = text->text + i * text->place;
        enum status status = STATUS_OK;
        if (!table->key)
            status = result_image_at(export->result, first + i, &image, err);
        if (status == STATUS_OK)
            status = line_begin(&line, export, image.path, image.path_raw, image.source, err);
        if (status != STATUS_OK)
            return status;
        if (table->key)
            field_uint(&line, table->key, first + i);
        if (line.lines_of_json)
            json_raw(&line.json, table->name, values);
        else
            sink_text(&export->sink, values);
        line_end(&line);
    }
    return STATUS_OK;
}

static enum status export_values(struct export *export, const struct value_table *table,
                                 struct error *err)
{
    const char *const images[] = {"path", "source", NULL}, *const numbers[] = {table->key, NULL};
    const bool npy = export->format == FORMAT_NPY;
    const size_t row_bytes = (size_t)table->dimension * 4;
    const uint64_t fit = ((uint64_t)4 << 20) / (row_bytes + 1) + 1;
    const uint64_t step = fit < table->rows ? fit : table->rows ? table->rows : 1;
    unsigned char *values = malloc((size_t)step * row_bytes + 1);
    struct formatter text = {.export = export,
                             .values = values,
                             .dimension = table->dimension,
                             .is_float = table->is_float,
                             .place = (size_t)table->dimension * VALUE_TEXT + 4};
    if (!npy)
        text.text = malloc((size_t)step * text.place);
    enum status status = STATUS_OK;
    if (!values || (!npy && !text.text))
        status = error_memory(err, (size_t)step * (row_bytes + text.place), "rows of values");
    else if (npy)
        status = npy_write_header(export->sink.fd, table->is_float ? "<f4" : "<u4", table->rows,
                                  table->dimension, export->sink.path, err);
    else
        header(export, table->key ? numbers : images, table->name, table->dimension);
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
            format_all(&text, take, export->threads);
            status = value_lines(export, table, &text, at, take, err);
        }
        at += take;
        show(export, "rows", at, table->rows);
    }
    free(values);
    free(text.text);
    return status;
}

/* As they are stored: 4 bytes a value. */
static enum status read_features(struct export *export, uint64_t first, uint64_t count,
                                 void *values, struct error *err)
{
    if (export->feature.is_float)
        return matrix_read(&export->matrix, first, count, values, err);
    return result_feature_read_counts(export->result,
                                      result_feature_find(export->result, export->feature.name),
                                      first, count, values, err);
}

static enum status export_features(struct export *export, struct error *err)
{
    const struct result_feature *feature = &export->feature;
    const struct value_table table = {.name = feature->name,
                                      .rows = feature->rows,
                                      .dimension = feature->dimension,
                                      .is_float = feature->is_float,
                                      .read = read_features};
    return export_values(export, &table, err);
}

static enum status read_centroids(struct export *export, uint64_t first, uint64_t count,
                                  void *values, struct error *err)
{
    (void)err;
    const size_t dimension = export->clusters->dimension;
    memcpy(values, export->centroids + first * dimension,
           (size_t)count * dimension * sizeof(float));
    return STATUS_OK;
}

static enum status export_centroids(struct export *export, struct error *err)
{
    const struct result_clusters *clusters = export->clusters;
    const size_t values = (size_t)clusters->k * clusters->dimension;
    float *centroids = malloc(values * sizeof *centroids);
    if (!centroids)
        return error_memory(err, values * sizeof *centroids, "the centroids");
    export->centroids = centroids;
    const struct value_table table = {.name = clusters->feature,
                                      .rows = clusters->k,
                                      .dimension = clusters->dimension,
                                      .is_float = true,
                                      .key = "cluster",
                                      .read = read_centroids};
    enum status status =
        result_clusters_read(export->result, clusters, centroids, NULL, NULL, NULL, NULL, err);
    if (status == STATUS_OK)
        status = export_values(export, &table, err);
    free(centroids);
    return status;
}

static enum status export_labels_npy(struct export *export, struct error *err)
{
    enum status status =
        npy_write_header(export->sink.fd, "<i4", export->clusters->rows, 0, export->sink.path, err);
    if (status != STATUS_OK)
        return status;
    struct label_block block = {.count = 0};
    for (uint64_t row = 0; row < export->clusters->rows && !export->sink.closed; row += block.count) {
        if ((status = check_stop(err)) || (status = read_labels(&block, export, row, err)))
            return status;
        sink_write(&export->sink, block.labels, block.count * sizeof *block.labels);
    }
    export->rows = export->clusters->rows;
    return STATUS_OK;
}

/* In the order of the choice. */
static enum status export_rows_chosen(struct export *export, const struct selection_about *about,
                                      struct error *err)
{
    static const char *const names[] = {"path", "source", "row", "reason", NULL};
    int64_t *rows = malloc(about->rows * sizeof *rows + 1);
    char **reasons = calloc(about->rows + 1, sizeof *reasons);
    enum status status = rows && reasons
                             ? selections_read(export->result, about, rows, reasons, err)
                             : error_memory(err, about->rows * 16, "a selection");
    if (status == STATUS_OK)
        header(export, names, NULL, 0);
    for (uint64_t i = 0; i < about->rows && status == STATUS_OK && !export->sink.closed; i++) {
        struct result_image image;
        struct line line;
        if ((status = check_stop(err)) ||
            (status = result_image_at(export->result, (uint64_t)rows[i], &image, err)) ||
            (status = line_begin(&line, export, image.path, image.path_raw, image.source, err)))
            break;
        field_int(&line, "row", rows[i]);
        field_text(&line, "reason", reasons[i]);
        line_end(&line);
        show(export, "rows", i + 1, about->rows);
    }
    for (uint64_t i = 0; reasons && i < about->rows; i++)
        free(reasons[i]);
    free(reasons);
    free(rows);
    return status;
}

static enum status export_selection(struct export *export, struct error *err)
{
    struct selections selections;
    const char *name = export->own->name;
    char shown[256], names[512] = "";
    enum status status = selections_list(&selections, export->result, err);
    const struct selection_about *about =
        name ? selections_find(&selections, name) : selections.count == 1 ? selections.about : NULL;
    for (unsigned i = 0; i < selections.count; i++) {
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", selections.about[i].name);
    }
    path_for_message(shown, sizeof shown, result_path(export->result));
    if (status == STATUS_OK && about)
        status = export_rows_chosen(export, about, err);
    else if (status == STATUS_OK && selections.count == 0)
        status = error_set(err, STATUS_USAGE, "%s holds no selections: clpipe select makes one", shown);
    else if (status == STATUS_OK)
        status = error_set(err, STATUS_USAGE, "%s %s%s; name one with --name: %s", shown,
                           name ? "holds no selection " : "holds several selections", name ? name : "",
                           names);
    selections_clear(&selections);
    return status;
}

enum status export_table(struct export *export, struct error *err)
{
    switch ((enum export_what) export->own->what) {
    case WHAT_FEATURES:
        return export_features(export, err);
    case WHAT_LABELS:
        return export->format == FORMAT_NPY ? export_labels_npy(export, err)
                                            : export_labels(export, err);
    case WHAT_FAILURES:
        return export_failures(export, err);
    case WHAT_IMAGES:
        return export_images(export, err);
    case WHAT_CENTROIDS:
        return export_centroids(export, err);
    case WHAT_CLUSTERS:
        return export_clusters(export, err);
    case WHAT_SWEEP:
        return export_sweep(export, err);
    case WHAT_SELECTION:
        return export_selection(export, err);
    case WHAT_QUALITY:
        return export_quality(export, err);
    case WHAT_TREE:
    case WHAT_SHARDS:
        break;
    }
    return STATUS_OK;
}
