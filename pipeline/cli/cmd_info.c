/* cmd_info.c: clpipe info: the contents of a file, and the files that failed and why. */
#include "base/clock.h"
#include "base/json.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/option_rows.h"
#include "cli/quote.h"
#include "cli/remedy.h"
#include "cli/report_json.h"
#include "cli/sink.h"
#include "cli/summary.h"
#include "result/codebooks.h"
#include "result/flags.h"
#include "result/identity.h"
#include "result/parameters.h"
#include "result/preset_join.h"
#include "result/selections.h"
#include "result/unfinished.h"
#include "result/words.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The options of the command. */
struct info_options {
    struct options common;
    bool failures, digest;
};

#define OWN struct info_options

#define RUNS_SHOWN  3
#define SIZES_SHOWN 16

struct overview {
    struct result *result;
    struct unfinished unfinished; /* of a run that will rewrite the file */
    uint64_t by_reason[REASON_COUNT];
    uint64_t file_bytes;
    uint64_t duplicates; /* images with the same bytes as another */
    struct flags flags;
};

static enum status count_failures(struct overview *overview, struct error *err)
{
    for (uint64_t i = 0; i < result_failures(overview->result); i++) {
        struct result_failure failure;
        enum status status = result_failure_at(overview->result, i, &failure, err);
        if (status != STATUS_OK)
            return status;
        overview->by_reason[failure.reason]++;
    }
    return STATUS_OK;
}

/* --- what is inside -------------------------------------------------------------------------- */

/* They should be JSON, but the file may hold anything. */
static void json_parameters(struct json *json, const char *text)
{
    struct parameters *parameters = NULL;
    if (parameters_open(&parameters, text, NULL) == STATUS_OK)
        json_raw(json, "parameters", text);
    else
        report_bytes(json, "parameters", text);
    parameters_close(&parameters);
}

static void tell_head(struct transcript *told, const struct overview *overview)
{
    const struct result *result = overview->result;
    const struct list_share *share = &result->share;
    struct sink *sink = &told->sink;
    struct json *json = told->json;
    sink_line(sink, "%s   %s, made by clpipe %s on %s", result->path,
              BYTES_TEXT(overview->file_bytes), result->version, result->created);
    report_bytes(json, "file", result->path);
    json_uint(json, "bytes", overview->file_bytes);
    report_bytes(json, "version", result->version);
    report_bytes(json, "created", result->created);
    json_parameters(json, result->parameters);
    json_open_array(json, "sources");
    for (unsigned i = 0; i < result->source_count; i++) {
        sink_line(sink, "  %-9s %s", i ? "" : "sources", result->sources[i]);
        report_bytes(json, NULL, result->sources[i]);
    }
    json_close_array(json);
    if (result_parts(result) > 0)
        sink_printf(sink, "  %-9s %u files that it was merged from, and shows the rows of\n",
                    "parts", result_parts(result));
    json_uint(json, "parts", result_parts(result));
    if (share->count > 0)
        sink_printf(sink, "  %-9s %llu/%llu: files %llu to %llu of %llu\n", "shard",
                    (unsigned long long)share->index, (unsigned long long)share->count,
                    (unsigned long long)share->first, (unsigned long long)share->last,
                    (unsigned long long)share->list_count);
    report_share(json, share);
    sink_printf(sink, "  %-9s %s\n", "images", COUNT_TEXT(result_images(result)));
    json_uint(json, "images", result_images(result));
    if (overview->duplicates > 0)
        sink_printf(sink, "  %-9s %s with the same bytes as another image\n", "copies",
                    COUNT_TEXT(overview->duplicates));
    json_uint(json, "duplicates", overview->duplicates);
    json_uint(json, "failed", failures_counted(overview->by_reason));
    json_uint(json, "files_not_images", overview->by_reason[REASON_NOT_AN_IMAGE]);
    json_open_object(json, "by_reason");
    for (int i = REASON_NONE + 1; i < REASON_COUNT; i++)
        if (overview->by_reason[i])
            json_uint(json, reason_name((enum reason)i), overview->by_reason[i]);
    json_close_object(json);
}

