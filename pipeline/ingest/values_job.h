/* values_job.h: features of pictures that the caller has, given back to him: an ingest without a walk
 * and without a file. Pixels, words and failures are those of ingest.h. */
#ifndef CLPIPE_INGEST_VALUES_JOB_H
#define CLPIPE_INGEST_VALUES_JOB_H

#include "ingest/ingest_config.h"

struct values_job {
    /* Uses: features (with their codebooks), decode, variant, jpeg, trace, threads, memory, memory_streams,
     * device_memory, slot_bytes, slot_count, stop, progress (phase "images", on the calling thread). */
    struct ingest_config config;
    struct ingest_devices devices;
    uint64_t count;
    /* Opens picture i, or fills *failure. `path` is for messages of formats. Any thread, several at a time,
     * more than once for a picture of a device that has failed. */
    void (*open)(void *context, uint64_t i, struct blob *blob, const char **path,
                 struct failure *failure);
    /* What became of picture i: its words, or where they are NULL, why not. Any thread, several at a time,
     * once for each picture unless the job fails. */
    void (*take)(void *context, uint64_t i, const uint32_t *words, const struct failure *failure);
    void *context;
};

/* STATUS_INTERRUPTED: a stop was requested. A picture's failure is not the job's. */
enum status values_job_run(struct values_job *job, struct error *err);

#endif
