/* chain.h: the steps of a plan on one device, with their state there. Internal to staging. */
#ifndef CLPIPE_STAGING_CHAIN_H
#define CLPIPE_STAGING_CHAIN_H

#include "staging/step.h"

#define PART_ALIGNMENT 128u /* of parts in slots and arenas */

struct chain_node {
    const struct step_node *plan;
    const struct step *step;
    void *state;
    struct step_needs needs;
    int input; /* as in the plan, without the nodes that this device skips */
    bool ready;
    uint32_t first_count, first_event;
    uint64_t arena_bytes; /* 0: produces values */
    uint64_t work_bytes;  /* of scratch; 0: as many as the slots ask for */
    cl_mem arena, scratch;
};

struct chain {
    struct chain_node node[STEP_NODES_MAX];
    unsigned count;
    uint32_t counts, events;
    uint32_t words;      /* in a part's row, including its verdict if a step may refuse */
    uint32_t overlap;    /* of parts */
    uint32_t slot_sizes; /* the memory of all arenas, in slots */
    uint64_t work_bytes; /* of all nodes: memory beside arenas and slots */
    uint32_t largest;    /* buffer, in slots; at least 1 */
    uint64_t slot_bytes; /* what slots should have; 0: any */
    bool refuses;        /* the last word of a row is the verdict */
};

/* The space of one part in a chain. */
struct chain_part {
    struct part_shape out[STEP_NODES_MAX];
    uint32_t offset[STEP_NODES_MAX]; /* in the arenas; set by chain_place */
    uint32_t first[STEP_COUNTS_MAX]; /* likewise */
    uint32_t count[STEP_COUNTS_MAX];
};

/* The space of all parts of one slot. */
struct chain_use {
    uint64_t arena[STEP_NODES_MAX]; /* bytes */
    uint32_t count[STEP_COUNTS_MAX];
    uint32_t taken[STEP_NODES_MAX]; /* parts with the payload that the step takes */
};

/* Chooses the steps of a plan that the device can run; the plan must outlive the chain. memory: what there
 * is on the device for all. lean: without the optional ones whose output is larger than their input. */
enum status chain_init(struct chain *chain, const struct step_plan *plan,
                       const struct ocl_device *device, uint64_t memory, bool lean,
                       struct error *err);
/* Opens them, for slots of about launch_bytes; the context must outlive the chain. */
enum status chain_open(struct chain *chain, struct ocl_context *context, uint64_t launch_bytes,
                       struct error *err);
/* Accepts a zeroed or half-opened chain. */
void chain_close(struct chain *chain);

/* Allocates the arenas for slots of slot_bytes. */
enum status chain_allocate(struct chain *chain, struct ocl_context *context, uint64_t slot_bytes,
                           struct error *err);
void chain_release(struct chain *chain);

/* Builds and proves all kernels, the last step first. An optional step that fails is skipped, with
 * a notice. */
enum status chain_prove(struct chain *chain, struct error *err);
void chain_abandon(struct chain *chain);

/* Can a part with that payload become values? proven: using only proven steps; until chain_prove
 * has returned, only on its thread. */
bool chain_takes(const struct chain *chain, enum payload payload, bool proven);

/* Sets out and count of a part. Any thread. */
void chain_size(struct chain_part *part, const struct chain *chain, const struct part_shape *shape);
/* Does it fit into a slot for `parts` parts with that use? */
bool chain_fits(const struct chain *chain, const struct chain_part *part,
                const struct chain_use *use, uint32_t parts);
/* Places the part, and adds it to the slot's use. */
void chain_place(struct chain_part *part, const struct chain *chain, const struct part_shape *shape,
                 struct chain_use *use);

/* Entries of each list of a node's table, in a slot for `parts` parts. */
uint32_t chain_entries(const struct chain_node *node, uint32_t parts);

/* Will a slot with that use run the node? */
bool chain_runs(const struct chain_node *node, unsigned index, const struct chain_use *use);

#endif