static void print_failures(struct transcript *told, const struct overview *overview)
{
    char count[80];
    if (result_failures(overview->result) == 0)
        return;
    sink_printf(&told->sink, "  %-9s %s\n", "failed",
                COUNT_TEXT(failures_counted(overview->by_reason)));
    for (int i = REASON_NONE + 1; i < REASON_COUNT; i++) {
        if (!overview->by_reason[i] || i == REASON_NOT_AN_IMAGE)
            continue;
        sink_printf(&told->sink, "  %9s   %s: %s\n", COUNT_TEXT(overview->by_reason[i]),
                    reason_name((enum reason)i), remedy_of_reason((enum reason)i));
    }
    if (overview->by_reason[REASON_NOT_AN_IMAGE])
        sink_printf(&told->sink, "  %-9s %s\n", "skipped",
                    skipped_text(count, sizeof count, overview->by_reason[REASON_NOT_AN_IMAGE]));
}

static void tell_features(struct transcript *told, const struct result *result)
{
    struct json *json = told->json;
    json_open_array(json, "features");
    for (unsigned i = 0; i < result->feature_count; i++) {
        const struct result_feature *feature = &result->features[i];
        sink_line(&told->sink, "  %-9s %-14s %u values of %s, %s%s%s", i ? "" : "features",
                  feature->name, feature->dimension, result_feature_type_name(feature),
                  feature->spec, feature->imported_from[0] ? " from " : "", feature->imported_from);
        json_open_object(json, NULL);
        json_string(json, "name", feature->name);
        json_string(json, "spec", feature->spec);
        json_uint(json, "rows", feature->rows);
        json_uint(json, "dimension", feature->dimension);
        json_string(json, "type", result_feature_type_name(feature));
        json_uint(json, "stored_bytes", result_feature_stored_bytes(feature));
        if (feature->imported_from[0])
            report_bytes(json, "imported_from", feature->imported_from);
        json_close_object(json);
    }
    json_close_array(json);
}

static void print_compression(struct transcript *told, const struct result *result)
{
    uint64_t stored = 0, bytes = 0;
    if (!result_compressed(result))
        return;
    for (unsigned i = 0; i < result->feature_count; i++) {
        const struct result_feature *feature = &result->features[i];
        stored += result_feature_stored_bytes(feature);
        bytes += feature->rows * result_feature_row_bytes(feature);
    }
    sink_line(&told->sink, "%12scompressed: %s of values in %s", "", BYTES_TEXT(bytes),
              BYTES_TEXT(stored));
}

/* Unreadable codebooks are left to verify. */
static void tell_codebooks(struct transcript *told, struct result *result)
{
    struct json *json = told->json;
    struct codebooks codebooks = {.stored = NULL};
    json_open_array(json, "codebooks");
    codebooks_read(&codebooks, result, NULL, NULL);
    for (unsigned i = 0; i < codebooks.count; i++) {
        const struct stored_codebook *stored = &codebooks.stored[i];
        char digest[FEATURE_DIGEST];
        sink_line(&told->sink, "  %-9s %-14s %u words of %u values, for %s", i ? "" : "codebooks",
                  stored->name, stored->codebook.words, stored->codebook.projected, stored->spec);
        feature_codebook_digest(digest, &stored->codebook);
        json_open_object(json, NULL);
        json_string(json, "name", stored->name);
        json_string(json, "spec", stored->spec);
        json_string(json, "digest", digest);
        report_bytes(json, "descriptor", stored->codebook.descriptor);
        json_uint(json, "words", stored->codebook.words);
        json_close_object(json);
    }
    json_close_array(json);
    codebooks_clear(&codebooks);
}

static void json_flags(struct json *json, const struct flags *flags)
{
    json_open_object(json, "flags");
    for (unsigned i = 0; i < FLAGS && flags->feature; i++)
        if (flags->known >> i & 1)
            json_uint(json, flag_names[i], flags->count[i]);
    json_close_object(json);
}

/* Only for files that have the feature from which flags are computed. */
static void print_flags(struct transcript *told, const struct flags *flags)
{
    const char *sign = "";
    if (!flags->feature)
        return;
    sink_printf(&told->sink, "  %-9s ", "flags");
    for (unsigned i = 0; i < FLAGS; i++)
        if (flags->count[i] > 0) {
            sink_printf(&told->sink, "%s%s %s", sign, COUNT_TEXT(flags->count[i]), flag_names[i]);
            sign = ", ";
        }
    sink_text(&told->sink, *sign ? "\n" : "none\n");
}

