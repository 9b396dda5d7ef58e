/* decoder.h: the decode threads. Each takes opened pictures, decodes them into slots of staging, and
 * lets go of them. */
#ifndef CLPIPE_INGEST_DECODER_H
#define CLPIPE_INGEST_DECODER_H

#include "base/budget.h"
#include "ingest/ingest_job.h"
#include "ingest/picture.h"
#include "staging/staging.h"

struct decoders;

/* All of it must outlive the threads. */
struct decoders_config {
    struct ingest_job *job;
    struct picture *(*take)(void *context, struct picture_waits *waits,
                            bool wait); /* readers_take */
    void *context;
    struct staging *staging; /* NULL in a dry run, like the budget */
    struct budget *budget;   /* of bytes that codecs hold beyond the slots */
    bool coefficients;       /* decoders return those of JPEG pictures for staging */
    bool streams;            /* likewise their entropy code */
    unsigned open_files;     /* the most that a thread holds */
    uint32_t thumbnail_size; /* 0: none are made */
};

/* Starts as many threads as configured, or, with a notice, as the system allows, but at least one.
 * On failure *out must be closed nevertheless. */
enum status decoders_open(struct decoders **out, const struct decoders_config *config,
                          struct error *err);

/* Waits until a thread has ended or `deadline` (clock_now()) is reached; true: all have ended. */
bool decoders_wait(struct decoders *decoders, int64_t deadline);

void decoders_join(struct decoders *decoders);

/* Decodes on the calling thread what `take` still gives; after decoders_join. */
void decoders_run(struct decoders *decoders);

/* Adds the threads' times to a stage's; after decoders_join. */
void decoders_times(const struct decoders *decoders, struct stage_times *times);

/* Frees; after decoders_join. Accepts NULLs. */
void decoders_close(struct decoders **decoders);

#endif
