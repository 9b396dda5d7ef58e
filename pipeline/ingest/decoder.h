/* decoder.h: the decode threads. Each takes opened pictures, decodes them into slots of staging,
 * and releases them. */
#ifndef CLPIPE_INGEST_DECODER_H
#define CLPIPE_INGEST_DECODER_H

#include "ingest/device_side.h"
#include "ingest/picture.h"

struct decoders;

/* Everything must outlive the threads. */
struct decoders_config {
    struct ingest_job *job;
    struct picture *(*take)(void *context, struct stage_times *times, bool wait); /* readers_take */
    void *context;
    const struct device_side *device_side; /* which forms of JPEG pictures are submitted */
    unsigned open_files;                   /* upper bound per thread */
    uint32_t thumbnail_size;               /* 0: no thumbnails */
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
