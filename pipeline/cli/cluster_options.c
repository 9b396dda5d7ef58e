/* cluster_options.c: fills the configurations of the clustering jobs, and reports on them. */
#include "cli/cluster_options.h"
#include "base/clock.h"
#include "cli/compute.h"
#include "cli/report_json.h"
#include "cli/summary.h"
#include "ranks/processes.h"
#include <string.h>

void options_machine(struct clustering_machine *out, const struct options *options)
{
    *out = (struct clustering_machine){
        .find_devices = compute_selection,
        .find_devices_context = (void *)(uintptr_t)options,
        .threads = compute_threads(options),
        .memory = options->memory,
        .device_memory = options->device_memory,
        .watch = options_watch(options),
        .processes = options->processes,
        .progress = {.step = progress_step, .value = progress_sweep, .iteration = progress_cluster},
    };
}

void options_cluster_job(struct cluster_job_config *out, const struct options *options,
                         const char *input)
{
    out->input = input;
    out->output = options->output;
    out->paths = options->paths;
    out->replace = options->force;
    options_machine(&out->machine, options);
}

void options_clustering(struct clustering_config *out, const struct options *options,
                        const struct clustering_given *given, const char *input)
{
    *out = given->config;
    out->as_preset = !options_given(options, "pca") && !options_given(options, "whiten") &&
                     !options_given(options, "center");
    out->usual_pca = !options_given(options, "pca");
    out->method = given->method < 0 ? NULL : kmeans_methods[given->method]->name;
    if (!options_given(options, "n-init"))
        out->n_init = 0;
    if (!options_given(options, "tol"))
        out->tol = -1;
    options_cluster_job(&out->job, options, input);
}

enum status options_check_method(const struct clustering_given *given, struct error *err)
{
    const struct kmeans_method *method = given->method < 0 ? NULL : kmeans_methods[given->method];
    if (method && method->samples && given->config.mini_batch == 0)
        return misuse(err, "--method %s needs --mini-batch N", method->name);
    return method && !method->samples && given->config.mini_batch > 0
               ? misuse(err, "--method %s and --mini-batch exclude each other", method->name)
               : STATUS_OK;
}

/* Reads the number at `*at`, at least 1, which must be followed by a character of `ends`; moves *at
 * past that character. */
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
                           const struct clustering_given *given, struct error *err)
{
    const char *text = given->levels, *split = given->split;
    const bool k = options_given(options, "k");
    *out = (struct cluster_levels_config){0};
    if (split) {
        if (k || text || given->resample)
            return misuse(err, "--split and %s exclude each other",
                          k      ? "-k"
                          : text ? "--levels"
                                 : "--resample");
        if (!take_number(&out->k[1], &split, "x") || split[-1] != 'x' ||
            !take_number(&out->split, &split, "") || out->k[1] < 2 || out->split < 2 ||
            (uint64_t)out->k[1] * out->split > INT32_MAX)
            return misuse(err,
                          "--split %s: expected a number of clusters, and into how many each is "
                          "divided, like 100x100",
                          given->split);
        out->count = 2;
        out->k[0] = out->k[1] * out->split;
        return STATUS_OK;
    }
    if (k && text)
        return misuse(err, "-k and --levels exclude each other");
    if (!k && !text)
        return misuse(err, "the number of clusters is missing: give -k K, --levels or --split");
    for (const char *at = text; at && (*at || out->count == 0);) {
        if (out->count == CLUSTER_LEVELS)
            return misuse(err, "--levels takes at most %d numbers", CLUSTER_LEVELS);
        if (!take_number(&out->k[out->count++], &at, ",") || (at[-1] == ',' && !*at))
            return misuse(err, "--levels %s: expected numbers of clusters, like 1000,100", text);
        if (out->count > 1 && out->k[out->count - 1] >= out->k[out->count - 2])
            return misuse(
                err, "--levels %s: each level must have fewer clusters than the one before", text);
    }
    if (!(text = given->resample))
        return STATUS_OK;
    if (k && given->config.k.last > given->config.k.first)
        return misuse(err, "--resample requires a single k");
    if (k)
        *out = (struct cluster_levels_config){.count = 1, .k = {(uint32_t)given->config.k.last}};
    const char *at = text;
    if (!take_number(&out->nearest, &at, ":") || at[-1] != ':' ||
        !take_number(&out->rounds, &at, ""))
        return misuse(err, "--resample %s: expected rows of each cluster and rounds, like 20:10",
                      text);
    return STATUS_OK;
}

enum status options_check_projection(const struct clustering_projection *given, struct error *err)
{
    if (!(given->whiten >= 0 && given->whiten <= 1))
        return misuse(err, "--whiten must be from 0 to 1");
    if (given->whiten > 0 && given->pca == 0)
        return misuse(err, "--whiten requires --pca N");
    return STATUS_OK;
}

void report_clustering(const struct options *options, struct clustering_report *report)
{
    report->seconds = (double)(clock_now() - clock_process_start()) * 1e-9;
    if (!processes_first(options->processes))
        return;
    summary_clusters(report, options);
    report_cluster(report_open(options), report);
}
