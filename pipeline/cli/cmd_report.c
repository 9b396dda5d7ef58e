/* cmd_report.c: clpipe report: writes pages for a browser. */
#include "base/clock.h"
#include "base/parse.h"
#include "cli/call.h"
#include "cli/cluster_options.h"
#include "cli/commands.h"
#include "cli/option_rows.h"
#include "cli/report_json.h"
#include "cli/report_step.h"
#include "cli/summary.h"
#include <stdlib.h>

/* The options of the command. */
struct report_options {
    struct options common;
    const char *name;
    bool link_originals;
};

#define OWN struct report_options

static void print_counts(const struct pages_counts *counts, const struct options *options,
                         double seconds)
{
    summary_line(options, "report of %s in %.2f s, %s%s%s", NUMBER_OF(counts->images, "image"),
                 seconds, BYTES_TEXT(counts->bytes), counts->clustering[0] ? ", clusters " : "",
                 counts->clustering);
    if (counts->without_thumbnail)
        summary_line(options,
                     "  missing     %s without a thumbnail: the file is gone or has changed",
                     NUMBER_OF(counts->without_thumbnail, "image"));
}

static enum status run_report(const struct options *options, struct error *err)
{
    const struct report_options *own = (const struct report_options *)options;
    struct pages_config config = {
        .file = options->operand[0], .name = own->name, .link_originals = own->link_originals};
    struct pages_counts counts = {0};
    char *fallback = NULL;
    call_start(options, 0);
    const int64_t begun = clock_now();
    enum status status = report_directory(&fallback, options->operand[0], err);
    config.directory = options->output ? options->output : fallback;
    options_machine(&config.machine, options);
    if (status == STATUS_OK)
        status = pages_write(&counts, &config, err);
    if (status == STATUS_OK) {
        print_counts(&counts, options, (double)(clock_now() - begun) * 1e-9);
        summary_wall(options);
        report_open_line(options, config.directory);
        report_pages(report_open(options), &counts, config.directory);
    }
    free(fallback);
    return status;
}

static const struct option rows[] = {
    TEXT("output", common.output, "DIR",
         "directory to write; may be new, empty or an earlier report, which is replaced",
         .letter = 'o', .note = "F-report beside F.h5"),
    TEXT("name", name, "NAME", "clustering to show, if the file has several",
         .note = "kmeans, or the only one"),
    FLAG("link-originals", link_originals,
         "show and link the image files themselves if they have not changed; the pages then "
         "contain their absolute paths"),
    {.name = NULL}};

const struct command command_report = {
    .name = "report",
    .goal = GOAL_RESULTS,
    .arguments = "F.h5 [-o DIR] [OPTIONS]",
    .summary = "write pages that show the images, for a browser",
    .about =
        "Writes a directory of static pages with thumbnails: the clusters, a map of all images, "
        "similar images, duplicates, and the files that failed. Open DIR/index.html; no "
        "server or network is needed. The pages name no user, host or absolute path.",
    .examples = "  clpipe report photos.h5\n"
                "  clpipe report photos.h5 --name fine -o fine-report",
    .operand_name = "F.h5",
    .operands = {1, 1},
    .computes = true,
    .group = {{"What to write", rows}},
    .size = sizeof(OWN),
    .run = run_report};