/* Text that is not JSON becomes a string. */
static void json_preset(struct json *json, const char *preset)
{
    if (preset && parameters_length(preset) == strlen(preset))
        json_raw(json, "preset", preset);
    else if (preset)
        report_bytes(json, "preset", preset);
}

/* --- clusterings ----------------------------------------------------------------------------- */

/* The largest clusters, with their numbers if they have words. */
static void print_sizes(struct transcript *told, const uint64_t *sizes, const uint32_t *order,
                        uint32_t k, struct words *words)
{
    const uint32_t shown = k < SIZES_SHOWN ? k : SIZES_SHOWN;
    sink_printf(&told->sink, "%27ssizes", "");
    for (uint32_t i = 0; i < shown; i++)
        sink_printf(&told->sink, " %llu", (unsigned long long)sizes[order[i]]);
    sink_text(&told->sink, shown < k ? " ...\n" : "\n");
    for (uint32_t i = 0; words && i < shown; i++) {
        struct word word[WORDS_MOST];
        char text[500];
        const unsigned count = words_of_cluster(word, words, order[i]);
        if (count == 0)
            continue;
        sink_line(&told->sink, "%27s%u: %s", "", order[i],
                  words_text(text, sizeof text, word, count));
    }
}

static void tell_about(struct transcript *told, unsigned i, struct result *result,
                       const struct result_clusters *clusters)
{
    struct sink *sink = &told->sink;
    struct json *json = told->json;
    char feature[2 * FEATURE_NAME_MAX], components[40] = "";
    if (clusters->components)
        snprintf(components, sizeof components, " on %u components", clusters->dimension);
    sink_line(sink, "  %-9s %-14s k %u by %s (%s%s), %s%s, inertia %.7g", i ? "" : "clusters",
              clusters->name, clusters->k,
              preset_join_title(feature, sizeof feature, result, clusters->feature),
              clusters->metric, components, NUMBER_OF(clusters->iterations, "iteration"),
              clusters->converged ? ", converged" : "", clusters->inertia);
    if (*clusters->parent)
        sink_printf(sink, "  %24s level %u, below %s\n", "", clusters->level, clusters->parent);
    else if (clusters->level)
        sink_printf(sink, "  %24s level %u, the coarsest\n", "", clusters->level);
    if (clusters->fitted_rows)
        sink_printf(sink, "  %24s fit of %llu rows, continued for %llu\n", "",
                    (unsigned long long)clusters->fitted_rows, (unsigned long long)clusters->rows);
    if (clusters->folders > 0)
        sink_printf(sink, "  %24s %u folders: purity %.3f, NMI %.3f, ARI %.3f\n", "",
                    clusters->folders, clusters->agreement.purity, clusters->agreement.nmi,
                    clusters->agreement.ari);
    json_string(json, "name", clusters->name);
    json_string(json, "feature", clusters->feature);
    json_string(json, "metric", clusters->metric);
    if (clusters->columns > 0) {
        json_string(json, "space", clusters->space);
        json_uint(json, "columns", clusters->columns);
    }
    if (clusters->level) {
        json_uint(json, "level", clusters->level);
        report_bytes(json, "parent", *clusters->parent ? clusters->parent : NULL);
    }
    json_string(json, "init", clusters->init);
    json_int(json, "seed", clusters->seed);
    json_uint(json, "k", clusters->k);
    json_uint(json, "n", clusters->rows);
    json_uint(json, "d", clusters->dimension);
    json_uint(json, "iterations", clusters->iterations);
    json_uint(json, "fitted_rows", clusters->fitted_rows ? clusters->fitted_rows : clusters->rows);
    json_bool(json, "converged", clusters->converged);
    json_double(json, "inertia", clusters->inertia);
}

