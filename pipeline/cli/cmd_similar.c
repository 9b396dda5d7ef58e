/* cmd_similar.c: clpipe similar: the nearest images of pictures, or of every image. */
#include "base/clock.h"
#include "base/held.h"
#include "base/log.h"
#include "base/minmax.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/text.h"
#include "cli/call.h"
#include "cli/cluster_options.h"
#include "cli/commands.h"
#include "cli/option_rows.h"
#include "cli/options.h"
#include "cli/report_json.h"
#include "cli/row_table.h"
#include "cli/summary.h"
#include "ingest/describing.h"
#include "jobs/reopen.h"
#include "jobs/similarity.h"
#include "matrix/npy.h"
#include "matrix/projected.h"
#include "neighbours/comparable.h"
#include "net/runtime.h"
#include "result/class_layer.h"
#include "result/codebooks.h"
#include "result/feature_matrix.h"
#include "result/result.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* The options of the command. */
struct similar_options {
    struct options common;
    struct similarity_config config;
    const char *class_name, *vector, *onnxruntime;
    int format;
    bool all;
};

#define OWN struct similar_options

struct similar {
    const struct similar_options *own;
    struct similarity similarity;
    const char *const *names;
    unsigned count;
    uint64_t *rows;       /* rows of the names; SIMILARITY_OUTSIDE: a file that is not in F.h5 */
    struct error *failed; /* per name: why it has no answer */
    /* For each name, n of them. */
    int64_t *neighbours;
    double *squared, *scores; /* scores: NULL unless by diffusion */
    struct held held;         /* these arrays, and others of the answer */
    const char *output;       /* NULL: standard output */
    int format;               /* enum export_format; -1: a table to read */
    struct sink sink;
    struct json *json; /* of the call */
};

/* --- what is asked for ------------------------------------------------------------------------- */

static enum status check_options(struct similar *similar, struct error *err)
{
    const struct similar_options *own = similar->own;
    const struct options *options = &own->common;
    const bool names = options->operand_count > 1;
    if (own->all && names)
        return misuse(err, "--all is about every image: leave out %s",
                      PATH_TEXT(options->operand[1]));
    const bool other = own->class_name || own->vector;
    if (other && (names || own->all || (own->class_name && own->vector)))
        return misuse(err, "give only one of --class, --vector, --all and pictures");
    if (own->class_name &&
        (own->config.diffuse || own->config.expand || options_given(options, "metric")))
        return misuse(err, "--class ranks by a score: leave out --metric, --diffuse and --expand");
    if (!own->all && !names && !other)
        return misuse(
            err,
            "name a PICTURE or row:N after the file, --class NAME or --vector Q.npy, or --all to "
            "store the neighbours of every image");
    if (own->all && (options->output || options_given(options, "format")))
        return misuse(err, "--all stores neighbours in the file: it takes neither -o nor --format");
    if (own->all && own->config.diffuse)
        return misuse(err, "--all stores the nearest images by distance: leave out --diffuse");
    if (own->all && own->config.expand)
        return misuse(err, "--all stores the nearest images as they are: leave out --expand");
    if (own->config.diffuse && own->config.expand)
        return misuse(err, "--diffuse or --expand, not both");
    if (!own->all && options->force && !options->output)
        return misuse(err, "--force requires --all or -o FILE");
    if (!own->all && !similar->output && json_owns_stdout(options))
        return STATUS_OK; /* the JSON has the neighbours */
    return options_check_output(options, "-o", similar->output, err);
}

/* --- --class: images in the order of a score ------------------------------------------------ */

#define NEAREST 3

struct scored {
    float score;
    uint64_t row;
};

static bool has_name(const char *names, const char *name)
{
    const size_t length = strlen(name);
    while (*names) {
        names += strspn(names, " ,/");
        if (strncasecmp(names, name, length) == 0 &&
            strchr(",/", names[length + strspn(names + length, " ")]))
            return true;
        names += strcspn(names, ",/");
    }
    return false;
}

/* The distance of a class from the typed name; classes that contain it are near. */
static unsigned distance_of(const char *class, const char *name)
{
    return strcasestr(class, name) ? 0 : name_edits(name, class);
}

