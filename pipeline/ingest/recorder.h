/* recorder.h: the store threads: pass finished pictures to the store and count them. */
#ifndef CLPIPE_INGEST_RECORDER_H
#define CLPIPE_INGEST_RECORDER_H

#include "ingest/ingest_job.h"
#include "ingest/picture.h"
#include "ingest/readers.h"

struct recorder;

/* Starts the threads. store: NULL in a dry run; the report's counters belong to the threads until
 * recorder_finish. Notifies the readers when the window moves. thumbnail_size: as in
 * picture_sink. */
enum status recorder_open(struct recorder **out, struct ingest_job *job, struct store *store,
                          struct readers *readers, struct ingest_report *report,
                          uint32_t thumbnail_size, struct error *err);

/* Takes ownership of a finished picture; blocks while the queue is full. Any thread. */
void recorder_put(struct recorder *recorder, struct picture *picture);

/* Ends the run: queued pictures are dropped. Any thread. */
void recorder_abort(struct recorder *recorder);

/* After the last picture: waits until all are stored and the threads have ended. Returns the busy
 * seconds of the busiest thread. */
double recorder_finish(struct recorder *recorder);

/* Frees; after recorder_finish. Accepts NULL. */
void recorder_close(struct recorder **recorder);

#endif
