/* cmd_merge.c: clpipe merge: several results as one. */
#include "base/log.h"
#include "base/parse.h"
#include "base/path.h"
#include "cli/commands.h"
#include "cli/compute.h"
#include "cli/quote.h"
#include "cli/report_json.h"
#include "cli/signals.h"
#include "cli/summary.h"
#include "file/merge.h"
#include <unistd.h>

static void tell(const struct merge_report *report, double seconds, const struct options *options)
{
    struct json *json = &options->call->json;
    char output[256], images[40], failures[40], number[40], quoted[1024];
    path_for_message(output, sizeof output, options->output);
    if (report->left_out > 0)
        log_message(LOG_NOTICE,
                    "notice: clusterings, imported features and neighbours are not merged: %s left "
                    "out, the first is %s",
                    format_number_of(number, sizeof number, report->left_out, "object"),
                    report->first_left_out);
    summary_line(options, "%s: %s and %s of %u %s, in %.2f s", output,
                 format_number_of(images, sizeof images, report->images, "image"),
                 format_number_of(failures, sizeof failures, report->failures, "failure"),
                 report->parts, report->shards ? "shards" : "files", seconds);
    if (!options->copy)
        summary_line(options, "  %-11s with its parts, which it refers to by relative paths: keep "
                              "them together",
                     "complete");
    summary_line(options, "  %-11s clpipe cluster %s -k K", "next",
                 quote_word(quoted, sizeof quoted, options->output));
    json_open_object(json, NULL);
    json_uint(json, "images", report->images);
    json_uint(json, "failures", report->failures);
    json_uint(json, "parts", report->parts);
    json_bool(json, "shards", report->shards);
    json_bool(json, "copied", options->copy);
    json_uint(json, "left_out", report->left_out);
    json_double(json, "seconds", seconds);
    report_bytes(json, "output", options->output);
    json_close_object(json);
}

enum status command_merge(const struct options *options, struct error *err)
{
    struct merge_report report;
    const int64_t start = clock_now();
    char host[128] = "";
    if (!options->output)
        return misuse(err, options->command, "the output is missing: give -o ALL.h5");
    if (options->compress && !options->copy)
        return misuse(err, options->command,
                      "--compress needs --copy: without it the file shows the rows of its parts");
    enum status status = options_check_output(options, "-o", options->output, err);
    if (status != STATUS_OK)
        return status;
    gethostname(host, sizeof host - 1);
    call_start(options, 0);
    const struct store_run run = {.command = options->command_line, .json = "{}", .host = host};
    const struct merge_config config = {.input = options->operand,
                                        .count = options->operand_count,
                                        .output = options->output,
                                        .copy = options->copy,
                                        .compress = options->compress,
                                        .threads = compute_threads(options),
                                        .run = &run,
                                        .stop = signals_stop(),
                                        .progress = progress_phase,
                                        .progress_context = &options->call->progress};
    status = merge_files(&report, &config, err);
    if (status == STATUS_OK)
        tell(&report, clock_seconds_since(start), options);
    return status;
}