static enum status refuse_class(const struct class_layer *layer, const char *name,
                                struct error *err)
{
    char names[300] = "";
    uint32_t best[NEAREST], count = 0;
    for (uint32_t c = 0; c < layer->count; c++) {
        uint32_t at = count;
        while (at > 0 &&
               distance_of(layer->name[c], name) < distance_of(layer->name[best[at - 1]], name))
            at--;
        if (at == NEAREST)
            continue;
        count = min_u32(count + 1, NEAREST);
        memmove(best + at + 1, best + at, (count - at - 1) * sizeof *best);
        best[at] = c;
    }
    for (uint32_t i = 0; i < count; i++)
        text_add(names, sizeof names, "; ", "%.80s", layer->name[best[i]]);
    return error_set(err, STATUS_USAGE, "%s has no class '%s'; the nearest of its %u are: %s",
                     layer->feature, PATH_TEXT_IN(120, name), layer->count, names);
}

/* Reduces a layer to the matching classes; its names stay. */
static enum status choose_classes(struct class_layer *layer, const char *name, struct error *err)
{
    uint32_t chosen = 0;
    for (int parts = 0; parts < 2 && chosen == 0; parts++)
        for (uint32_t c = 0; c < layer->count; c++) {
            if (parts ? !has_name(layer->name[c], name) : strcasecmp(layer->name[c], name) != 0)
                continue;
            memmove(layer->weights + (size_t)chosen * layer->columns,
                    layer->weights + (size_t)c * layer->columns, layer->columns * sizeof(float));
            layer->offset[chosen++] = layer->offset[c];
        }
    if (chosen == 0)
        return refuse_class(layer, name, err);
    layer->count = chosen;
    return STATUS_OK;
}

static int by_score(const void *a, const void *b)
{
    const struct scored *x = a, *y = b;
    return x->score != y->score ? (x->score < y->score) - (x->score > y->score)
                                : (x->row > y->row) - (x->row < y->row);
}

/* The *count rows that have values, in their order. */
static enum status score_rows(struct scored *scored, uint64_t *count,
                              const struct class_layer *layer, const struct matrix_source *rows,
                              struct error *err)
{
    const uint64_t step = matrix_rows_at_once(rows);
    SCOPED_HELD held = {0};
    float *block = held_array(&held, step * rows->dimension, sizeof *block);
    float *scores = held_array(&held, step * layer->count, sizeof *scores);
    enum status status = held_check(&held, "rows", err);
    *count = 0;
    for (uint64_t first = 0, some; first < rows->rows && status == STATUS_OK; first += some) {
        some = min_u64(step, rows->rows - first);
        status = matrix_read(rows, first, some, block, err);
        if (status != STATUS_OK)
            break;
        class_layer_scores(scores, layer, block, some);
        for (uint64_t i = 0; i < some; i++) {
            float best = scores[i * layer->count];
            for (uint32_t c = 1; c < layer->count; c++)
                best = fmaxf(best, scores[i * layer->count + c]);
            if (isfinite(best) && !matrix_is_blank(rows, block + i * rows->dimension))
                scored[(*count)++] = (struct scored){best, first + i};
        }
    }
    return status;
}

/* The `n` images with the highest scores of the class with that name, ignoring case, or with it
 * among its names, separated by commas and slashes (of several classes, the highest score counts).
 * feature: the feature with the classes; NULL: the only one. If there are fewer, the remaining rows
 * are -1 and their scores NaN. STATUS_USAGE: no such class (the message lists the nearest names),
 * or no classes at all. */
