/* slot.h: one slot of a lane: its buffers, and the commands that take it around. Inside staging. */
#ifndef CLPIPE_STAGING_SLOT_H
#define CLPIPE_STAGING_SLOT_H

#include "steps/blur_step.h"
#include "histogram/histogram.h"
#include "steps/jpeg_step.h"
#include "ocl/ocl.h"
#include "staging/staging.h"
#include <stdint.h>

#define SLOTS_MAX      64u          /* of a lane */
#define SLOT_BYTES_MIN (1ull << 20) /* of pixels */
#define PART_ALIGNMENT 128u

struct lane;

enum slot_state {
    SLOT_FREE,
    SLOT_FILLING, /* the lane's current one */
    SLOT_SEALED,  /* nothing more goes in; parts may still be outstanding */
    SLOT_BUSY,    /* the device has it */
};

/* One array that host and device share. Where they share memory there is one buffer, mapped while
 * the host owns it; else a pinned buffer, always mapped, and its device twin. */
struct slot_array {
    cl_mem device, pinned; /* pinned: NULL where memory is shared */
    void *host;            /* valid while the host owns the slot */
    size_t bytes;
};

struct slot {
    struct lane *lane;
    enum slot_state state; /* this and the next twelve are guarded by the staging's lock */
    uint32_t used_bytes, parts, outstanding;
    uint32_t blocks;       /* to blur */
    uint32_t coefficients; /* parts that are DCT coefficients */
    struct reconstruct_range range;
    uint32_t tiles[HISTOGRAM_PASSES_MAX];
    int64_t opened;    /* when the first part came */
    int64_t given;     /* when the device got it */
    struct slot *next; /* in the list of ready or of finished slots */
    cl_int result;     /* of the last command */
    bool watched;      /* `done` is still to come */
    void **picture;    /* [parts] NULL: cancelled; each written by the part's owner */
    struct slot_array pixels, tile_table, counters;
    struct slot_array blur_table; /* struct blur_part [parts], where pictures are blurred */
    struct slot_array jpeg_table; /* struct jpeg_part [parts], where coefficients are taken */
    cl_event upload_event, jpeg_event[2], blur_event,
        kernel_event[HISTOGRAM_PASSES_MAX][HISTOGRAM_EVENTS], read_event;
};

struct slot_queues {
    struct ocl_queue *upload, *compute, *read;
};

struct slot_shape {
    uint64_t bytes; /* of pixels */
    uint32_t parts; /* at most */
    uint32_t tiles; /* at most, for each pass */
    uint32_t passes;
    uint32_t counters; /* of one part */
    bool shared;       /* memory is shared with the host */
    uint32_t border;   /* pixels of a part that are counted are so many columns and rows less */
    bool coefficients; /* parts may be DCT coefficients, which the device makes pixels of */
};

/* Size and number of a lane's slots, from the options, the bounds and the device's limits. */
unsigned slot_shape_choose(struct slot_shape *shape, const struct staging_config *config,
                           const struct ocl_device *device, unsigned passes);

/* Allocates the buffers and hands them to the host. */
enum status slot_init(struct slot *slot, struct ocl_context *context, struct slot_queues queues,
                      const struct slot_shape *shape, struct error *err);
/* Releases all; accepts a zeroed slot. The queues must still be open. */
void slot_clear(struct slot *slot, struct slot_queues queues);

/* Enqueues upload, kernels and read-back of what is inside; `done` is called when the host owns the
 * slot again, with the counters in counters.host. reconstruct: NULL where parts are pixels only.
 * blur: NULL where pictures are counted as they are.
 */
enum status slot_enqueue(struct slot *slot, struct ocl_context *context, struct slot_queues queues,
                         struct reconstruct *reconstruct, struct blur *blur,
                         struct histogram *histogram, const struct slot_shape *shape,
                         void (*done)(cl_int status, void *context), struct error *err);

/* After done: releases the events; adds device seconds. */
void slot_release_events(struct slot *slot, struct ocl_context *context, unsigned passes,
                         double seconds[3]);

#endif
