/* cmd_ingest.c: clpipe ingest. */
#include "cli/commands.h"
#include "cli/ingest_ranks.h"
#include "cli/ingest_step.h"
#include "cli/report_json.h"
#include "cli/signals.h"
#include "cli/summary.h"
#include "cluster/processes.h"
#include "decode/isolate.h"
#include <string.h>

enum status command_ingest(const struct options *options, struct error *err)
{
    struct ingest_plan plan = {0};
    struct ingest_report report;
    struct compute compute = {0};
    struct compute_search search = {&compute, options};
    struct progress progress;
    memset(&report, 0, sizeof report);
    struct isolate *isolate = NULL;
    struct ingest_ranks ranks;
    enum status status = ingest_ranks_open(&ranks, options, err);
    if (status == STATUS_OK)
        status = ingest_plan_open(&plan, &ranks.own, err);
    if (status == STATUS_OK)
        status = ingest_isolate(&isolate, &plan.takeover.options, err);
    if (status == STATUS_OK)
        status = ingest_ranks_agree(&ranks, plan.parameters, &plan.takeover.places, err);
    if (status == STATUS_OK) {
        signals_install(signals_time_limit(options));
        status = compute_open(&compute, options, false, err);
    }
    bool ran = status == STATUS_OK;
    if (ran) {
        progress_init(&progress, options);
        status = ingest_step(&report, &plan, &search, isolate, &progress, &ranks, err);
    }
    if (ran && status != STATUS_USAGE && status != STATUS_FAILED)
        status = ingest_ranks_merge(&report, &ranks, status, err);
    status = compute_close(&compute, status, err);
    ingest_plan_close(&plan);
    isolate_close(&isolate);
    ingest_ranks_close(&ranks);
    if (!ran || status == STATUS_USAGE || status == STATUS_FAILED)
        return status;
    if (status != STATUS_OK)
        summary_stopped(err, &report);
    if (!processes_first(options->processes))
        return status == STATUS_OK ? ingest_verdict(&report, options) : status;

    summary_ingest(&report, options, status, true);
    struct json json;
    json_init(&json, false);
    bool written = status == STATUS_OK && !options->dry_run;
    report_ingest(&json, NULL, &report, written ? options->output : NULL, err);
    struct error trouble = ERROR_INIT;
    if (report_write(options, &json, &trouble) != STATUS_OK) {
        *err = trouble;
        return trouble.status;
    }
    return status == STATUS_OK ? ingest_verdict(&report, options) : status;
}