static enum status class_query(int64_t *rows, double *scores, uint32_t n, struct result *result,
                               const char *feature, const char *name, struct error *err)
{
    struct class_layer layer;
    struct matrix_source matrix = {0};
    struct result_feature about;
    struct scored *scored = NULL;
    uint64_t count = 0;
    enum status status = class_layer_read(&layer, result, feature, err);
    if (status == STATUS_END)
        status = error_set(err, STATUS_USAGE,
                           "%s has no classes%s%s: --class needs a feature of a network with "
                           "classes, such as that of --preset semantic",
                           PATH_TEXT(result->path), feature ? " of the feature " : "",
                           feature ? feature : "");
    if (status == STATUS_OK)
        status = choose_classes(&layer, name, err);
    if (status == STATUS_OK)
        status = feature_matrix_open(&matrix, &about, result, layer.feature, err);
    if (status == STATUS_OK && !(scored = malloc((size_t)matrix.rows * sizeof *scored + 1)))
        status = error_memory(err, (size_t)matrix.rows * sizeof *scored, "scores");
    if (status == STATUS_OK)
        status = score_rows(scored, &count, &layer, &matrix, err);
    if (status == STATUS_OK)
        qsort(scored, (size_t)count, sizeof *scored, by_score);
    for (uint32_t i = 0; i < n && status == STATUS_OK; i++) {
        rows[i] = i < count ? (int64_t)scored[i].row : -1;
        scores[i] = i < count ? (double)scored[i].score : (double)NAN;
    }
    free(scored);
    matrix_close(&matrix);
    class_layer_clear(&layer);
    return status;
}

/* --- searching --------------------------------------------------------------------------------- */

/* Moves the neighbours found for a query to name i. */
static void take(struct similar *similar, unsigned i, uint32_t query)
{
    const struct neighbours *found = &similar->similarity.found;
    const size_t from = (size_t)query * found->n, to = (size_t)i * found->n;
    memcpy(similar->neighbours + to, found->rows + from, found->n * sizeof *found->rows);
    memcpy(similar->squared + to, found->squared + from, found->n * sizeof *found->squared);
    if (similar->scores)
        memcpy(similar->scores + to, similar->similarity.scores + from,
               found->n * sizeof *similar->scores);
}

static bool is_open(const struct similar *similar, unsigned i, bool outside)
{
    return similar->failed[i].status == STATUS_OK &&
           (similar->rows[i] == SIMILARITY_OUTSIDE) == outside;
}

static enum status search_rows(struct similar *similar, struct error *err)
{
    uint32_t count = 0;
    uint64_t *rows = held_array(&similar->held, similar->count, sizeof *rows);
    enum status status = held_check(&similar->held, "rows", err);
    for (unsigned i = 0; i < similar->count && status == STATUS_OK; i++)
        if (is_open(similar, i, false))
            rows[count++] = similar->rows[i];
    if (status == STATUS_OK && count > 0)
        status =
            similarity_find(&similar->similarity, &(struct queries){rows, .count = count}, err);
    for (unsigned i = 0, query = 0; status == STATUS_OK && i < similar->count; i++)
        if (is_open(similar, i, false))
            take(similar, i, query++);
    return status;
}

/* For `count` rows of values that can be compared. */
static enum status search_for(struct similar *similar, const float *values, uint32_t count,
                              struct error *err)
{
    struct matrix_memory memory = {.values = values,
                                   .dimension = similar->similarity.input.rows.dimension};
    struct matrix_source source;
    matrix_memory_source(&source, &memory, count);
    return similarity_find(&similar->similarity,
                           &(struct queries){.values = &source, .count = count}, err);
}

/* Pictures that are not in the file. */
struct outside {
    struct similar *similar;
    unsigned *name; /* of each: its index among the names */
    unsigned count;
    float *values;
};

static enum status find_files(struct outside *outside, struct error *err)
{
    struct similar *similar = outside->similar;
    outside->name = held_array(&similar->held, similar->count, sizeof *outside->name);
    if (held_check(&similar->held, "pictures", err) != STATUS_OK)
        return err->status;
    for (unsigned i = 0; i < similar->count; i++) {
        struct stat st;
        if (!is_open(similar, i, true))
            continue;
        if (stat(similar->names[i], &st) == 0 && S_ISREG(st.st_mode))
            outside->name[outside->count++] = i;
        else
            error_set(
                &similar->failed[i], STATUS_USAGE,
                "%s is neither an image of %s nor a file: give a path as clpipe export --what "
                "images lists them, row:N, or a picture's file",
                PATH_TEXT(similar->names[i]), PATH_TEXT(similar->own->common.operand[0]));
    }
    return STATUS_OK;
}

static const char *open_picture(void *context, uint64_t i, struct blob *blob,
                                struct failure *failure)
{
    const struct outside *outside = context;
    blob_open_file(blob, outside->similar->names[outside->name[i]], failure);
    return "picture.jpg"; /* whatever its name, it is meant to be an image */
}