static enum status tell_clustering(struct transcript *told, unsigned i, struct result *result,
                                   struct error *err)
{
    const struct result_clusters *clusters = &result->clusters[i];
    struct cluster_sweep sweep = {0};
    struct words *words = NULL;
    uint64_t *sizes = malloc(clusters->k * sizeof *sizes);
    uint32_t *order = NULL;
    enum status status = sizes ? result_part_read(sizes, clusters, PART_SIZES, err)
                               : error_memory(err, clusters->k * sizeof *sizes, "cluster sizes");
    if (status == STATUS_OK && !(order = clusters_by_size(sizes, clusters->k)))
        status = error_memory(err, clusters->k * sizeof *order, "cluster sizes");
    if (status == STATUS_OK)
        status = result_sweep_read(&sweep, result, clusters, err);
    if (status == STATUS_OK) {
        words_open(&words, result, clusters, NULL); /* damaged ones are left to verify */
        json_open_object(told->json, NULL);
        tell_about(told, i, result, clusters);
        if (sweep.values)
            sink_line(&told->sink, "%27sk from %u to %u was tried: %s", "", sweep.values[0].k,
                      sweep.values[sweep.count - 1].k, sweep.reason);
        print_sizes(told, sizes, order, clusters->k, words);
        report_clusters(told->json, sizes, clusters->k, words, clusters, &sweep);
        json_close_object(told->json);
    }
    words_close(&words);
    cluster_sweep_clear(&sweep);
    free(order);
    free(sizes);
    return status;
}

static enum status tell_clusterings(struct transcript *told, struct result *result,
                                    struct error *err)
{
    enum status status = STATUS_OK;
    json_open_array(told->json, "clusters");
    for (unsigned i = 0; status == STATUS_OK && i < result->clusters_count; i++)
        status = tell_clustering(told, i, result, err);
    json_close_array(told->json);
    return status;
}

/* --- selections, runs, failures -------------------------------------------------------------- */

static enum status tell_selections(struct transcript *told, struct result *result,
                                   struct error *err)
{
    struct json *json = told->json;
    struct selections selections;
    const enum status status = selections_list(&selections, result, err);
    json_open_array(json, "selections");
    for (unsigned i = 0; i < selections.count && status == STATUS_OK; i++) {
        const struct selection_about *about = &selections.about[i];
        sink_line(&told->sink, "  %-9s %-14s %s, %s%s%s%s", i ? "" : "selected", about->name,
                  NUMBER_OF(about->rows, "image"), about->method, about->omitted > 0 ? ", " : "",
                  about->omitted > 0 ? NUMBER_OF(about->omitted, "image") : "",
                  about->omitted > 0 ? " left out" : "");
        json_open_object(json, NULL);
        json_string(json, "name", about->name);
        json_string(json, "method", about->method);
        json_uint(json, "images", about->rows);
        json_uint(json, "left_out", about->omitted);
        json_int(json, "seed", about->seed);
        report_bytes(json, "parameters", about->parameters);
        json_close_object(json);
    }
    json_close_array(json);
    selections_clear(&selections);
    return status;
}

/* All of them in JSON, the last ones in text. */
static enum status tell_runs(struct transcript *told, struct result *result, struct error *err)
{
    struct json *json = told->json;
    const uint64_t count = result->run_count;
    const uint64_t first = count > RUNS_SHOWN ? count - RUNS_SHOWN : 0;
    json_open_array(json, "runs");
    for (uint64_t i = 0; i < count; i++) {
        struct store_run run;
        const enum status status = result_run_at(result, i, &run, err);
        if (status != STATUS_OK)
            return status;
        if (i >= first)
            sink_line(&told->sink, "  %-9s %s%s%s: %s",
                      i > first ? ""
                      : first   ? "last runs"
                                : "runs",
                      DURATION_TEXT(run.seconds), *run.device ? " on " : "", run.device,
                      run.command);
        json_open_object(json, NULL);
        report_bytes(json, "command", run.command);
        report_bytes(json, "device", run.device);
        report_bytes(json, "driver", run.driver);
        report_bytes(json, "host", run.host);
        json_double(json, "seconds", run.seconds);
        json_close_object(json);
    }
    json_close_array(json);
    return STATUS_OK;
}

/* --failures */
static enum status tell_failures(struct transcript *told, struct result *result, struct error *err)
{
    json_open_array(told->json, "failures");
    for (uint64_t i = 0; i < result_failures(result); i++) {
        struct result_failure failure;
        const enum status status = result_failure_at(result, i, &failure, err);
        if (status != STATUS_OK)
            return status;
        if (failure.reason == REASON_NOT_AN_IMAGE)
            continue;
        sink_clean(&told->sink, failure.row->path);
        sink_printf(&told->sink, "\t%s\t", reason_name(failure.reason));
        sink_line(&told->sink, "%s", failure.row->message);
        json_open_object(told->json, NULL);
        report_bytes(told->json, "path", failure.row->path);
        json_string(told->json, "reason", reason_name(failure.reason));
        report_bytes(told->json, "message", failure.row->message);
        json_close_object(told->json);
    }
    json_close_array(told->json);
    return STATUS_OK;
}

