/* recorder.h: the store threads: hand finished pictures to the store and count them. */
#ifndef CLPIPE_INGEST_RECORDER_H
#define CLPIPE_INGEST_RECORDER_H

#include "ingest/ingest_job.h"
#include "ingest/picture.h"
#include "ingest/readers.h"

struct recorder;

/* Starts the threads. The store is NULL in a dry run; the report's counts are the threads' until
 * recorder_finish. The readers are told when the window moves. thumbnail_size: of picture_sink. */
enum status recorder_open(struct recorder **out, struct ingest_job *job, struct store *store,
                          struct readers *readers, struct ingest_report *report,
                          uint32_t thumbnail_size, struct error *err);

/* Takes over a finished picture; blocks while too many wait. Any thread. */
void recorder_put(struct recorder *recorder, struct picture *picture);

/* The run is over: what waits is dropped. Any thread. */
void recorder_abort(struct recorder *recorder);

/* No more pictures come: waits until all have been stored and the threads have ended. Returns
 * the seconds that the busiest of them was busy. */
double recorder_finish(struct recorder *recorder);

/* Frees; after recorder_finish. Accepts NULLs. */
void recorder_close(struct recorder **recorder);

#endif
