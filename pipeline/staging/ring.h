/* ring.h: a lane: one device with its ring of slots and the thread that serves it. Internal to
 * staging: staging.c opens and closes lanes and serves the decode threads, share.c chooses among
 * lanes, ring.c processes full slots.
 */
#ifndef CLPIPE_STAGING_RING_H
#define CLPIPE_STAGING_RING_H

#include "staging/slot.h"
#include "staging/staging_config.h"

#include <pthread.h>
#include <stdatomic.h>

struct lane {
    struct staging *staging;
    const struct ocl_device *device;
    struct ocl_context *context;
    struct slot_queues queues;
    struct chain chain;
    struct slot_shape shape;
    struct slot slot[SLOTS_MAX];
    unsigned slots_wanted; /* at most: the others are allocated when all are in use */
    unsigned alike;        /* lanes with the same number other than 0 have devices of one kind */
    pthread_t thread, grower;
    bool started, grows;
    bool drained; /* its thread has nothing more to deliver, or is being ended */
    struct slot *delivering; /* this and the next are the lane thread's */
    unsigned track;          /* of the trace */
    atomic_bool built;       /* the kernels are built and proven */
    /* Guarded by the staging's lock: */
    bool opened; /* before, only what was planned may be looked at: steps and shape */
    unsigned slot_count;
    bool wants_slot; /* all are in use */
    struct slot *filling, *ready, *ready_last, *finished, *finished_last;
    unsigned busy; /* slots on the device */
    bool failed;
    bool emptied; /* after it failed: the parts in its slots were given back as lost */
    double seconds[3];
    /* Its speed, for share.c: */
    uint64_t pending;  /* bytes in its slots, of streams those of their pixels */
    double rate;       /* recent bytes per second from start to end; 0: unknown */
    int64_t last_end;  /* of its last slot */
    int64_t last_took; /* nanoseconds */
};

struct staging {
    struct staging_config config;
    struct lane *lane;
    unsigned lane_count;
    uint64_t part_bytes;
    bool whole; /* steps take whole images */
    pthread_mutex_t lock;
    pthread_cond_t room;  /* a slot became free, or share_choose may choose another lane */
    pthread_cond_t event; /* for the lane threads: a slot is ready or finished, or the end */
    pthread_cond_t grow;  /* for the growers: a lane wants a slot, or the end */
    bool ending, aborted;
};

/* All under the lock: */

/* Hands a sealed slot without outstanding parts to its lane thread. */
void ring_make_ready(struct slot *slot);
/* Closes the slot that is filling to further parts. */
void ring_seal(struct lane *lane);
/* Opens a free slot for filling, if there is one. */
void ring_open_slot(struct lane *lane);
/* Have all filled parts been delivered or given back? */
bool ring_is_empty(const struct lane *lane);

/* Opens the device of a planned lane, allocates its first slots and starts its grower. One lane is opened
 * before there are threads. In staging.c. */
enum status staging_open_lane(struct lane *lane, struct error *err);

/* The lane thread, which opens the lane where it is not; argument: its struct lane. */
void *ring_serve(void *lane);
/* Allocates the lane's next slot. Of one thread at a time. */
enum status ring_allocate(struct lane *lane, struct error *err);
/* The thread that allocates slots while others are in use; argument: its struct lane. */
void *ring_grow(void *lane);

/* The lane for the next part of *bytes; NULL: none at the moment. Reduces *bytes to what the lane
 * should get. */
struct lane *share_choose(uint64_t *bytes, const struct staging *staging);
/* The number of lanes that have not failed. */
unsigned share_alive(const struct staging *staging);
/* Records that a slot of `bytes`, submitted at `started`, has been counted. */
void share_measure(struct lane *lane, uint64_t bytes, int64_t started);

#endif
