/* cmd_export.c: clpipe export: tables for other programs, and trees. */
#include "base/log.h"
#include "base/parse.h"
#include "base/path.h"
#include "cli/clean.h"
#include "cli/commands.h"
#include "cli/export_tree.h"
#include "cli/report_json.h"
#include "cli/signals.h"
#include "cli/sink.h"
#include "file/choose.h"
#include "file/feature_matrix.h"
#include "matrix/npy.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct export
{
    const struct options *options;
    const char *output;        /* of -o; NULL: standard output */
    enum export_format format; /* of --format, or what the name of the output says */
    struct result *result;
    struct matrix_source matrix; /* features */
    struct result_feature feature;
    const struct result_clusters *clusters; /* labels, tree */
    int32_t *labels;
    float *distances;
    struct sink sink;
    char separator;
    uint64_t rows; /* written */
};

/* --- fields ---------------------------------------------------------------------------------- */
/* Every table begins with the path and the source that it is relative to. A field knows its name,
 * for JSON, and whether it is the first of its line. */

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

/* Nine digits give every float32 back. */
static void field_float(struct line *line, const char *name, float value)
{
    char text[32];
    snprintf(text, sizeof text, "%.9g", (double)value);
    if (line->lines_of_json) {
        json_raw(&line->json, name, isfinite(value) ? text : "null");
        return;
    }
    separate(line);
    sink_text(&line->export->sink, text);
}

/* `feature`: its values have columns, too; or NULL. */
static void header(struct export *export, const char *const *names,
                   const struct result_feature *feature)
{
    if (export->format == FORMAT_JSONL)
        return;
    for (int i = 0; names[i]; i++)
        sink_printf(&export->sink, "%.*s%s", i > 0, &export->separator, names[i]);
    for (uint32_t i = 0; feature && i < feature->dimension; i++)
        sink_printf(&export->sink, "%c%s_%u", export->separator, feature->name, i);
    sink_text(&export->sink, "\n");
}

/* Begins with "path" and "source" where the rows are files. */
static void line_begin(struct line *line, struct export *export, const char *path, unsigned source)
{
    *line = (struct line){
        .export = export, .first = true, .lines_of_json = export->format == FORMAT_JSONL};
    if (line->lines_of_json) {
        json_init(&line->json, true);
        json_open_object(&line->json, NULL);
    }
    if (!path)
        return;
    field_text(line, "path", path);
    field_text(line, "source",
               source < result_source_count(export->result) ? result_source(export->result, source)
                                                            : "");
}

static enum status check_stop(struct error *err)
{
    if (stop_requested(signals_stop()) == STOP_NONE)
        return STATUS_OK;
    return error_set(err, STATUS_INTERRUPTED,
                     "interrupted: the table is incomplete; run the same command again");
}

/* --- tables ---------------------------------------------------------------------------------- */

static enum status export_images(struct export *export, struct error *err)
{
    static const char *const names[] = {"path",        "source",   "width",  "height",
                                        "orientation", "channels", "format", "bytes",
                                        "mtime_ns",    "digest",   NULL};
    header(export, names, NULL);
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
        line_begin(&line, export, image.path, image.source);
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
        line_end(&line);
    }
    return STATUS_OK;
}

static enum status export_failures(struct export *export, struct error *err)
{
    static const char *const names[] = {"path",  "source", "reason", "message",
                                        "bytes", "errno",  NULL};
    header(export, names, NULL);
    for (uint64_t row = 0; row < result_failures(export->result) && !export->sink.closed; row++) {
        struct result_failure failure;
        struct line line;
        enum status status = check_stop(err);
        if (status != STATUS_OK)
            return status;
        status = result_failure_at(export->result, row, &failure, err);
        if (status != STATUS_OK)
            return status;
        line_begin(&line, export, failure.path, failure.source);
        field_text(&line, "reason", reason_name(failure.reason));
        field_text(&line, "message", failure.message);
        field_uint(&line, "bytes", failure.bytes);
        field_int(&line, "errno", failure.error_number);
        line_end(&line);
    }
    return STATUS_OK;
}

static enum status export_labels(struct export *export, struct error *err)
{
    static const char *const names[] = {"path", "source", "label", "distance", NULL};
    /* Clusters of a file of their own have rows but no images. */
    bool named = result_images(export->result) == export->clusters->rows;
    static const char *const numbered[] = {"row", "label", "distance", NULL};
    header(export, named ? names : numbered, NULL);
    for (uint64_t row = 0; row < export->clusters->rows && !export->sink.closed; row++) {
        struct result_image image = {.path = NULL};
        struct line line;
        enum status status = check_stop(err);
        if (status == STATUS_OK && named)
            status = result_image_at(export->result, row, &image, err);
        if (status != STATUS_OK)
            return status;
        line_begin(&line, export, image.path, image.source);
        if (!named)
            field_uint(&line, "row", row);
        field_int(&line, "label", export->labels[row]);
        field_float(&line, "distance", export->distances[row]);
        line_end(&line);
    }
    return STATUS_OK;
}

