/* status_file.h: how far a run is, for those who do not see its terminal: status.json in the work
 * directory, renamed into place every ten seconds and when a phase begins. What it holds is in
 * docs/hpc.md; it is advice, and never synced. */
#ifndef CLPIPE_INGEST_STATUS_FILE_H
#define CLPIPE_INGEST_STATUS_FILE_H

#include "ingest/ingest_config.h"

/* Zero but for the directory before the first call. */
struct status_file {
    const char *directory; /* NULL: nothing is written */
    const char *phase;     /* of the last call; below, what it began with */
    double phase_seconds;
    uint64_t phase_done, phase_bytes;
    int64_t written; /* clock_now() */
};

/* Writes if it is time to. A failure is not told: the next call tries again. One thread at a time. */
void status_file_note(struct status_file *file, const struct ingest_progress *progress);

#endif