/* --digest */
static enum status tell_digest(struct transcript *told, struct result *result, struct error *err)
{
    char digest[65];
    const enum status status = result_identity(result, digest, err);
    if (status != STATUS_OK)
        return status;
    sink_printf(&told->sink, "%s\n", digest);
    json_string(told->json, "digest", digest);
    return STATUS_OK;
}

/* --- what is not finished ------------------------------------------------------------------- */

/* The directory in which the command ran, quoted, if it is not the current one. The caller frees
 * it. */
static char *other_directory(const struct unfinished *unfinished)
{
    char *working = getcwd(NULL, 0), *quoted = NULL;
    const char *directory = unfinished->directory;
    if (directory && (!working || strcmp(working, directory) != 0)) {
        const size_t size = 4 * strlen(directory) + 8;
        quoted = malloc(size);
        if (quoted)
            quote_word(quoted, size, directory);
    }
    free(working);
    return quoted;
}

/* The last status noted by the running process. */
static void print_status(struct sink *sink, const char *json)
{
    struct parameters *status = NULL;
    uint64_t done, total, failed;
    double left;
    if (parameters_open(&status, json, NULL) != STATUS_OK)
        return;
    const char *phase = parameters_member(status, "phase");
    const char *written = parameters_member(status, "written");
    if (phase && written && parameters_integer(status, "done", &done) &&
        parameters_integer(status, "total", &total) &&
        parameters_integer(status, "failed", &failed)) {
        char all[40] = "", bad[48] = "", rest[48] = "";
        if (total)
            snprintf(all, sizeof all, " of %s", COUNT_TEXT(total));
        if (failed)
            snprintf(bad, sizeof bad, ", %s failed", COUNT_TEXT(failed));
        if (parameters_real(status, "seconds_left", &left))
            snprintf(rest, sizeof rest, ", about %s left", DURATION_TEXT(left));
        sink_line(sink, "%12s%s: %s%s%s%s, as of %s", "", phase, COUNT_TEXT(done), all, bad, rest,
                  written);
    }
    parameters_close(&status);
}

/* Reports unfinished clusterings of `file`, whose checkpoints lie beside it. */
static void tell_checkpoints(struct sink *sink, struct json *json, const char *file)
{
    static const char end[] = ".checkpoint";
    char *target = realpath(file, NULL), *slash = target ? strrchr(target, '/') : NULL;
    struct dirent **entries = NULL;
    const char *base = slash ? slash + 1 : "";
    const size_t head = strlen(base), tail = strlen(end);
    int count = 0;
    if (slash) {
        *slash = 0;
        count = scandir(slash == target ? "/" : target, &entries, NULL, alphasort);
    }
    json_open_array(json, "unfinished_clusters");
    for (int i = 0; i < count; i++) {
        char *name = entries[i]->d_name, path[4096], when[32];
        const size_t length = strlen(name);
        struct stat st;
        snprintf(path, sizeof path, "%s/%s", target, name);
        /* FILE.NAME.checkpoint */
        if (length > head + 1 + tail && strncmp(name, base, head) == 0 && name[head] == '.' &&
            strcmp(name + length - tail, end) == 0 && stat(path, &st) == 0) {
            name[length - tail] = 0;
            clock_iso8601(when, st.st_mtim.tv_sec);
            sink_line(sink,
                      "  %-9s clusters %s, state of %s: the same clpipe cluster command continues "
                      "from it",
                      "partial", name + head + 1, when);
            json_open_object(json, NULL);
            report_bytes(json, "name", name + head + 1);
            json_string(json, "last_written", when);
            json_close_object(json);
        }
        free(entries[i]);
    }
    json_close_array(json);
    free(entries);
    free(target);
}

