/* select.c: the table of methods; candidates, choice, and storage. */
#include "base/json.h"
#include "base/minmax.h"
#include "base/path.h"
#include "jobs/path_match.h"
#include "jobs/selection.h"
#include "matrix/projected.h"
#include "result/choose.h"
#include "result/flags.h"
#include "result/workdir.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct select_method select_methods[SELECT_METHODS] = {
    {"balanced", .by_cluster = true, .order = order_balanced, .reason = reason_balanced},
    {"nearest", .by_cluster = true, .order = order_nearest, .reason = reason_nearest},
    {"diverse", .by_values = true, .order = order_diverse, .reason = reason_diverse},
    {"random", .order = order_random, .reason = reason_random},
};

static const char *const preference_names[] = {"nearest", "best"};

/* --- candidates -------------------------------------------------------------------------------- */

static enum status read_labels(struct selection *selection, struct error *err)
{
    const struct select_config *config = selection->config;
    const bool wanted = select_methods[config->method].by_cluster || config->per_cluster > 0 ||
                        !isnan(config->alike);
    if (!wanted && !config->clusters)
        return STATUS_OK;
    enum status status =
        choose_clusters(&selection->clusters, selection->result, config->clusters, err);
    if (status != STATUS_OK)
        return status;
    const uint64_t rows = selection->clusters->rows;
    selection->labels = held_array(&selection->held, rows, sizeof *selection->labels);
    selection->distances = held_array(&selection->held, rows, sizeof *selection->distances);
    status = held_check(&selection->held, "labels", err);
    return status == STATUS_OK
               ? result_clusters_read_rows(selection->clusters, 0, rows, selection->labels,
                                           selection->distances, err)
               : status;
}

/* Sets `in` for images whose paths are in the list. */
static enum status read_within(uint8_t *in, struct selection *selection, struct error *err)
{
    struct path_list list = {0};
    struct path_match match = {0};
    enum status status = path_list_open(&list, selection->config->within, true, err);
    if (status == STATUS_OK)
        status = path_match_make(&match, &list, selection->result, err);
    if (status == STATUS_OK)
        path_match_tell_unused(&match, &list);
    for (uint64_t i = 0; i < result_images(selection->result) && status == STATUS_OK; i++)
        in[i] = match.row[i] != PATH_LIST_NONE;
    path_match_clear(&match);
    path_list_close(&list);
    return status;
}

/* Clears `in` for images with one of the flags. */
static enum status read_without(uint8_t *in, struct selection *selection, struct error *err)
{
    struct flags flags;
    const uint32_t without = selection->config->without;
    enum status status = flags_read(&flags, selection->result, err);
    if (status == STATUS_OK)
        status = flags_check(&flags, without, selection->result, err);
    for (uint64_t i = 0; i < result_images(selection->result) && status == STATUS_OK; i++) {
        selection->flagged += in[i] && flags.of[i] & without;
        in[i] = in[i] && !(flags.of[i] & without);
    }
    flags_clear(&flags);
    return status;
}

static enum status find_candidates(struct selection *selection, struct error *err)
{
    const uint64_t images = result_images(selection->result);
    uint8_t *in = held_array(&selection->held, images, 1);
    selection->candidate = held_array(&selection->held, images, sizeof *selection->candidate);
    enum status status = held_check(&selection->held, "images to choose from", err);
    if (status != STATUS_OK)
        return status;
    memset(in, 1, images);
    if (selection->config->within)
        status = read_within(in, selection, err);
    if (status == STATUS_OK && selection->config->without)
        status = read_without(in, selection, err);
    for (uint64_t i = 0; i < images && status == STATUS_OK; i++)
        if (in[i] && selection->labels && selection->labels[i] < 0)
            selection->unlabelled++;
        else if (in[i])
            selection->candidate[selection->candidates++].row = i;
    if (status == STATUS_OK && selection->candidates == 0)
        return error_set(err, STATUS_FAILED, "%s has no images to choose from",
                         PATH_TEXT(selection->config->file));
    return status;
}

/* --- choosing ---------------------------------------------------------------------------------- */

static enum status choose(struct selection *selection, struct error *err)
{
    const struct select_config *config = selection->config;
    enum status status = STATUS_OK;
    if (!isnan(config->alike)) {
        config->machine.progress.step(config->machine.watch.context, "comparing images");
        status = alike_leave_out(selection, err);
    }
    const uint64_t candidates = selection->candidates;
    if (status == STATUS_OK)
        status = select_methods[config->method].order(selection, err);
    if (!select_methods[config->method].by_values)
        selection->chosen =
            config->count ? min_u64(config->count, selection->candidates) : selection->candidates;
    selection->candidates = candidates;
    return status;
}

enum status selection_make(struct selection *out, const struct select_config *config,
                           struct error *err)
{
    *out = (struct selection){.config = config, .radius = NAN};
    enum status status = result_open(&out->result, config->file, err);
    if (status == STATUS_OK && (result_images(out->result) == 0 || out->result->named))
        status = error_set(err, STATUS_FAILED,
                           "%s holds no images: select takes a file that clpipe ingest has written",
                           PATH_TEXT(config->file));
    if (status == STATUS_OK)
        status = read_labels(out, err);
    if (status == STATUS_OK)
        status = find_candidates(out, err);
    return status == STATUS_OK ? choose(out, err) : status;
}

