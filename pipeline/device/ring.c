/* ring.c: the ring thread, which processes full slots.
 *
 *   FREE ──(first part)──> FILLING ──(full | idle device | end)──> SEALED ──(last part in)──> BUSY
 *    ▲      decode threads, under the lock                              ring thread             │
 *    └───────────────────────────────────── the device is done ─────────────────────────────────┘
 *
 * A slot that is filling while its device is idle is sealed after IDLE_NS, so no part waits long
 * for late ones (the last images of a run, a slow disk, a huge image that occupies every decode
 * thread).
 *
 * The progress of a failed device is unknown. Parts are delivered only after the whole slot has
 * finished, so all parts of an unfinished slot are reported as lost. */
#include "device/ring.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/minmax.h"

#include <stdio.h>
#include <string.h>

#define IDLE_NS (10 * 1000000ll)
/* Parts delivered before the ring thread checks again whether it can submit a slot. */
#define DELIVERED_AT_ONCE 64u

/* --- states ---------------------------------------------------------------------------------- */

void ring_make_ready(struct slot *slot)
{
    struct ring *ring = slot->ring;
    slot->next = NULL;
    if (ring->ready)
        ring->ready_last->next = slot;
    else
        ring->ready = slot;
    ring->ready_last = slot;
    pthread_cond_broadcast(&ring->staging->event);
}

void ring_seal(struct ring *ring)
{
    struct slot *slot = ring->filling;
    if (!slot)
        return;
    ring->filling = NULL;
    slot->state = SLOT_SEALED;
    if (slot->outstanding == 0)
        ring_make_ready(slot);
}

void ring_open_slot(struct ring *ring)
{
    for (unsigned i = 0; i < ring->slot_count; i++) {
        struct slot *slot = &ring->slot[i];
        if (slot->state != SLOT_FREE)
            continue;
        slot->state = SLOT_FILLING;
        slot->used_bytes = slot->parts = slot->outstanding = slot->delivered = 0;
        slot->cost = 0;
        memset(&slot->use, 0, sizeof slot->use);
        slot->opened = clock_now();
        ring->filling = slot;
        return;
    }
    if (!ring->wants_slot && ring->slot_count < ring->slots_wanted) {
        ring->wants_slot = true;
        pthread_cond_broadcast(&ring->staging->grow);
    }
}

bool ring_is_empty(const struct ring *ring)
{
    if (ring->failed)
        return ring->emptied;
    return !ring->ready && !ring->finished && ring->busy == 0 && !ring->filling;
}

/* --- the ring thread ------------------------------------------------------------------------- */

/* Event callback: the host owns the slot again. Notifies the ring thread. */
static void slot_done(cl_int result, void *context)
{
    struct slot *slot = context;
    struct ring *ring = slot->ring;
    pthread_mutex_lock(&ring->staging->lock);
    slot->result = result;
    slot->watched = false;
    slot->next = NULL;
    *(ring->finished ? &ring->finished_last->next : &ring->finished) = slot;
    ring->finished_last = slot;
    pthread_cond_broadcast(&ring->staging->event);
    pthread_mutex_unlock(&ring->staging->lock);
}

/* Delivers some parts of a finished slot, and frees it after the last one. Called with the lock
 * held, which it releases meanwhile. */
static enum status deliver_some(struct ring *ring, struct slot *slot, struct error *err)
{
    struct staging *staging = ring->staging;
    pthread_mutex_unlock(&staging->lock);
    double seconds[3] = {0};
    slot_release_events(slot, ring->context, seconds);
    const bool counted = slot->result >= 0;
    const int64_t start = clock_now();
    const uint32_t end = min_u32(slot->parts, slot->delivered + DELIVERED_AT_ONCE);
    for (; slot->delivered < end && counted; slot->delivered++) {
        const uint32_t i = slot->delivered;
        uint32_t *row = (uint32_t *)slot->values.host + (size_t)i * ring->chain.words;
        const uint32_t words = staging->config.plan->words;
        const struct part_result result = {.proven = !ring->chain.refuses || row[words] == 0,
                                           .values = row};
        if (slot->picture[i])
            staging->config.deliver(staging->config.context, slot->picture[i], &result);
        if (ring->shape.shared) /* while it is in the cache */
            memset(row, 0, ring->chain.words * sizeof *row);
    }
    trace_span(staging->config.selection.trace, ring->track, "deliver", start, clock_now(), NULL);
    pthread_mutex_lock(&staging->lock);
    for (int i = 0; i < 3; i++)
        ring->seconds[i] += seconds[i];
    if (!counted) {
        ocl_error(err, slot->result, "event", "device %s failed while counting",
                  ocl_context_device(ring->context)->name);
        return share_alive(staging) > 1 ? STATUS_FAILED : error_remedy(err, REMEDY_RUN_AGAIN);
    }
    ring->delivering = slot->delivered < slot->parts ? slot : NULL;
    if (ring->delivering)
        return STATUS_OK;
    share_measure(ring, slot->cost, slot->given);
    ring->pending -= slot->cost;
    ring->busy--;
    slot->state = SLOT_FREE;
    pthread_cond_broadcast(&staging->room);
    return STATUS_OK;
}

/* Submits a ready slot to the device. Called with the lock held, which it releases meanwhile. */
static enum status start_slot(struct ring *ring, struct slot *slot, struct error *err)
{
    struct staging *staging = ring->staging;
    slot->state = SLOT_BUSY;
    slot->given = clock_now();
    ring->busy++;
    pthread_mutex_unlock(&staging->lock);
    enum status status =
        slot_enqueue(slot, ring->context, ring->queues, &ring->shape, &ring->chain, slot_done, err);
    pthread_mutex_lock(&staging->lock);
    return status;
}