static void end_picture(void *context, uint64_t i, const struct failure *failure)
{
    const struct outside *outside = context;
    const unsigned name = outside->name[i];
    if (failure->reason != REASON_NONE)
        error_set(&outside->similar->failed[name], STATUS_FAILED, "%s cannot be compared: %s",
                  PATH_TEXT(outside->similar->names[name]), failure->message);
}

/* The file's features, and the options that affect their values. */
static enum status describe_as(struct describing *describing, struct codebooks *codebooks,
                               struct result *result, const char *name, struct error *err)
{
    struct ingest_config *config = &describing->config;
    struct feature_join of;
    struct result_feature about;
    char spec[sizeof about.name + sizeof about.spec];
    const char *shown = PATH_TEXT(result->path);
    enum status status = feature_matrix_find(&of, &about, result, name, err);
    for (unsigned i = 0; i < of.join.parts && status == STATUS_OK; i++) {
        if (result_feature_imported(of.feature[i]))
            return error_set(err, STATUS_USAGE,
                             "%s was imported, so it cannot be computed for a picture that is not "
                             "in %s: choose a picture that is, or another feature",
                             of.feature[i]->name, shown);
        snprintf(spec, sizeof spec, "%s=%s", of.feature[i]->name, of.feature[i]->spec);
        status = describing_add(describing, spec, of.join.weight[i], err);
    }
    describing->join.unit = of.join.unit;
    if (status == STATUS_OK && describing->columns != about.dimension)
        status = error_set(err, STATUS_FAILED, "%s has a different number of values here", name);
    if (status == STATUS_OK && feature_set_lacks_codebooks(&config->features))
        status = codebooks_read(codebooks, result, NULL, err);
    if (status == STATUS_OK)
        status = codebooks_bind(codebooks, &config->features, shown, err);
    if (status == STATUS_OK)
        status = reopen_decode_options(&config->decode, result, err);
    if (status == STATUS_OK && config->decode.icc && !decode_icc_library())
        status = error_set(err, STATUS_FAILED,
                           "%s was made with --icc apply, and this build cannot apply ICC "
                           "profiles: install liblcms2-dev and build again",
                           shown);
    return status;
}

static enum status describe(struct outside *outside, const char *name, struct error *err)
{
    const struct similar *similar = outside->similar;
    const struct clustering_machine *machine = &similar->similarity.config->machine;
    struct codebooks codebooks = {.stored = NULL};
    struct describing describing = {.config = {.threads = machine->threads,
                                               .memory = machine->memory,
                                               .memory_streams = machine->memory,
                                               .device_memory = machine->device_memory,
                                               .stop = machine->watch.stop},
                                    .count = outside->count,
                                    .values = outside->values,
                                    .open = open_picture,
                                    .done = end_picture,
                                    .context = outside};
    runtime_configure(&(struct runtime_config){.library = similar->own->onnxruntime,
                                               .threads = machine->threads});
    enum status status =
        describe_as(&describing, &codebooks, similar->similarity.input.result, name, err);
    if (status == STATUS_OK)
        status = machine->find_devices(machine->find_devices_context, &describing.devices, err);
    progress_stage(&similar->own->common.call->progress, "describing pictures");
    if (status == STATUS_OK) {
        describing.config.trace = describing.devices.trace;
        status = describing_run(&describing, err);
    }
    codebooks_clear(&codebooks);
    return status;
}

/* Searches for the pictures whose values are valid in the metric's space. */
static enum status search_values(const struct outside *outside, struct error *err)
{
    struct similar *similar = outside->similar;
    const struct matrix_source *source = &similar->similarity.input.rows;
    const uint32_t dimension = source->dimension, columns = projected_columns(source);
    uint32_t good = 0;
    for (unsigned at = 0; at < outside->count; at++) {
        const unsigned name = outside->name[at];
        float *values = outside->values + (size_t)at * columns;
        if (similar->failed[name].status != STATUS_OK)
            continue;
        projected_row(source, values);
        if (comparable_values(source, values, similar->similarity.metric))
            memmove(outside->values + (size_t)good++ * dimension, values,
                    dimension * sizeof *values);
        else
            error_set(&similar->failed[name], STATUS_FAILED,
                      "%s has no values of %s that can be compared",
                      PATH_TEXT(similar->names[name]), similar->similarity.input.about.name);
    }
    enum status status = STATUS_OK;
    if (good > 0)
        status = search_for(similar, outside->values, good, err);
    for (unsigned at = 0, query = 0; at < outside->count && status == STATUS_OK; at++)
        if (similar->failed[outside->name[at]].status == STATUS_OK)
            take(similar, outside->name[at], query++);
    return status;
}

