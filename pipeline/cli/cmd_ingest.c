/* cmd_ingest.c: clpipe ingest. */
#include "cli/commands.h"
#include "cli/compute.h"
#include "cli/ingest_options.h"
#include "cli/ingest_ranks.h"
#include "cli/ingest_step.h"
#include "cli/report_json.h"
#include "cli/signals.h"
#include "cli/summary.h"
#include "decode/isolate.h"
#include "ranks/processes.h"
#include "sources/source.h"
#include <string.h>

static enum status run_ingest(const struct options *options, struct error *err)
{
    const struct ingest_options *own = (const struct ingest_options *)options;
    struct ingest_plan plan = {0};
    struct ingest_report report;
    memset(&report, 0, sizeof report);
    struct isolate *isolate = NULL;
    struct ingest_ranks ranks = {.comm = NULL};
    enum status status = carried_check(options, options->output, err);
    if (status == STATUS_OK)
        status = ingest_ranks_open(&ranks, options, err);
    if (status == STATUS_OK)
        status = ingest_plan_open(&plan, &ranks.own, err);
    if (status == STATUS_OK)
        status = ingest_isolate(&isolate, &plan.takeover.options.image, err);
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
        return status == STATUS_OK ? ingest_verdict(&report, own) : status;

    summary_ingest(&report, options, status, true);
    const bool written = status == STATUS_OK && !options->dry_run;
    report_open(options);
    report_ingest(options, &report, written ? options->output : NULL, status == STATUS_OK);
    options->call->tells_errors = true;
    return status == STATUS_OK ? ingest_verdict(&report, own) : status;
}

static const struct option rows[] = {
    OUTPUT_ROW(NULL, NULL, "HDF5 file to write or update; required unless --dry-run is given"),
    {.name = NULL}};

const struct command command_ingest = {
    .name = "ingest",
    .goal = GOAL_STEPS,
    .arguments = "SOURCE... -o F.h5 [OPTIONS]",
    .summary = "extract features from images into a file",
    .about =
        "Decodes every image in the sources and writes its features to F.h5. If F.h5 exists, it "
        "is updated: only new and changed files are read, a new source is added, a source that is "
        "not given stays as it is, and options that are not given are taken from the "
        "file. Run the same command again to resume after an interruption.\n" SOURCES_TEXT,
    .examples = "  clpipe ingest photos -o photos.h5\n"
                "  clpipe ingest photos -o photos.h5 --feature rgb:bins=8x8x8 --feature gray\n"
                "  find /data -name '*.jpg' -print0 | clpipe ingest - -o data.h5",
    .operand_name = "SOURCE",
    .operands = {1, 65535},
    .computes = true,
    .ranks_apart = true,
    .ranks_merge = true,
    .group = {{"Result", rows}, {GROUP_INGEST}, {GROUP_IMAGES}, {GROUP_TUNING}, {GROUP_CARRIED}},
    .size = sizeof(struct ingest_options),
    .run = run_ingest};
