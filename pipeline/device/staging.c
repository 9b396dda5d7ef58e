/* staging.c: opens and closes lanes; the interface of slots to decode threads.
 *
 * One lock guards all states; it is held for microseconds, and pixels are written without it. A
 * decode thread that holds a part never waits for space, so every sealed slot becomes ready. */
#include "device/staging.h"

#include "device/ring.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/minmax.h"
#include "base/parse.h"

/* Slots allocated before decoding starts; pinning memory takes longer than filling it. */
#define SLOTS_FIRST 2u
/* Callers that could add less than this part of the devices' rate should rather be ready to fill the
 * next slot. */
#define WORTH_DOING 0.25

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- interface of the decode threads --------------------------------------------------------- */

/* Reduces the rows of packed pixels to at most `bytes`, but not below one row and the overlap. */
static void cut_rows(struct part_shape *shape, uint64_t bytes)
{
    const uint32_t least = shape->overlap + 1;
    const uint64_t rows = bytes / (3 * (uint64_t)(shape->rect.x1 - shape->rect.x0));
    if (shape->rect.y1 - shape->rect.y0 > (rows > least ? rows : least))
        shape->rect.y1 = shape->rect.y0 + (uint32_t)(rows > least ? rows : least);
    part_set_rgb(shape);
}

/* Computes the space that a part needs in a lane's slot; `coded`: a whole picture in that payload.
 * Reduces rows until the part fits into an empty slot. False: a coded picture does not fit. */
static bool size_part(struct staging_part *part, const struct lane *lane,
                      const struct part_shape *pixels, uint64_t bytes,
                      const struct part_shape *coded)
{
    static const struct chain_use none;
    struct part_shape *shape = &part->shape;
    *shape = coded ? *coded : *pixels;
    shape->overlap = lane->chain.overlap;
    if (!coded)
        cut_rows(shape, bytes);
    for (;;) {
        chain_size(&part->chain, &lane->chain, shape);
        if (chain_fits(&lane->chain, &part->chain, &none, lane->shape.parts))
            return true;
        const uint32_t rows = shape->rect.y1 - shape->rect.y0;
        if (coded || rows <= shape->overlap + 1)
            return !coded;
        cut_rows(shape, (uint64_t)shape->stride * ((rows - shape->overlap) / 2 + shape->overlap));
    }
}

/* Does the part fit into the slot? With the lock held. */
static bool fits(const struct staging_part *part, const struct slot *slot)
{
    const struct lane *lane = slot->lane;
    return slot->parts < lane->shape.parts &&
           slot->used_bytes + part->shape.bytes <= lane->shape.bytes &&
           chain_fits(&lane->chain, &part->chain, &slot->use, lane->shape.parts);
}

/* Allocates the part's space in the slot. With the lock held. */
static void place(struct staging_part *part, struct slot *slot)
{
    struct lane *lane = slot->lane;
    part->slot = slot;
    part->index = slot->parts++;
    part->offset = slot->used_bytes;
    part->bytes = (uint8_t *)slot->input.host + slot->used_bytes;
    slot->outstanding++;
    slot->picture[part->index] = NULL;
    chain_place(&part->chain, &lane->chain, &part->shape, &slot->use);
    uint64_t end = slot->used_bytes + part->shape.bytes;
    end = (end + PART_ALIGNMENT - 1) / PART_ALIGNMENT * PART_ALIGNMENT;
    lane->pending += part->cost;
    slot->cost += part->cost;
    slot->used_bytes = (uint32_t)end;
}

/* The index of the first coded payload from `at` on that the lane accepts; `count`: none. */
static unsigned choose_coded(const struct lane *lane, const struct part_shape *coded, unsigned at,
                             unsigned count)
{
    while (at < count && !chain_takes(&lane->chain, coded[at].payload, true))
        at++;
    return at;
}

/* What a part was sized for; zero before a lane was chosen. */
struct sized {
    const struct lane *lane;
    uint64_t bytes;
    bool coded; /* coded payloads that fit were tried */
};

/* Sizes the part for a lane that should get `bytes` of the `whole`. */
static void size_for(struct staging_part *part, struct sized *sized, struct lane *lane,
                     const struct part_shape *pixels, uint64_t whole, uint64_t bytes,
                     const struct part_shape *coded, unsigned count)
{
    const bool wants = count > 0 && lane->built && bytes == whole && part_is_whole(pixels);
    if (sized->lane == lane && sized->bytes == bytes && sized->coded == wants)
        return;
    unsigned c = wants ? choose_coded(lane, coded, 0, count) : count;
    while (c < count && !size_part(part, lane, pixels, bytes, &coded[c]))
        c = choose_coded(lane, coded, c + 1, count);
    if (c == count)
        size_part(part, lane, pixels, min_u64(bytes, lane->staging->part_bytes), NULL);
    part->cost = max_u64(part->shape.bytes, c < count ? whole : 0);
    *sized = (struct sized){lane, bytes, wants};
}

