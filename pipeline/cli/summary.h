/* summary.h: what a person reads when a command is done, on standard error. -q silences it. */
#ifndef CLPIPE_CLI_SUMMARY_H
#define CLPIPE_CLI_SUMMARY_H

#include "cli/options.h"
#include "clustering/clustering.h"
#include "ingest/ingest_config.h"

/* After ingest; `status` is ingest_run's. next: also the next command. */
void summary_ingest(const struct ingest_report *report, const struct options *options,
                    enum status status, bool next);

/* Clears *err where the summary has told already why the run stopped. */
void summary_said(enum status status, struct error *err);

/* After a clustering: a table of the largest clusters, with the names of images where the rows are
 * of images. */
void summary_clusters(const struct clustering_report *result);

/* One line that says what binds the run and what to change. */
void summary_bottleneck(char *text, size_t size, const struct ingest_report *report,
                        const struct options *options);

/* Ingest's files that failed (not those that are no images). */
uint64_t failures_counted(const uint64_t by_reason[REASON_COUNT]);

/* Images that this run decoded: not those that earlier ones had done. */
uint64_t images_done(const struct ingest_report *report);

#endif
