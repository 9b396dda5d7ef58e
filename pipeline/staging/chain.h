/* chain.h: the steps of a plan on one device, with what they keep there. Inside staging. */
#ifndef CLPIPE_STAGING_CHAIN_H
#define CLPIPE_STAGING_CHAIN_H

#include "staging/step.h"

#define PART_ALIGNMENT 128u /* of parts in slots and arenas */

struct chain_node {
    const struct step_node *plan;
    const struct step *step;
    void *state;
    struct step_needs needs;
    int input; /* as in the plan, past the nodes that this device does without */
    bool ready;
    uint32_t first_count, first_event;
    uint64_t arena_bytes; /* 0: gives values */
    cl_mem arena, scratch;
};

struct chain {
    struct chain_node node[STEP_NODES_MAX];
    unsigned count;
    uint32_t counts, events;
    uint32_t words;      /* of a part's row, with its verdict where a step may refuse */
    uint32_t overlap;    /* of parts */
    uint32_t slot_sizes; /* slots that would take as much memory as all arenas */
    bool refuses;        /* the last word of a row is the verdict */
};

/* What one part takes in a chain. */
struct chain_part {
    struct part_shape out[STEP_NODES_MAX];
    uint32_t offset[STEP_NODES_MAX]; /* in the arenas; set by chain_place */
    uint32_t first[STEP_COUNTS_MAX]; /* likewise */
    uint32_t count[STEP_COUNTS_MAX];
};

/* What the parts of one slot take. */
struct chain_use {
    uint64_t arena[STEP_NODES_MAX]; /* bytes */
    uint32_t count[STEP_COUNTS_MAX];
    uint32_t taken[STEP_NODES_MAX]; /* parts with the payload that the step takes */
};

/* Chooses the steps of a plan that the device can run; the plan must outlive the chain. */
enum status chain_init(struct chain *chain, const struct step_plan *plan,
                       const struct ocl_device *device, struct error *err);
/* Opens them, for slots of about so many bytes; the context must outlive the chain. */
enum status chain_open(struct chain *chain, struct ocl_context *context, uint64_t launch_bytes,
                       struct error *err);
/* Accepts a zeroed or half-opened one. */
void chain_close(struct chain *chain);

/* The arenas for slots of so many bytes. */
enum status chain_allocate(struct chain *chain, struct ocl_context *context, uint64_t slot_bytes,
                           struct error *err);
void chain_release(struct chain *chain);

/* Builds and proves all kernels, the last step first. A step that is done without otherwise may be
 * missing then, with a notice. */
enum status chain_prove(struct chain *chain, struct error *err);
void chain_abandon(struct chain *chain);

/* Can a part of that payload become values? proven: by steps that were proven; before chain_prove has
 * ended, on its thread only. */
bool chain_takes(const struct chain *chain, enum payload payload, bool proven);

/* What a part takes: sets out and count. Any thread. */
void chain_size(struct chain_part *part, const struct chain *chain, const struct part_shape *shape);
/* Does it fit beside what a slot for `parts` parts has? */
bool chain_fits(const struct chain *chain, const struct chain_part *part,
                const struct chain_use *use, uint32_t parts);
/* Gives it a place, and adds it to the slot's. */
void chain_place(struct chain_part *part, const struct chain *chain, const struct part_shape *shape,
                 struct chain_use *use);

/* Entries of each list of a node's table, in a slot for `parts` parts. */
uint32_t chain_entries(const struct chain_node *node, uint32_t parts);

/* Will a slot with such parts run the node? */
bool chain_runs(const struct chain_node *node, unsigned index, const struct chain_use *use);

#endif