/* Would the callers' other work add much to that of the devices? With the lock held. */
static bool is_worth_doing(const struct staging *staging, const struct staging_else *otherwise)
{
    double rate = 0;
    for (unsigned i = 0; i < staging->lane_count; i++)
        rate += staging->lane[i].failed ? 0 : staging->lane[i].rate;
    return otherwise->rate >= WORTH_DOING * rate;
}

/* Waits until there may be space; false: the caller should use the time otherwise. With the lock
 * held. */
static bool wait_for_room(struct staging *staging, const struct lane *lane,
                          struct staging_else *otherwise, int64_t *deadline)
{
    if (!otherwise || !is_worth_doing(staging, otherwise)) {
        pthread_cond_wait(&staging->room, &staging->lock);
        return true;
    }
    const int64_t now = clock_now();
    if (*deadline == 0 && lane && lane->last_took > 0 && lane->last_took <= otherwise->patience)
        *deadline = now + 2 * otherwise->patience;
    otherwise->full = now >= *deadline;
    if (!otherwise->full)
        cond_wait_until(&staging->room, &staging->lock, *deadline);
    return !otherwise->full;
}

bool staging_acquire(struct staging *staging, struct staging_part *part,
                     const struct part_shape *pixels, const struct part_shape *coded,
                     unsigned coded_count, struct staging_else *otherwise)
{
    const struct cell_rect *rect = &pixels->rect;
    const uint64_t whole = 3ull * (rect->x1 - rect->x0) * (rect->y1 - rect->y0);
    struct sized sized = {NULL, 0, false};
    int64_t deadline = 0;
    bool going = false;
    if (otherwise)
        otherwise->full = false;
    /* A single lane gets everything: no lock needed. */
    if (staging->lane_count == 1)
        size_for(part, &sized, &staging->lane[0], pixels, whole, whole, coded, coded_count);
    pthread_mutex_lock(&staging->lock);
    while (!staging->aborted && share_alive(staging) > 0) {
        uint64_t bytes = whole;
        struct lane *lane = share_choose(&bytes, staging);
        if (lane)
            size_for(part, &sized, lane, pixels, whole, staging->whole ? whole : bytes, coded,
                     coded_count);
        if (lane && lane->filling && !fits(part, lane->filling))
            ring_seal(lane);
        if (lane && !lane->filling)
            ring_open_slot(lane);
        going = lane && lane->filling;
        if (going)
            place(part, lane->filling);
        if (going || !wait_for_room(staging, lane, otherwise, &deadline))
            break;
    }
    pthread_mutex_unlock(&staging->lock);
    return going;
}

static void hand_in(struct staging *staging, struct slot *slot)
{
    pthread_mutex_lock(&staging->lock);
    slot->outstanding--;
    if (slot->state == SLOT_SEALED && slot->outstanding == 0)
        ring_make_ready(slot);
    pthread_mutex_unlock(&staging->lock);
}

/* Writes the part's entries in the tables of all steps. */
static void fill_tables(const struct staging_part *part, bool given_up)
{
    const struct slot *slot = part->slot;
    const struct lane *lane = slot->lane;
    const struct chain_part *at = &part->chain;
    for (unsigned i = 0; i < lane->chain.count; i++) {
        const struct chain_node *node = &lane->chain.node[i];
        const int input = node->input;
        const struct step_entry entry = {
            .in = input < 0 ? &part->shape : &at->out[input],
            .out = &at->out[i],
            .in_offset = input < 0 ? part->offset : at->offset[input],
            .out_offset = at->offset[i],
            .values = part->index * lane->chain.words,
            .verdict = part->index * lane->chain.words + lane->staging->config.plan->words,
            .first = at->first + node->first_count,
            .count = at->count + node->first_count,
            .given_up = given_up,
        };
        node->step->fill(slot->table[i].host, node->state, chain_entries(node, lane->shape.parts),
                         &entry);
    }
}

void staging_submit(struct staging *staging, struct staging_part *part, void *picture)
{
    fill_tables(part, false);
    part->slot->picture[part->index] = picture;
    hand_in(staging, part->slot);
}

void staging_cancel(struct staging *staging, struct staging_part *part)
{
    fill_tables(part, true);
    hand_in(staging, part->slot);
}

