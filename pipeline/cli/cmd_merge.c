/* cmd_merge.c: clpipe merge: joins several results. */
#include "base/log.h"
#include "base/parse.h"
#include "base/path.h"
#include "cli/call.h"
#include "cli/commands.h"
#include "cli/compute.h"
#include "cli/option_rows.h"
#include "cli/quote.h"
#include "cli/report_json.h"
#include "cli/summary.h"
#include "result/merge.h"

/* The options of the command. */
struct merge_options {
    struct options common;
    bool copy, compress;
};

#define OWN struct merge_options

static void tell(const struct merge_report *report, double seconds, const struct options *options)
{
    const struct merge_options *own = (const struct merge_options *)options;
    struct json *json = report_open(options);
    const char *output = PATH_TEXT(options->output);
    if (report->left_out > 0)
        log_message(LOG_NOTICE,
                    "notice: clusterings, selections, imported features and neighbours are not "
                    "merged: %s left "
                    "out, the first is %s",
                    NUMBER_OF(report->left_out, "object"), report->first_left_out);
    summary_line(options, "%s: %s and %s of %u %s, in %.2f s", output,
                 NUMBER_OF(report->images, "image"), NUMBER_OF(report->failures, "failure"),
                 report->parts, report->shards ? "shards" : "files", seconds);
    if (!own->copy)
        summary_line(options,
                     "  %-11s with its parts, which it refers to by relative paths: keep "
                     "them together",
                     "complete");
    summary_wall(options);
    summary_line(options, "  %-11s clpipe cluster %s -k K", "next", QUOTED(options->output));
    json_uint(json, "images", report->images);
    json_uint(json, "failures", report->failures);
    json_uint(json, "parts", report->parts);
    json_bool(json, "shards", report->shards);
    json_bool(json, "copied", own->copy);
    json_uint(json, "left_out", report->left_out);
    json_double(json, "seconds", seconds);
    report_bytes(json, "output", options->output);
}

static enum status run_merge(const struct options *options, struct error *err)
{
    const struct merge_options *own = (const struct merge_options *)options;
    struct merge_report report;
    const int64_t start = clock_now();
    if (!options->output)
        return misuse(err, "the output is missing: give -o ALL.h5");
    if (own->compress && !own->copy)
        return misuse(err,
                      "--compress needs --copy: without it the file shows the rows of its parts");
    enum status status = carried_check(options, options->output, err);
    if (status == STATUS_OK)
        status = options_check_output(options, "-o", options->output, err);
    if (status != STATUS_OK)
        return status;
    call_start(options, 0);
    progress_stage(&options->call->progress, "merging");
    const struct store_run run = {.command = options->command_line};
    const struct merge_config config = {.input = options->operand,
                                        .count = options->operand_count,
                                        .output = options->output,
                                        .copy = own->copy,
                                        .compress = own->compress,
                                        .threads = compute_threads(options),
                                        .run = &run,
                                        .watch = options_watch(options)};
    status = merge_files(&report, &config, err);
    if (status == STATUS_OK)
        tell(&report, clock_seconds_since(start), options);
    return status;
}

static const struct option rows[] = {
    OUTPUT_ROW(NULL, NULL, "file to write; required"),
    FLAG("copy", copy,
         "copy all rows, so that the file no longer needs its parts and can be updated"),
    FLAG("compress", compress,
         "with --copy: store features compressed, as those of compressed parts always are"),
    FORCE_ROW("replace an existing -o FILE"),
    {.name = NULL}};

const struct command command_merge = {
    .name = "merge",
    .goal = GOAL_STEPS,
    .arguments = "A.h5 B.h5... -o ALL.h5 [OPTIONS]",
    .summary = "join the results of several ingests into one",
    .about =
        "Takes all shards of an ingest (ingest --shard), in any order, or ingests of different "
        "sources, whose rows follow each other in the order of the files. ALL.h5 has the rows, the "
        "failures and the identity of one ingest of everything, and works with every command. It "
        "refers to the rows of its parts by relative paths (HDF5 virtual datasets) and holds their "
        "sizes and digests, which are checked before they are read; with --copy it holds the rows "
        "themselves. Clusterings, selections, imported features and neighbours are not merged.",
    .examples = "  clpipe merge shards/*.h5 -o all.h5\n"
                "  clpipe merge 2023.h5 2024.h5 -o photos.h5 --copy",
    .operand_name = "FILE",
    .operands = {2, 65535},
    .group = {{"Merging", rows}, {GROUP_CARRIED}},
    .size = sizeof(OWN),
    .run = run_merge};