static enum status search_outside(struct similar *similar, struct error *err)
{
    const struct matrix_input *input = &similar->similarity.input;
    const uint32_t dimension = projected_columns(&input->rows);
    const char *name =
        similar->own->config.feature ? similar->own->config.feature : input->about.name;
    struct outside outside = {.similar = similar};
    enum status status = find_files(&outside, err);
    if (status != STATUS_OK || outside.count == 0)
        return status;
    outside.values =
        held_array(&similar->held, (uint64_t)outside.count * dimension, sizeof *outside.values);
    status = held_check(&similar->held, "pictures", err);
    if (status == STATUS_OK)
        status = describe(&outside, name, err);
    return status == STATUS_OK ? search_values(&outside, err) : status;
}

/* --vector: one row, or an array of one dimension. */
static enum status search_vector(struct similar *similar, struct error *err)
{
    const struct matrix_source *source = &similar->similarity.input.rows;
    const char *file = similar->own->vector;
    const uint32_t columns = projected_columns(source);
    float *values = NULL;
    uint64_t count = 0;
    double squares = 0;
    enum status status = matrix_input_vector(&values, &count, file, err);
    const char *shown = PATH_TEXT(file);
    if (status == STATUS_OK && count != columns)
        status =
            error_set(err, STATUS_USAGE, "%s has %llu values; rows of %s have %u", shown,
                      (unsigned long long)count, similar->similarity.input.about.name, columns);
    for (uint64_t i = 0; i < count && status == STATUS_OK; i++)
        squares += (double)values[i] * (double)values[i];
    /* Like the rows of a preset. */
    for (uint64_t i = 0; i < count && status == STATUS_OK && squares > 0 &&
                         strcmp(similar->similarity.input.about.name, RESULT_PRESET) == 0;
         i++)
        values[i] = (float)((double)values[i] / sqrt(squares));
    if (status == STATUS_OK) {
        projected_row(source, values);
        status =
            isfinite(squares) && comparable_values(source, values, similar->similarity.metric)
                ? search_for(similar, values, 1, err)
                : error_set(err, STATUS_FAILED, "%s has no values that can be compared", shown);
    }
    if (status == STATUS_OK)
        take(similar, 0, 0);
    free(values);
    return status;
}

/* --- printing ---------------------------------------------------------------------------------- */

/* Writes a distance or a score, which may be missing. */
static void put_number(struct table *table, double value)
{
    if (isfinite((float)value))
        table_float(table, (float)value);
    else
        table_nothing(table);
}

static unsigned count_failed(const struct similar *similar)
{
    unsigned failed = 0;
    for (unsigned i = 0; i < similar->count; i++)
        failed += similar->failed[i].status != STATUS_OK;
    return failed;
}

/* The heading of a query's table. */
static void begin_query(struct similar *similar, unsigned i, const char *query, bool first)
{
    sink_text(&similar->sink, first ? "" : "\n");
    sink_line(&similar->sink, "%s%s", query,
              similar->rows[i] == SIMILARITY_OUTSIDE ? " (not in the file)" : "");
    sink_printf(&similar->sink, "%5s  ", "rank");
    if (similar->scores)
        sink_printf(&similar->sink, "%10s  ", "score");
    if (!similar->own->class_name)
        sink_printf(&similar->sink, "%10s  ", "distance");
    sink_printf(&similar->sink, "%8s  %s\n", "row", "path");
}