void staging_abort(struct staging *staging)
{
    pthread_mutex_lock(&staging->lock);
    staging->aborted = true;
    pthread_cond_broadcast(&staging->room);
    pthread_cond_broadcast(&staging->event);
    pthread_cond_broadcast(&staging->grow);
    pthread_mutex_unlock(&staging->lock);
}

/* --- opening and closing --------------------------------------------------------------------- */

/* Allocates arenas and the first slots; on PoCL all slots: its devices that compute in the
 * enqueuing thread (basic) occasionally deadlock if two threads enqueue at a time. */
static enum status allocate_slots(struct lane *lane, struct error *err)
{
    const bool all = ocl_context_device(lane->context)->pocl_major > 0;
    const uint32_t first = all ? lane->slots_wanted : min_u32(lane->slots_wanted, SLOTS_FIRST);
    enum status status = chain_allocate(&lane->chain, lane->context, lane->shape.bytes, err);
    while (status == STATUS_OK && lane->slot_count < first) {
        status = ring_allocate(lane, err);
        lane->slot_count += status == STATUS_OK;
    }
    return status;
}

static enum status open_slots(struct lane *lane, const struct staging_config *config,
                              struct error *err)
{
    struct staging_config smaller = *config;
    for (;;) {
        const struct ocl_device *device = ocl_context_device(lane->context);
        lane->slots_wanted = slot_shape_choose(&lane->shape, &smaller, device, &lane->chain);
        const enum status status = allocate_slots(lane, err);
        if (status == STATUS_OK || lane->shape.bytes / 2 < slot_bytes_least(config->plan))
            return status;
        *err = (struct error)ERROR_INIT;
        while (lane->slot_count > 0)
            slot_clear(&lane->slot[--lane->slot_count], lane->queues);
        chain_release(&lane->chain);
        smaller.slot_bytes = lane->shape.bytes / 2;
        log_message(LOG_NOTICE, "notice: %s is short of memory; trying slots of %u MiB",
                    device->name, (unsigned)(smaller.slot_bytes >> 20));
    }
}

/* Chooses a lane's steps and slot shape; opens nothing. */
static enum status plan_lane(struct lane *lane, struct staging *staging,
                             const struct ocl_device *device, struct error *err)
{
    const struct staging_config *config = &staging->config;
    lane->staging = staging;
    lane->device = device;
    const uint64_t memory = config->device_memory ? config->device_memory : device->global_memory;
    if (chain_init(&lane->chain, config->plan, device, memory, false, err) != STATUS_OK)
        return STATUS_FAILED;
    slot_shape_choose(&lane->shape, config, device, &lane->chain);
    if (lane->shape.over &&
        chain_init(&lane->chain, config->plan, device, memory, true, err) != STATUS_OK)
        return STATUS_FAILED;
    slot_shape_choose(&lane->shape, config, device, &lane->chain);
    return STATUS_OK;
}

static enum status open_device(struct lane *lane, struct error *err)
{
    const struct staging_config *config = &lane->staging->config;
    enum status status = STATUS_OK;
    if (!lane->context)
        status = ocl_context_open(&lane->context, lane->device, config->selection.trace, err);
    if (status != STATUS_OK)
        return status;
    if (ocl_queue_open(&lane->queues.upload, lane->context, "upload", err) != STATUS_OK ||
        ocl_queue_open(&lane->queues.compute, lane->context, "compute", err) != STATUS_OK ||
        ocl_queue_open(&lane->queues.read, lane->context, "read back", err) != STATUS_OK)
        return STATUS_FAILED;
    status = chain_open(&lane->chain, lane->context, lane->shape.bytes, err);
    if (status != STATUS_OK)
        return status;
    return open_slots(lane, config, err);
}

/* Logs the slots for -v: "PoCL: 4 slots of 8.0 MiB, mapped; private". */
static void describe_lane(const struct lane *lane)
{
    char text[1024];
    size_t used = (size_t)snprintf(
        text, sizeof text, "%s: %u slots of %.1f MiB, %s;", lane->device->name, lane->slots_wanted,
        (double)lane->shape.bytes / (1 << 20), lane->shape.shared ? "mapped" : "copied");
    for (unsigned s = 0; s < lane->chain.count && used < sizeof text; s++) {
        const struct chain_node *node = &lane->chain.node[s];
        if (node->step->describe)
            node->step->describe(node->state, text + used, sizeof text - used);
        used += strlen(text + used);
    }
    log_message(LOG_DEBUG, "%s", text);
}

