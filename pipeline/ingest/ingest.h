/* ingest.h: ingest, from sources to a finished file. The flow, its threads and queues are drawn at
 * the top of ingest.c. */
#ifndef CLPIPE_INGEST_INGEST_H
#define CLPIPE_INGEST_INGEST_H

#include "ingest/ingest_config.h"

/* Runs. STATUS_OK also when files failed (report->images_failed says so). STATUS_PARTIAL: a strict
 * run met a failure. STATUS_INTERRUPTED: a stop was asked for. The report is filled in every case.
 */
enum status ingest_run(struct ingest_report *report, const struct ingest_config *config,
                       struct error *err);

#endif
