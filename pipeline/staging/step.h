/* step.h: the interface of the steps by which a device processes parts.
 *
 *     slot ──> entropy ──> jpeg ──┬──────────> histograms of the picture as decoded ──> values
 *       RGB, STREAM, DCT          └──> blur ──> histograms of the blurred picture ────> values
 *
 * A plan is a list of nodes, made once for a run; each names a step and the node that is its input.
 * A step that produces parts writes them to an arena, a buffer on the device that staging allocates
 * and that all slots of the device use in turn: the compute queue is in order. The position of a
 * part in an arena is independent of its position in the slot, and it may be larger there. A step
 * that produces values adds to the words of the part's row.
 *
 * A part whose payload the step does not take passes through: the step copies it to its arena. If
 * no part of a slot has the payload, the step does not run, and its output is its input, in the
 * same layout.
 *
 * For each slot a step has a table with entries for the parts, in one or several lists, and running
 * counts: first of the entries of each list, then of the units that it launches work-items for.
 */
#ifndef CLPIPE_STAGING_STEP_H
#define CLPIPE_STAGING_STEP_H

#include "ocl/ocl.h"
#include "part/part.h"
#include "part/scale.h"

#define STEP_NODES_MAX  32u
#define STEP_COUNTS_MAX 64u /* of all nodes together */
#define STEP_EVENTS_MAX 64u

struct step;

struct step_node {
    const struct step *step;
    int input;          /* index of another node; -1: the slot */
    uint32_t border;    /* columns and rows that the output loses */
    uint64_t parameter; /* the step's own */
    const void *config; /* the step's own; must outlive the plan */
};

struct step_plan {
    struct step_node node[STEP_NODES_MAX]; /* a node comes after its input */
    unsigned count;
    uint32_t words; /* of a picture's row of values */
};

/* What a node needs in each slot. */
struct step_needs {
    uint32_t lists;   /* of the table */
    uint32_t entries; /* of each list; 0: one for each part */
    uint32_t counts;
    uint32_t events;
};

/* One part in a slot, as a step sees it. */
struct step_entry {
    const struct part_shape *in, *out;
    uint32_t in_offset, out_offset; /* bytes: in the input, in the arena */
    uint32_t values;                /* index of the first word of the part's row */
    uint32_t verdict;               /* index of the word that says whether the part is proven */
    const uint32_t *first, *count;  /* the slot's counts before the part; the part's own */
    bool given_up;                  /* nothing to do: its bytes are undefined */
};

/* One slot in processing. */
struct step_io {
    cl_mem in, out, scratch, table, values;
    uint32_t list_entries;  /* list i begins at entry i * list_entries */
    const uint32_t *counts; /* of the whole slot */
    struct ocl_waits waits;
    /* Set by the step: the events of its commands (needs.events, initially NULL), and the last
     * one. */
    cl_event *events;
    const cl_event *last;
};

struct step {
    const char *name;
    enum payload takes, gives;
    bool whole;   /* takes only whole images, and scales them to the goal `parameter` */
    bool refuses; /* may set a part's verdict word: then the host decodes the image */
    uint32_t arena_percent, scratch_percent; /* bytes on the device, of those of its input */
    uint64_t slot_bytes; /* what slots should have where the device has its own memory; 0: any */
    size_t entry_bytes;  /* of the table */
    const char *fault;   /* how an error begins where it computes wrong */
    const char *kernel;  /* of a step that is one kernel, else NULL */
    const char *upload, *unmap, *map; /* the table's commands in traces */
    /* What happens instead if the step is not possible or wrong, as worded in a notice; NULL: a
     * device that cannot run it cannot be used. */
    const char *otherwise;

    /* Can the device run it, and should it? NULL: any. */
    bool (*possible)(const struct ocl_device *device, uint64_t parameter);
    /* launch_bytes: of a slot. STATUS_USAGE: the request cannot be met on this device. Builds
     * nothing yet. */
    enum status (*open)(void **state, struct step_needs *needs, struct ocl_context *context,
                        const struct step_node *node, uint64_t launch_bytes, struct error *err);
    void (*close)(void **state);
    /* Bytes of scratch that do not depend on the slots', of the `most` that it should take; 0 or NULL:
     * scratch_percent says how many. */
    uint64_t (*work_bytes)(const struct step_node *node, const struct ocl_device *device,
                           uint64_t most);
    /* Builds the kernels. NULL: prove does. */
    enum status (*build)(void *state, struct error *err);
    /* Compares them with the C reference, unless they are recorded as proven. STATUS_INTERRUPTED:
     * abandon was called. Other threads may count and fill meanwhile. */
    enum status (*prove)(void *state, struct error *err);
    /* The kernels are no longer needed: prove should end soon. Any thread. May be NULL. */
    void (*abandon)(void *state);

    /* For a part that it takes: changes the shape of the input to that of the output. NULL:
     * values. */
    void (*output)(struct part_shape *shape, const struct step_node *node);
    /* What a part adds to the counts. Must be fast: other threads may be waiting. */
    void (*count)(uint32_t *count, const void *state, const struct part_shape *in);
    /* Writes the part's entries. Any thread. */
    void (*fill)(void *table, const void *state, uint32_t list_entries,
                 const struct step_entry *entry);

    enum status (*enqueue)(void *state, struct ocl_queue *queue, struct step_io *io,
                           struct error *err);
    /* Appends a description to staging's line for -v. May be NULL. */
    void (*describe)(const void *state, char *text, size_t size);
    /* Compares synthetic parts with the C reference, byte by byte; NULL: no such test.
     * self_test_name is its name in the output. */
    const char *self_test_name;
    enum status (*self_test)(uint64_t *compared, uint64_t *wrong, struct ocl_context *context,
                             struct error *err);
};

/* Appends a node, or finds an equal one; -1: there are already STEP_NODES_MAX. */
int step_plan_node(struct step_plan *plan, struct step_node node);

/* Columns and rows by which parts must overlap for the last step. */
uint32_t step_plan_overlap(const struct step_plan *plan);

/* The different goals to which steps scale whole images; how many. The host scales what does not
 * fit into a slot, and gives it as a part of its own (part_shape.scaled). */
unsigned step_plan_goals(scale_goal goals[STEP_NODES_MAX], const struct step_plan *plan);
/* The bytes that a part must be able to have, since scaled images come whole; 0: any. */
uint64_t step_plan_least_part(const struct step_plan *plan);

#endif