/* What to do about work that no process continues. */
static void print_resume(struct sink *sink, const struct unfinished *unfinished)
{
    char ranks[40] = "";
    if ((!unfinished->has_log && unfinished->ranks == 0) || unfinished->in_use)
        return;
    if (unfinished->ranks > 0)
        snprintf(ranks, sizeof ranks, " with %u ranks", unfinished->ranks);
    char *directory = unfinished->command ? other_directory(unfinished) : NULL;
    if (unfinished->command)
        sink_line(sink, "  %-9s %s%s%s%s", "resume", directory ? "cd " : "",
                  directory ? directory : "", directory ? " && " : "", unfinished->command);
    else
        sink_line(sink, "  %-9s run the same command again%s", "resume", ranks);
    free(directory);
}

/* The log of the work. */
static void tell_log(struct sink *sink, struct json *json, const struct unfinished *unfinished)
{
    char when[32], ago[48] = "";
    const uint64_t images = unfinished->by_reason[REASON_NONE],
                   failed = failures_counted(unfinished->by_reason),
                   skipped = unfinished->by_reason[REASON_NOT_AN_IMAGE];
    const double seconds = (double)time(NULL) - (double)unfinished->written_ns * 1e-9;
    sink_line(sink, "  %-9s %s done: %s, %s, %s skipped", "partial",
              NUMBER_OF(unfinished->records, "file"), NUMBER_OF(images, "image"),
              NUMBER_OF(failed, "failure"), COUNT_TEXT(skipped));
    clock_iso8601(when, unfinished->written_ns / 1000000000);
    if (seconds >= 1)
        snprintf(ago, sizeof ago, " (%s ago)", DURATION_TEXT(seconds));
    sink_line(sink, "%12s%s in %s, last written %s%s", "", BYTES_TEXT(unfinished->bytes),
              unfinished->path, when, ago);
    json_uint(json, "files", unfinished->records);
    json_uint(json, "images", images);
    json_uint(json, "failed", failed);
    json_uint(json, "files_not_images", skipped);
    json_uint(json, "runs", unfinished->runs);
    json_uint(json, "log_bytes", unfinished->bytes);
    json_string(json, "last_written", when);
    report_bytes(json, "command", unfinished->command);
    report_bytes(json, "working_directory", unfinished->directory);
}

/* `file`: the output's name for the heading if the file does not exist yet, else NULL. The member "unfinished"
 * is null if there is none. */
static void tell_unfinished(struct sink *sink, struct json *json,
                            const struct unfinished *unfinished, const char *file)
{
    const char *status = unfinished->status;
    const bool used = unfinished->in_use || unfinished->may_be_used;
    if (!unfinished->exists) {
        json_null(json, "unfinished");
        return;
    }
    if (file && unfinished->ranks > 0)
        sink_line(sink, "%s   does not exist yet: an ingest by %u ranks is unfinished", file,
                  unfinished->ranks);
    else if (file)
        sink_line(sink, "%s   does not exist yet: a %s", file,
                  unfinished->has_log ? "run is unfinished" : "command is at work");
    json_open_object(json, "unfinished");
    report_bytes(json, "directory", unfinished->path);
    json_bool(json, "in_use", unfinished->in_use);
    json_bool(json, "may_be_in_use", unfinished->may_be_used);
    report_bytes(json, "process", unfinished->holder[0] ? unfinished->holder : NULL);
    if (unfinished->ranks > 0) {
        sink_line(sink, "  %-9s %u of %u have finished their part", "ranks", unfinished->ranks_done,
                  unfinished->ranks);
        json_uint(json, "ranks", unfinished->ranks);
        json_uint(json, "ranks_done", unfinished->ranks_done);
    }
    if (status && parameters_length(status) == strlen(status))
        json_raw(json, "status", status);
    else
        json_null(json, "status");
    if (unfinished->has_log)
        tell_log(sink, json, unfinished);
    json_close_object(json);
    sink_line(sink, "  %-9s %s%s", "at work", used && !unfinished->in_use ? "perhaps " : "",
              used ? unfinished->holder : "no process");
    if (status)
        print_status(sink, status);
    print_resume(sink, unfinished);
}

/* --- the command ----------------------------------------------------------------------------- */

static enum status tell_contents(struct transcript *told, const struct overview *overview,
                                 struct error *err)
{
    struct result *result = overview->result;
    tell_head(told, overview);
    tell_features(told, result);
    print_compression(told, result);
    json_flags(told->json, &overview->flags);
    tell_codebooks(told, result);
    print_flags(told, &overview->flags);
    json_preset(told->json, result->preset);
    print_failures(told, overview);
    enum status status = tell_clusterings(told, result, err);
    if (status == STATUS_OK)
        status = tell_selections(told, result, err);
    return status == STATUS_OK ? tell_runs(told, result, err) : status;
}

