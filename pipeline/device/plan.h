/* plan.h: the steps that the features and codes of a run need: the table of steps, and the plan
 * made from it.
 *
 * Each row of the table has a function that tells whether a feature needs the step. A needed row
 * becomes a node whose input is the last node that produces parts; features with the same needs
 * share nodes. So the decoded and the blurred image come from one upload. */
#ifndef CLPIPE_DEVICE_PLAN_H
#define CLPIPE_DEVICE_PLAN_H

#include "device/count_step.h"
#include "device/thumbnail_step.h"

/* Which parts of JPEG decoding run on devices. */
enum plan_jpeg {
    PLAN_JPEG_AUTO,         /* CPUs: nothing; GPUs with their own memory: all; others: pixels */
    PLAN_JPEG_HOST,         /* nothing */
    PLAN_JPEG_COEFFICIENTS, /* pixels from coefficients */
    PLAN_JPEG_DEVICE,       /* also coefficients from entropy-coded data */
};

struct plan_config {
    const struct feature_set *features; /* must outlive the plan */
    enum histogram_variant variant;
    enum plan_jpeg jpeg;
    bool streams; /* streams may be submitted; false if the host needs coefficients */
    /* Maximum size of the thumbnails of JPEG images made by devices; 0: none. Their words come last
     * in a row. */
    uint32_t thumbnail_size;
    /* Compute perceptual codes of the decoded images: CODE_WORDS words after the counters of the
     * features in a picture's row. */
    bool codes;
};

/* Must not be moved: its nodes have pointers into it. */
struct plan {
    struct plan_config config;
    struct step_plan steps;
    struct count_config count[FEATURE_MAX];
    unsigned counts;
    struct thumbnail_config thumbnail;
};

struct step_row {
    const struct step *step; /* NULL after the last */
    /* Does the feature (NULL: the code) need the step? Sets the node's border, parameter and
     * config. NULL: no feature needs it. */
    bool (*needed)(struct step_node *node, struct plan *plan, const struct feature *feature);
};

/* In execution order. */
extern const struct step_row step_rows[];

/* Does the device compute the pixels of JPEG images? */
bool plan_makes_pixels(enum plan_jpeg jpeg, const struct ocl_device *device);

/* STATUS_USAGE: the features need too many steps. */
enum status plan_make(struct plan *plan, const struct plan_config *config, struct error *err);

#endif
