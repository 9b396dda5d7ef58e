/* slot.h: a slot of a ring: its buffers and commands. Internal to staging. */
#ifndef CLPIPE_DEVICE_SLOT_H
#define CLPIPE_DEVICE_SLOT_H

#include "device/chain.h"
#include "device/staging_config.h"
#include <stdint.h>

#define SLOTS_MAX      64u          /* per ring */
#define SLOT_BYTES_MIN (1ull << 20) /* for parts; with whole images: slot_bytes_least */

struct ring;

enum slot_state {
    SLOT_FREE,
    SLOT_FILLING, /* the ring's current one */
    SLOT_SEALED,  /* accepts no more parts; some may still be outstanding */
    SLOT_BUSY,    /* on the device */
};

/* An array on host and device. If they share memory: one buffer, mapped while the host owns it;
 * otherwise a pinned buffer, always mapped, and a device buffer. */
struct slot_array {
    cl_mem device, pinned; /* pinned: NULL if memory is shared */
    void *host;            /* valid while the host owns the slot */
    size_t bytes;
};

struct slot {
    struct ring *ring;
    /* Up to `watched`, guarded by the staging's lock: */
    enum slot_state state;
    uint32_t used_bytes, parts, outstanding;
    uint64_t cost; /* sum over its parts, as in share.c */
    struct chain_use use;
    int64_t opened;     /* when the first part was acquired */
    int64_t given;      /* when it was submitted to the device */
    struct slot *next;  /* in the list of ready or finished slots */
    cl_int result;      /* of the last command */
    bool watched;       /* `done` will be called */
    uint32_t delivered; /* number of parts; used by the ring thread only */
    uint32_t zeroed;    /* shared values: rows known to be zero; used by the ring thread only */
    void **picture;     /* [parts]; NULL: cancelled; each written by the part's owner */
    struct slot_array input, values;
    struct slot_array table[STEP_NODES_MAX]; /* per node of the chain */
    cl_event upload_event, step_event[STEP_EVENTS_MAX], read_event;
};

struct slot_queues {
    struct ocl_queue *upload, *compute, *read;
};

struct slot_shape {
    uint64_t bytes; /* for parts */
    uint32_t parts; /* upper bound */
    bool shared;    /* memory is shared with the host */
    bool over;      /* the memory limits are too low even for the smallest slots */
};

/* The smallest slot for the plan's parts: a part takes up to half of it. */
uint64_t slot_bytes_least(const struct step_plan *plan);

/* Chooses size and number of a ring's slots from options, memory limits and device limits. chain:
 * initialised; its arenas count as slots. */
unsigned slot_shape_choose(struct slot_shape *shape, const struct staging_config *config,
                           const struct ocl_device *device, const struct chain *chain);

/* Allocates the buffers and maps them on the host. */
enum status slot_init(struct slot *slot, struct ocl_context *context, struct slot_queues queues,
                      const struct slot_shape *shape, const struct chain *chain, struct error *err);
/* Releases everything; accepts a zeroed slot. The queues must still be open. */
void slot_clear(struct slot *slot, struct slot_queues queues);

/* Enqueues upload, steps and read-back of the slot. On a thread of the driver or of the context, calls
 * `done` once the host owns the slot again, with the values in values.host. Shared values must be
 * zeroed again before the slot is freed. */
enum status slot_enqueue(struct slot *slot, struct ocl_context *context, struct slot_queues queues,
                         const struct slot_shape *shape, struct chain *chain,
                         void (*done)(cl_int status, void *context), struct error *err);

/* After `done`: releases the events and adds their device seconds. */
void slot_release_events(struct slot *slot, struct ocl_context *context, double seconds[3]);

#endif
