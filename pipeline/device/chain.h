/* chain.h: the steps of a plan on one device, with their state there. Internal to staging. */
#ifndef CLPIPE_DEVICE_CHAIN_H
#define CLPIPE_DEVICE_CHAIN_H

#include "device/step.h"
#include <stdatomic.h>

#define PART_ALIGNMENT 128u /* of parts in slots and arenas, bytes */

struct chain_node {
    const struct step_node *plan;
    const struct step *step;
    void *state;
    struct step_needs needs;
    int input; /* chain index of the input; nodes that this device skips are bypassed */
    bool ready;
    uint32_t first_count, first_event;
    uint64_t arena_bytes; /* 0: produces values */
    uint64_t work_bytes;  /* scratch; 0: its size depends on the slots */
    cl_mem arena, scratch;
};

struct chain {
    struct chain_node node[STEP_NODES_MAX];
    unsigned count;
    uint32_t counts, events;
    uint32_t words;        /* per part's row, including its verdict if a step may refuse */
    uint32_t overlap;      /* of parts, in columns and rows */
    uint32_t slot_sizes;   /* total size of all arenas, in slots */
    uint64_t work_bytes;   /* memory of all nodes, apart from arenas and slots */
    uint32_t largest;      /* size of the largest buffer, in slots; at least 1 */
    uint64_t slot_bytes;   /* preferred slot size; 0: any */
    unsigned builders;     /* steps that are built at the same time */
    atomic_bool abandoned; /* no more steps are built */
    bool refuses;          /* the last word of a row is the verdict */
};

/* The space of one part in a chain. */
struct chain_part {
    struct part_shape out[STEP_NODES_MAX];
    uint32_t offset[STEP_NODES_MAX]; /* in the arenas; set by chain_place */
    uint32_t first[STEP_COUNTS_MAX]; /* in the tables; set by chain_place */
    uint32_t count[STEP_COUNTS_MAX];
};

/* The space of all parts of one slot. */
struct chain_use {
    uint64_t arena[STEP_NODES_MAX]; /* bytes */
    uint32_t count[STEP_COUNTS_MAX];
    uint32_t taken[STEP_NODES_MAX]; /* parts with a payload that the step accepts */
};

/* Chooses the steps of a plan that the device can run; the plan must outlive the chain. memory:
 * bytes on the device for everything. lean: leave out optional steps whose output is larger than
 * their input. */
enum status chain_init(struct chain *chain, const struct step_plan *plan,
                       const struct ocl_device *device, uint64_t memory, bool lean,
                       struct error *err);
/* Opens the steps for slots of about launch_bytes; the context must outlive the chain. */
enum status chain_open(struct chain *chain, struct ocl_context *context, uint64_t launch_bytes,
                       struct error *err);
/* Accepts a zeroed or half-opened chain. */
void chain_close(struct chain *chain);

/* Allocates the arenas for slots of slot_bytes. */
enum status chain_allocate(struct chain *chain, struct ocl_context *context, uint64_t slot_bytes,
                           struct error *err);
/* Frees the arenas. */
void chain_release(struct chain *chain);

/* Builds all kernels and proves them, the last step first. An optional step that fails is skipped, with
 * a notice. */
enum status chain_prove(struct chain *chain, struct error *err);
/* Makes a running chain_prove end soon. Any thread. */
void chain_abandon(struct chain *chain);

/* Can a part with that payload be processed to values? proven: with proven steps only; until
 * chain_prove has returned, call it on that thread only. */
bool chain_takes(const struct chain *chain, enum payload payload, bool proven);

/* Sets out and count of a part. Any thread. */
void chain_size(struct chain_part *part, const struct chain *chain, const struct part_shape *shape);
/* Does the part fit into a slot for `parts` parts with that use? */
bool chain_fits(const struct chain *chain, const struct chain_part *part,
                const struct chain_use *use, uint32_t parts);
/* Sets the part's offsets, and adds it to the slot's use. */
void chain_place(struct chain_part *part, const struct chain *chain, const struct part_shape *shape,
                 struct chain_use *use);

/* Entries per list of a node's table, in a slot for `parts` parts. */
uint32_t chain_entries(const struct chain_node *node, uint32_t parts);

/* Does a slot with that use need the node? */
bool chain_runs(const struct chain_node *node, unsigned index, const struct chain_use *use);

#endif
