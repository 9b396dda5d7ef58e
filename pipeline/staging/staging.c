/* staging.c: opens and closes lanes; the interface of slots to decode threads.
 *
 * One lock guards all states; it is held for microseconds, and pixels are written without it. A
 * decode thread waits for space only while it holds no part, so a sealed slot always becomes ready.
 */
#include "staging/staging.h"

#include "staging/ring.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/minmax.h"
#include "base/parse.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the decode threads' side ---------------------------------------------------------------- */

/* Cuts the rows of packed pixels short so that they take no more than `bytes`, where there are more
 * than one and the overlap. */
static void cut_rows(struct part_shape *shape, uint64_t bytes)
{
    const uint32_t least = shape->overlap + 1;
    const uint64_t rows = bytes / (3 * (uint64_t)(shape->rect.x1 - shape->rect.x0));
    if (shape->rect.y1 - shape->rect.y0 > (rows > least ? rows : least))
        shape->rect.y1 = shape->rect.y0 + (uint32_t)(rows > least ? rows : least);
    part_set_rgb(shape);
}

/* Finds out what a part takes: of a lane's bytes, or, `coded`, all of the picture in that payload.
 * Rows are cut short until they fit into an empty slot. False: what is coded does not. */
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

/* With the lock: does the part fit into the slot? */
static bool fits(const struct staging_part *part, const struct slot *slot)
{
    const struct lane *lane = slot->lane;
    return slot->parts < lane->shape.parts &&
           slot->used_bytes + part->shape.bytes <= lane->shape.bytes &&
           chain_fits(&lane->chain, &part->chain, &slot->use, lane->shape.parts);
}

/* With the lock: gives the part its place. */
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

/* The first of the coded payloads from `at` on that the lane accepts; `count`: none. */
static unsigned choose_coded(const struct lane *lane, const struct part_shape *coded, unsigned at,
                             unsigned count)
{
    while (at < count && !chain_takes(&lane->chain, coded[at].payload, true))
        at++;
    return at;
}

