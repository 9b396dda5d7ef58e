/* cluster_options.c: fills the configurations of the clustering jobs, and reports on them. */
#include "cli/cluster_options.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"
#include "cli/compute.h"
#include "cli/report_json.h"
#include "cli/signals.h"
#include "cli/summary.h"
#include "cluster/processes.h"
#include <stdio.h>
#include <string.h>

static enum status find_devices(void *context, struct clustering_devices *found, struct error *err)
{
    const struct options *options = context;
    struct compute *compute = &options->call->compute;
    enum status status = STATUS_OK;
    if (compute->threads == 0)
        status = compute_open(options, true, err);
    else if (compute->count == 0)
        status = compute_find_devices(options, err);
    *found = (struct clustering_devices){&compute->devices, compute->chosen, compute->count,
                                         compute->trace};
    return status;
}

void options_machine(struct clustering_machine *out, const struct options *options)
{
    *out = (struct clustering_machine){
        .find_devices = find_devices,
        .find_devices_context = (void *)(uintptr_t)options,
        .threads = compute_threads(options),
        .memory = options->memory,
        .device_memory = options->device_memory,
        .stop = signals_stop(),
        .processes = options->processes,
        .progress = {.step = progress_step,
                     .value = progress_sweep,
                     .iteration = progress_cluster,
                     .phase = progress_phase,
                     .context = &options->call->progress},
    };
}

void options_clustering(struct clustering_config *out, const struct options *options)
{
    *out = (struct clustering_config){
        .name = options->name,
        .k = options->k,
        .metric = options->metric,
        .as_preset = !options_given(options, "pca") && !options_given(options, "whiten") &&
                     !options_given(options, "center"),
        .usual_pca = !options_given(options, "pca"),
        .center = options->center,
        .pca = (uint32_t)options->pca,
        .whiten = options->whiten,
        .init = options->init,
        .weights = options->weights,
        .seed = options->seed,
        .n_init = options_given(options, "n-init") ? (uint32_t)options->n_init : 0,
        .max_iter = (uint32_t)options->max_iter,
        .mini_batch = (uint32_t)options->mini_batch,
        .tol = options_given(options, "tol") ? options->tol : -1,
        .checkpoint_seconds = options->checkpoint,
        .replace = options->force,
        .verify_input = options->verify_input,
    };
    options_machine(&out->machine, options);
}

/* Of a number, a text or a list: as an option has it. */
static const char *stored_value(char *buffer, size_t size, const struct parameters *parameters,
                                const char *key)
{
    uint64_t number;
    double real;
    const char *text = parameters_member(parameters, key);
    snprintf(buffer, size, "0");
    if (text)
        return text;
    if (parameters_integer(parameters, key, &number))
        snprintf(buffer, size, "%llu", (unsigned long long)number);
    else if (parameters_real(parameters, key, &real))
        snprintf(buffer, size, "%.17g", real);
    return buffer;
}

void options_stored_clustering(struct stored_clustering *out, const struct options *options,
                               const char *wanted)
{
    /* Restarts and tolerance of other runs are left to clustering.h. */
    static const struct {
        const char *option, *key;
        bool of_feature;
    } rows[] = {{"seed", "seed", false},     {"max-iter", "max_iter", false},
                {"tol", "tol", false},       {"mini-batch", "mini_batch", false},
                {"init", "init", false},     {"metric", "metric", true},
                {"pca", "pca", true},        {"whiten", "whiten", true}};
    *out = (struct stored_clustering){.options = *options};
    struct options *o = &out->options;
    struct result *result = NULL;
    char text[64], shown[256];
    if (result_open(&result, options->output, NULL) != STATUS_OK)
        return;
    const struct result_clusters *old = result_clusters_find(result, options->name);
    if (!old || parameters_open(&out->parameters, old->parameters, NULL) != STATUS_OK ||
        parameters_member(out->parameters, "clusters")) /* labels that assign made */
        goto out;
    /* Another feature has a metric and components of its own. */
    const char *feature = parameters_member(out->parameters, "feature");
    const bool same_feature = feature && (!wanted || strcmp(wanted, feature) == 0);
    if (same_feature)
        options_take(o, "cluster-feature", feature);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *value = stored_value(text, sizeof text, out->parameters, rows[i].key);
        /* It has no initial centroids from another file; 0 was the tolerance of earlier versions. */
        if ((rows[i].of_feature && !same_feature) || strncmp(value, "given-", 6) == 0 ||
            (strcmp(rows[i].key, "tol") == 0 && strcmp(value, "0") == 0))
            continue;
        options_take(o, rows[i].option, value);
    }
    if (same_feature && o->pca == 0 && !options_given(options, "pca"))
        parameters_boolean(out->parameters, "center", &o->center);
    /* A k that nobody asked for is chosen anew. */
    const char *k = stored_value(text, sizeof text, out->parameters, "k");
    const uint64_t rows_then = old->fitted_rows ? old->fitted_rows : old->rows;
    if ((strchr(k, ':') || (old->k > 1 && old->k != clustering_usual_k(rows_then))) &&
        options_take(o, "k", k) && (strchr(k, ':') || old->k != clustering_usual_k(old->rows)))
        log_message(LOG_NOTICE, "notice: k is %s, as in %s; -k chooses another", k,
                    path_for_message(shown, sizeof shown, options->output));