static enum status feature_line(struct export *export, uint64_t row, const void *values,
                                struct error *err)
{
    const struct result_feature *feature = &export->feature;
    struct result_image image;
    struct line line;
    enum status status = result_image_at(export->result, row, &image, err);
    if (status != STATUS_OK)
        return status;
    line_begin(&line, export, image.path, image.source);
    if (line.lines_of_json)
        json_open_array(&line.json, feature->name);
    for (uint32_t i = 0; i < feature->dimension; i++) {
        if (feature->is_float)
            field_float(&line, NULL, ((const float *)values)[i]);
        else
            field_uint(&line, NULL, ((const uint32_t *)values)[i]);
    }
    if (line.lines_of_json)
        json_close_array(&line.json);
    line_end(&line);
    return STATUS_OK;
}

static enum status export_features(struct export *export, struct error *err)
{
    static const char *const names[] = {"path", "source", NULL};
    const struct result_feature *feature = &export->feature;
    bool npy = export->format == FORMAT_NPY;
    uint64_t step = matrix_rows_at_once(&export->matrix);
    size_t row_bytes = (size_t)feature->dimension * 4;
    char *values = malloc((size_t)step * row_bytes);
    if (!values)
        return error_memory(err, (size_t)step * row_bytes, "rows of a feature");
    enum status status = STATUS_OK;
    if (npy)
        status = npy_write_header(export->sink.fd, feature->is_float ? "<f4" : "<u4", feature->rows,
                                  feature->dimension, export->sink.path, err);
    else
        header(export, names, feature);
    for (uint64_t at = 0; status == STATUS_OK && at < feature->rows && !export->sink.closed;) {
        uint64_t take = feature->rows - at < step ? feature->rows - at : step;
        status = check_stop(err);
        if (status != STATUS_OK)
            break;
        /* As they are stored: 4 bytes a value. */
        status = feature->is_float
                     ? matrix_read(&export->matrix, at, take, (void *)values, err)
                     : result_feature_read_counts(
                           export->result, result_feature_find(export->result, feature->name), at,
                           take, (void *)values, err);
        if (status == STATUS_OK && npy) {
            sink_write(&export->sink, values, (size_t)take * row_bytes);
            export->rows += take;
        }
        for (uint64_t i = 0; status == STATUS_OK && !npy && i < take && !export->sink.closed; i++)
            status = feature_line(export, at + i, values + (size_t)i * row_bytes, err);
        at += take;
    }
    free(values);
    return status;
}

static enum status export_labels_npy(struct export *export, struct error *err)
{
    enum status status =
        npy_write_header(export->sink.fd, "<i4", export->clusters->rows, 0, export->sink.path, err);
    if (status != STATUS_OK)
        return status;
    sink_write(&export->sink, export->labels,
               (size_t) export->clusters->rows * sizeof *export->labels);
    export->rows = export->clusters->rows;
    return STATUS_OK;
}

/* --- the command ----------------------------------------------------------------------------- */

static enum status read_labels(struct export *export, struct error *err)
{
    enum status status =
        choose_clusters(&export->clusters, export->result, export->options->name, err);
    if (status != STATUS_OK)
        return status;
    size_t rows = (size_t) export->clusters->rows;
    export->labels = malloc((rows ? rows : 1) * sizeof *export->labels);
    export->distances = malloc((rows ? rows : 1) * sizeof *export->distances);
    if (!export->labels || !export->distances)
        return error_memory(err, 8 * rows, "labels");
    return result_clusters_read(export->result, export->clusters, NULL, export->labels,
                                export->distances, NULL, NULL, err);
}

/* The format that the extension of a file names, as long as none was chosen. */
static enum export_format format_of(const struct options *options, const char *output)
{
    static const char *const extensions[] = {".csv", ".tsv", ".jsonl", ".npy"};
    const char *dot = output ? strrchr(output, '.') : NULL;
    for (int i = 0; dot && !options_given(options, "format") && i <= FORMAT_NPY; i++)
        if (strcmp(dot, extensions[i]) == 0)
            return (enum export_format)i;
    return (enum export_format)options->format;
}

static enum status check_options(const struct export *export, struct error *err)
{
    const struct options *options = export->options;
    bool tree = options->what == WHAT_TREE;
    if (options->what < 0)
        return misuse(err, options->command,
                      "--what is missing: give features, labels, failures, images or tree");
    if (tree && !options->to)
        return misuse(err, options->command,
                      "--what tree requires --to DIR, the directory to create");
    if (tree && (options->output || options_given(options, "format")))
        return misuse(err, options->command, "--what tree uses --to, not -o or --format");
    if (!tree && (options->to || options_given(options, "link")))
        return misuse(err, options->command, "--to and --link require --what tree");
    if (export->format == FORMAT_NPY && options->what != WHAT_FEATURES &&
        options->what != WHAT_LABELS)
        return misuse(err, options->command,
                      "--format npy is only for features and labels: choose csv, tsv or jsonl");
    if (!tree && !export->output && json_owns_stdout(options))
        return misuse(err, options->command,
                      "the table and --json - cannot both use standard output: give -o FILE");
    return STATUS_OK;
}

