/* summary.h: the summary of a command: on standard output, or on standard error with --json -. -q
 * silences it. */
#ifndef CLPIPE_CLI_SUMMARY_H
#define CLPIPE_CLI_SUMMARY_H

#include "cli/options.h"
#include "ingest/ingest_config.h"
#include "jobs/clustering.h"

/* The final status of a command that ended with `status`: STATUS_FAILED if a summary could not be
 * written (full disk), unless its reader has closed the pipe or standard output was closed from the
 * beginning. */
enum status summary_outcome(enum status status, struct error *err);

/* After ingest; `status` is ingest_run's. next: also suggests the next command. */
void summary_ingest(const struct ingest_report *report, const struct options *options,
                    enum status status, bool next);

/* Completes the error of a stopped ingest: the reason, and the work that is kept. */
void summary_stopped(struct error *err, const struct ingest_report *report);

/* After a clustering: a table of the largest clusters, with image names if the rows are images. */
void summary_clusters(const struct clustering_report *result, const struct options *options);

/* Whether the JSON, a list or a plot owns standard output, so that everything else is written to standard error. */
bool summary_is_aside(const struct options *options);

/* Prints the result of a command, one line. */
void summary_line(const struct options *options, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints the time spent in each stage, once: after a command's output, but before its advice. */
void summary_wall(const struct options *options);

/* "2 files that are not images"; returns buffer. */
char *skipped_text(char *buffer, size_t size, uint64_t count);

/* Images decoded by this run, without those of earlier runs. */
uint64_t images_done(const struct ingest_report *report);

#endif
