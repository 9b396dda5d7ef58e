/* cmd_report.c: clpipe report: pages to look at. */
#include "base/clock.h"
#include "base/parse.h"
#include "cli/call.h"
#include "cli/commands.h"
#include "cli/report_step.h"
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
    char *fallback = NULL;
    call_start(options, 0);
    const int64_t begun = clock_now();
    enum status status = report_directory(&fallback, options->operand[0], err);
    const char *directory = options->output ? options->output : fallback;
    if (status == STATUS_OK)
        status = report_step(&counts, options->operand[0], directory, options->name, false, options,
                             err);
    if (status == STATUS_OK) {
        print_counts(&counts, options, (double)(clock_now() - begun) * 1e-9);
        report_open_line(options, directory);
        report_pages(&options->call->json, NULL, &counts, directory);
    }
    free(fallback);
    return status;
}