/* The text shows only what was requested; the JSON also has the contents. */
static enum status tell(const struct overview *overview, bool contents,
                        const struct options *options, struct error *err)
{
    const struct info_options *own = (const struct info_options *)options;
    struct transcript out;
    enum status status = transcript_open(&out, options, err);
    if (status != STATUS_OK)
        return status;
    struct transcript silent = {.sink = {.closed = true}, .json = out.json};
    struct transcript *words = own->digest || own->failures ? &silent : &out;
    report_open(options);
    if (contents)
        status = tell_contents(words, overview, err);
    if (status == STATUS_OK && own->failures)
        status = tell_failures(own->digest ? &silent : &out, overview->result, err);
    if (status == STATUS_OK && own->digest)
        status = tell_digest(&out, overview->result, err);
    if (status == STATUS_OK && contents) {
        tell_unfinished(&words->sink, out.json, &overview->unfinished, NULL);
        tell_checkpoints(&words->sink, out.json, overview->result->path);
    }
    return sink_end(&out.sink, status, err);
}

/* A file that does not exist yet. */
static enum status tell_missing(const struct unfinished *unfinished, const struct options *options,
                                struct error *err)
{
    struct transcript out;
    const enum status status = transcript_open(&out, options, err);
    if (status != STATUS_OK)
        return status;
    report_bytes(report_open(options), "file", options->operand[0]);
    tell_unfinished(&out.sink, out.json, unfinished, options->operand[0]);
    return sink_close(&out.sink, true, err);
}

static enum status run_info(const struct options *options, struct error *err)
{
    const struct info_options *own = (const struct info_options *)options;
    struct overview overview = {0};
    struct stat st;
    if (own->failures && own->digest && !options->json)
        return misuse(err, "--failures and --digest cannot be combined");
    const bool missing = stat(options->operand[0], &st) != 0 && errno == ENOENT;
    enum status status = unfinished_look(&overview.unfinished, options->operand[0], err);
    /* If the file exists, its rows can be reported nevertheless. */
    if (status != STATUS_OK && missing && overview.unfinished.path) {
        unfinished_clear(&overview.unfinished);
        return status;
    }
    if (status == STATUS_OK && !overview.unfinished.exists) {
        unfinished_clear(&overview.unfinished);
        status = unfinished_look_ranks(&overview.unfinished, options->operand[0], missing,
                                       missing ? NULL : err);
    }
    if (missing && status == STATUS_OK && overview.unfinished.exists && !own->digest &&
        !own->failures) {
        status = tell_missing(&overview.unfinished, options, err);
        unfinished_clear(&overview.unfinished);
        return status;
    }
    if (missing || status == STATUS_OK)
        status = result_open(&overview.result, options->operand[0], err);
    if (status == STATUS_OK && stat(options->operand[0], &st) == 0)
        overview.file_bytes = (uint64_t)st.st_size;
    const bool contents = options->json || (!own->digest && !own->failures);
    if (status == STATUS_OK && contents)
        status = count_failures(&overview, err);
    if (status == STATUS_OK && contents)
        status = result_duplicates(overview.result, &overview.duplicates, err);
    if (status == STATUS_OK && contents)
        status = flags_read(&overview.flags, overview.result, err);
    if (status == STATUS_OK)
        status = tell(&overview, contents, options, err);
    flags_clear(&overview.flags);
    result_close(&overview.result);
    unfinished_clear(&overview.unfinished);
    return status;
}

static const struct option rows[] = {
    FLAG("failures", failures,
         "list every file that failed: path, reason and message, separated by tabs"),
    FLAG("digest", digest,
         "print the identity of the contents: a SHA-256 that does not depend on runs, dates, "
         "thumbnails or additions by other programs"),
    {.name = NULL}};

const struct command command_info = {.name = "info",
                                     .goal = GOAL_RESULTS,
                                     .arguments = "F.h5 [OPTIONS]",
                                     .summary =
                                         "show the contents of a file, and what failed and why",
                                     .operand_name = "F.h5",
                                     .operands = {1, 1},
                                     .group = {{"What to print", rows}},
                                     .size = sizeof(OWN),
                                     .run = run_info};