/* The neighbours of one name; query: its text. */
static enum status put_places(struct similar *similar, struct table *table, unsigned i,
                              const char *query, struct error *err)
{
    const uint32_t n = (uint32_t)similar->similarity.config->n;
    struct sink *sink = &similar->sink;
    struct result_image image;
    for (uint32_t rank = 0; rank < n; rank++) {
        const size_t at = (size_t)i * n + rank;
        const int64_t row = similar->neighbours[at];
        const double squared = similar->squared[at];
        const double score = similar->scores ? similar->scores[at] : (double)NAN;
        if (row >= 0 && result_image_at(similar->similarity.input.result, (uint64_t)row, &image,
                                        err) != STATUS_OK)
            return err->status;
        if (similar->format < 0 && row >= 0) {
            sink_printf(sink, "%5u  ", rank + 1);
            if (similar->scores)
                sink_printf(sink, "%10.6g  ", score);
            if (!similar->own->class_name)
                sink_printf(sink, "%10.6g  ", sqrt(squared));
            sink_line(sink, "%8" PRId64 "  %s", row, image.path);
        }
        table_row(table);
        table_text(table, query);
        table_uint(table, rank + 1);
        table_int(table, row);
        if (row >= 0)
            table_text(table, image.path);
        else
            table_nothing(table);
        put_number(table, sqrt(squared));
        put_number(table, squared);
        if (similar->scores)
            put_number(table, score);
        table_end_row(table);
    }
    return STATUS_OK;
}

static enum status print_neighbours(struct similar *similar, struct error *err)
{
    static const char *const names[] = {
        "query", "rank", "row", "path", "distance", "squared_distance", "score", NULL};
    const uint32_t n = (uint32_t)similar->similarity.config->n;
    struct table table = {.sink = &similar->sink,
                          .format = similar->format,
                          .report = similar->json,
                          .names = names,
                          .not_in_cells = similar->scores ? 0 : 1 << 6};
    enum status status = STATUS_OK;
    bool first = true;
    table_begin(&table, NULL, 0);
    json_open_array(similar->json, "neighbours");
    for (unsigned i = 0; i < similar->count && status == STATUS_OK; i++) {
        const size_t length = strlen(similar->names[i]);
        if (similar->failed[i].status != STATUS_OK)
            continue;
        char *query = path_utf8(similar->names[i], length);
        if (!query)
            return error_memory(err, 4 * length + 1, "a file name");
        if (similar->format < 0)
            begin_query(similar, i, query, first);
        status = put_places(similar, &table, i, query, err);
        free(query);
        first = false;
    }
    json_close_array(similar->json);
    if (count_failed(similar) > 0) {
        json_open_array(similar->json, "failed");
        for (unsigned i = 0; i < similar->count; i++) {
            if (similar->failed[i].status == STATUS_OK)
                continue;
            json_open_object(similar->json, NULL);
            report_bytes(similar->json, "query", similar->names[i]);
            json_string(similar->json, "message", similar->failed[i].sentence);
            json_close_object(similar->json);
        }
        json_close_array(similar->json);
    }
    if (similar->format != FORMAT_NPY || status != STATUS_OK)
        return status;
    status = npy_write_header(similar->sink.fd, "<i8", similar->count, n,
                              similar->output ? similar->output : "standard output", err);
    if (status == STATUS_OK)
        sink_write(&similar->sink, similar->neighbours,
                   (size_t)similar->count * n * sizeof *similar->neighbours);
    return status;
}

static void json_begin(struct similar *similar)
{
    const struct similarity *similarity = &similar->similarity;
    report_open(&similar->own->common);
    if (similar->own->class_name) {
        json_string(similar->json, "class", similar->own->class_name);
    } else {
        json_string(similar->json, "feature", similarity->input.about.name);
        json_string(similar->json, "metric", metric_names[similarity->metric]);
    }
    json_uint(similar->json, "n", similarity->config->n);
    if (similarity->config->expand)
        json_uint(similar->json, "expand", similarity->config->expand);
    if (similarity->config->diffuse)
        json_bool(similar->json, "diffuse", true);
}

static void tell_failed(const struct similar *similar)
{
    for (unsigned i = 0; i < similar->count; i++)
        if (similar->failed[i].status != STATUS_OK)
            log_error(&similar->failed[i]);
}

