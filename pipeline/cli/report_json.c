/* report_json.c: --json, and checks of what it could overwrite. */
#include "cli/report_json.h"
#include "base/path.h"
#include "cli/call.h"
#include "cli/remedy.h"
#include "cli/summary.h"
#include "ingest/losses.h"
#include "net/runtime.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The file of an operand: for @LIST the list, for FILE.h5:/dataset the file. */
static bool same_file(const struct stat *st, const char *operand)
{
    struct stat other;
    const char *path = operand[0] == '@' ? operand + 1 : operand;
    if (stat(path, &other) == 0)
        return other.st_dev == st->st_dev && other.st_ino == st->st_ino;
    const char *dataset = strstr(path, ":/");
    char *file = dataset ? strndup(path, (size_t)(dataset - path)) : NULL;
    bool same =
        file && stat(file, &other) == 0 && other.st_dev == st->st_dev && other.st_ino == st->st_ino;
    free(file);
    return same;
}

static enum status check_target(const struct options *options, const char *option, const char *path,
                                struct error *err)
{
    struct stat st;
    const char *shown = PATH_TEXT(path);
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
        bool taken = options->output && same_file(&st, options->output);
        for (unsigned i = 0; i < options->operand_count; i++)
            taken = taken || same_file(&st, options->operand[i]);
        if (taken)
            return misuse(err, "%s %s is an input or output of this command", option, shown);
    }
    if (options->output && strcmp(path, options->output) == 0)
        return misuse(err, "%s and --output both name %s", option, shown);
    static const char *const json[] = {"{", "[", NULL};
    return sink_check(option, path, json, "JSON", err);
}

enum status report_check(const struct options *options, struct error *err)
{
    enum status status = STATUS_OK;
    if (options->json && !json_owns_stdout(options))
        status = check_target(options, "--json", options->json, err);
    if (status == STATUS_OK && options->profile)
        status = check_target(options, "--profile", options->profile, err);
    if (status == STATUS_OK && options->json && options->profile &&
        strcmp(options->json, options->profile) == 0)
        return misuse(err, "--json and --profile name the same file");
    return status;
}

/* The JSON has been written. */
static bool written;

/* The images that a refused run would have removed. */
static uint64_t refused[LOSSES];

void report_refused(const uint64_t removed[LOSSES])
{
    memcpy(refused, removed, sizeof refused);
}

static void json_removed(struct json *json, const uint64_t removed[LOSSES])
{
    char text[400];
    if (!*losses_text(text, sizeof text, removed))
        return;
    json_open_object(json, "removed");
    for (int i = 0; i < LOSSES; i++)
        json_uint(json, loss_names[i], removed[i]);
    json_close_object(json);
}

static void json_error(struct json *json, const struct command *command, struct error *err)
{
    char line[1024];
    remedy_append(err, command);
    json_open_object(json, "error");
    report_bytes(json, "message", error_line(line, sizeof line, err));
    json_uint(json, "exit_code", err->status);
    json_removed(json, refused);
    json_close_object(json);
}

struct json *report_open(const struct options *options)
{
    json_open_object(&options->call->json, NULL);
    return &options->call->json;
}

/* The time since the process began, by stage, "other" last. */
static void json_wall(struct json *json, const struct stages *stages)
{
    double sum = 0;
    json_open_object(json, "wall");
    json_open_object(json, "stages");
    for (unsigned i = 1; i <= stages->count; i++) {
        const double seconds = (double)stages->stage[i % stages->count].spent * 1e-9;
        json_double(json, stages->stage[i % stages->count].name, seconds);
        sum += seconds;
    }
    json_close_object(json);
    json_double(json, "seconds", sum);
    json_close_object(json);
}

void report_end(const struct options *options, struct error *err)
{
    struct call *call = options->call;
    if (call->json.depth != 1)
        return;
    if (call->tells_errors && err->status != STATUS_OK)
        json_error(&call->json, options->command, err);
    json_wall(&call->json, &call->progress.stages);
    json_close_object(&call->json);
}

static enum status write_json(const struct options *options, struct json *json, struct error *err)
{
    const char *text = json_finish(json);
    struct sink sink = {0};
    if (!text)
        return error_memory(err, json->length, "the JSON report");
    enum status status = sink_open(&sink, json_owns_stdout(options) ? NULL : options->json, err);
    if (status != STATUS_OK)
        return status;
    written = true;
    sink_text(&sink, text);
    sink_text(&sink, "\n");
    return sink_close(&sink, true, err);
}

enum status report_write(const struct options *options, struct error *err)
{
    struct json *json = &options->call->json;
    const bool whole = json->depth == 0 && !json->first;
    return options->json && whole ? write_json(options, json, err) : STATUS_OK;
}

