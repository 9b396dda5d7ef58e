/* cmd_run.c: clpipe run: ingest, then clusters, then what to do next. */
#include "cli/cluster_step.h"
#include "cli/commands.h"
#include "cli/ingest_step.h"
#include "cli/report_json.h"
#include "cli/signals.h"
#include "cli/summary.h"
#include "cli/sweep_plot.h"
#include "decode/isolate.h"
#include <string.h>

/* A feature that run does not compute is known to be missing before hours of work. */
static enum status check_cluster_feature(const struct ingest_plan *plan,
                                         const struct options *options, struct error *err)
{
    /* It may be several, joined: NAME[:WEIGHT]+NAME[:WEIGHT]. */
    for (const char *at = options->feature; at && *at;) {
        const size_t length = strcspn(at, ":+");
        bool found = false;
        for (unsigned i = 0; i < plan->features.count && !found; i++)
            found = strlen(plan->features.feature[i].name) == length &&
                    strncmp(plan->features.feature[i].name, at, length) == 0;
        if (!found)
            return misuse(err, options->command,
                          "--cluster-feature %.*s is none of the features of this run (the first "
                          "is %s)",
                          (int)length, at, plan->features.feature[0].name);
        at += strcspn(at, "+");
        at += *at == '+';
    }
    return STATUS_OK;
}

static enum status cluster_and_tell(const struct options *options, const char *feature,
                                    const struct compute *compute, struct progress *progress,
                                    struct cluster_result *result, struct error *err)
{
    struct cluster_plan plan;
    bool default_k = !options_given(options, "k");
    enum status status =
        cluster_plan_open(&plan, options->output, feature, options, default_k, err);
    if (status != STATUS_OK)
        return status;
    status = cluster_step(result, &plan, compute, progress, err);
    if (status == STATUS_OK) {
        summary_clusters(result, plan.input.result, true);
        result->output = options->output;
    }
    if (status == STATUS_OK && options->plot)
        status = sweep_plot_svg(options->plot, &result->sweep, result->k, err);
    cluster_plan_close(&plan);
    return status;
}

/* The second half; `ingested` is what the first came to. */
static enum status finish(const struct options *options, const struct ingest_plan *plan,
                          const struct ingest_report *report, enum status ingested,
                          const struct compute *compute, struct progress *progress,
                          struct error *err)
{
    struct cluster_result result = {0};
    bool whole = ingested == STATUS_OK && !options->dry_run;
    summary_ingest(report, options, ingested, false);
    summary_said(ingested, err);
    enum status status = ingested;
    const char *feature = options->feature ? options->feature : plan->features.feature[0].name;
    if (whole)
        status = cluster_and_tell(options, feature, compute, progress, &result, err);
    if (status != STATUS_USAGE && status != STATUS_FAILED) {
        struct json json;
        json_init(&json, false);
        json_open_object(&json, NULL);
        report_ingest(&json, "ingest", report, whole ? options->output : NULL);
        if (whole && status == STATUS_OK)
            report_cluster(&json, "cluster", &result);
        else
            json_null(&json, "cluster");
        json_close_object(&json);
        struct error trouble = ERROR_INIT;
        if (report_write(options, &json, &trouble) != STATUS_OK) {
            *err = trouble;
            status = trouble.status;
        }
    }
    cluster_result_clear(&result);
    return status == STATUS_OK ? ingest_verdict(report, options) : status;
}

enum status command_run(const struct options *options, struct error *err)
{
    struct ingest_plan plan;
    struct ingest_report report;
    struct compute compute = {0};
    struct progress progress;
    struct isolate *isolate;
    enum status status = ingest_isolate(&isolate, options, err);
    if (status != STATUS_OK)
        return status;
    signals_install(options->max_time);
    status = ingest_plan_open(&plan, options, err);
    if (status == STATUS_OK)
        status = check_cluster_feature(&plan, options, err);
    if (status == STATUS_OK)
        status = check_name(options, options->name, err);
    if (status == STATUS_OK)
        status = sweep_plot_check(options, err);
    if (status == STATUS_OK)
        status = compute_open(&compute, options, false, err);
    if (status == STATUS_OK) {
        progress_init(&progress, options);
        status = ingest_step(&report, &plan, options, &compute, isolate, &progress, err);
        isolate_close(&isolate);
        if (status != STATUS_USAGE && status != STATUS_FAILED) {
            progress_init(&progress, options);
            status = finish(options, &plan, &report, status, &compute, &progress, err);
        }
    }
    status = compute_close(&compute, status, err);
    ingest_plan_close(&plan);
    isolate_close(&isolate);
    return status;
}