static enum status answer(struct similar *similar, struct error *err)
{
    const size_t places = (size_t)similar->count * similar->similarity.config->n;
    const bool scores = similar->own->config.diffuse || similar->own->class_name;
    struct held *held = &similar->held;
    similar->rows = held_array(held, similar->count, sizeof *similar->rows);
    similar->failed = held_array(held, similar->count, sizeof *similar->failed);
    similar->neighbours = held_array(held, places, sizeof *similar->neighbours);
    similar->squared = held_array(held, places, sizeof *similar->squared);
    similar->scores = scores ? held_array(held, places, sizeof *similar->scores) : NULL;
    if (held_check(held, "neighbours", err) != STATUS_OK)
        return err->status;
    for (size_t i = 0; i < places; i++) {
        similar->neighbours[i] = -1;
        similar->squared[i] = NAN;
    }
    if (similar->own->class_name)
        return class_query(similar->neighbours, similar->scores,
                           (uint32_t)similar->similarity.config->n,
                           similar->similarity.input.result, similar->own->config.feature,
                           similar->own->class_name, err);
    if (similar->own->vector)
        return search_vector(similar, err);
    enum status status = similarity_locate(similar->rows, similar->failed, &similar->similarity,
                                           similar->names, similar->count, err);
    if (status == STATUS_OK)
        status = search_outside(similar, err);
    progress_stage(&similar->own->common.call->progress, "comparing rows");
    if (status == STATUS_OK)
        status = search_rows(similar, err);
    if (status != STATUS_OK || count_failed(similar) < similar->count)
        return status;
    *err = similar->failed[0];
    if (similar->count == 1)
        return err->status;
    tell_failed(similar);
    return error_set(err, STATUS_FAILED, "none of the %u pictures could be compared",
                     similar->count);
}

static enum status print_answer(struct similar *similar, struct error *err)
{
    const bool table = similar->output || !json_owns_stdout(&similar->own->common);
    enum status status = STATUS_OK;
    if (table)
        status = sink_open(&similar->sink, similar->output, err);
    else
        similar->sink.closed = true; /* everything is dropped */
    if (status != STATUS_OK)
        return status;
    json_begin(similar);
    status = print_neighbours(similar, err);
    return sink_end(&similar->sink, status, err);
}

static enum status store(struct similar *similar, struct error *err)
{
    const struct options *options = &similar->own->common;
    struct similarity *similarity = &similar->similarity;
    enum status status = similarity_store(similarity, err);
    if (status != STATUS_OK)
        return status;
    const struct neighbours *found = &similarity->found;
    const double seconds = (double)(clock_now() - clock_process_start()) * 1e-9;
    summary_line(options, "%s: the %u nearest of each of %s by %s, in the %s metric, in %.2f s",
                 PATH_TEXT(options->operand[0]), found->n, NUMBER_OF(found->queries, "image"),
                 similarity->input.about.name, metric_names[similarity->metric], seconds);
    if (similarity->stored)
        summary_line(options, "  up to date  the file already holds them as /neighbours/%s",
                     similarity->input.about.name);
    else
        summary_line(options, "  stored as /neighbours/%s on %s", similarity->input.about.name,
                     similarity->device);
    json_begin(similar);
    json_uint(similar->json, "rows", found->queries);
    json_double(similar->json, "seconds", seconds);
    json_double(similar->json, "seconds_read", found->seconds_read);
    json_double(similar->json, "seconds_build", found->seconds_build);
    json_double(similar->json, "seconds_search", found->seconds_search);
    json_string(similar->json, "device", similarity->device);
    report_bytes(similar->json, "output", options->operand[0]);
    return STATUS_OK;
}

