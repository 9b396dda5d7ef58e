/* summary.h: what a person reads when a command is done: on standard output, or on standard error
 * where --json - has that. -q silences it. */
#ifndef CLPIPE_CLI_SUMMARY_H
#define CLPIPE_CLI_SUMMARY_H

#include "cli/options.h"
#include "ingest/ingest_config.h"
#include "jobs/clustering.h"

/* The outcome of a command whose own is `status`: STATUS_FAILED where a summary could not be written
 * (full disk), but not where its reader has closed the pipe, or standard output was closed from the
 * beginning. */
enum status summary_outcome(enum status status, struct error *err);

/* After ingest; `status` is ingest_run's. next: also the next command. */
void summary_ingest(const struct ingest_report *report, const struct options *options,
                    enum status status, bool next);

/* Completes the error of an ingest that was stopped: why, and what is kept of its work. */
void summary_stopped(struct error *err, const struct ingest_report *report);

/* After a clustering: a table of the largest clusters, with the names of images where the rows are
 * of images. */
void summary_clusters(const struct clustering_report *result, const struct options *options);

/* One line that is the result of a command. */
void summary_line(const struct options *options, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Behind what a command has told, once, or before what it advises: how long the process has been at each
 * stage. */
void summary_wall(const struct options *options);

/* Ingest's files that failed (not those that are no images). */
uint64_t failures_counted(const uint64_t by_reason[REASON_COUNT]);

/* "2 files that are not images"; returns buffer. */
char *skipped_text(char *buffer, size_t size, uint64_t count);

/* Images that this run decoded: not those that earlier ones had done. */
uint64_t images_done(const struct ingest_report *report);

#endif
