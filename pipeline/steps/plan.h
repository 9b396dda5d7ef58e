/* plan.h: the steps that the features and codes of a run need: the table of steps, and the plan made
 * from it.
 *
 * Each row of the table says whether a feature needs it. A row that is needed becomes a node whose
 * input is the previous one that does not give values; features with the same needs share nodes. The
 * decoded and the blurred image are thus made from one upload.
 */
#ifndef CLPIPE_STEPS_PLAN_H
#define CLPIPE_STEPS_PLAN_H

#include "histogram/count_step.h"
#include "steps/thumbnail_step.h"

/* What of decoding JPEG images devices do. */
enum plan_jpeg {
    PLAN_JPEG_AUTO,         /* CPUs nothing, others pixels; GPUs with their own memory all */
    PLAN_JPEG_HOST,         /* nothing */
    PLAN_JPEG_COEFFICIENTS, /* pixels from coefficients */
    PLAN_JPEG_DEVICE,       /* coefficients from entropy code, too */
};

struct plan_config {
    const struct feature_set *features; /* must outlive the plan */
    enum histogram_variant variant;
    enum plan_jpeg jpeg;
    bool streams; /* entropy code may come: no, where the host needs coefficients */
    /* Devices make thumbnails of JPEG images, at most so large; 0: no. Their words come last in a row. */
    uint32_t thumbnail_size;
    /* The perceptual codes of the images as decoded: their CODE_WORDS words come behind the counters
     * of the features in a picture's row. */
    bool codes;
};

/* Must not be moved: its nodes point into it. */
struct plan {
    struct plan_config config;
    struct step_plan steps;
    struct count_config count[FEATURE_MAX];
    unsigned counts;
    struct thumbnail_config thumbnail;
};

struct step_row {
    const struct step *step; /* NULL after the last */
    /* Does the feature, or without one the code, need it? Sets the node's border, parameter and config. NULL: no feature
     * needs it. */
    bool (*needed)(struct step_node *node, struct plan *plan, const struct feature *feature);
};

/* In the order in which the steps run. */
extern const struct step_row step_rows[];

/* Does the device make pixels of JPEG images? */
bool plan_makes_pixels(enum plan_jpeg jpeg, const struct ocl_device *device);

/* STATUS_USAGE: the features need too many steps. */
enum status plan_make(struct plan *plan, const struct plan_config *config, struct error *err);

#endif
