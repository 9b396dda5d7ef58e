/* plan.c: makes the nodes for the features of a run. */
#include "device/plan.h"

#include "features/code.h"

#include <string.h>

/* Adds the steps for a feature; NULL: for the perceptual code. */
static enum status add_steps(struct plan *plan, const struct feature *feature, struct error *err)
{
    int input = -1;
    for (unsigned i = 0; steps[i]; i++) {
        struct step_node node = {.step = steps[i], .input = input};
        if (!steps[i]->needed || !steps[i]->needed(&node, plan, feature))
            continue;
        const int index = step_plan_node(&plan->steps, node);
        if (index < 0)
            return error_set(err, STATUS_USAGE,
                             "the features need more than %u steps: compute fewer features at once",
                             STEP_NODES_MAX);
        if (steps[i]->gives != PAYLOAD_VALUES)
            input = index;
    }
    return STATUS_OK;
}

bool plan_makes_pixels(enum plan_jpeg jpeg, const struct ocl_device *device)
{
    return jpeg != PLAN_JPEG_HOST &&
           jpeg_step.possible(device, jpeg == PLAN_JPEG_AUTO ? STEP_FASTER : STEP_ALWAYS);
}

enum status plan_make(struct plan *plan, const struct plan_config *config, struct error *err)
{
    memset(plan, 0, sizeof *plan);
    plan->config = *config;
    plan->steps.words = config->features->counters + (config->codes ? CODE_WORDS : 0);
    plan->thumbnail =
        (struct thumbnail_config){.size = config->thumbnail_size, .first = plan->steps.words};
    plan->steps.words += thumbnail_words(config->thumbnail_size);
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < config->features->count && status == STATUS_OK; i++)
        status = add_steps(plan, &config->features->feature[i], err);
    return status == STATUS_OK && config->codes ? add_steps(plan, NULL, err) : status;
}