enum status staging_open_lane(struct lane *lane, struct error *err)
{
    struct staging *staging = lane->staging;
    enum status status = open_device(lane, err);
    /* If another lane already works, parts may have the size that was planned. */
    if (status == STATUS_OK && staging->part_bytes > 0 &&
        lane->shape.bytes / 2 < staging->part_bytes)
        status =
            error_set(err, STATUS_FAILED, "%s is short of memory for slots", lane->device->name);
    if (status != STATUS_OK)
        return status;
    describe_lane(lane);
    pthread_mutex_lock(&staging->lock);
    lane->opened = true;
    pthread_cond_broadcast(&staging->room);
    pthread_mutex_unlock(&staging->lock);
    /* Without a grower only the first slots are used. */
    lane->grows = lane->slot_count < lane->slots_wanted &&
                  pthread_create(&lane->grower, NULL, ring_grow, lane) == 0;
    return STATUS_OK;
}

static void close_lane(struct lane *lane)
{
    if (lane->context && lane->queues.upload && lane->queues.compute && lane->queues.read) {
        /* After an abort or a failure, wait until the device has finished its slots. */
        struct ocl_queue *queue[] = {lane->queues.upload, lane->queues.compute, lane->queues.read};
        for (unsigned i = 0; i < 3; i++)
            ocl_finish(queue[i]);
        pthread_mutex_lock(&lane->staging->lock);
        for (unsigned i = 0; i < lane->slot_count; i++) {
            while (lane->slot[i].watched)
                pthread_cond_wait(&lane->staging->event, &lane->staging->lock);
        }
        pthread_mutex_unlock(&lane->staging->lock);
        double seconds[3] = {0};
        for (unsigned i = 0; i < lane->slot_count; i++) {
            slot_release_events(&lane->slot[i], lane->context, seconds);
            slot_clear(&lane->slot[i], lane->queues);
        }
    }
    chain_close(&lane->chain);
    ocl_queue_close(&lane->queues.read);
    ocl_queue_close(&lane->queues.compute);
    ocl_queue_close(&lane->queues.upload);
    ocl_context_close(&lane->context);
}

/* Gives the last lane the number of an earlier one with an equal device, or a new one. */
static void number_kind(const struct staging *staging, struct lane *lane)
{
    lane->alike = staging->lane_count;
    for (unsigned i = 0; i + 1 < staging->lane_count; i++) {
        const struct lane *other = &staging->lane[i];
        if (lane->device->platform_id == other->device->platform_id &&
            strcmp(lane->device->name, other->device->name) == 0)
            lane->alike = other->alike;
    }
}

/* Plans the lanes of all devices and opens the first one that can be opened. The others are opened
 * by their threads meanwhile: a driver opens devices one at a time. */
static enum status open_lanes(struct staging *staging, struct error *err)
{
    struct ocl_selection *selection = &staging->config.selection;
    enum status status = STATUS_OK;
    bool opened = false;
    for (unsigned i = 0; i < selection->count; i++) {
        const struct ocl_device *device = &selection->devices->device[selection->chosen[i]];
        struct lane *lane = &staging->lane[staging->lane_count];
        struct error failed = ERROR_INIT;
        lane->context = selection->context;
        selection->context = NULL;
        enum status now = plan_lane(lane, staging, device, &failed);
        if (now == STATUS_OK && !opened)
            now = staging_open_lane(lane, &failed);
        if (now == STATUS_OK) {
            opened = true;
            staging->lane_count++;
            number_kind(staging, lane);
            continue;
        }
        close_lane(lane);
        memset(lane, 0, sizeof *lane);
        if (selection->count > 1) {
            char line[1024];
            log_message(LOG_NOTICE, "notice: device %s is skipped: %s", device->name,
                        error_line(line, sizeof line, &failed));
        }
        if (status == STATUS_OK) {
            status = now;
            *err = failed;
        }
    }
    if (staging->lane_count == 0)
        return status;
    staging->part_bytes = staging->lane[0].shape.bytes / 2;
    for (unsigned i = 1; i < staging->lane_count; i++)
        staging->part_bytes = min_u64(staging->part_bytes, staging->lane[i].shape.bytes / 2);
    *err = (struct error)ERROR_INIT;
    return STATUS_OK;
}

