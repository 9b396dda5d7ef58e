/* status_file.h: the progress of a run for those who cannot see its terminal: status.json in the
 * work directory, replaced every ten seconds and at the start of each phase. docs/hpc.md describes
 * its contents. It is informational and never synced. */
#ifndef CLPIPE_INGEST_STATUS_FILE_H
#define CLPIPE_INGEST_STATUS_FILE_H

#include "ingest/ingest_config.h"

/* Zeroed, except directory, before the first call. */
struct status_file {
    const char *directory; /* NULL: no file */
    const char *phase;     /* of the last call; below, the state at its start */
    double phase_seconds;
    uint64_t phase_done, phase_bytes;
    int64_t written; /* clock_now() */
};

/* Writes the file if it is due. Failures are ignored: the next call tries again. One thread at a
 * time. */
void status_file_note(struct status_file *file, const struct ingest_progress *progress);

#endif
