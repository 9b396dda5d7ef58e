/* plan.h: the steps that the features and codes of a run need: the table of steps, and the plan
 * made from it.
 *
 * Each step has a function that tells whether a feature needs it. A needed step becomes a node whose
 * input is the last node that produces parts; features with the same needs share nodes. So the
 * decoded and the blurred image come from one upload. */
#ifndef CLPIPE_DEVICE_PLAN_H
#define CLPIPE_DEVICE_PLAN_H

#include "decode/shrink.h"
#include "device/histogram.h"
#include "device/step.h"

/* All steps, in execution order: NAME_step is a struct step. Its node's parameter and config: */
/* clang-format off */
#define STEPS(STEP, OPTION)                                                                            \
    STEP(entropy)   /* parameter: enum step_use; makes DCT coefficients of streams */              \
    STEP(thumbnail) /* parameter: the same; config: struct thumbnail_config */                     \
    STEP(jpeg)      /* parameter: the same */                                                      \
    IMAGE_OPTIONS(OPTION) /* scale: parameter: the goal (decode/scale.h); takes whole images */    \
    STEP(dct) STEP(sift) STEP(opsift) STEP(patch) /* descriptors of scaled images */               \
    STEP(words)     /* config: struct feature, with a codebook when the step is opened */          \
    STEP(net)       /* config: struct feature, with a model or a runtime when it is opened */      \
    STEP(quality)   /* parameter: index of the QUALITY_WORDS words in a row, of scaled images */      \
    STEP(count)     /* config: struct count_config */                                              \
    STEP(code)      /* parameter: index of the CODE_WORDS words in a row */
/* clang-format on */

#define DECLARE_STEP(name)                extern const struct step name##_step;
#define DECLARE_OPTION(name, least, most) DECLARE_STEP(name)
STEPS(DECLARE_STEP, DECLARE_OPTION)
#undef DECLARE_STEP
#undef DECLARE_OPTION
/* All of them, followed by NULL. */
extern const struct step *const steps[];

struct count_config {
    const struct feature_set *features;
    struct feature_image image; /* only features of this image are counted */
    enum histogram_variant variant;
};

struct thumbnail_config {
    uint32_t size;  /* longest side, pixels */
    uint32_t first; /* index of its words in a row; 3 bytes per pixel, as stored */
};

/* Words in a row for thumbnails of that size. */
uint32_t thumbnail_words(uint32_t size);

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

/* Does the device compute the pixels of JPEG images? */
bool plan_makes_pixels(enum plan_jpeg jpeg, const struct ocl_device *device);

/* STATUS_USAGE: the features need too many steps. */
enum status plan_make(struct plan *plan, const struct plan_config *config, struct error *err);

#endif