static enum status run_similar(const struct options *options, struct error *err)
{
    const struct similar_options *own = (const struct similar_options *)options;
    struct similar similar = {.own = own,
                              .json = &options->call->json,
                              .names = (const char *const *)options->operand + 1,
                              .count = options->operand_count - 1};
    struct similarity_config config = own->config;
    config.file = options->operand[0];
    config.replace = options->force;
    const char *const other = own->class_name ? own->class_name : own->vector;
    if (other && similar.count == 0) {
        similar.names = &other;
        similar.count = 1;
    }
    enum status status = carried_check(options, own->all ? config.file : NULL, err);
    if (status == STATUS_OK)
        status = options_table(&similar.output, &similar.format, options,
                               isatty(STDOUT_FILENO) ? -1 : FORMAT_CSV, err);
    if (status == STATUS_OK)
        status = check_options(&similar, err);
    if (status != STATUS_OK)
        return status;
    call_start(options, 0);
    options_machine(&config.machine, options);
    if (own->class_name) { /* only rows of features are needed */
        similar.similarity.config = &config;
        status = result_open(&similar.similarity.input.result, config.file, err);
    } else {
        status = similarity_open(&similar.similarity, &config, err);
    }
    if (status == STATUS_OK && own->all) {
        status = store(&similar, err);
    } else if (status == STATUS_OK) {
        status = answer(&similar, err);
        progress_end(&options->call->progress);
        if (status == STATUS_OK)
            status = print_answer(&similar, err);
        if (status == STATUS_OK) {
            tell_failed(&similar);
            status = count_failed(&similar) ? STATUS_PARTIAL : STATUS_OK;
        }
    }
    similarity_close(&similar.similarity);
    result_close(&similar.similarity.input.result);
    held_free(&similar.held);
    return status;
}

static const struct option rows[] = {
    NUMBER("neighbours", config.n, "N",
           "number of neighbours of each; if there are fewer, the row is -1 and the distance NaN",
           .letter = 'n', .initial = "20", .min = 1, .max = 65536),
    TEXT("feature", config.feature, "NAME",
         "feature to compare, if the file has several, or several joined: NAME[:W]+NAME[:W]...",
         .note = "the preset's, or the only one"),
    CHOICE("metric", config.metric, "euclidean|cosine|hellinger", "distance",
           .note = "hellinger for l1 histograms, else euclidean"),
    TEXT("class", class_name, "NAME",
         "instead of a picture: rank by the score of a class of the file's network"),
    TEXT("vector", vector, "Q.npy",
         "instead of a picture: rank by a vector of the feature's values"),
    FLAG("all", all,
         "find the neighbours of every image and store them in the file, as /neighbours/FEATURE"),
    ONNXRUNTIME_ROW,
    FLAG("diffuse", config.diffuse,
         "rank by diffusion on the graph of the 15 nearest neighbours of every image, those stored "
         "by --all if there are that many; adds the column score"),
    NUMBER("expand", config.expand, "N",
           "compare every image by the mean of itself and its N nearest; not with --diffuse",
           .initial = "0", .max = 1000),
    CHOICE("format", format, "csv|tsv|jsonl|npy",
           "table format; npy: only the rows, a line for each PICTURE", .initial = "csv",
           .note = "the extension of -o, else csv, or a readable table on a terminal"),
    TABLE_ROW,
    FORCE_ROW("replace neighbours that are stored already, or an existing -o FILE"),
    {.name = NULL}};

const struct command command_similar = {
    .name = "similar",
    .goal = GOAL_RESULTS,
    .arguments = "F.h5... PICTURE|row:N... | --class C | --all [OPTIONS]",
    .summary = "find the images most similar to a picture, or to every image",
    .about = "PICTURE is an image of the file (its path as export lists it, or any path that leads "
             "to it), or any other picture, which is processed exactly like those of the file; "
             "row:N is image N. The nearest images are exact, ordered by distance, then by row; an "
             "image is never its own neighbour. With --all the neighbours of every image are "
             "stored in the file, which is replaced by a new copy. If some of several pictures "
             "cannot be compared, they are named, and the exit status is 1. Several files before "
             "PICTURE are read as if they were merged.",
    .examples = "  clpipe similar photos.h5 holiday/beach.jpg\n"
                "  clpipe similar photos.h5 row:17 ~/new.png -n 5 -o similar.csv\n"
                "  clpipe similar photos.h5 --class castle\n"
                "  clpipe similar photos.h5 --all --feature clip --metric cosine",
    .operand_name = "F.h5 or PICTURE",
    .operands = {1, 65535},
    .joins = 1,
    .joins_first = true,
    .computes = true,
    .group = {{"Neighbours", rows}, {GROUP_CARRIED}},
    .size = sizeof(OWN),
    .run = run_similar};
