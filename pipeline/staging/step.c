/* step.c: plans of steps. */
#include "staging/step.h"

int step_plan_node(struct step_plan *plan, struct step_node node)
{
    for (unsigned i = 0; i < plan->count; i++) {
        const struct step_node *other = &plan->node[i];
        if (other->step == node.step && other->input == node.input &&
            other->border == node.border && other->parameter == node.parameter &&
            other->config == node.config)
            return (int)i;
    }
    if (plan->count == STEP_NODES_MAX)
        return -1;
    plan->node[plan->count] = node;
    return (int)plan->count++;
}

uint32_t step_plan_overlap(const struct step_plan *plan)
{
    uint32_t border[STEP_NODES_MAX], most = 0;
    for (unsigned i = 0; i < plan->count; i++) {
        const struct step_node *node = &plan->node[i];
        border[i] = node->border + (node->input < 0 ? 0 : border[node->input]);
        most = border[i] > most ? border[i] : most;
    }
    return most;
}

bool step_plan_is_whole(const struct step_plan *plan)
{
    for (unsigned i = 0; i < plan->count; i++) {
        if (plan->node[i].step->whole)
            return true;
    }
    return false;
}
