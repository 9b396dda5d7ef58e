/* decoder.h: the decode threads. Each takes opened pictures, decodes them into slots of staging, or
 * describes them on the host if there are no devices, and releases them. */
#ifndef CLPIPE_INGEST_DECODER_H
#define CLPIPE_INGEST_DECODER_H

#include "features/descriptor.h"
#include "ingest/ingest_job.h"
#include "ingest/picture.h"

struct decoders;

/* Everything must outlive the threads. */
struct decoders_config {
    struct ingest_job *job;
    struct picture *(*take)(void *context, struct stage_times *times, bool wait); /* readers_take */
    void *context;
    bool coefficients, streams; /* forms of JPEG pictures that are submitted (device_side.h) */
    unsigned open_files;        /* upper bound per thread */
    uint32_t thumbnail_size;    /* 0: no thumbnails */
    /* What the host scales pictures to; if the job has staging, set to its goals. */
    scale_goal goal[STEP_NODES_MAX];
    unsigned goals;
    /* Called for each goal with the scaled picture if the job has no staging. Sets the picture's
     * failure if memory is short; the picture may still fail afterwards. Any thread, one per
     * picture. */
    void (*describe)(struct picture *picture, scale_goal goal,
                     const struct descriptor_picture *image);
};

/* Starts as many threads as configured, or, with a notice, as the system allows, but at least one.
 * On failure *out must still be closed. */
enum status decoders_open(struct decoders **out, const struct decoders_config *config,
                          struct error *err);

/* Waits until a thread has ended or `deadline` (clock_now()) has passed; true: all have ended. */
bool decoders_wait(struct decoders *decoders, int64_t deadline);

/* Waits until all threads have ended. */
void decoders_join(struct decoders *decoders);

/* Decodes the rest of `take` on the calling thread; after decoders_join. */
void decoders_run(struct decoders *decoders);

/* Adds the threads' times to a stage's; after decoders_join. */
void decoders_times(const struct decoders *decoders, struct stage_times *times);

/* Frees; after decoders_join. Accepts NULL. */
void decoders_close(struct decoders **decoders);

#endif
