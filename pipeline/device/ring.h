/* ring.h: a ring: one device with its slots and the thread that serves them. Internal to staging:
 * staging.c opens and closes rings and serves the decode threads, share.c chooses among rings,
 * ring.c processes full slots. */
#ifndef CLPIPE_DEVICE_RING_H
#define CLPIPE_DEVICE_RING_H

#include "device/slot.h"
#include "device/staging_config.h"

#include <pthread.h>
#include <stdatomic.h>

struct ring {
    struct staging *staging;
    const struct ocl_device *device;
    struct ocl_context *context;
    struct slot_queues queues;
    struct chain chain;
    struct slot_shape shape;
    struct slot slot[SLOTS_MAX];
    unsigned slots_wanted; /* limit: slots after the first are allocated when all are in use */
    unsigned alike;        /* number of its group of equal devices; 0: no device is equal to it */
    pthread_t thread, grower;
    bool started, grows;
    bool drained;            /* its thread has nothing more to deliver, or is ending */
    struct slot *delivering; /* this and the next: of the ring thread */
    unsigned track;          /* in the trace */
    atomic_bool built;       /* kernels are built and proven */
    /* Guarded by the staging's lock: */
    bool opened; /* until then, only steps and shape may be read */
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
    struct ring *ring;
    unsigned ring_count;
    uint64_t part_bytes;
    bool whole; /* some step needs whole images */
    pthread_mutex_t lock;
    pthread_cond_t room;  /* a slot became free, or share_choose may choose another ring */
    pthread_cond_t event; /* for ring threads: a slot is ready or finished, or the run ends */
    pthread_cond_t grow;  /* for growers: a ring needs a slot, or the run ends */
    bool ending, aborted;
};

/* Call these with the lock held: */

/* Passes a sealed slot without outstanding parts to its ring thread. */
void ring_make_ready(struct slot *slot);
/* Seals the slot that is filling. */
void ring_seal(struct ring *ring);
/* Starts to fill a free slot, if there is one. */
void ring_open_slot(struct ring *ring);
/* Have all parts been delivered or reported as lost? */
bool ring_is_empty(const struct ring *ring);

/* Opens the device of a planned ring, allocates its first slots and starts its grower. One ring is
 * opened before threads start. In staging.c. */
enum status staging_open_ring(struct ring *ring, struct error *err);

/* The ring thread; opens the ring if necessary. Argument: its struct ring. */
void *ring_serve(void *ring);
/* Allocates the ring's next slot. One thread at a time. */
enum status ring_allocate(struct ring *ring, struct error *err);
/* The thread that allocates slots during the run; argument: its struct ring. */
void *ring_grow(void *ring);

/* Returns the ring for the next part of *bytes; NULL: none now. Reduces *bytes to what the ring
 * should get. */
struct ring *share_choose(uint64_t *bytes, const struct staging *staging);
/* The number of rings that have not failed. */
unsigned share_alive(const struct staging *staging);
/* Records that a slot of `bytes`, submitted at `started`, is finished. */
void share_measure(struct ring *ring, uint64_t bytes, int64_t started);

#endif
