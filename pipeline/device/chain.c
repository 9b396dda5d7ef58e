/* chain.c: opens and proves the steps of a plan, and allocates space for parts in arenas and
 * tables. */
#include "device/chain.h"

#include "base/log.h"
#include "base/minmax.h"
#include "base/workers.h"

#include <assert.h>
#include <string.h>

static uint64_t share(uint64_t bytes, uint32_t percent)
{
    return (bytes * percent + 99) / 100;
}

/* A slot size for computing ratios, divisible by 100. */
#define UNIT 3600u
/* Scratch that does not depend on slots gets at most 1 / WORK_SHARE of a device's memory. */
#define WORK_SHARE 8u

/* The number of slots of UNIT bytes that take as much memory. */
static uint32_t slots_for(uint64_t bytes)
{
    return (uint32_t)((bytes + UNIT - 1) / UNIT);
}

enum status chain_init(struct chain *chain, const struct step_plan *plan,
                       const struct ocl_device *device, uint64_t memory, bool lean,
                       struct error *err)
{
    int place[STEP_NODES_MAX]; /* index of the plan's nodes in the chain */
    memset(chain, 0, sizeof *chain);
    chain->words = plan->words;
    chain->overlap = step_plan_overlap(plan);
    chain->largest = 1;
    /* PoCL builds one at a time, and Oclgrind crashes if several threads build. */
    chain->builders = device->pocl_major || strstr(device->platform, "Oclgrind") ? 1 : plan->count;
    for (unsigned i = 0; i < plan->count; i++) {
        const struct step_node *wanted = &plan->node[i];
        const struct step *step = wanted->step;
        const int input = wanted->input < 0 ? -1 : place[wanted->input];
        assert(!step->refuses || step->takes != PAYLOAD_RGB); /* no fallback on the host */
        const bool dear = lean && step->otherwise && step->arena_percent > 100;
        if (dear || (step->possible && !step->possible(device, wanted->parameter))) {
            if (!step->otherwise)
                return error_set(err, STATUS_FAILED, "%s cannot run the step '%s'", device->name,
                                 step->name);
            place[i] = input;
            continue;
        }
        const uint64_t bytes = input < 0 ? UNIT : chain->node[input].arena_bytes;
        place[i] = (int)chain->count;
        chain->node[chain->count++] =
            (struct chain_node){.plan = wanted,
                                .step = step,
                                .input = input,
                                .arena_bytes = share(bytes, step->arena_percent)};
        if (step->work_bytes)
            chain->node[place[i]].work_bytes =
                step->work_bytes(wanted, device, memory / WORK_SHARE);
        chain->work_bytes += chain->node[place[i]].work_bytes;
        chain->refuses = chain->refuses || step->refuses;
        const uint32_t arena = slots_for(share(bytes, step->arena_percent));
        chain->slot_sizes += arena + slots_for(share(bytes, step->scratch_percent));
        chain->largest = arena > chain->largest ? arena : chain->largest;
        chain->slot_bytes = max_u64(chain->slot_bytes, step->slot_bytes);
    }
    chain->words += chain->refuses;
    return STATUS_OK;
}

enum status chain_open(struct chain *chain, struct ocl_context *context, uint64_t launch_bytes,
                       struct error *err)
{
    for (unsigned i = 0; i < chain->count; i++) {
        struct chain_node *node = &chain->node[i];
        const enum status status =
            node->step->open(&node->state, &node->needs, context, node->plan, launch_bytes, err);
        if (status != STATUS_OK)
            return status;
        node->first_count = chain->counts;
        node->first_event = chain->events;
        chain->counts += node->needs.counts;
        chain->events += node->needs.events;
        if (chain->counts > STEP_COUNTS_MAX || chain->events > STEP_EVENTS_MAX)
            return error_set(err, STATUS_USAGE,
                             "the features need too many steps: compute fewer features at once");
    }
    return STATUS_OK;
}

void chain_close(struct chain *chain)
{
    chain_release(chain);
    for (unsigned i = 0; i < chain->count; i++)
        chain->node[i].step->close(&chain->node[i].state);
    memset(chain, 0, sizeof *chain);
}

enum status chain_allocate(struct chain *chain, struct ocl_context *context, uint64_t slot_bytes,
                           struct error *err)
{
    for (unsigned i = 0; i < chain->count; i++) {
        struct chain_node *node = &chain->node[i];
        const uint64_t bytes = node->input < 0 ? slot_bytes : chain->node[node->input].arena_bytes;
        const uint64_t scratch =
            node->work_bytes ? node->work_bytes : share(bytes, node->step->scratch_percent);
        node->arena_bytes = share(bytes, node->step->arena_percent);
        if (node->arena_bytes > UINT32_MAX) /* offsets are 32 bits */
            return error_set(err, STATUS_FAILED, "the step '%s' needs smaller slots",
                             node->step->name);
        if (scratch > 0 && ocl_buffer(&node->scratch, context, CL_MEM_READ_WRITE, (size_t)scratch,
                                      NULL, node->step->name, err) != STATUS_OK)
            return STATUS_FAILED;
        if (node->arena_bytes > 0 &&
            ocl_buffer(&node->arena, context, CL_MEM_READ_WRITE, (size_t)node->arena_bytes, NULL,
                       node->step->name, err) != STATUS_OK)
            return STATUS_FAILED;
    }
    return STATUS_OK;
}