out:
    result_close(&result);
}

/* The number that `*at` begins with, from 1, before one of the characters of `ends`, which *at passes. */
static bool take_number(uint32_t *out, const char **at, const char *ends)
{
    char digits[12] = "";
    uint64_t number;
    const size_t length = strspn(*at, "0123456789");
    if (length == 0 || length >= sizeof digits || !strchr(ends, (*at)[length]))
        return false;
    memcpy(digits, *at, length);
    *at += length + ((*at)[length] != 0);
    *out = 0;
    if (parse_u64(&number, digits, 1, INT32_MAX))
        *out = (uint32_t)number;
    return *out > 0;
}

enum status options_levels(struct cluster_levels_config *out, const struct options *options,
                           struct error *err)
{
    const char *text = options->levels;
    const bool k = options_given(options, "k");
    *out = (struct cluster_levels_config){0};
    if (k && text)
        return misuse(err, options->command, "-k and --levels exclude each other");
    if (!k && !text)
        return misuse(err, options->command, "the number of clusters is missing: give -k K, or --levels");
    for (const char *at = text; at && (*at || out->count == 0);) {
        if (out->count == CLUSTER_LEVELS)
            return misuse(err, options->command, "--levels takes at most %d numbers", CLUSTER_LEVELS);
        if (!take_number(&out->k[out->count++], &at, ",") || (at[-1] == ',' && !*at))
            return misuse(err, options->command,
                          "--levels %s: numbers of clusters are expected, like 1000,100", text);
        if (out->count > 1 && out->k[out->count - 1] >= out->k[out->count - 2])
            return misuse(err, options->command,
                          "--levels %s: each level must have fewer clusters than the one before", text);
    }
    if (!(text = options->resample))
        return STATUS_OK;
    if (k && options->k.last > options->k.first)
        return misuse(err, options->command, "--resample requires a single k");
    if (k)
        *out = (struct cluster_levels_config){.count = 1, .k = {(uint32_t)options->k.last}};
    const char *at = text;
    if (!take_number(&out->nearest, &at, ":") || at[-1] != ':' || !take_number(&out->rounds, &at, ""))
        return misuse(err, options->command,
                      "--resample %s: rows of each cluster and rounds are expected, like 20:10", text);
    return STATUS_OK;
}

enum status options_check_projection(const struct options *options, struct error *err)
{
    if (!(options->whiten >= 0 && options->whiten <= 1))
        return misuse(err, options->command, "--whiten must be from 0 to 1");
    if (options->whiten > 0 && options->pca == 0)
        return misuse(err, options->command, "--whiten requires --pca N");
    return STATUS_OK;
}

void report_clustering(const struct options *options, struct clustering_report *report)
{
    report->seconds = (double)(clock_now() - clock_process_start()) * 1e-9;
    if (!processes_first(options->processes))
        return;
    summary_clusters(report, options);
    report_cluster(&options->call->json, NULL, report);
}