bool staging_acquire(struct staging *staging, struct staging_part *part,
                     const struct part_shape *pixels, const struct part_shape *coded,
                     unsigned coded_count, bool *full)
{
    const struct cell_rect *rect = &pixels->rect;
    const uint64_t whole = 3ull * (rect->x1 - rect->x0) * (rect->y1 - rect->y0);
    /* What the part has been sized for; with one lane, that is known without the lock. */
    const struct lane *sized = NULL;
    uint64_t sized_bytes = whole;
    bool sized_coded = false, going = false;
    if (full)
        *full = false;
    if (staging->lane_count == 1 && coded_count == 0) {
        sized = &staging->lane[0];
        size_part(part, sized, pixels, min_u64(whole, staging->part_bytes), NULL);
        part->cost = part->shape.bytes;
    }
    pthread_mutex_lock(&staging->lock);
    while (!staging->aborted && share_alive(staging) > 0) {
        uint64_t bytes = whole;
        struct lane *lane = share_choose(&bytes, staging);
        bytes = staging->whole ? whole : bytes;
        const bool wants_coded =
            lane && coded_count > 0 && lane->built && bytes == whole && part_is_whole(pixels);
        if (lane && (sized != lane || sized_bytes != bytes || sized_coded != wants_coded)) {
            unsigned c = wants_coded ? choose_coded(lane, coded, 0, coded_count) : coded_count;
            while (c < coded_count && !size_part(part, lane, pixels, bytes, &coded[c]))
                c = choose_coded(lane, coded, c + 1, coded_count);
            if (c == coded_count)
                size_part(part, lane, pixels, min_u64(bytes, staging->part_bytes), NULL);
            part->cost = max_u64(part->shape.bytes, c < coded_count ? whole : 0);
            sized = lane;
            sized_bytes = bytes;
            sized_coded = wants_coded;
        }
        if (lane && lane->filling && !fits(part, lane->filling))
            ring_seal(lane);
        if (lane && !lane->filling)
            ring_open_slot(lane);
        going = lane && lane->filling;
        if (going) {
            place(part, lane->filling);
            break;
        }
        if (full) {
            *full = true;
            break;
        }
        pthread_cond_wait(&staging->room, &staging->lock);
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
    pthread_mutex_unlock(&staging->lock);
}

/* --- opening and closing --------------------------------------------------------------------- */

/* Arenas and slots of the lane's shape; of slots as many as there is memory for. */
static enum status allocate_slots(struct lane *lane, unsigned wanted, struct error *err)
{
    enum status status = chain_allocate(&lane->chain, lane->context, lane->shape.bytes, err);
    while (status == STATUS_OK && lane->slot_count < wanted) {
        struct slot *slot = &lane->slot[lane->slot_count];
        slot->lane = lane;
        status = slot_init(slot, lane->context, lane->queues, &lane->shape, &lane->chain, err);
        if (status == STATUS_OK)
            lane->slot_count++;
        else
            slot_clear(slot, lane->queues);
    }
    return status;
}

static enum status open_slots(struct lane *lane, const struct staging_config *config,
                              struct error *err)
{
    struct staging_config smaller = *config;
    for (;;) {
        const struct ocl_device *device = ocl_context_device(lane->context);
        const unsigned wanted = slot_shape_choose(&lane->shape, &smaller, device, &lane->chain);
        const enum status status = allocate_slots(lane, wanted, err);
        if (status == STATUS_OK)
            return STATUS_OK;
        if (lane->slot_count >= 2) {
            *err = (struct error)ERROR_INIT;
            log_message(LOG_NOTICE, "notice: %s has memory for %u slots instead of %u",
                        device->name, lane->slot_count, wanted);
            return STATUS_OK;
        }
        if (lane->shape.bytes / 2 < slot_bytes_least(config->plan))
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

static enum status open_lane(struct lane *lane, struct staging *staging, unsigned index,
                             struct error *err)
{
    const struct staging_config *config = &staging->config;
    const struct ocl_device *device = &config->devices->device[index];
    lane->staging = staging;
    if (chain_init(&lane->chain, config->plan, device, false, err) != STATUS_OK)
        return STATUS_FAILED;
    slot_shape_choose(&lane->shape, config, device, &lane->chain);
    if (lane->shape.over && chain_init(&lane->chain, config->plan, device, true, err) != STATUS_OK)
        return STATUS_FAILED;
    if (ocl_context_open(&lane->context, device, config->trace, err) != STATUS_OK ||
        ocl_queue_open(&lane->queues.upload, lane->context, "upload", err) != STATUS_OK ||
        ocl_queue_open(&lane->queues.compute, lane->context, "compute", err) != STATUS_OK ||
        ocl_queue_open(&lane->queues.read, lane->context, "read back", err) != STATUS_OK)
        return STATUS_FAILED;
    slot_shape_choose(&lane->shape, config, device, &lane->chain);
    const enum status status = chain_open(&lane->chain, lane->context, lane->shape.bytes, err);
    if (status != STATUS_OK)
        return status;
    return open_slots(lane, config, err);
}

static void close_lane(struct lane *lane)
{
    if (lane->context && lane->queues.upload && lane->queues.compute && lane->queues.read) {
        /* After an abort or a failure the device may still have slots: let it finish them. */
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

/* Opens the lanes of all devices that can be opened, at least one. */
static enum status open_lanes(struct staging *staging, struct error *err)
{
    const struct staging_config *config = &staging->config;
    enum status status = STATUS_OK;
    staging->part_bytes = UINT64_MAX;
    for (unsigned i = 0; i < config->chosen_count; i++) {
        struct lane *lane = &staging->lane[staging->lane_count];
        struct error failed = ERROR_INIT;
        enum status opened = open_lane(lane, staging, config->chosen[i], &failed);
        if (opened == STATUS_OK) {
            staging->lane_count++;
            if (lane->shape.bytes / 2 < staging->part_bytes)
                staging->part_bytes = lane->shape.bytes / 2;
            continue;
        }
        close_lane(lane);
        memset(lane, 0, sizeof *lane);
        if (config->chosen_count > 1) {
            char line[1024];
            log_message(LOG_NOTICE, "notice: device %s is skipped: %s",
                        config->devices->device[config->chosen[i]].name,
                        error_line(line, sizeof line, &failed));
        }
        if (status == STATUS_OK) {
            status = opened;
            *err = failed;
        }
    }
    if (staging->lane_count == 0)
        return status;
    *err = (struct error)ERROR_INIT;
    return STATUS_OK;
}

enum status staging_open(struct staging **out, const struct staging_config *config,
                         struct error *err)
{
    *out = NULL;
    struct staging *staging = calloc(1, sizeof *staging);
    if (!staging)
        return error_memory(err, sizeof *staging, "the slot rings");
    staging->config = *config;
    staging->whole = step_plan_least_part(config->plan) > 0;
    pthread_mutex_init(&staging->lock, NULL);
    pthread_cond_init(&staging->room, NULL);
    cond_init_monotonic(&staging->event);
    enum status status = STATUS_OK;
    staging->lane = calloc(config->chosen_count, sizeof *staging->lane);
    if (!staging->lane)
        status = error_memory(err, config->chosen_count * sizeof *staging->lane, "the slot rings");
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

unsigned staging_sides(uint32_t sides[STEP_NODES_MAX], const struct staging *staging)
{
    return step_plan_sides(sides, staging->config.plan);
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

void staging_describe(const struct staging *staging, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < staging->lane_count && used < size; i++) {
        const struct lane *lane = &staging->lane[i];
        int n = snprintf(text + used, size - used, "%s%s: %u slots of %.1f MiB, %s;", i ? "\n" : "",
                         ocl_context_device(lane->context)->name, lane->slot_count,
                         (double)lane->shape.bytes / (1 << 20),
                         lane->shape.shared ? "mapped" : "copied");
        used += n > 0 ? (size_t)n : 0;
        for (unsigned s = 0; s < lane->chain.count && used < size; s++) {
            const struct chain_node *node = &lane->chain.node[s];
            if (node->step->describe)
                node->step->describe(node->state, text + used, size - used);
            used += strlen(text + used);
        }
    }
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

void staging_drain(struct staging *staging)
{
    pthread_mutex_lock(&staging->lock);
    staging->ending = true;
    for (unsigned i = 0; i < staging->lane_count; i++) {
        struct lane *lane = &staging->lane[i];
        ring_seal(lane);
        /* A simulator takes a minute to prove its kernels, while others have done the work. */
        if (staging->aborted || (!lane->built && lane->pending == 0))
            chain_abandon(&lane->chain);
    }
    pthread_cond_broadcast(&staging->event);
    pthread_mutex_unlock(&staging->lock);
    for (unsigned i = 0; i < staging->lane_count; i++) {
        if (staging->lane[i].started)
            pthread_join(staging->lane[i].thread, NULL);
        staging->lane[i].started = false;
    }
}

void staging_close(struct staging **out)
{
    struct staging *staging = *out;
    if (!staging)
        return;
    staging_drain(staging);
    for (unsigned i = 0; i < staging->lane_count; i++)
        close_lane(&staging->lane[i]);
    free(staging->lane);
    pthread_cond_destroy(&staging->event);
    pthread_cond_destroy(&staging->room);
    pthread_mutex_destroy(&staging->lock);
    free(staging);
    *out = NULL;
}