void selection_close(struct selection *selection)
{
    held_free(&selection->held);
    result_close(&selection->result);
    *selection = (struct selection){0};
}

/* --- storing ----------------------------------------------------------------------------------- */

static void write_parameters(struct json *json, const struct selection *selection)
{
    const struct select_config *config = selection->config;
    char flags[FLAGS_TEXT];
    json_init(json, true);
    json_open_object(json, NULL);
    if (selection->clusters)
        json_string(json, "clusters", selection->clusters->name);
    if (config->feature)
        json_string(json, "feature", config->feature);
    if (config->metric >= 0)
        json_string(json, "metric", metric_names[config->metric]);
    if (config->count > 0)
        json_uint(json, "count", config->count);
    if (config->per_cluster > 0)
        json_uint(json, "per_cluster", config->per_cluster);
    if (!isnan(config->alike)) {
        json_double(json, "alike", config->alike);
        json_string(json, "keep", preference_names[config->preference]);
    }
    if (config->within)
        json_uint(json, "within",
                  selection->candidates + selection->omitted_count + selection->flagged);
    if (config->without)
        json_string(json, "without", flags_text(flags, config->without, ','));
    json_close_object(json);
}

/* The digest of the input of the choice: labels, else a feature's rows, else the files' bytes. */
static void find_content(char content[65], const struct selection *selection)
{
    char name[FEATURE_NAME_MAX + 32] = "/images/digest";
    if (selection->clusters)
        snprintf(name, sizeof name, "/clusters/%s/labels", selection->clusters->name);
    else if (select_methods[selection->config->method].by_values && selection->config->feature &&
             result_feature_find(selection->result, selection->config->feature))
        snprintf(name, sizeof name, "/features/%s", selection->config->feature);
    selections_root(content, selection->result, name);
}

/* Whether the file already has this choice from the same rows. */
static enum status look_for_stored(struct selection *selection,
                                   const struct selection_values *values, bool replace,
                                   struct error *err)
{
    struct selections stored;
    enum status status = selections_list(&stored, selection->result, err);
    const struct selection_about *about = selections_find(&stored, values->about.name);
    int64_t *rows = NULL;
    if (status == STATUS_OK && about) {
        selection->stored =
            about->rows == values->about.rows && about->omitted == values->about.omitted &&
            about->seed == values->about.seed && strcmp(about->method, values->about.method) == 0 &&
            strcmp(about->content, values->about.content) == 0 &&
            strcmp(about->parameters, values->about.parameters) == 0;
        rows = selection->stored ? malloc(about->rows * sizeof *rows + 1) : NULL;
        selection->stored =
            rows && selections_read(selection->result, about, rows, NULL, NULL) == STATUS_OK &&
            memcmp(rows, values->row, about->rows * sizeof *rows) == 0;
        if (!selection->stored && !replace) {
            error_set(err, STATUS_USAGE, "%s already has a selection %s",
                      PATH_TEXT(selection->config->file), about->name);
            status = error_remedy(err, REMEDY_REPLACE);
        }
    }
    free(rows);
    selections_clear(&stored);
    return status;
}

enum status selection_store(struct selection *selection, bool replace, struct error *err)
{
    const struct select_config *config = selection->config;
    const struct select_method *method = &select_methods[config->method];
    struct selection_values values = {.about = {.seed = (int64_t)config->seed,
                                                .rows = selection->chosen,
                                                .omitted = selection->omitted_count},
                                      .reason = method->reason,
                                      .context = selection,
                                      .omitted = selection->omitted,
                                      .kept = selection->kept,
                                      .cosine = selection->cosine};
    struct workdir *lock = NULL;
    struct json json;
    int64_t *row = malloc(selection->chosen * sizeof *row + 1);
    enum status status =
        row ? STATUS_OK : error_memory(err, selection->chosen * sizeof *row, "rows");
    for (uint64_t i = 0; row && i < selection->chosen; i++)
        row[i] = (int64_t)selection->candidate[i].row;
    values.row = row;
    snprintf(values.about.name, sizeof values.about.name, "%s", config->name);
    snprintf(values.about.method, sizeof values.about.method, "%s", method->name);
    find_content(values.about.content, selection);
    write_parameters(&json, selection);
    values.about.parameters = json_take(&json);
    if (status == STATUS_OK && !values.about.parameters)
        status = error_memory(err, 256, "parameters");
    if (status == STATUS_OK)
        status = look_for_stored(selection, &values, replace, err);
    if (selection->stored)
        workdir_tidy(config->file);
    if (status == STATUS_OK && !selection->stored) {
        status = workdir_open(&lock, config->file, err);
        if (status == STATUS_OK)
            status = result_check_current(selection->result, err);
        config->machine.progress.step(config->machine.watch.context, "writing the selection");
        if (status == STATUS_OK)
            status = selections_write(selection->result, &values, err);
    }
    workdir_release(&lock);
    free(values.about.parameters);
    free(row);
    return status;
}
