/* step.c: plans of steps. */
#include "device/step.h"

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
    bool scaled[STEP_NODES_MAX];
    for (unsigned i = 0; i < plan->count; i++) {
        const struct step_node *node = &plan->node[i];
        border[i] = node->border + (node->input < 0 ? 0 : border[node->input]);
        scaled[i] = node->step->whole || (node->input >= 0 && scaled[node->input]);
        if (scaled[i]) /* whole images are not split into strips */
            continue;
        most = border[i] > most ? border[i] : most;
    }
    return most;
}

unsigned step_plan_goals(scale_goal goals[STEP_NODES_MAX], const struct step_plan *plan)
{
    unsigned count = 0;
    for (unsigned i = 0; i < plan->count; i++) {
        const struct step_node *node = &plan->node[i];
        unsigned j = 0;
        while (j < count && goals[j] != node->parameter)
            j++;
        if (node->step->whole && j == count)
            goals[count++] = node->parameter;
    }
    return count;
}

uint64_t step_plan_least_part(const struct step_plan *plan)
{
    scale_goal goals[STEP_NODES_MAX];
    uint64_t most = 0;
    for (unsigned i = step_plan_goals(goals, plan); i-- > 0;)
        most = scale_most(goals[i]) > most ? scale_most(goals[i]) : most;
    return 3 * most;
}