static enum status write_table(struct export *export, struct error *err)
{
    bool npy = export->format == FORMAT_NPY;
    switch ((enum export_what) export->options->what) {
    case WHAT_FEATURES:
        return export_features(export, err);
    case WHAT_LABELS:
        return npy ? export_labels_npy(export, err) : export_labels(export, err);
    case WHAT_FAILURES:
        return export_failures(export, err);
    case WHAT_IMAGES:
        return export_images(export, err);
    case WHAT_TREE:
        break;
    }
    return STATUS_OK;
}

/* A table may replace an earlier table, known by its beginning, and an empty file. */
static enum status check_output(const char *output, struct error *err)
{
    static const char *const beginnings[] = {"path,",      "path\t",    "row,",     "row\t",
                                             "{\"path\":", "{\"row\":", "\223NUMPY"};
    char start[16] = "", shown[256];
    struct stat st;
    if (!output || stat(output, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
        return STATUS_OK;
    int fd = open(output, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t size = read(fd, start, sizeof start - 1);
        start[size > 0 ? size : 0] = '\0';
        close(fd);
    }
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (strncmp(start, beginnings[i], strlen(beginnings[i])) == 0)
            return STATUS_OK;
    return error_set(err, STATUS_FAILED,
                     "%s exists and is not an exported table, so it is not overwritten; name "
                     "another file",
                     path_for_message(shown, sizeof shown, output));
}

static enum status make_table(struct export *export, struct error *err)
{
    enum status status = check_output(export->output, err);
    if (status != STATUS_OK)
        return status;
    status = sink_open(&export->sink, export->output, err);
    if (status != STATUS_OK)
        return status;
    status = write_table(export, err);
    /* Nobody reading any more is no error, wherever it showed. */
    if (status == STATUS_FAILED && !export->sink.file && err->native == EPIPE) {
        *err = (struct error)ERROR_INIT;
        status = STATUS_OK;
    }
    enum status closed =
        sink_close(&export->sink, status == STATUS_OK, status == STATUS_OK ? err : NULL);
    if (status == STATUS_OK)
        status = closed;
    char rows[40], shown[256];
    if (status == STATUS_OK && export->output)
        log_message(LOG_INFO, "%s in %s", format_number_of(rows, sizeof rows, export->rows, "row"),
                    path_for_message(shown, sizeof shown, export->output));
    return status;
}

static enum status make_tree(struct export *export, struct error *err)
{
    struct tree_counts counts;
    char images[40], folders[40], shown[256];
    if (result_images(export->result) == 0 ||
        export->clusters->rows != result_images(export->result))
        return error_set(
            err, STATUS_FAILED,
            "%s: /clusters/%s does not label the images of this file; export it with --what labels",
            path_for_message(shown, sizeof shown, export->options->operand[0]),
            export->clusters->name);
    enum status status = export_tree(&counts, export->result, export->clusters, export->labels,
                                     export->options, err);
    if (status != STATUS_OK)
        return status;
    export->rows = counts.made;
    log_message(LOG_INFO, "%s in %s under %s",
                format_number_of(images, sizeof images, counts.made, "image"),
                format_number_of(folders, sizeof folders, export->clusters->k, "folder"),
                path_for_message(shown, sizeof shown, export->options->to));
    return counts.missing ? STATUS_PARTIAL : STATUS_OK;
}

enum status command_export(const struct options *options, struct error *err)
{
    struct export export = {.options = options};
    if (options->output && strcmp(options->output, "-") != 0)
        export.output = options->output;
    export.format = format_of(options, export.output);
    export.separator = export.format == FORMAT_TSV ? '\t' : ',';
    signals_install(0);
    enum status status = check_options(&export, err);
    if (status != STATUS_OK)
        return status;
    status = result_open(&export.result, options->operand[0], err);
    if (status != STATUS_OK)
        return status;
    if (options->what == WHAT_FEATURES)
        status = feature_matrix_open(&export.matrix, &export.feature, export.result,
                                     options->feature, err);
    else if (options->what == WHAT_LABELS || options->what == WHAT_TREE)
        status = read_labels(&export, err);
    if (status == STATUS_OK)
        status = options->what == WHAT_TREE ? make_tree(&export, err) : make_table(&export, err);
    if ((status == STATUS_OK || status == STATUS_PARTIAL) && options->json) {
        struct json json;
        char word[32];
        json_init(&json, false);
        json_open_object(&json, NULL);
        json_string(&json, "what", option_choice(word, sizeof word, options, "what"));
        json_uint(&json, "rows", export.rows);
        report_bytes(&json, "output", options->what == WHAT_TREE ? options->to : export.output);
        json_close_object(&json);
        enum status written = report_write(options, &json, err);
        if (written != STATUS_OK)
            status = written;
    }
    matrix_close(&export.matrix);
    result_close(&export.result);
    free(export.labels);
    free(export.distances);
    return status;
}
