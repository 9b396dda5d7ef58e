/* ingest.h: ingest, from sources to a finished file. The top of ingest.c has a diagram of its flow,
 * threads and queues. */
#ifndef CLPIPE_INGEST_INGEST_H
#define CLPIPE_INGEST_INGEST_H

#include "ingest/ingest_config.h"

/* Runs an ingest. STATUS_OK even if files failed (report->by_reason). STATUS_PARTIAL: a failure
 * in a strict run. STATUS_INTERRUPTED: stopped. The report is always filled. */
enum status ingest_run(struct ingest_report *report, const struct ingest_config *config,
                       struct error *err);

#endif
