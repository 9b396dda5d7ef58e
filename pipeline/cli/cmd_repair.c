/* cmd_repair.c: clpipe repair: saves intact rows, and reports what was lost. */
#include "base/child.h"
#include "base/parse.h"
#include "base/path.h"
#include "cli/commands.h"
#include "cli/option_rows.h"
#include "cli/report_json.h"
#include "cli/summary.h"
#include "result/repair.h"

static void tell(const struct repair_report *report, const struct options *options)
{
    const char *input = PATH_TEXT(options->operand[0]);
    const char *output = PATH_TEXT(options->output ? options->output : options->operand[0]);
    if (report->whole) {
        summary_line(options, "%s: no problems found; nothing to repair", input);
        if (report->unfinished)
            summary_line(options,
                         "%s.partial holds an unfinished run: run its command again to resume",
                         input);
        return;
    }
    summary_line(options, "%s%s: %s and %s %s saved%s", report->written ? output : input,
                 report->from_log ? ", from the unfinished run" : "",
                 NUMBER_OF(report->images, "image"), NUMBER_OF(report->failures, "failure"),
                 report->written ? "were" : "can be",
                 report->written ? "" : "; nothing was written");
    if (report->images_lost || report->failures_lost)
        summary_line(
            options, "  lost        %s, %s: to restore them, run the command that made the file",
            NUMBER_OF(report->images_lost, "image"), NUMBER_OF(report->failures_lost, "failure"));
    if (report->clusters_lost)
        summary_line(options, "  lost        %s: run clpipe cluster again",
                     NUMBER_OF(report->clusters_lost, "clustering"));
    if (report->codebooks_lost)
        summary_line(options,
                     "  lost        %s: no image can be added before an update with --retrain",
                     NUMBER_OF(report->codebooks_lost, "codebook"));
    if (report->kept[0])
        summary_line(options, "  damaged     %s", PATH_TEXT(report->kept));
    if (report->from_log && !options->output)
        summary_line(options, "  next        run the interrupted command again to resume");
}

static void write_report(struct json *json, const struct repair_report *report,
                         const struct options *options)
{
    json_bool(json, "ok", report->whole);
    json_bool(json, "from_unfinished_run", report->from_log);
    json_bool(json, "written", report->written);
    json_uint(json, "images", report->images);
    json_uint(json, "failures", report->failures);
    json_uint(json, "images_lost", report->images_lost);
    json_uint(json, "failures_lost", report->failures_lost);
    json_uint(json, "clusters", report->clusters);
    json_uint(json, "clusters_lost", report->clusters_lost);
    json_uint(json, "codebooks_lost", report->codebooks_lost);
    json_uint(json, "damaged_log_bytes", report->damaged_bytes);
    const char *output = options->output ? options->output : options->operand[0];
    report_bytes(json, "output", report->written ? output : NULL);
    report_bytes(json, "kept", report->kept[0] ? report->kept : NULL);
}

struct repairing {
    struct repair_config config;
    struct repair_report report;
};

static void say_nothing(const char *line, void *context)
{
    (void)line;
    (void)context;
}

static enum status look(void *answer, void (*line)(const char *line, void *context), void *context,
                        struct error *err)
{
    struct repairing *repairing = answer;
    repairing->config.broken = line;
    repairing->config.context = context;
    return store_repair(&repairing->report, &repairing->config, err);
}

static enum status run_repair(const struct options *options, struct error *err)
{
    struct transcript findings;
    const struct store_run run = {.command = options->command_line};
    struct repairing repairing = {
        .config = {
            .input = options->operand[0], .output = options->output, .dry_run = true, .run = &run}};
    const struct child child = {look, &repairing, sizeof repairing, transcript_line, &findings};
    const struct repair_report *const report = &repairing.report;
    /* Checks the file in a child process, so that a damaged one cannot crash this process. */
    enum status status = carried_check(options, NULL, err);
    if (status == STATUS_OK)
        status = transcript_open(&findings, options, err);
    if (status != STATUS_OK)
        return status;
    report_open(options);
    report_bytes(findings.json, "file", options->operand[0]);
    json_open_array(findings.json, "broken");
    const char *died;
    status = child_run(&child, &died, err);
    if (died) {
        repairing.config.unreadable = died;
        status = child_run(&child, &died, err);
    }
    /* The child could read the file, so this process can, too. */
    repairing.config.dry_run = options->dry_run;
    repairing.config.broken = say_nothing;
    if (status == STATUS_OK && !died && !report->whole && !options->dry_run)
        status = store_repair(&repairing.report, &repairing.config, err);
    json_close_array(findings.json);
    status = sink_end(&findings.sink, status, err);
    if (status != STATUS_OK)
        return status;
    write_report(findings.json, report, options);
    tell(report, options);
    return report->whole ? STATUS_OK : STATUS_PARTIAL;
}

static const struct option rows[] = {
    OUTPUT_ROW(NULL, "F.h5 itself", "file to write; F.h5 is not changed"),
    DRY_RUN_ROW("report what can be recovered, and write nothing"),
    {.name = NULL}};

const struct command command_repair = {
    .name = "repair",
    .goal = GOAL_RESULTS,
    .arguments = "F.h5 [OPTIONS]",
    .summary = "recover the intact rows of a damaged or unfinished file",
    .about = "Checks F.h5 like verify and writes a new file with the intact rows; the old file is "
             "kept as F.h5.damaged. If F.h5 is missing or unreadable, the new file is made from "
             "the finished work in F.h5.partial. To restore the missing rows, run the command "
             "that made the file again. Exits with 1 if a problem was found.",
    .examples = "  clpipe repair photos.h5 --dry-run\n"
                "  clpipe repair photos.h5\n"
                "  clpipe repair photos.h5 -o saved.h5",
    .operand_name = "F.h5",
    .operands = {1, 1},
    .group = {{"What to write", rows}, {GROUP_CARRIED}},
    .run = run_repair};