void report_failure(const struct options *options, struct error *err)
{
    struct json json;
    if (err->status == STATUS_OK || written || !options->json)
        return;
    json_init(&json, false);
    json_open_object(&json, NULL);
    json_error(&json, options->command, err);
    json_close_object(&json);
    write_json(options, &json, NULL); /* the first error is reported */
    json_clear(&json);
}

void report_misuse(const struct command *command, int argc, char *const *argv, struct error *err)
{
    struct options options = {.command = command};
    options.operand = calloc((size_t)argc + 1, sizeof *options.operand);
    for (int i = 2; options.operand && i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strncmp(argv[i], "--json=", 7) == 0 && argv[i][7])
            options.json = argv[i] + 7;
        else if (strcmp(argv[i], "--json") == 0 && i + 1 < argc && argv[i + 1][0])
            options.json = argv[++i];
        else /* it may be an input or output */
            options.operand[options.operand_count++] = argv[i];
    }
    if (options.json && option_fits_name(option_find(command, "json", 4), options.json) &&
        report_check(&options, NULL) == STATUS_OK)
        report_failure(&options, err);
    free(options.operand);
}

void report_bytes(struct json *json, const char *key, const char *bytes)
{
    if (!bytes) {
        json_null(json, key);
        return;
    }
    const size_t length = strlen(bytes);
    char *text = utf8_valid(bytes, length) ? strdup(bytes) : path_utf8(bytes, length);
    if (text)
        json_string(json, key, text);
    else
        json->failed = true;
    free(text);
}

void report_share(struct json *json, const struct list_share *share)
{
    if (share->count == 0)
        return;
    json_open_object(json, "shard");
    json_uint(json, "index", share->index);
    json_uint(json, "count", share->count);
    json_uint(json, "first", share->first);
    json_uint(json, "last", share->last);
    json_uint(json, "list_count", share->list_count);
    json_string(json, "list_digest", share->list_digest);
    json_close_object(json);
}

void report_ingest(const struct options *options, const struct ingest_report *report,
                   const char *output, bool done)
{
    struct json *json = &options->call->json;
    if (report->ranks > 0)
        json_uint(json, "ranks", report->ranks);
    json_uint(json, "images_ok", report->images_ok);
    json_uint(json, "images_failed", failures_counted(report->by_reason));
    json_uint(json, "images_unchanged", report->images_unchanged);
    if (done)
        json_removed(json, report->removed);
    json_uint(json, "images_resumed", report->images_resumed);
    json_uint(json, "files_not_images", report->by_reason[REASON_NOT_AN_IMAGE]);
    json_uint(json, "files_compared", report->files_compared);
    json_uint(json, "files_differ", report->files_differ);
    report_share(json, &report->share);
    json_uint(json, "bytes_read", report->bytes_read);
    json_uint(json, "pixels", report->pixels);
    json_double(json, "seconds", report->seconds);
    json_double(json, "images_per_second",
                report->seconds > 0 ? (double)images_done(report) / report->seconds : 0);
    json_open_array(json, "stages");
    for (unsigned i = 0; i < INGEST_STAGES; i++) {
        if (!report->stage[i].name)
            continue;
        json_open_object(json, NULL);
        json_string(json, "name", report->stage[i].name);
        json_double(json, "busy_seconds", report->stage[i].busy);
        json_double(json, "starved_seconds", report->stage[i].starved);
        json_double(json, "blocked_seconds", report->stage[i].blocked);
        json_close_object(json);
    }
    json_close_array(json);
    json_open_object(json, "jpeg");
    json_uint(json, "streams", report->jpeg[JPEG_STREAM]);
    json_uint(json, "coefficients", report->jpeg[JPEG_COEFFICIENTS]);
    json_uint(json, "host", report->jpeg[JPEG_PIXELS]);
    json_uint(json, "handed_back", report->jpeg_handed_back);
    json_uint(json, "progressive", report->jpeg_progressive);
    json_close_object(json);
    report_bytes(json, "bottleneck", report->stage[report->bottleneck].name);
    report_bytes(json, "device", report->device[0] ? report->device : NULL);
    json_uint(json, "memory_bytes", report->memory);
    json_uint(json, "peak_rss_bytes", report->peak_rss_bytes);
    char runtime[160];
    if (*runtime_tell(runtime, sizeof runtime))
        json_string(json, "network_runtime", runtime);
    report_bytes(json, "output", output);
}

void report_agreement(struct json *json, const struct cluster_agreement *agreement)
{
    json_double(json, "purity", agreement->purity);
    json_double(json, "nmi", agreement->nmi);
    json_double(json, "ari", agreement->ari);
}

