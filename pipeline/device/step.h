/* step.h: interface of the processing steps that run on a device.
 *
 *     slot ──> entropy ──> jpeg ──┬──────────> histograms of the picture as decoded ──> values
 *       RGB, STREAM, DCT          └──> blur ──> histograms of the blurred picture ────> values
 *
 * A plan is a list of nodes, made once per run; each has a step and an input node. A step that
 * produces parts writes them to an arena, a buffer on the device that staging allocates and that
 * all slots of the device use in turn: the compute queue is in order. The position of a part in an
 * arena is independent of its position in the slot, and it may be larger there. A step that
 * produces values adds to the words of the part's row.
 *
 * A part whose payload the step does not accept passes through: the step copies it to its arena. If
 * no part of a slot has the payload, the step does not run, and its output is its input, in the
 * same layout.
 *
 * For each slot a step has a table of entries for the parts, in one or more lists, and running
 * counts: first the entries of each list, then the units for which it launches work-items. */
#ifndef CLPIPE_DEVICE_STEP_H
#define CLPIPE_DEVICE_STEP_H

#include "decode/part.h"
#include "decode/scale.h"
#include "ocl/ocl.h"

#define STEP_NODES_MAX   32u
#define STEP_COUNTS_MAX  64u /* all nodes together */
#define STEP_EVENTS_MAX  64u
#define STEP_KERNELS_MAX 2u

struct feature;
struct plan;
struct step;

/* A parameter of steps that decode JPEG: run them only where that is faster, or on every device
 * that can. */
enum step_use { STEP_FASTER, STEP_ALWAYS };

struct step_node {
    const struct step *step;
    int input;          /* index of another node; -1: the slot */
    uint32_t border;    /* columns and rows by which the output is smaller */
    uint64_t parameter; /* specific to the step */
    const void *config; /* specific to the step; must outlive the plan */
};

struct step_plan {
    struct step_node node[STEP_NODES_MAX]; /* a node comes after its input */
    unsigned count;
    uint32_t words; /* per picture */
};

/* Requirements of a node in each slot. */
struct step_needs {
    uint32_t lists;   /* of the table */
    uint32_t entries; /* per list; 0: one per part */
    uint32_t counts;
    uint32_t events;
};

/* A part in a slot, as passed to a step. */
struct step_entry {
    const struct part_shape *in, *out;
    uint32_t in_offset, out_offset; /* byte offsets in the input and in the arena */
    uint32_t values;                /* index of the first word of the part's row */
    uint32_t verdict;               /* index of the word that tells whether the part is proven */
    uint32_t list_entries;          /* list i begins at entry i * list_entries */
    const uint32_t *first, *count;  /* the slot's counts before the part; the part's counts */
    bool given_up;                  /* skip it: its bytes are undefined */
};

/* A slot being processed. */
struct step_io {
    cl_mem in, out, scratch, table, values;
    uint32_t list_entries;
    const uint32_t *counts; /* of the whole slot */
    struct ocl_waits waits;
    /* Set by the step: the events of its commands (needs.events elements, initially NULL), and the
     * last one. */
    cl_event *events;
    const cl_event *last;
};

struct proof;

struct step {
    const char *name;
    enum payload takes, gives;
    bool whole;   /* accepts only whole images, and scales them to the goal `parameter` */
    bool refuses; /* may set a part's verdict word: then the host decodes the image */
    uint32_t arena_percent, scratch_percent; /* bytes on the device, in percent of the input */
    uint64_t slot_bytes; /* preferred slot size if the device has its own memory; 0: any */
    size_t entry_bytes;  /* per table entry */
    const char *fault;   /* start of the error message if results are wrong */
    const char *kernels[STEP_KERNELS_MAX + 1]; /* of steps by slot_kernel.h; ends with NULL */
    const char *upload, *unmap, *map;          /* names of the table's commands in traces */
    /* Fallback if the step is impossible or wrong, as worded in a notice; NULL: the device cannot
     * be used. */
    const char *otherwise;

    /* Does the feature (NULL: the perceptual code) need the step? Sets the node's border, parameter
     * and config. NULL: no feature needs it. */
    bool (*needed)(struct step_node *node, struct plan *plan, const struct feature *feature);
    /* Can the device run the step, and is it worthwhile? NULL: any device. */
    bool (*possible)(const struct ocl_device *device, uint64_t parameter);
    /* launch_bytes: of a slot. STATUS_USAGE: this device cannot run the request. Builds nothing
     * yet. */
    enum status (*open)(void **state, struct step_needs *needs, struct ocl_context *context,
                        const struct step_node *node, uint64_t launch_bytes, struct error *err);
    void (*close)(void **state);
    /* Bytes of scratch that do not depend on the slots, at most `most`; 0 or NULL: scratch_percent
     * applies. */
    uint64_t (*work_bytes)(const struct step_node *node, const struct ocl_device *device,
                           uint64_t most);
    /* Builds the kernels. NULL: prove does that. */
    enum status (*build)(void *state, struct error *err);
    /* Compares the kernels with the C reference, unless the cache records them as proven.
     * STATUS_INTERRUPTED: abandon was called. Other threads may call count and fill meanwhile. */
    enum status (*prove)(void *state, struct error *err);
    /* The kernels are no longer needed: prove should end soon. Any thread. May be NULL. */
    void (*abandon)(void *state);

    /* For an accepted part: changes the input shape to the output shape. NULL: the output is
     * values. */
    void (*output)(struct part_shape *shape, const struct step_node *node);
    /* Sets a part's contribution to the counts. Must be fast: other threads may be waiting. */
    void (*count)(uint32_t *count, const void *state, const struct part_shape *in);
    /* Writes the part's table entries. Any thread. */
    void (*fill)(void *table, const void *state, const struct step_entry *entry);

    enum status (*enqueue)(void *state, struct ocl_queue *queue, struct step_io *io,
                           struct error *err);
    /* Appends a description to staging's line for -v. May be NULL. */
    void (*describe)(const void *state, char *text, size_t size);
    /* Self-test (proof.h): compares synthetic parts with the C reference, byte by byte; with
     * examples of its own for a node without a config. NULL: none. self_test_name: its name in the
     * output. */
    const char *self_test_name;
    enum status (*self_test)(struct proof *proof, struct error *err);
};

/* Appends a node or finds an equal one; returns its index, -1: there are already STEP_NODES_MAX. */
int step_plan_node(struct step_plan *plan, struct step_node node);

/* Columns and rows that neighbouring parts must share for the last step. */
uint32_t step_plan_overlap(const struct step_plan *plan);

/* Lists the distinct goals to which steps scale whole images; returns their number. Images that do
 * not fit into a slot are scaled by the host and submitted as separate parts
 * (part_shape.scaled). */
unsigned step_plan_goals(scale_goal goals[STEP_NODES_MAX], const struct step_plan *plan);
/* The part size that must be possible, since scaled images are not split; 0: any. */
uint64_t step_plan_least_part(const struct step_plan *plan);

#endif
