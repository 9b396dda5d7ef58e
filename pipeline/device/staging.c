/* staging.c: opens and closes rings; the interface of slots to decode threads.
 *
 * One lock guards all states; it is held for microseconds, and never while pixels are written. A
 * decode thread that holds a part never waits for space, so every sealed slot becomes ready. */
#include "device/staging.h"

#include "device/ring.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/minmax.h"

/* Slots allocated before decoding starts; pinning memory takes longer than filling it. */
#define SLOTS_FIRST 2u
/* Callers that could add less than this fraction of the devices' rate should be ready to fill the
 * next slot instead. */
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

/* Computes the space that a part needs in a ring's slot; `coded`: a whole picture in that payload.
 * Reduces rows until the part fits into an empty slot. False: a coded picture does not fit. */
static bool size_part(struct staging_part *part, const struct ring *ring,
                      const struct part_shape *pixels, uint64_t bytes,
                      const struct part_shape *coded)
{
    static const struct chain_use none;
    struct part_shape *shape = &part->shape;
    *shape = coded ? *coded : *pixels;
    shape->overlap = ring->chain.overlap;
    if (!coded)
        cut_rows(shape, bytes);
    for (;;) {
        chain_size(&part->chain, &ring->chain, shape);
        if (chain_fits(&ring->chain, &part->chain, &none, ring->shape.parts))
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
    const struct ring *ring = slot->ring;
    return slot->parts < ring->shape.parts &&
           slot->used_bytes + part->shape.bytes <= ring->shape.bytes &&
           chain_fits(&ring->chain, &part->chain, &slot->use, ring->shape.parts);
}

/* Allocates the part's space in the slot. With the lock held. */
static void place(struct staging_part *part, struct slot *slot)
{
    struct ring *ring = slot->ring;
    part->slot = slot;
    part->index = slot->parts++;
    part->offset = slot->used_bytes;
    part->bytes = (uint8_t *)slot->input.host + slot->used_bytes;
    slot->outstanding++;
    slot->picture[part->index] = NULL;
    chain_place(&part->chain, &ring->chain, &part->shape, &slot->use);
    uint64_t end = slot->used_bytes + part->shape.bytes;
    end = (end + PART_ALIGNMENT - 1) / PART_ALIGNMENT * PART_ALIGNMENT;
    ring->pending += part->cost;
    slot->cost += part->cost;
    slot->used_bytes = (uint32_t)end;
}

/* The index of the first coded payload from `at` on that the ring accepts; `count`: none. */
static unsigned choose_coded(const struct ring *ring, const struct part_shape *coded, unsigned at,
                             unsigned count)
{
    while (at < count && !chain_takes(&ring->chain, coded[at].payload, true))
        at++;
    return at;
}

/* What a part was sized for; zeroed until a ring is chosen. */
struct sized {
    const struct ring *ring;
    uint64_t bytes;
    bool coded; /* coded payloads that fit were tried */
};

/* Sizes the part for a ring that should get `bytes` of the `whole`. */
static void size_for(struct staging_part *part, struct sized *sized, struct ring *ring,
                     const struct part_shape *pixels, uint64_t whole, uint64_t bytes,
                     const struct part_shape *coded, unsigned count)
{
    const bool wants = count > 0 && ring->built && bytes == whole && part_is_whole(pixels);
    if (sized->ring == ring && sized->bytes == bytes && sized->coded == wants)
        return;
    unsigned c = wants ? choose_coded(ring, coded, 0, count) : count;
    while (c < count && !size_part(part, ring, pixels, bytes, &coded[c]))
        c = choose_coded(ring, coded, c + 1, count);
    if (c == count)
        size_part(part, ring, pixels, min_u64(bytes, ring->staging->part_bytes), NULL);
    part->cost = max_u64(part->shape.bytes, c < count ? whole : 0);
    *sized = (struct sized){ring, bytes, wants};
}

/* Would the callers' other work add much to the devices' rate? With the lock held. */
static bool is_worth_doing(const struct staging *staging, const struct staging_else *otherwise)
{
    double rate = 0;
    for (unsigned i = 0; i < staging->ring_count; i++)
        rate += staging->ring[i].failed ? 0 : staging->ring[i].rate;
    return otherwise->rate >= WORTH_DOING * rate;
}

/* Waits until there may be space; false: the caller should use the time for other work. With the
 * lock held. */
static bool wait_for_room(struct staging *staging, const struct ring *ring,
                          struct staging_else *otherwise, int64_t *deadline)
{
    if (!otherwise || !is_worth_doing(staging, otherwise)) {
        pthread_cond_wait(&staging->room, &staging->lock);
        return true;
    }
    const int64_t now = clock_now();
    if (*deadline == 0 && ring && ring->last_took > 0 && ring->last_took <= otherwise->patience)
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
    /* A single ring gets everything: no lock needed. */
    if (staging->ring_count == 1)
        size_for(part, &sized, &staging->ring[0], pixels, whole, whole, coded, coded_count);
    pthread_mutex_lock(&staging->lock);
    while (!staging->aborted && share_alive(staging) > 0) {
        uint64_t bytes = whole;
        struct ring *ring = share_choose(&bytes, staging);
        if (ring)
            size_for(part, &sized, ring, pixels, whole, staging->whole ? whole : bytes, coded,
                     coded_count);
        if (ring && ring->filling && !fits(part, ring->filling))
            ring_seal(ring);
        if (ring && !ring->filling)
            ring_open_slot(ring);
        going = ring && ring->filling;
        if (going)
            place(part, ring->filling);
        if (going || !wait_for_room(staging, ring, otherwise, &deadline))
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
    const struct ring *ring = slot->ring;
    const struct chain_part *at = &part->chain;
    for (unsigned i = 0; i < ring->chain.count; i++) {
        const struct chain_node *node = &ring->chain.node[i];
        const int input = node->input;
        const struct step_entry entry = {
            .in = input < 0 ? &part->shape : &at->out[input],
            .out = &at->out[i],
            .in_offset = input < 0 ? part->offset : at->offset[input],
            .out_offset = at->offset[i],
            .values = part->index * ring->chain.words,
            .verdict = part->index * ring->chain.words + ring->staging->config.plan->words,
            .list_entries = chain_entries(node, ring->shape.parts),
            .first = at->first + node->first_count,
            .count = at->count + node->first_count,
            .given_up = given_up,
        };
        node->step->fill(slot->table[i].host, node->state, &entry);
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
static enum status allocate_slots(struct ring *ring, struct error *err)
{
    const bool all = ocl_context_device(ring->context)->pocl_major > 0;
    const uint32_t first = all ? ring->slots_wanted : min_u32(ring->slots_wanted, SLOTS_FIRST);
    enum status status = chain_allocate(&ring->chain, ring->context, ring->shape.bytes, err);
    while (status == STATUS_OK && ring->slot_count < first) {
        status = ring_allocate(ring, err);
        ring->slot_count += status == STATUS_OK;
    }
    return status;
}

static enum status open_slots(struct ring *ring, const struct staging_config *config,
                              struct error *err)
{
    struct staging_config smaller = *config;
    for (;;) {
        const struct ocl_device *device = ocl_context_device(ring->context);
        ring->slots_wanted = slot_shape_choose(&ring->shape, &smaller, device, &ring->chain);
        const enum status status = allocate_slots(ring, err);
        if (status == STATUS_OK || ring->shape.bytes / 2 < slot_bytes_least(config->plan))
            return status;
        *err = (struct error)ERROR_INIT;
        while (ring->slot_count > 0)
            slot_clear(&ring->slot[--ring->slot_count], ring->queues);
        chain_release(&ring->chain);
        smaller.slot_bytes = ring->shape.bytes / 2;
        log_message(LOG_NOTICE, "notice: %s is short of memory; trying slots of %u MiB",
                    device->name, (unsigned)(smaller.slot_bytes >> 20));
    }
}

/* Chooses a ring's steps and slot shape; opens nothing. */
static enum status plan_ring(struct ring *ring, struct staging *staging,
                             const struct ocl_device *device, struct error *err)
{
    const struct staging_config *config = &staging->config;
    ring->staging = staging;
    ring->device = device;
    const uint64_t memory = config->device_memory ? config->device_memory : device->global_memory;
    if (chain_init(&ring->chain, config->plan, device, memory, false, err) != STATUS_OK)
        return STATUS_FAILED;
    slot_shape_choose(&ring->shape, config, device, &ring->chain);
    if (ring->shape.over &&
        chain_init(&ring->chain, config->plan, device, memory, true, err) != STATUS_OK)
        return STATUS_FAILED;
    slot_shape_choose(&ring->shape, config, device, &ring->chain);
    return STATUS_OK;
}

static enum status open_device(struct ring *ring, struct error *err)
{
    const struct staging_config *config = &ring->staging->config;
    enum status status = STATUS_OK;
    if (!ring->context)
        status = ocl_context_open(&ring->context, ring->device, config->selection.trace, err);
    if (status != STATUS_OK)
        return status;
    if (ocl_queue_open(&ring->queues.upload, ring->context, "upload", err) != STATUS_OK ||
        ocl_queue_open(&ring->queues.compute, ring->context, "compute", err) != STATUS_OK ||
        ocl_queue_open(&ring->queues.read, ring->context, "read back", err) != STATUS_OK)
        return STATUS_FAILED;
    status = chain_open(&ring->chain, ring->context, ring->shape.bytes, err);
    if (status != STATUS_OK)
        return status;
    return open_slots(ring, config, err);
}

/* Logs the slots for -v: "PoCL: 4 slots of 8.0 MiB, mapped; private". */
static void describe_ring(const struct ring *ring)
{
    char text[1024];
    size_t used = (size_t)snprintf(
        text, sizeof text, "%s: %u slots of %.1f MiB, %s;", ring->device->name, ring->slots_wanted,
        (double)ring->shape.bytes / (1 << 20), ring->shape.shared ? "mapped" : "copied");
    for (unsigned s = 0; s < ring->chain.count && used < sizeof text; s++) {
        const struct chain_node *node = &ring->chain.node[s];
        if (node->step->describe)
            node->step->describe(node->state, text + used, sizeof text - used);
        used += strlen(text + used);
    }
    log_message(LOG_DEBUG, "%s", text);
}

enum status staging_open_ring(struct ring *ring, struct error *err)
{
    struct staging *staging = ring->staging;
    enum status status = open_device(ring, err);
    /* If another ring already works, parts may have the size that was planned. */
    if (status == STATUS_OK && staging->part_bytes > 0 &&
        ring->shape.bytes / 2 < staging->part_bytes)
        status =
            error_set(err, STATUS_FAILED, "%s is short of memory for slots", ring->device->name);
    if (status != STATUS_OK)
        return status;
    describe_ring(ring);
    pthread_mutex_lock(&staging->lock);
    ring->opened = true;
    pthread_cond_broadcast(&staging->room);
    pthread_mutex_unlock(&staging->lock);
    /* Without a grower, only the first slots are used. */
    ring->grows = ring->slot_count < ring->slots_wanted &&
                  pthread_create(&ring->grower, NULL, ring_grow, ring) == 0;
    return STATUS_OK;
}

static void close_ring(struct ring *ring)
{
    if (ring->context && ring->queues.upload && ring->queues.compute && ring->queues.read) {
        /* After an abort or a failure, waits until the device has finished its slots. */
        struct ocl_queue *queue[] = {ring->queues.upload, ring->queues.compute, ring->queues.read};
        for (unsigned i = 0; i < 3; i++)
            ocl_finish(queue[i]);
        pthread_mutex_lock(&ring->staging->lock);
        for (unsigned i = 0; i < ring->slot_count; i++) {
            while (ring->slot[i].watched)
                pthread_cond_wait(&ring->staging->event, &ring->staging->lock);
        }
        pthread_mutex_unlock(&ring->staging->lock);
        double seconds[3] = {0};
        for (unsigned i = 0; i < ring->slot_count; i++) {
            slot_release_events(&ring->slot[i], ring->context, seconds);
            slot_clear(&ring->slot[i], ring->queues);
        }
    }
    chain_close(&ring->chain);
    ocl_queue_close(&ring->queues.read);
    ocl_queue_close(&ring->queues.compute);
    ocl_queue_close(&ring->queues.upload);
    ocl_context_close(&ring->context);
}

/* Gives the last ring the number of an earlier one with an equal device, or a new one. */
static void number_kind(const struct staging *staging, struct ring *ring)
{
    ring->alike = staging->ring_count;
    for (unsigned i = 0; i + 1 < staging->ring_count; i++) {
        const struct ring *other = &staging->ring[i];
        if (ring->device->platform_id == other->device->platform_id &&
            strcmp(ring->device->name, other->device->name) == 0)
            ring->alike = other->alike;
    }
}

/* Plans the rings of all devices and opens the first one that can be opened. The others are opened
 * by their own threads: a driver opens devices one at a time. */
static enum status open_rings(struct staging *staging, struct error *err)
{
    struct ocl_selection *selection = &staging->config.selection;
    enum status status = STATUS_OK;
    bool opened = false;
    for (unsigned i = 0; i < selection->count; i++) {
        const struct ocl_device *device = &selection->devices->device[selection->chosen[i]];
        struct ring *ring = &staging->ring[staging->ring_count];
        struct error failed = ERROR_INIT;
        ring->context = selection->context;
        selection->context = NULL;
        enum status now = plan_ring(ring, staging, device, &failed);
        if (now == STATUS_OK && !opened)
            now = staging_open_ring(ring, &failed);
        if (now == STATUS_OK) {
            opened = true;
            staging->ring_count++;
            number_kind(staging, ring);
            continue;
        }
        close_ring(ring);
        memset(ring, 0, sizeof *ring);
        if (selection->count > 1) {
            log_message(LOG_NOTICE, "notice: device %s is skipped: %s", device->name,
                        ERROR_LINE(&failed));
        }
        if (status == STATUS_OK) {
            status = now;
            *err = failed;
        }
    }
    if (staging->ring_count == 0)
        return status;
    staging->part_bytes = staging->ring[0].shape.bytes / 2;
    for (unsigned i = 1; i < staging->ring_count; i++)
        staging->part_bytes = min_u64(staging->part_bytes, staging->ring[i].shape.bytes / 2);
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
    staging->ring = calloc(config->selection.count, sizeof *staging->ring);
    if (!staging->ring)
        status =
            error_memory(err, config->selection.count * sizeof *staging->ring, "the slot rings");
    if (status == STATUS_OK)
        status = open_rings(staging, err);
    for (unsigned i = 0; i < staging->ring_count && status == STATUS_OK; i++) {
        struct ring *ring = &staging->ring[i];
        int code = pthread_create(&ring->thread, NULL, ring_serve, ring);
        ring->started = code == 0;
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
    for (unsigned i = 0; i < staging->ring_count; i++) {
        if (chain_takes(&staging->ring[i].chain, payload, false))
            return true;
    }
    return false;
}

void staging_times(struct staging *staging, struct staging_times *times)
{
    pthread_mutex_lock(&staging->lock);
    *times = (struct staging_times){.rings = staging->ring_count};
    for (unsigned i = 0; i < staging->ring_count; i++) {
        times->upload += staging->ring[i].seconds[0];
        times->compute += staging->ring[i].seconds[1];
        times->read_back += staging->ring[i].seconds[2];
    }
    pthread_mutex_unlock(&staging->lock);
}

void staging_settle(struct staging *staging)
{
    pthread_mutex_lock(&staging->lock);
    for (unsigned i = 0; i < staging->ring_count; i++) {
        ring_seal(&staging->ring[i]);
        while (!staging->aborted && !ring_is_empty(&staging->ring[i]))
            pthread_cond_wait(&staging->room, &staging->lock);
    }
    pthread_mutex_unlock(&staging->lock);
}

static void join_ring(struct ring *ring)
{
    if (ring->started)
        pthread_join(ring->thread, NULL);
    if (ring->grows)
        pthread_join(ring->grower, NULL);
    ring->started = ring->grows = false;
}

void staging_drain(struct staging *staging)
{
    pthread_mutex_lock(&staging->lock);
    staging->ending = true;
    for (unsigned i = 0; i < staging->ring_count; i++) {
        struct ring *ring = &staging->ring[i];
        ring->drained = ring->opened || ring->failed;
        ring_seal(ring);
        /* A simulator may still be proving its kernels, for a minute, when other devices have done
         * the work. */
        if (ring->opened && (staging->aborted || (!ring->built && ring->pending == 0)))
            chain_abandon(&ring->chain);
    }
    pthread_cond_broadcast(&staging->event);
    pthread_cond_broadcast(&staging->grow);
    pthread_mutex_unlock(&staging->lock);
    for (unsigned i = 0; i < staging->ring_count; i++) {
        if (staging->ring[i].drained)
            join_ring(&staging->ring[i]);
    }
}

void staging_close(struct staging **out)
{
    struct staging *staging = *out;
    if (!staging)
        return;
    staging_drain(staging);
    for (unsigned i = 0; i < staging->ring_count; i++) {
        join_ring(&staging->ring[i]);
        close_ring(&staging->ring[i]);
    }
    ocl_context_close(&staging->config.selection.context);
    free(staging->ring);
    pthread_cond_destroy(&staging->event);
    pthread_cond_destroy(&staging->room);
    pthread_cond_destroy(&staging->grow);
    pthread_mutex_destroy(&staging->lock);
    free(staging);
    *out = NULL;
}