static void report_sweep(struct json *json, const struct cluster_sweep *sweep)
{
    json_open_object(json, "sweep");
    json_string(json, "measure", sweep->measure);
    json_string(json, "reason", sweep->reason);
    json_uint(json, "sample", sweep->sample);
    json_open_array(json, "values");
    for (uint32_t i = 0; i < sweep->count; i++) {
        const struct cluster_sweep_value *value = &sweep->values[i];
        json_open_object(json, NULL);
        json_uint(json, "k", value->k);
        json_uint(json, "iterations", value->iterations);
        json_bool(json, "converged", value->converged);
        json_double(json, "inertia", value->inertia);
        json_double(json, "silhouette", value->measures.silhouette);
        json_double(json, "simplified_silhouette", value->measures.simplified_silhouette);
        json_double(json, "davies_bouldin", value->measures.davies_bouldin);
        json_double(json, "calinski_harabasz", value->measures.calinski_harabasz);
        if (sweep->has_classes)
            report_agreement(json, &value->agreement);
        json_close_object(json);
    }
    json_close_array(json);
    json_close_object(json);
}

static void report_words(struct json *json, struct words *words, uint32_t k)
{
    json_open_array(json, "words");
    for (uint32_t i = 0; i < k; i++) {
        struct word word[WORDS_MOST];
        const unsigned count = words_of_cluster(word, words, i);
        json_open_array(json, NULL);
        for (unsigned j = 0; j < count; j++) {
            json_open_object(json, NULL);
            json_string(json, "word", word[j].text);
            json_double(json, "share", word[j].share);
            json_close_object(json);
        }
        json_close_array(json);
    }
    json_close_array(json);
}

void report_clusters(struct json *json, const uint64_t *sizes, uint32_t k, struct words *words,
                     const struct result_clusters *clusters, const struct cluster_sweep *sweep)
{
    json_open_array(json, "sizes");
    for (uint32_t i = 0; i < k; i++)
        json_uint(json, NULL, sizes[i]);
    json_close_array(json);
    if (words)
        report_words(json, words, k);
    if (clusters->folders > 0) {
        json_uint(json, "folders", clusters->folders);
        report_agreement(json, &clusters->agreement);
    }
    if (sweep->values)
        report_sweep(json, sweep);
}

void report_cluster(struct json *json, const struct clustering_report *result)
{
    const struct cluster_outcome *of = &result->level[0].outcome;
    json_string(json, "name", result->clusters.name);
    json_string(json, "feature", result->clusters.feature);
    json_string(json, "metric", result->clusters.metric);
    json_uint(json, "k", of->k);
    if (result->n_init)
        json_uint(json, "n_init", result->n_init);
    json_uint(json, "n", of->rows);
    json_uint(json, "d", of->dimension);
    json_uint(json, "iterations", of->iterations);
    json_uint(json, "iterations_resumed", of->iterations_resumed);
    json_bool(json, "converged", of->converged);
    json_double(json, "inertia", of->inertia);
    json_double(json, "pruned", of->pruned);
    json_double(json, "seconds", result->seconds);
    json_double(json, "seconds_read", of->seconds_read);
    json_double(json, "seconds_build", of->seconds_build);
    json_double(json, "seconds_init", of->seconds_init);
    json_double(json, "seconds_iterate", of->seconds_iterate);
    if (result->level_count > 1) {
        json_open_array(json, "levels");
        for (unsigned i = 0; i < result->level_count; i++) {
            const struct cluster_outcome *level = &result->level[i].outcome;
            json_open_object(json, NULL);
            json_string(json, "name", result->level_name[i]);
            json_uint(json, "k", level->k);
            json_uint(json, "iterations", level->iterations);
            json_bool(json, "converged", level->converged);
            json_double(json, "inertia", level->inertia);
            json_close_object(json);
        }
        json_close_array(json);
    }
    report_bytes(json, "device", result->device[0] ? result->device : NULL);
    report_clusters(json, of->sizes, of->k, result->words, &result->clusters, &result->sweep);
    report_bytes(json, "output", result->output);
}

enum status transcript_open(struct transcript *out, const struct options *options,
                            struct error *err)
{
    *out = (struct transcript){.sink = {.closed = json_owns_stdout(options)},
                               .json = &options->call->json};
    return out->sink.closed ? STATUS_OK : sink_open(&out->sink, NULL, err);
}

void transcript_line(const char *line, void *context)
{
    struct transcript *transcript = context;
    report_bytes(transcript->json, NULL, line);
    sink_line(&transcript->sink, "%s", line);
}
