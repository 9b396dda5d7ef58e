/* cmd_report.c: clpipe report: pages to look at. */
#include "base/clock.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/report_json.h"
#include "cli/report_step.h"
#include "cli/signals.h"
#include "cli/summary.h"
#include <stdio.h>
#include <stdlib.h>

static void print_counts(const struct pages_counts *counts, const struct options *options,
                         double seconds)
{
    char images[40], bytes[40];
    format_number_of(images, sizeof images, counts->images, "image");
    summary_line(options, "report of %s in %.2f s, %s%s%s", images, seconds,
                 format_bytes(bytes, sizeof bytes, counts->bytes),
                 counts->clustering[0] ? ", clusters " : "", counts->clustering);
    if (counts->without_thumbnail)
        summary_line(options,
                     "  missing     %s without a thumbnail: the file is gone or has changed",
                     format_number_of(images, sizeof images, counts->without_thumbnail, "image"));
}

enum status command_report(const struct options *options, struct error *err)
{
    struct pages_counts counts = {0};
    struct compute compute = {0};
    struct compute_search search = {&compute, options};
    struct progress progress;
    char *fallback = NULL;
    signals_install(0);
    progress_init(&progress, options);
    const int64_t begun = clock_now();
    enum status status = report_directory(&fallback, options->operand[0], err);
    const char *directory = options->output ? options->output : fallback;
    if (status == STATUS_OK)
        status = report_step(&counts, options->operand[0], directory, options->name, false, &search,
                             &progress, err);
    if (status == STATUS_OK) {
        print_counts(&counts, options, (double)(clock_now() - begun) * 1e-9);
        report_open_line(options, directory);
    }
    if (status == STATUS_OK && options->json) {
        struct json json;
        json_init(&json, false);
        report_pages(&json, NULL, &counts, directory);
        status = report_write(options, &json, err);
    }
    free(fallback);
    return compute_close(&compute, status, err);
}
