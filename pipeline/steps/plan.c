/* plan.c: makes the nodes that the features of a run need. */
#include "steps/plan.h"

#include <string.h>

/* Adds what one feature needs. */
static bool add_feature(struct plan *plan, const struct feature *feature)
{
    int input = -1;
    for (const struct step_row *row = step_rows; row->step; row++) {
        struct step_node node = {.step = row->step, .input = input};
        if (!row->needed || !row->needed(&node, plan, feature))
            continue;
        const int added = step_plan_node(&plan->steps, node);
        if (added < 0)
            return false;
        input = added;
    }
    return true;
}

enum status plan_make(struct plan *plan, const struct plan_config *config, struct error *err)
{
    memset(plan, 0, sizeof *plan);
    plan->config = *config;
    plan->steps.words = config->features->counters;
    for (unsigned i = 0; i < config->features->count; i++) {
        if (!add_feature(plan, &config->features->feature[i]))
            return error_set(err, STATUS_USAGE, "the features need more than %u steps",
                             STEP_NODES_MAX);
    }
    return STATUS_OK;
}