static enum status serve(struct ring *ring, struct error *err)
{
    struct staging *staging = ring->staging;
    enum status status = STATUS_OK;
    pthread_mutex_lock(&staging->lock);
    ring->built = true;
    pthread_cond_broadcast(&staging->room);
    while (status == STATUS_OK && !staging->aborted) {
        if (ring->ready) { /* first, so that the device does not wait */
            struct slot *slot = ring->ready;
            ring->ready = slot->next;
            status = start_slot(ring, slot, err);
        } else if (ring->delivering) {
            status = deliver_some(ring, ring->delivering, err);
        } else if (ring->finished) {
            struct slot *slot = ring->finished;
            ring->finished = slot->next;
            status = deliver_some(ring, slot, err);
        } else if (ring->filling && ring->busy == 0 && ring->filling->outstanding == 0 &&
                   clock_now() - ring->filling->opened >= IDLE_NS) {
            ring_seal(ring);
        } else if (staging->ending && ring_is_empty(ring)) {
            break;
        } else if (ring->filling && ring->busy == 0) {
            cond_wait_until(&staging->event, &staging->lock, clock_now() + IDLE_NS);
        } else if (ring->busy == 0) {
            /* A decode thread sends no signal when it starts to fill a slot: poll. */
            cond_wait_until(&staging->event, &staging->lock, clock_now() + 2 * IDLE_NS);
        } else {
            pthread_cond_wait(&staging->event, &staging->lock);
        }
    }
    pthread_mutex_unlock(&staging->lock);
    return status;
}

/* Reports the parts in slots of a failed ring as lost, after decode threads have submitted those
 * that they are writing. Called with the lock held, which it releases meanwhile. */
static void give_back(struct ring *ring)
{
    struct staging *staging = ring->staging;
    ring_seal(ring);
    for (unsigned i = 0; i < ring->slot_count; i++) {
        struct slot *slot = &ring->slot[i];
        while (slot->state == SLOT_SEALED && slot->outstanding > 0)
            pthread_cond_wait(&staging->event, &staging->lock);
        if (slot->state == SLOT_FREE)
            continue;
        pthread_mutex_unlock(&staging->lock);
        for (uint32_t p = slot->delivered; p < slot->parts; p++)
            if (slot->picture[p])
                staging->config.lost(staging->config.context, slot->picture[p]);
        pthread_mutex_lock(&staging->lock);
    }
    ring->emptied = true;
    pthread_cond_broadcast(&staging->room);
}

/* Does the ring have work, or might it get some? */
static bool is_needed(struct ring *ring)
{
    struct staging *staging = ring->staging;
    pthread_mutex_lock(&staging->lock);
    const bool needed = !staging->aborted && (!staging->ending || ring->pending > 0);
    pthread_mutex_unlock(&staging->lock);
    return needed;
}

void *ring_serve(void *argument)
{
    struct ring *ring = argument;
    struct staging *staging = ring->staging;
    struct error err = ERROR_INIT;
    char name[32];
    snprintf(name, sizeof name, "deliver %u", (unsigned)(ring - staging->ring) + 1);
    ring->track = trace_track(staging->config.selection.trace, "host", name);
    enum status status = ring->opened ? STATUS_OK : staging_open_ring(ring, &err);
    if (status == STATUS_OK && is_needed(ring))
        status = chain_prove(&ring->chain, &err);
    if (status == STATUS_OK)
        status = serve(ring, &err);
    if (status == STATUS_OK || status == STATUS_INTERRUPTED || !is_needed(ring))
        return NULL;
    pthread_mutex_lock(&staging->lock);
    ring->failed = true;
    const unsigned alive = share_alive(staging);
    pthread_cond_broadcast(&staging->room);
    pthread_cond_broadcast(&staging->grow);
    pthread_mutex_unlock(&staging->lock);
    staging->config.failed(staging->config.context, &err, alive);
    pthread_mutex_lock(&staging->lock);
    give_back(ring);
    pthread_mutex_unlock(&staging->lock);
    return NULL;
}

/* --- allocation of slots during the run ------------------------------------------------------ */

enum status ring_allocate(struct ring *ring, struct error *err)
{
    struct slot *slot = &ring->slot[ring->slot_count];
    slot->ring = ring;
    const enum status status =
        slot_init(slot, ring->context, ring->queues, &ring->shape, &ring->chain, err);
    if (status != STATUS_OK)
        slot_clear(slot, ring->queues);
    return status;
}

static bool wants_more(const struct ring *ring)
{
    return ring->slot_count < ring->slots_wanted && !ring->failed && !ring->staging->aborted &&
           !ring->staging->ending;
}

void *ring_grow(void *argument)
{
    struct ring *ring = argument;
    struct staging *staging = ring->staging;
    struct error err = ERROR_INIT;
    pthread_mutex_lock(&staging->lock);
    while (wants_more(ring)) {
        if (!ring->wants_slot) {
            pthread_cond_wait(&staging->grow, &staging->lock);
            continue;
        }
        pthread_mutex_unlock(&staging->lock);
        const enum status status = ring_allocate(ring, &err);
        pthread_mutex_lock(&staging->lock);
        if (status != STATUS_OK) {
            log_message(LOG_NOTICE, "notice: %s has memory for %u slots instead of %u",
                        ocl_context_device(ring->context)->name, ring->slot_count,
                        ring->slots_wanted);
            break;
        }
        ring->slot_count++;
        ring->wants_slot = false;
        pthread_cond_broadcast(&staging->room);
    }
    pthread_mutex_unlock(&staging->lock);
    return NULL;
}
