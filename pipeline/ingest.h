/* ingest.h: what the threads of ingest share. Inside pipeline: pipeline.c wires, ingest_decode.c
 * and ingest_store.c hold what its threads run.
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
    unsigned open_files; /* a decode thread holds at most so many */

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
