/* slot.h: one slot of a lane: its buffers, and the commands of its round trip. Internal to
 * staging. */
#ifndef CLPIPE_STAGING_SLOT_H
#define CLPIPE_STAGING_SLOT_H

#include "staging/chain.h"
#include "staging/staging_config.h"
#include <stdint.h>

#define SLOTS_MAX      64u          /* of a lane */
#define SLOT_BYTES_MIN (1ull << 20) /* of parts; with steps that take whole images, slot_bytes_least */

struct lane;

enum slot_state {
    SLOT_FREE,
    SLOT_FILLING, /* the lane's current one */
    SLOT_SEALED,  /* accepts no more parts; parts may still be outstanding */
    SLOT_BUSY,    /* the device has it */
};

/* An array on host and device. If they share memory it is one buffer, mapped while the host owns
 * it; otherwise a pinned buffer, always mapped, and a buffer on the device. */
struct slot_array {
    cl_mem device, pinned; /* pinned: NULL if memory is shared */
    void *host;            /* valid while the host owns the slot */
    size_t bytes;
};

struct slot {
    struct lane *lane;
    enum slot_state state; /* this and the next eleven are guarded by the staging's lock */
    uint32_t used_bytes, parts, outstanding;
    uint64_t cost; /* of its parts, as share.c counts it */
    struct chain_use use;
    int64_t opened;    /* when the first part arrived */
    int64_t given;     /* when it was submitted to the device */
    struct slot *next; /* in the list of ready or of finished slots */
    cl_int result;     /* of the last command */
    bool watched;      /* `done` is pending */
    uint32_t delivered; /* of its parts; the lane thread's */
    uint32_t zeroed;    /* rows of shared values that are zero between delivery and the next launch;
                         * the lane thread's */
    void **picture;    /* [parts] NULL: cancelled; each written by the part's owner */
    struct slot_array input, values;
    struct slot_array table[STEP_NODES_MAX]; /* of each node of the chain */
    cl_event upload_event, step_event[STEP_EVENTS_MAX], read_event;
};

struct slot_queues {
    struct ocl_queue *upload, *compute, *read;
};

struct slot_shape {
    uint64_t bytes; /* of parts */
    uint32_t parts; /* at most */
    bool shared;    /* memory is shared with the host */
    bool over;      /* the limits on memory are too low even for the smallest slots */
};

/* The fewest bytes of a slot in which the plan's parts fit: one takes up to half of them. */
uint64_t slot_bytes_least(const struct step_plan *plan);

/* Chooses size and number of a lane's slots, from the options, the memory bounds and the device's
 * limits. chain: initialised; its arenas count as slots. */
unsigned slot_shape_choose(struct slot_shape *shape, const struct staging_config *config,
                           const struct ocl_device *device, const struct chain *chain);

/* Allocates the buffers and maps them on the host. */
enum status slot_init(struct slot *slot, struct ocl_context *context, struct slot_queues queues,
                      const struct slot_shape *shape, const struct chain *chain, struct error *err);
/* Releases all; accepts a zeroed slot. The queues must still be open. */
void slot_clear(struct slot *slot, struct slot_queues queues);

/* Enqueues upload, steps and read-back of the slot; calls `done` when the host owns it again, with
 * the rows of values in values.host. Shared ones are to be zero again before the slot is free. */
enum status slot_enqueue(struct slot *slot, struct ocl_context *context, struct slot_queues queues,
                         const struct slot_shape *shape, struct chain *chain,
                         void (*done)(cl_int status, void *context), struct error *err);

/* After done: releases the events and adds their device seconds. */
void slot_release_events(struct slot *slot, struct ocl_context *context, double seconds[3]);

#endif
