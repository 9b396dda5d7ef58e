/* ring.h: a lane: one device with its ring of slots and the thread that serves it. Internal to
 * staging: staging.c opens and closes lanes and serves the decode threads, share.c chooses among
 * lanes, ring.c processes full slots.
 */
#ifndef CLPIPE_DEVICE_RING_H
#define CLPIPE_DEVICE_RING_H

#include "device/slot.h"
#include "device/staging_config.h"

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
    unsigned slots_wanted; /* limit: slots after the first are allocated when all are in use */
    unsigned alike;        /* number of the kind of device; 0: no equal device */
    pthread_t thread, grower;
    bool started, grows;
    bool drained;            /* its thread has nothing left to deliver, or is ending */
    struct slot *delivering; /* this and the next: of the lane thread */
    unsigned track;          /* in the trace */
    atomic_bool built;       /* kernels are built and proven */
    /* Guarded by the staging's lock: */
    bool opened; /* before that, only steps and shape may be read */
    unsigned slot_count;
    bool wants_slot; /* all slots are in use */
    struct slot *filling, *ready, *ready_last, *finished, *finished_last;
    unsigned busy; /* slots on the device */
    bool failed;
    bool emptied; /* after a failure: the parts in its slots were reported as lost */
    double seconds[3];
    /* For share.c: */
    uint64_t pending;  /* bytes in its slots; for streams, those of their pixels */
    double rate;       /* recent bytes per second; 0: unknown */
    int64_t last_end;  /* when its last slot ended */
    int64_t last_took; /* time of the last slot, ns */
};

struct staging {
    struct staging_config config;
    struct lane *lane;
    unsigned lane_count;
    uint64_t part_bytes;
    bool whole; /* some step needs whole images */
    pthread_mutex_t lock;
    pthread_cond_t room;  /* a slot became free, or share_choose may choose another lane */
    pthread_cond_t event; /* for lane threads: a slot is ready or finished, or the run ends */
    pthread_cond_t grow;  /* for growers: a lane needs a slot, or the run ends */
    bool ending, aborted;
};

/* Call these with the lock held: */

/* Passes a sealed slot without outstanding parts to its lane thread. */
void ring_make_ready(struct slot *slot);
/* Seals the slot that is filling. */
void ring_seal(struct lane *lane);
/* Starts to fill a free slot, if there is one. */
void ring_open_slot(struct lane *lane);
/* Have all parts been delivered or reported as lost? */
bool ring_is_empty(const struct lane *lane);

/* Opens the device of a planned lane, allocates its first slots and starts its grower. One lane is
 * opened before threads start. In staging.c. */
enum status staging_open_lane(struct lane *lane, struct error *err);

/* The lane thread; opens the lane if necessary. Argument: its struct lane. */
void *ring_serve(void *lane);
/* Allocates the lane's next slot. One thread at a time. */
enum status ring_allocate(struct lane *lane, struct error *err);
/* The thread that allocates slots during the run; argument: its struct lane. */
void *ring_grow(void *lane);

/* Returns the lane for the next part of *bytes; NULL: none now. Reduces *bytes to what the lane
 * should get. */
struct lane *share_choose(uint64_t *bytes, const struct staging *staging);
/* The number of lanes that have not failed. */
unsigned share_alive(const struct staging *staging);
/* Records that a slot of `bytes`, submitted at `started`, is finished. */
void share_measure(struct lane *lane, uint64_t bytes, int64_t started);

#endif
