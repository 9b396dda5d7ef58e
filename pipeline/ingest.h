/* ingest.h: what the threads of ingest share. Inside pipeline: pipeline.c wires, ingest_take.c,
 * ingest_decode.c and ingest_store.c hold what its threads run.
 */
#ifndef CLPIPE_INGEST_H
#define CLPIPE_INGEST_H

#include "base/budget.h"
#include "base/queue.h"
#include "pipeline.h"
#include "staging/staging.h"
#include "walk/walk.h"

#include <pthread.h>
#include <stdatomic.h>

struct worker {
    struct pipeline *pipeline;
    unsigned number;
    pthread_t thread;
    double busy, starved, blocked;
};

struct pipeline {
    const struct ingest_config *config;
    struct ingest_report *report;
    struct walk *walk;
    struct store *store;
    struct ingest_devices devices; /* count 0 in a dry run */
    struct staging *staging;
    bool coefficients; /* decoders hand out those of JPEG pictures for it */
    struct budget *budget;
    struct queue *finished; /* of struct picture * */
    struct worker *worker;
    unsigned workers; /* started */
    pthread_t store_thread, close_thread;
    bool store_started, closing;
    uint64_t window;
    unsigned open_files; /* a decode thread holds at most so many, and as many wait for it */
    struct ahead *ahead;
    atomic_uint window_waits; /* threads that wait for window_moved */

    pthread_mutex_t walk_lock; /* guards walk, store_prior, handed_out and again */
    pthread_cond_t window_moved;
    uint64_t handed_out;
    struct picture *again; /* to be decoded once more: a device failed that had parts of them */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    unsigned working; /* decode threads that have not ended */
    uint64_t stored;
    struct error error; /* of the run: the first */
    struct ingest_progress progress;
    double store_busy;

    struct stop own_stop;
    struct stop *stop;
};

/* One item on its way from walk to store. */
struct picture {
    struct pipeline *pipeline;
    struct store_record record;
    char *path;
    uint32_t *counters; /* NULL until the first part */
    bool resumed, unchanged;
    bool lost;            /* a device failed that had a part of it */
    bool dropped;         /* the run ends without it */
    struct picture *next; /* in the list of those to be decoded again */
    uint64_t pixels, bytes_read;
    atomic_uint holders;  /* the decode thread and each part under way */
    pthread_mutex_t lock; /* guards counters and lost: several lanes may deliver parts of it */
};

/* Ends the run with an error: the first wins, everybody is woken. Any thread. */
void ingest_fail(struct pipeline *pipeline, const struct error *err);

/* A picture and its file, -1 where it is not to be decoded. */
struct opened {
    struct picture *picture;
    int fd;
};

/* Files opened ahead of the decode threads, by threads of their own; see ingest_take.c. ahead_start
 * starts as many as the system gives, also none. ahead_abort: nobody wants any more; any thread.
 * ahead_join: after the decode threads have ended; frees what they have left. */
enum status ahead_open(struct ahead **out, struct pipeline *pipeline, struct error *err);
void ahead_start(struct ahead *ahead);
void ahead_abort(struct ahead *ahead);
void ahead_join(struct ahead *ahead);
void ahead_close(struct ahead **ahead);

/* The next file for a decode thread, or false at the end, on a stop and on an error; without
 * `wait`, also where there is none yet: who holds pictures must not wait for others. */
bool ingest_take(struct opened *opened, struct worker *worker, bool wait);

/* Frees a picture that no part holds any more. Accepts NULL. */
void picture_free(struct picture *picture);

/* staging's deliver: one part's counters for a picture. Any thread. */
void picture_deliver(void *pipeline, void *picture, const uint32_t *counters);

/* staging's lost: a part's counters will not come. Any thread. */
void picture_lost(void *pipeline, void *picture);

/* A decode thread; argument: its struct worker. */
void *ingest_decode_main(void *argument);

/* The store thread; argument: the struct pipeline. */
void *ingest_store_main(void *argument);

#endif
