/* table.c: the table of steps. A new step is one file and one row here. */
#include "device/blur_step.h"
#include "device/code_step.h"
#include "device/describe_step.h"
#include "device/entropy_step.h"
#include "device/jpeg_step.h"
#include "device/net_step.h"
#include "device/plan.h"
#include "device/quality_step.h"
#include "device/scale_step.h"
#include "device/thumbnail_step.h"
#include "device/words_step.h"
#include "features/kind.h"

static bool needs_entropy(struct step_node *node, struct plan *plan, const struct feature *feature)
{
    (void)feature;
    const enum plan_jpeg jpeg = plan->config.jpeg;
    node->parameter = jpeg == PLAN_JPEG_DEVICE ? ENTROPY_STEP_ALWAYS : ENTROPY_STEP_FASTER;
    return plan->config.streams && (jpeg == PLAN_JPEG_DEVICE || jpeg == PLAN_JPEG_AUTO);
}

static bool needs_jpeg(struct step_node *node, struct plan *plan, const struct feature *feature)
{
    (void)feature;
    const enum plan_jpeg jpeg = plan->config.jpeg;
    node->parameter = jpeg == PLAN_JPEG_AUTO ? JPEG_STEP_FASTER : JPEG_STEP_ALWAYS;
    return jpeg != PLAN_JPEG_HOST;
}

/* One node for the image; the code is a feature of NULL. */
static bool needs_thumbnail(struct step_node *node, struct plan *plan,
                            const struct feature *feature)
{
    node->config = &plan->thumbnail;
    return plan->thumbnail.size > 0 && !feature && needs_jpeg(node, plan, feature);
}

static bool needs_scale(struct step_node *node, struct plan *plan, const struct feature *feature)
{
    (void)plan;
    node->parameter = feature ? feature->image.scale : 0;
    return node->parameter > 0;
}

static bool needs_blur(struct step_node *node, struct plan *plan, const struct feature *feature)
{
    (void)plan;
    node->border = BLUR_BORDER;
    return feature && feature->image.blur != 0;
}

static bool needs_descriptors(struct step_node *node, struct plan *plan,
                              const struct feature *feature)
{
    (void)plan;
    return feature && feature->kind->descriptor && !feature->kind->count &&
           describe_step(feature->kind->descriptor) == node->step;
}

static bool needs_words(struct step_node *node, struct plan *plan, const struct feature *feature)
{
    (void)plan;
    node->config = feature;
    return feature && feature->kind->descriptor && !feature->kind->count;
}

static bool needs_net(struct step_node *node, struct plan *plan, const struct feature *feature)
{
    (void)plan;
    node->config = feature;
    return feature && feature->kind->network;
}

static bool needs_quality(struct step_node *node, struct plan *plan, const struct feature *feature)
{
    (void)plan;
    node->parameter = feature ? feature->offset : 0;
    return feature && feature->kind == &feature_quality;
}

/* One node for all features of an image. */
static bool needs_count(struct step_node *node, struct plan *plan, const struct feature *feature)
{
    unsigned i = 0;
    if (!feature || !feature->kind->count)
        return false;
    while (i < plan->counts && !feature_image_equal(&plan->count[i].image, &feature->image))
        i++;
    if (i == plan->counts)
        plan->count[plan->counts++] =
            (struct count_config){plan->config.features, feature->image, plan->config.variant};
    node->border = feature->image.border;
    node->config = &plan->count[i];
    return true;
}

static bool needs_code(struct step_node *node, struct plan *plan, const struct feature *feature)
{
    node->parameter = plan->config.features->counters;
    return !feature;
}

const struct step_row step_rows[] = {
    {&entropy_step, needs_entropy},
    {&thumbnail_step, needs_thumbnail},
    {&jpeg_step, needs_jpeg},
    {&scale_step, needs_scale},
    {&blur_step, needs_blur},
    {&dct_step, needs_descriptors},
    {&sift_step, needs_descriptors},
    {&opsift_step, needs_descriptors},
    {&patch_step, needs_descriptors},
    {&words_step, needs_words},
    {&net_step, needs_net},
    {&quality_step, needs_quality},
    {&count_step, needs_count},
    {&code_step, needs_code},
    {NULL, NULL},
};
