/* cluster_options.c: fills the configurations of the clustering jobs, and reports on them. */
#include "cli/cluster_options.h"
#include "base/clock.h"
#include "cli/report_json.h"
#include "cli/signals.h"
#include "cli/summary.h"
#include "cluster/processes.h"

static enum status find_devices(void *context, struct clustering_devices *found, struct error *err)
{
    struct compute_search *search = context;
    struct compute *compute = search->compute;
    enum status status = STATUS_OK;
    if (compute->threads == 0)
        status = compute_open(compute, search->options, true, err);
    else if (compute->count == 0)
        status = compute_find_devices(compute, search->options, err);
    *found = (struct clustering_devices){&compute->devices, compute->chosen, compute->count,
                                         compute->trace};
    return status;
}

void options_machine(struct clustering_machine *out, struct compute_search *search,
                     struct progress *progress)
{
    const struct options *options = search->options;
    *out = (struct clustering_machine){
        .find_devices = find_devices,
        .find_devices_context = search,
        .threads = compute_threads(options),
        .memory = options->memory,
        .device_memory = options->device_memory,
        .stop = signals_stop(),
        .processes = options->processes,
        .progress = {.step = progress_step,
                     .value = progress_sweep,
                     .iteration = progress_cluster,
                     .phase = progress_phase,
                     .context = progress},
    };
}

void options_clustering(struct clustering_config *out, struct compute_search *search,
                        struct progress *progress)
{
    const struct options *options = search->options;
    *out = (struct clustering_config){
        .name = options->name,
        .k = options->k,
        .metric = options->metric,
        .as_preset = !options_given(options, "pca") && !options_given(options, "whiten") &&
                     !options_given(options, "center"),
        .center = options->center,
        .pca = (uint32_t)options->pca,
        .whiten = options->whiten,
        .init = options->init,
        .weights = options->weights,
        .seed = options->seed,
        .n_init = (uint32_t)options->n_init,
        .max_iter = (uint32_t)options->max_iter,
        .mini_batch = (uint32_t)options->mini_batch,
        .tol = options->tol,
        .checkpoint_seconds = options->checkpoint,
        .replace = options->force,
        .verify_input = options->verify_input,
    };
    options_machine(&out->machine, search, progress);
}

enum status options_check_projection(const struct options *options, struct error *err)
{
    if (!(options->whiten >= 0 && options->whiten <= 1))
        return misuse(err, options->command, "--whiten must be from 0 to 1");
    if (options->whiten > 0 && options->pca == 0)
        return misuse(err, options->command, "--whiten requires --pca N");
    return STATUS_OK;
}

enum status report_clustering(const struct options *options, struct clustering_report *report,
                              struct error *err)
{
    struct json json;
    if (!processes_first(options->processes))
        return STATUS_OK;
    report->seconds = (double)(clock_now() - clock_process_start()) * 1e-9;
    summary_clusters(report, options);
    json_init(&json, false);
    report_cluster(&json, NULL, report);
    return report_write(options, &json, err);
}
