/* cmd_run.c: clpipe run: ingest, then clusters, then what to do next. */
#include "base/path.h"
#include "cli/cluster_options.h"
#include "cli/commands.h"
#include "cli/compute.h"
#include "cli/ingest_step.h"
#include "cli/report_json.h"
#include "cli/report_step.h"
#include "cli/signals.h"
#include "cli/summary.h"
#include "cli/sweep_plot.h"
#include "decode/isolate.h"
#include <stdlib.h>
#include <string.h>

static const char *names_of(char *text, size_t size, const struct feature_set *features)
{
    size_t used = 0;
    for (unsigned i = 0; i < features->count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "",
                                 features->feature[i].name);
    return text;
}

/* A feature that run does not compute is known to be missing before hours of work. */
static enum status check_cluster_feature(const struct ingest_plan *plan,
                                         const struct options *options, struct error *err)
{
    char names[256];
    /* It may be several, joined: NAME[:WEIGHT]+NAME[:WEIGHT]. */
    for (const char *at = options->feature; at && *at;) {
        const size_t length = strcspn(at, ":+");
        bool found = false;
        for (unsigned i = 0; i < plan->features.count && !found; i++)
            found = strlen(plan->features.feature[i].name) == length &&
                    strncmp(plan->features.feature[i].name, at, length) == 0;
        if (!found)
            return misuse(err, options->command,
                          "--cluster-feature %.*s: this run computes only %s", (int)length, at,
                          names_of(names, sizeof names, &plan->features));
        at += strcspn(at, "+");
        at += *at == '+';
    }
    return STATUS_OK;
}

static enum status cluster_and_tell(struct clustering_report *out, const struct ingest_plan *plan,
                                    const struct options *options, struct error *err)
{
    struct clustering_config config;
    struct stored_clustering stored;
    const char *usual =
        plan->preset && options->features.count == 0 ? RESULT_PRESET : plan->first;
    const bool named = options->features.count > 0 || (options_given(options, "preset") && plan->redo);
    options_stored_clustering(&stored, options, options->feature ? options->feature
                                                : named          ? usual
                                                                 : NULL);
    options_clustering(&config, &stored.options);
    config.input = options->output;
    config.feature = stored.options.feature ? stored.options.feature : usual;
    config.lower_k = !options_given(options, "k") && config.k.first == config.k.last;
    config.usual_k = !options_given(&stored.options, "k");
    config.usual_pca = !options_given(options, "pca");
    config.restarts = true;
    config.by_run = !options_given(options, "name");
    enum status status = clustering_run(out, &config, err);
    parameters_close(&stored.parameters);
    if (status != STATUS_OK) {
        const size_t used = strlen(err->sentence);
        char shown[256];
        if (status != STATUS_INTERRUPTED)
            snprintf(err->sentence + used, sizeof err->sentence - used,
                     " (the features are kept in %s)",
                     path_for_message(shown, sizeof shown, options->output));
        return status;
    }
    summary_clusters(out, options);
    return options->plot ? sweep_plot_svg(options->plot, &out->sweep, out->k, err) : STATUS_OK;
}

/* The second half; `ingested` is what the first came to, `directory` that of the report, or NULL. */
static enum status finish(const struct options *options, const struct ingest_plan *plan,
                          const struct ingest_report *report, enum status ingested,
                          const char *directory, struct error *err)
{
    struct progress *progress = &options->call->progress;
    struct json *json = &options->call->json;
    struct clustering_report clusters = {0};
    struct pages_counts pages = {0};
    bool reported = false;
    bool whole = ingested == STATUS_OK && !options->dry_run;
    summary_ingest(report, options, ingested, false);
    progress_init(progress, options);
    if (ingested != STATUS_OK)
        summary_stopped(err, report);
    enum status status = ingested;
    if (whole)
        status = cluster_and_tell(&clusters, plan, options, err);
    const bool clustered = whole && status == STATUS_OK;
    if (clustered && directory) {
        progress_init(progress, options);
        status = report_step(&pages, options->output, directory, options->name, true, options, err);
        reported = status == STATUS_OK;
        if (reported)
            report_open_line(options, directory);
    }
    json_open_object(json, NULL);
    report_ingest(options, "ingest", report, whole ? options->output : NULL, NULL);
    if (clustered)
        report_cluster(json, "cluster", &clusters);
    else
        json_null(json, "cluster");
    if (reported)
        report_pages(json, "report", &pages, directory);
    else
        json_null(json, "report");
    if (status != STATUS_USAGE && status != STATUS_FAILED)
        report_error(options, err);
    json_close_object(json);
    clustering_report_clear(&clusters);
    return status == STATUS_OK ? ingest_verdict(report, options) : status;
}

enum status run_run(const struct options *options, struct error *err)
{
    struct ingest_plan plan = {0};
    struct ingest_report report;
    struct isolate *isolate = NULL;
    char *directory = NULL;
    enum status status = options_check_projection(options, err);
    if (status == STATUS_OK)
        status = ingest_plan_open(&plan, options, err);
    if (status == STATUS_OK)
        status = ingest_isolate(&isolate, &plan.takeover.options, err);
    if (status != STATUS_OK)
        goto out;
    call_start(options, signals_time_limit(options));
    status = check_cluster_feature(&plan, options, err);
    if (status != STATUS_OK)
        goto out;
    status = clustering_check_name(options->name, err);
    if (status != STATUS_OK)
        goto out;
    status = sweep_plot_check(options, err);
    if (status != STATUS_OK)
        goto out;
    if (!options->no_report && !options->dry_run) {
        status = report_directory(&directory, options->output, err);
        if (status == STATUS_OK)
            status = pages_check(directory, err);
        if (status != STATUS_OK) {
            error_remedy(err, REMEDY_NO_REPORT);
            goto out;
        }
    }
    status = compute_open(options, false, err);
    if (status != STATUS_OK)
        goto out;
    plan.remade = options->name;
    plan.most_clusters = options_given(options, "k") ? options->k.last : 0;
    status = ingest_step(&report, &plan, isolate, NULL, err);
    isolate_close(&isolate);
    if (status != STATUS_USAGE && status != STATUS_FAILED)
        status = finish(options, &plan, &report, status, directory, err);
out:
    ingest_plan_close(&plan);
    isolate_close(&isolate);
    free(directory);
    return status;
}
