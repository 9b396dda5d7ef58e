/* report_step.h: the pages of a result, for report and run. */
#ifndef CLPIPE_CLI_REPORT_STEP_H
#define CLPIPE_CLI_REPORT_STEP_H

#include "base/json.h"
#include "cli/options.h"
#include "report/pages.h"

/* The default of report's -o: "F-report" for F.h5; the caller frees it. */
enum status report_directory(char **directory, const char *file, struct error *err);

/* Prints the line that says which page to open. */
void report_open_line(const struct options *options, const char *directory);

/* Writes members of the open object. */
void report_pages(struct json *json, const struct pages_counts *counts, const char *directory);

#endif
