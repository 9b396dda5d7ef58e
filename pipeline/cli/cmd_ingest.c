/* cmd_ingest.c: clpipe ingest. */
#include "cli/commands.h"
#include "cli/compute.h"
#include "cli/ingest_ranks.h"
#include "cli/ingest_step.h"
#include "cli/report_json.h"
#include "cli/signals.h"
#include "cli/summary.h"
#include "cluster/processes.h"
#include "decode/isolate.h"
#include <string.h>

enum status run_ingest(const struct options *options, struct error *err)
{
    struct ingest_plan plan = {0};
    struct ingest_report report;
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
        call_start(options, signals_time_limit(options));
        status = compute_open(options, false, err);
    }
    bool ran = status == STATUS_OK;
    if (ran)
        status = ingest_step(&report, &plan, isolate, &ranks, err);
    if (ran && status != STATUS_USAGE && status != STATUS_FAILED)
        status = ingest_ranks_merge(&report, &ranks, status, err);
    status = compute_close(&options->call->compute, status, err);
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
    const bool written = status == STATUS_OK && !options->dry_run;
    report_ingest(options, NULL, &report, written ? options->output : NULL, err);
    return status == STATUS_OK ? ingest_verdict(&report, options) : status;
}
