/* ring.h: a lane: one device with its ring of slots and the thread that serves it. Inside staging:
 * staging.c opens and closes lanes and has the decode threads' side, share.c chooses among lanes,
 * ring.c has what becomes of a slot that is full.
 */
#ifndef CLPIPE_STAGING_RING_H
#define CLPIPE_STAGING_RING_H

#include "staging/slot.h"
#include "staging/staging_config.h"

#include <pthread.h>

struct lane {
    struct staging *staging;
    struct ocl_context *context;
    struct slot_queues queues;
    struct chain chain;
    struct slot_shape shape;
    struct slot slot[SLOTS_MAX];
    unsigned slot_count;
    pthread_t thread;
    bool started;
    /* Guarded by the staging's lock: */
    struct slot *filling, *ready, *ready_last, *finished;
    unsigned busy; /* slots that the device has */
    bool built;    /* the kernels are there, and right */
    bool failed;
    bool emptied; /* after it failed: what its slots held has been given back */
    double seconds[3];
    /* How fast it is, for share.c: */
    uint64_t pending;  /* bytes in its slots */
    double rate;       /* bytes a second from start to end, lately; 0: not known */
    int64_t last_end;  /* of its last slot */
    int64_t last_took; /* nanoseconds */
};

struct staging {
    struct staging_config config;
    struct lane *lane;
    unsigned lane_count;
    uint64_t part_bytes;
    bool whole; /* a step takes whole pictures only */
    pthread_mutex_t lock;
    pthread_cond_t room;  /* a slot became free, or another lane than before may be chosen */
    pthread_cond_t event; /* for the lane threads: a slot is ready or finished, or the end */
    bool ending, aborted;
};

/* All with the lock: */

/* Hands a sealed slot without outstanding parts to its lane thread. */
void ring_make_ready(struct slot *slot);
/* Nothing more goes into the slot that is filling. */
void ring_seal(struct lane *lane);
/* Opens a free slot for filling, if there is one. */
void ring_open_slot(struct lane *lane);
/* Is everything that was filled delivered or given back? */
bool ring_is_empty(const struct lane *lane);

/* The lane thread; argument: its struct lane. */
void *ring_serve(void *lane);

/* The lane for the next part of *bytes, NULL: for now none. Cuts *bytes to what the lane should
 * have of it. */
struct lane *share_choose(uint64_t *bytes, const struct staging *staging);
/* Lanes that have not failed. */
unsigned share_alive(const struct staging *staging);
/* A slot of `bytes` that the device was given at `started` has been counted. */
void share_measure(struct lane *lane, uint64_t bytes, int64_t started);

#endif
