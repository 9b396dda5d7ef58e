/* describing.h: features of the caller's pictures: an ingest without a walk and a file, for the
 * library and for pictures that are compared with those of a file. */
#ifndef CLPIPE_INGEST_DESCRIBING_H
#define CLPIPE_INGEST_DESCRIBING_H

#include "ingest/ingest_config.h"
#include "matrix/joined.h"

struct describing {
    /* Uses these fields of the configuration: features, decode, threads, memory, memory_streams,
     * device_memory, stop, progress (phase "images", on the calling thread). */
    struct ingest_config config;
    struct ocl_selection devices;
    struct join join; /* of the features */
    uint32_t columns; /* of all of them */
    uint64_t count;   /* of pictures */
    float *values;    /* count x columns, as a file has them; NaN for a picture that failed */
    /* Opens picture i, or sets *failure, and returns its name, which says whether it should be an
     * image. Any thread, several at a time; again for a picture whose device has failed. */
    const char *(*open)(void *context, uint64_t i, struct blob *blob, struct failure *failure);
    /* Picture i is done, or has failed. Any thread, several at a time, once per picture unless the job fails. */
    void (*done)(void *context, uint64_t i, const struct failure *failure);
    void *context;
};

/* Adds a feature to the configuration and to the join. STATUS_USAGE: no such feature, no such
 * model. */
enum status describing_add(struct describing *describing, const char *spec, double weight,
                           struct error *err);

/* Describes all pictures; codebooks are bound. A picture's failure is not a failure of the job.
 * STATUS_INTERRUPTED: stopped. */
enum status describing_run(struct describing *describing, struct error *err);

#endif
