/* cmd_info.c: clpipe info: what is inside a file, what failed and why. */
#include "base/log.h"
#include "base/parse.h"
#include "base/path.h"
#include "cli/call.h"
#include "cli/commands.h"
#include "cli/option_rows.h"
#include "cli/remedy.h"
#include "cli/report_json.h"
#include "cli/sink.h"
#include "cli/summary.h"
#include "cli/unfinished_report.h"
#include "result/codebooks.h"
#include "result/flags.h"
#include "result/identity.h"
#include "result/parameters.h"
#include "result/preset_join.h"
#include "result/selections.h"
#include "result/words.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* What the command can be told. */
struct info_options {
    struct options common;
    bool failures, digest;
};

#define OWN struct info_options

#define RUNS_SHOWN  3
#define SIZES_SHOWN 16

struct overview {
    struct result *result;
    struct unfinished unfinished; /* of a run that is to write the file anew */
    uint64_t by_reason[REASON_COUNT];
    uint64_t file_bytes;
    uint64_t duplicates; /* images that are exact copies of others */
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

/* --- text ------------------------------------------------------------------------------------ */

static void print_head(struct sink *sink, const struct overview *overview)
{
    const struct result *result = overview->result;
    char size[32], count[32];
    sink_clean(sink, result_path(result));
    sink_printf(sink, "   %s, made by clpipe ",
                format_bytes(size, sizeof size, overview->file_bytes));
    sink_clean(sink, result_version(result));
    sink_text(sink, " on ");
    sink_clean(sink, result_created(result));
    sink_text(sink, "\n");
    for (unsigned i = 0; i < result_source_count(result); i++) {
        sink_printf(sink, "  %-9s ", i ? "" : "sources");
        sink_clean(sink, result_source(result, i));
        sink_text(sink, "\n");
    }
    if (result_parts(result) > 0)
        sink_printf(sink, "  %-9s %u files that it was merged from, and shows the rows of\n", "parts",
                    result_parts(result));
    const struct list_share *share = result_share(result);
    if (share->count > 0)
        sink_printf(sink, "  %-9s %llu/%llu: files %llu to %llu of %llu\n", "shard",
                    (unsigned long long)share->index, (unsigned long long)share->count,
                    (unsigned long long)share->first, (unsigned long long)share->last,
                    (unsigned long long)share->list_count);
    sink_printf(sink, "  %-9s %s\n", "images",
                format_count(count, sizeof count, result_images(result)));
    if (overview->duplicates > 0)
        sink_printf(sink, "  %-9s %s with the same bytes as another image\n", "copies",
                    format_count(count, sizeof count, overview->duplicates));
}

static void print_failures(struct sink *sink, const struct overview *overview)
{
    char count[80];
    uint64_t failed = failures_counted(overview->by_reason);
    sink_printf(sink, "  %-9s %s\n", "failed", format_count(count, sizeof count, failed));
    for (int i = REASON_NONE + 1; i < REASON_COUNT; i++) {
        if (!overview->by_reason[i] || i == REASON_NOT_AN_IMAGE)
            continue;
        sink_printf(sink, "  %9s   %s: %s\n",
                    format_count(count, sizeof count, overview->by_reason[i]),
                    reason_name((enum reason)i), remedy_of_reason((enum reason)i));
    }
    if (overview->by_reason[REASON_NOT_AN_IMAGE])
        sink_printf(sink, "  %-9s %s\n", "skipped",
                    skipped_text(count, sizeof count, overview->by_reason[REASON_NOT_AN_IMAGE]));
}

static enum status print_sweep(struct sink *sink, struct result *result,
                               const struct result_clusters *clusters, struct error *err)
{
    struct result_sweep sweep;
    enum status status = result_sweep_read(&sweep, result, clusters, err);
    if (status == STATUS_OK && sweep.values) {
        sink_printf(sink, "  %-9s %-14s k from %u to %u was tried: ", "", "", sweep.values[0].k,
                    sweep.values[sweep.count - 1].k);
        sink_clean(sink, sweep.reason);
        sink_text(sink, "\n");
    }
    result_sweep_clear(&sweep);
    return status;
}

/* The largest clusters, with their numbers where they have words. */
static enum status print_sizes(struct sink *sink, struct result *result,
                               const struct result_clusters *clusters, struct error *err)
{
    const uint32_t k = clusters->k, shown = k < SIZES_SHOWN ? k : SIZES_SHOWN;
    uint64_t *sizes = malloc(k * sizeof *sizes);
    uint32_t *order = NULL;
    struct words *words = NULL;
    enum status status =
        sizes ? result_clusters_read(result, clusters, NULL, NULL, NULL, sizes, NULL, err)
              : error_memory(err, k * sizeof *sizes, "cluster sizes");
    if (status == STATUS_OK && !(order = clusters_by_size(sizes, k)))
        status = error_memory(err, k * sizeof *order, "cluster sizes");
    if (status == STATUS_OK) {
        sink_printf(sink, "  %-9s %-14s sizes", "", "");
        for (uint32_t i = 0; i < shown; i++)
            sink_printf(sink, " %llu", (unsigned long long)sizes[order[i]]);
        sink_text(sink, shown < k ? " ...\n" : "\n");
        words_open(&words, result, clusters, NULL); /* damaged ones are verify's matter */
    }
    for (uint32_t i = 0; words && i < shown; i++) {
        struct word word[WORDS_MOST];
        char text[500];
        const unsigned count = words_of_cluster(word, words, order[i]);
        if (count == 0)
            continue;
        sink_printf(sink, "  %-9s %-14s %u: ", "", "", order[i]);
        sink_clean(sink, words_text(text, sizeof text, word, count));
        sink_text(sink, "\n");
    }
    words_close(&words);
    free(order);
    free(sizes);
    return status;
}

static enum status print_clusters(struct sink *sink, struct result *result, struct error *err)
{
    for (unsigned i = 0; i < result_clusters_count(result); i++) {
        const struct result_clusters *clusters = result_clusters_at(result, i);
        char iterations[40], feature[2 * FEATURE_NAME_MAX], components[40] = "";
        if (clusters->components)
            snprintf(components, sizeof components, " on %u components", clusters->dimension);
        sink_printf(
            sink, "  %-9s %-14s k %u by %s (%s%s), %s%s, inertia %.7g\n", i ? "" : "clusters",
            clusters->name, clusters->k,
            preset_join_title(feature, sizeof feature, result, clusters->feature), clusters->metric,
            components,
            format_number_of(iterations, sizeof iterations, clusters->iterations, "iteration"),
            clusters->converged ? ", converged" : "", clusters->inertia);
        if (*clusters->parent)
            sink_printf(sink, "  %24s level %u, below %s\n", "", clusters->level, clusters->parent);
        else if (clusters->level)
            sink_printf(sink, "  %24s level %u, the coarsest\n", "", clusters->level);
        if (clusters->fitted_rows)
            sink_printf(sink, "  %24s fit of %llu rows, continued for %llu\n", "",
                        (unsigned long long)clusters->fitted_rows,
                        (unsigned long long)clusters->rows);
        if (clusters->has_agreement)
            sink_printf(sink, "  %-9s %-14s %u folders: purity %.3f, NMI %.3f, ARI %.3f\n", "", "",
                        clusters->agreement.folders, clusters->agreement.purity,
                        clusters->agreement.nmi, clusters->agreement.ari);
        enum status status = print_sweep(sink, result, clusters, err);
        if (status != STATUS_OK)
            return status;
        status = print_sizes(sink, result, clusters, err);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static enum status print_selections(struct sink *sink, struct result *result, struct error *err)
{
    struct selections selections;
    const enum status status = selections_list(&selections, result, err);
    for (unsigned i = 0; i < selections.count && status == STATUS_OK; i++) {
        const struct selection_about *about = &selections.about[i];
        char images[40];
        sink_printf(sink, "  %-9s %-14s %s, ", i ? "" : "selected", about->name,
                    format_number_of(images, sizeof images, about->rows, "image"));
        sink_clean(sink, about->method);
        if (about->omitted > 0)
            sink_printf(sink, ", %s left out",
                        format_number_of(images, sizeof images, about->omitted, "image"));
        sink_text(sink, "\n");
    }
    selections_clear(&selections);
    return status;
}

static enum status print_runs(struct sink *sink, struct result *result, struct error *err)
{
    uint64_t count = result_run_count(result);
    uint64_t first = count > RUNS_SHOWN ? count - RUNS_SHOWN : 0;
    for (uint64_t i = first; i < count; i++) {
        struct store_run run;
        char time[32];
        enum status status = result_run_at(result, i, &run, err);
        if (status != STATUS_OK)
            return status;
        sink_printf(sink, "  %-9s %s%s", i == first ? (first ? "last runs" : "runs") : "",
                    format_duration(time, sizeof time, run.seconds), *run.device ? " on " : "");
        sink_clean(sink, run.device);
        sink_text(sink, ": ");
        sink_clean(sink, run.command);
        sink_text(sink, "\n");
    }
    return STATUS_OK;
}

static void print_compression(struct sink *sink, const struct result *result)
{
    uint64_t stored = 0, bytes = 0;
    char of[40], in[40];
    if (!result_compressed(result))
        return;
    for (unsigned i = 0; i < result_feature_count(result); i++) {
        const struct result_feature *feature = result_feature_at(result, i);
        stored += result_feature_stored_bytes(feature);
        bytes += feature->rows * result_feature_row_bytes(feature);
    }
    sink_printf(sink, "  %-9s compressed: %s of values in %s\n", "",
                format_bytes(of, sizeof of, bytes), format_bytes(in, sizeof in, stored));
}

/* Codebooks that cannot be read are verify's matter. */
static void print_codebooks(struct sink *sink, struct result *result)
{
    struct codebooks codebooks;
    if (codebooks_read(&codebooks, result, NULL, NULL) != STATUS_OK)
        return;
    for (unsigned i = 0; i < codebooks.count; i++) {
        const struct stored_codebook *stored = &codebooks.stored[i];
        sink_printf(sink, "  %-9s %-14s %u words of %u values, for ", i ? "" : "codebooks",
                    stored->name, stored->codebook.words, stored->codebook.projected);
        sink_clean(sink, stored->spec);
        sink_text(sink, "\n");
    }
    codebooks_clear(&codebooks);
}

/* Of files that can tell all that pixels say. */
static void print_flags(struct sink *sink, const struct flags *flags)
{
    const char *sign = "";
    char count[40];
    if (!flags->feature)
        return;
    sink_printf(sink, "  %-9s ", "flags");
    for (unsigned i = 0; i < FLAGS; i++)
        if (flags->count[i] > 0) {
            sink_printf(sink, "%s%s %s", sign, format_count(count, sizeof count, flags->count[i]), flag_names[i]);
            sign = ", ";
        }
    sink_text(sink, *sign ? "\n" : "none\n");
}

static enum status print_overview(const struct overview *overview, struct error *err)
{
    struct sink sink;
    enum status status = sink_open(&sink, NULL, err);
    if (status != STATUS_OK)
        return status;
    print_head(&sink, overview);
    for (unsigned i = 0; i < result_feature_count(overview->result); i++) {
        const struct result_feature *feature = result_feature_at(overview->result, i);
        sink_printf(&sink, "  %-9s %-14s %u values of %s, %s", i ? "" : "features", feature->name,
                    feature->dimension, result_feature_type_name(feature), feature->spec);
        if (feature->imported_from[0]) {
            sink_text(&sink, " from ");
            sink_clean(&sink, feature->imported_from);
        }
        sink_text(&sink, "\n");
    }
    print_compression(&sink, overview->result);
    print_codebooks(&sink, overview->result);
    print_flags(&sink, &overview->flags);
    if (result_failures(overview->result) > 0)
        print_failures(&sink, overview);
    status = print_clusters(&sink, overview->result, err);
    if (status == STATUS_OK)
        status = print_selections(&sink, overview->result, err);
    if (status == STATUS_OK)
        status = print_runs(&sink, overview->result, err);
    if (status == STATUS_OK) {
        print_unfinished(&sink, &overview->unfinished, NULL);
        print_checkpoints(&sink, result_path(overview->result));
    }
    return sink_end(&sink, status, err);
}

static enum status list_failures(const struct overview *overview, struct error *err)
{
    struct sink sink;
    enum status status = sink_open(&sink, NULL, err);
    if (status != STATUS_OK)
        return status;
    for (uint64_t i = 0; i < result_failures(overview->result) && !sink.closed; i++) {
        struct result_failure failure;
        status = result_failure_at(overview->result, i, &failure, err);
        if (status != STATUS_OK)
            break;
        if (failure.reason == REASON_NOT_AN_IMAGE)
            continue;
        sink_clean(&sink, failure.path);
        sink_printf(&sink, "\t%s\t", reason_name(failure.reason));
        sink_clean(&sink, failure.message);
        sink_text(&sink, "\n");
    }
    return sink_end(&sink, status, err);
}

/* --- JSON ------------------------------------------------------------------------------------ */

static void json_features(struct json *json, const struct result *result)
{
    json_open_array(json, "features");
    for (unsigned i = 0; i < result_feature_count(result); i++) {
        const struct result_feature *feature = result_feature_at(result, i);
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

/* What is not JSON, as a text. */
static void json_preset(struct json *json, const char *preset)
{
    if (preset && parameters_length(preset) == strlen(preset))
        json_raw(json, "preset", preset);
    else if (preset)
        report_bytes(json, "preset", preset);
}

static void json_codebooks(struct json *json, struct result *result)
{
    struct codebooks codebooks = {.stored = NULL};
    json_open_array(json, "codebooks");
    codebooks_read(&codebooks, result, NULL, NULL);
    for (unsigned i = 0; i < codebooks.count; i++) {
        const struct stored_codebook *stored = &codebooks.stored[i];
        char digest[FEATURE_DIGEST];
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

static enum status json_selections(struct json *json, struct result *result, struct error *err)
{
    struct selections selections;
    const enum status status = selections_list(&selections, result, err);
    json_open_array(json, "selections");
    for (unsigned i = 0; i < selections.count && status == STATUS_OK; i++) {
        const struct selection_about *about = &selections.about[i];
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

static enum status json_clusters(struct json *json, struct result *result, struct error *err)
{
    enum status status = STATUS_OK;
    json_open_array(json, "clusters");
    for (unsigned i = 0; status == STATUS_OK && i < result_clusters_count(result); i++) {
        const struct result_clusters *clusters = result_clusters_at(result, i);
        uint64_t *sizes = malloc(clusters->k * sizeof *sizes);
        if (!sizes)
            return error_memory(err, clusters->k * sizeof *sizes, "cluster sizes");
        status = result_clusters_read(result, clusters, NULL, NULL, NULL, sizes, NULL, err);
        json_open_object(json, NULL);
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
        json_uint(json, "fitted_rows",
                  clusters->fitted_rows ? clusters->fitted_rows : clusters->rows);
        json_bool(json, "converged", clusters->converged);
        json_double(json, "inertia", clusters->inertia);
        json_open_array(json, "sizes");
        for (uint32_t j = 0; status == STATUS_OK && j < clusters->k; j++)
            json_uint(json, NULL, sizes[j]);
        json_close_array(json);
        struct words *words = NULL;
        if (status == STATUS_OK && words_open(&words, result, clusters, NULL) == STATUS_OK && words)
            report_words(json, words, clusters->k);
        words_close(&words);
        if (clusters->has_agreement)
            report_agreement(json, &clusters->agreement);
        struct result_sweep sweep = {0};
        if (status == STATUS_OK)
            status = result_sweep_read(&sweep, result, clusters, err);
        if (sweep.values)
            report_sweep(json, &sweep);
        result_sweep_clear(&sweep);
        json_close_object(json);
        free(sizes);
    }
    json_close_array(json);
    return status;
}

static enum status json_failures(struct json *json, struct result *result, struct error *err)
{
    json_open_array(json, "failures");
    for (uint64_t i = 0; i < result_failures(result); i++) {
        struct result_failure failure;
        enum status status = result_failure_at(result, i, &failure, err);
        if (status != STATUS_OK)
            return status;
        if (failure.reason == REASON_NOT_AN_IMAGE)
            continue;
        json_open_object(json, NULL);
        report_bytes(json, "path", failure.path);
        json_string(json, "reason", reason_name(failure.reason));
        report_bytes(json, "message", failure.message);
        json_close_object(json);
    }
    json_close_array(json);
    return STATUS_OK;
}

static enum status json_runs(struct json *json, struct result *result, struct error *err)
{
    json_open_array(json, "runs");
    for (uint64_t i = 0; i < result_run_count(result); i++) {
        struct store_run run;
        enum status status = result_run_at(result, i, &run, err);
        if (status != STATUS_OK)
            return status;
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

/* They are JSON; a file may hold anything. */
static void json_parameters(struct json *json, const char *text)
{
    struct parameters *parameters = NULL;
    if (parameters_open(&parameters, text, NULL) == STATUS_OK)
        json_raw(json, "parameters", text);
    else
        report_bytes(json, "parameters", text);
    parameters_close(&parameters);
}

static enum status write_json(const struct overview *overview, const struct options *options,
                              struct error *err)
{
    const struct info_options *own = (const struct info_options *)options;
    struct result *result = overview->result;
    struct json *json = report_open(options);
    char digest[65];
    enum status status = STATUS_OK;
    report_bytes(json, "file", result_path(result));
    json_uint(json, "bytes", overview->file_bytes);
    report_bytes(json, "version", result_version(result));
    report_bytes(json, "created", result_created(result));
    json_parameters(json, result_parameters(result));
    json_open_array(json, "sources");
    for (unsigned i = 0; i < result_source_count(result); i++)
        report_bytes(json, NULL, result_source(result, i));
    json_close_array(json);
    json_uint(json, "parts", result_parts(result));
    report_share(json, result_share(result));
    json_uint(json, "images", result_images(result));
    json_uint(json, "duplicates", overview->duplicates);
    json_uint(json, "failed", failures_counted(overview->by_reason));
    json_uint(json, "files_not_images", overview->by_reason[REASON_NOT_AN_IMAGE]);
    json_open_object(json, "by_reason");
    for (int i = REASON_NONE + 1; i < REASON_COUNT; i++)
        if (overview->by_reason[i])
            json_uint(json, reason_name((enum reason)i), overview->by_reason[i]);
    json_close_object(json);
    json_features(json, result);
    json_open_object(json, "flags");
    for (unsigned i = 0; i < FLAGS && overview->flags.feature; i++)
        if (overview->flags.known >> i & 1)
            json_uint(json, flag_names[i], overview->flags.count[i]);
    json_close_object(json);
    json_codebooks(json, result);
    json_preset(json, result_preset(result));
    status = json_clusters(json, result, err);
    if (status == STATUS_OK)
        status = json_selections(json, result, err);
    if (status == STATUS_OK)
        status = json_runs(json, result, err);
    if (status == STATUS_OK && own->failures)
        status = json_failures(json, result, err);
    if (status == STATUS_OK && own->digest) {
        status = result_identity(result, digest, err);
        if (status == STATUS_OK)
            json_string(json, "digest", digest);
    }
    json_unfinished(json, &overview->unfinished);
    json_checkpoints(json, result_path(result));
    return status;
}

static enum status print_digest(struct result *result, struct error *err)
{
    char digest[65];
    struct sink sink;
    enum status status = result_identity(result, digest, err);
    if (status != STATUS_OK)
        return status;
    status = sink_open(&sink, NULL, err);
    if (status != STATUS_OK)
        return status;
    sink_printf(&sink, "%s\n", digest);
    return sink_close(&sink, true, err);
}

/* A file that is not there yet. */
static enum status tell_unfinished(const struct unfinished *unfinished,
                                   const struct options *options, struct error *err)
{
    struct sink sink;
    enum status status = STATUS_OK;
    if (!json_owns_stdout(options)) {
        status = sink_open(&sink, NULL, err);
        if (status != STATUS_OK)
            return status;
        print_unfinished(&sink, unfinished, options->operand[0]);
        status = sink_close(&sink, true, err);
    }
    struct json *json = report_open(options);
    report_bytes(json, "file", options->operand[0]);
    json_unfinished(json, unfinished);
    return status;
}

static enum status run_info(const struct options *options, struct error *err)
{
    const struct info_options *own = (const struct info_options *)options;
    struct overview overview = {0};
    struct stat st;
    if (own->failures && own->digest && !options->json)
        return misuse(err, options->command, "--failures and --digest cannot be combined");
    const bool missing = stat(options->operand[0], &st) != 0 && errno == ENOENT;
    enum status status =
        unfinished_look(&overview.unfinished, options->operand[0], err);
    /* Of a file that is there, its rows can be told all the same. */
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
        status = tell_unfinished(&overview.unfinished, options, err);
        unfinished_clear(&overview.unfinished);
        return status;
    }
    if (missing || status == STATUS_OK)
        status = result_open(&overview.result, options->operand[0], err);
    if (status == STATUS_OK && stat(options->operand[0], &st) == 0)
        overview.file_bytes = (uint64_t)st.st_size;
    if (status == STATUS_OK && (options->json || !own->digest))
        status = count_failures(&overview, err);
    if (status == STATUS_OK && (options->json || (!own->digest && !own->failures)))
        status = result_duplicates(overview.result, &overview.duplicates, err);
    if (status == STATUS_OK && (options->json || (!own->digest && !own->failures)))
        status = flags_read(&overview.flags, overview.result, err);
    if (status == STATUS_OK && !json_owns_stdout(options)) {
        if (own->digest)
            status = print_digest(overview.result, err);
        else if (own->failures)
            status = list_failures(&overview, err);
        else
            status = print_overview(&overview, err);
    }
    if (status == STATUS_OK && options->json)
        status = write_json(&overview, options, err);
    flags_clear(&overview.flags);
    result_close(&overview.result);
    unfinished_clear(&overview.unfinished);
    return status;
}

static const struct option rows[] = {
    FLAG("failures", failures,
         "list every file that failed: path, reason and message, separated by tabs"),
    FLAG("digest", digest,
         "print the identity of the contents: a SHA-256 that runs, dates, thumbnails and what "
         "other programs have added do not change"),
    {.name = NULL}};

const struct command command_info = {.name = "info",
                                     .goal = GOAL_RESULTS,
                                     .arguments = "F.h5 [OPTIONS]",
                                     .summary =
                                         "show the contents of a file, and what failed and why",
                                     .operand_name = "F.h5",
                                     .min_operands = 1,
                                     .max_operands = 1,
                                     .group = {{"What to print", rows}},
                                     .size = sizeof(OWN),
    .run = run_info};
