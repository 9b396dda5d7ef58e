/* values_job.h: computes features of the caller's pictures and returns them: an ingest without walk
 * and file. Pixels, words and failures are those of ingest.h. */
#ifndef CLPIPE_INGEST_VALUES_JOB_H
#define CLPIPE_INGEST_VALUES_JOB_H

#include "ingest/ingest_config.h"

struct values_job {
    /* Used fields: features (with their codebooks), decode, variant, jpeg, trace, threads, memory,
     * memory_streams, device_memory, slot_bytes, slot_count, stop, progress (phase "images", on the
     * calling thread). */
    struct ingest_config config;
    struct ingest_devices devices;
    uint64_t count;
    /* Opens picture i, or sets *failure. `path` is for messages about formats. Any thread, several
     * at a time, more than once for a picture of a device that failed. */
    void (*open)(void *context, uint64_t i, struct blob *blob, const char **path,
                 struct failure *failure);
    /* Receives the result of picture i: its words, or NULL and a failure. Any thread, several at a
     * time, once per picture unless the job fails. */
    void (*take)(void *context, uint64_t i, const uint32_t *words, const struct failure *failure);
    void *context;
};

/* STATUS_INTERRUPTED: stopped. Failures of pictures do not make the job fail. */
enum status values_job_run(struct values_job *job, struct error *err);

#endif