enum status staging_open(struct staging **out, const struct staging_config *config,
                         struct error *err)
{
    *out = NULL;
    struct ocl_context *opened = config->selection.context;
    struct staging *staging = calloc(1, sizeof *staging);
    if (!staging) {
        ocl_context_close(&opened);
        return error_memory(err, sizeof *staging, "the slot rings");
    }
    staging->config = *config;
    staging->whole = step_plan_least_part(config->plan) > 0;
    lock_init_short(&staging->lock);
    cond_init_monotonic(&staging->room);
    cond_init_monotonic(&staging->event);
    pthread_cond_init(&staging->grow, NULL);
    enum status status = STATUS_OK;
    staging->lane = calloc(config->selection.count, sizeof *staging->lane);
    if (!staging->lane)
        status =
            error_memory(err, config->selection.count * sizeof *staging->lane, "the slot rings");
    if (status == STATUS_OK)
        status = open_lanes(staging, err);
    for (unsigned i = 0; i < staging->lane_count && status == STATUS_OK; i++) {
        struct lane *lane = &staging->lane[i];
        int code = pthread_create(&lane->thread, NULL, ring_serve, lane);
        lane->started = code == 0;
        if (code != 0)
            status = error_errno(err, STATUS_FAILED, code, "pthread_create",
                                 "cannot start a device thread");
    }
    if (status != STATUS_OK) {
        staging_abort(staging);
        staging_close(&staging);
        return status;
    }
    *out = staging;
    return STATUS_OK;
}

uint64_t staging_part_bytes(const struct staging *staging)
{
    return staging->part_bytes;
}

uint32_t staging_overlap(const struct staging *staging)
{
    return step_plan_overlap(staging->config.plan);
}

unsigned staging_goals(scale_goal goals[STEP_NODES_MAX], const struct staging *staging)
{
    return step_plan_goals(goals, staging->config.plan);
}

bool staging_would_take(const struct step_plan *plan, const struct ocl_device *device,
                        enum payload payload)
{
    struct chain chain;
    struct error err = ERROR_INIT;
    return chain_init(&chain, plan, device, 0, false, &err) == STATUS_OK &&
           chain_takes(&chain, payload, false);
}

bool staging_takes(const struct staging *staging, enum payload payload)
{
    for (unsigned i = 0; i < staging->lane_count; i++) {
        if (chain_takes(&staging->lane[i].chain, payload, false))
            return true;
    }
    return false;
}

void staging_times(struct staging *staging, struct staging_times *times)
{
    pthread_mutex_lock(&staging->lock);
    *times = (struct staging_times){.lanes = staging->lane_count};
    for (unsigned i = 0; i < staging->lane_count; i++) {
        times->upload += staging->lane[i].seconds[0];
        times->compute += staging->lane[i].seconds[1];
        times->read_back += staging->lane[i].seconds[2];
    }
    pthread_mutex_unlock(&staging->lock);
}

void staging_settle(struct staging *staging)
{
    pthread_mutex_lock(&staging->lock);
    for (unsigned i = 0; i < staging->lane_count; i++) {
        ring_seal(&staging->lane[i]);
        while (!staging->aborted && !ring_is_empty(&staging->lane[i]))
            pthread_cond_wait(&staging->room, &staging->lock);
    }
    pthread_mutex_unlock(&staging->lock);
}

static void join_lane(struct lane *lane)
{
    if (lane->started)
        pthread_join(lane->thread, NULL);
    if (lane->grows)
        pthread_join(lane->grower, NULL);
    lane->started = lane->grows = false;
}

void staging_drain(struct staging *staging)
{
    pthread_mutex_lock(&staging->lock);
    staging->ending = true;
    for (unsigned i = 0; i < staging->lane_count; i++) {
        struct lane *lane = &staging->lane[i];
        lane->drained = lane->opened || lane->failed;
        ring_seal(lane);
        /* A simulator takes a minute to prove its kernels, while others have done the work. */
        if (lane->opened && (staging->aborted || (!lane->built && lane->pending == 0)))
            chain_abandon(&lane->chain);
    }
    pthread_cond_broadcast(&staging->event);
    pthread_cond_broadcast(&staging->grow);
    pthread_mutex_unlock(&staging->lock);
    for (unsigned i = 0; i < staging->lane_count; i++) {
        if (staging->lane[i].drained)
            join_lane(&staging->lane[i]);
    }
}

void staging_close(struct staging **out)
{
    struct staging *staging = *out;
    if (!staging)
        return;
    staging_drain(staging);
    for (unsigned i = 0; i < staging->lane_count; i++) {
        join_lane(&staging->lane[i]);
        close_lane(&staging->lane[i]);
    }
    ocl_context_close(&staging->config.selection.context);
    free(staging->lane);
    pthread_cond_destroy(&staging->event);
    pthread_cond_destroy(&staging->room);
    pthread_cond_destroy(&staging->grow);
    pthread_mutex_destroy(&staging->lock);
    free(staging);
    *out = NULL;
}