void chain_release(struct chain *chain)
{
    for (unsigned i = 0; i < chain->count; i++) {
        ocl_buffer_release(&chain->node[i].arena);
        ocl_buffer_release(&chain->node[i].scratch);
    }
}

struct building {
    struct chain *chain;
    enum status status[STEP_NODES_MAX];
    struct error err[STEP_NODES_MAX];
};

/* The last steps first. */
static void build_step(void *context, uint64_t done)
{
    struct building *building = context;
    const uint64_t i = building->chain->count - 1 - done;
    const struct chain_node *node = &building->chain->node[i];
    building->err[i] = (struct error)ERROR_INIT;
    if (atomic_load(&building->chain->abandoned))
        building->err[i].status = building->status[i] = STATUS_INTERRUPTED;
    else if (node->step->build)
        building->status[i] = node->step->build(node->state, &building->err[i]);
}

enum status chain_prove(struct chain *chain, struct error *err)
{
    struct building building = {.chain = chain};
    workers_once(chain->builders, build_step, &building, chain->count);
    for (unsigned i = chain->count; i-- > 0;) {
        struct chain_node *node = &chain->node[i];
        enum status status = building.status[i];
        if (status == STATUS_OK)
            status = node->step->prove(node->state, err);
        else
            *err = building.err[i];
        node->ready = status == STATUS_OK;
        if (status == STATUS_OK)
            continue;
        if (status == STATUS_INTERRUPTED || !node->step->otherwise)
            return status;
        log_message(LOG_NOTICE, "notice: %s: %s", node->step->otherwise, err->sentence);
        *err = (struct error)ERROR_INIT;
    }
    return STATUS_OK;
}

void chain_abandon(struct chain *chain)
{
    atomic_store(&chain->abandoned, true);
    for (unsigned i = 0; i < chain->count; i++) {
        if (chain->node[i].step->abandon)
            chain->node[i].step->abandon(chain->node[i].state);
    }
}

bool chain_takes(const struct chain *chain, enum payload payload, bool proven)
{
    for (unsigned i = 0; i < chain->count && payload != PAYLOAD_RGB; i++) {
        const struct step *step = chain->node[i].step;
        const bool usable = !proven || chain->node[i].ready;
        if (step->takes == payload && step->gives == PAYLOAD_VALUES && !usable)
            return false; /* its values would be missing */
        if (step->takes == payload && step->gives != PAYLOAD_VALUES && usable)
            payload = step->gives;
    }
    return payload == PAYLOAD_RGB;
}

/* --- parts ----------------------------------------------------------------------------------- */

static const struct part_shape *input_shape(const struct chain_part *part,
                                            const struct chain_node *node,
                                            const struct part_shape *shape)
{
    return node->input < 0 ? shape : &part->out[node->input];
}

void chain_size(struct chain_part *part, const struct chain *chain, const struct part_shape *shape)
{
    for (unsigned i = 0; i < chain->count; i++) {
        const struct chain_node *node = &chain->node[i];
        const struct part_shape *in = input_shape(part, node, shape);
        if (node->step->output) {
            part->out[i] = *in;
            if (in->payload == node->step->takes)
                node->step->output(&part->out[i], node->plan);
        }
        node->step->count(part->count + node->first_count, node->state, in);
    }
}

uint32_t chain_entries(const struct chain_node *node, uint32_t parts)
{
    return node->needs.entries ? node->needs.entries : parts;
}

bool chain_fits(const struct chain *chain, const struct chain_part *part,
                const struct chain_use *use, uint32_t parts)
{
    for (unsigned i = 0; i < chain->count; i++) {
        const struct chain_node *node = &chain->node[i];
        if (node->arena_bytes > 0 && use->arena[i] + part->out[i].bytes > node->arena_bytes)
            return false;
        for (uint32_t c = node->first_count; c < node->first_count + node->needs.lists; c++) {
            if (use->count[c] + part->count[c] > chain_entries(node, parts))
                return false;
        }
    }
    return true;
}

void chain_place(struct chain_part *part, const struct chain *chain, const struct part_shape *shape,
                 struct chain_use *use)
{
    for (unsigned i = 0; i < chain->count; i++) {
        const struct chain_node *node = &chain->node[i];
        use->taken[i] += input_shape(part, node, shape)->payload == node->step->takes;
        part->offset[i] = (uint32_t)use->arena[i];
        if (node->arena_bytes > 0)
            use->arena[i] = (use->arena[i] + part->out[i].bytes + PART_ALIGNMENT - 1) /
                            PART_ALIGNMENT * PART_ALIGNMENT;
    }
    memcpy(part->first, use->count, chain->counts * sizeof *part->first);
    for (uint32_t c = 0; c < chain->counts; c++)
        use->count[c] += part->count[c];
}

bool chain_runs(const struct chain_node *node, unsigned index, const struct chain_use *use)
{
    return node->step->takes == node->step->gives || use->taken[index] > 0;
}
