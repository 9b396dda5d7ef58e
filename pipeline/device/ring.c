/* ring.c: the lane thread, which processes full slots.
 *
 *   FREE ──(first part)──> FILLING ──(full | idle device | end)──> SEALED ──(last part in)──> BUSY
 *    ▲      decode threads, under the lock                              lane thread             │
 *    └───────────────────────────────────── the device is done ─────────────────────────────────┘
 *
 * A slot that is filling while its device is idle is sealed after IDLE_NS, so no part waits long
 * for others that come late (the last images of a run, a slow disk, a huge image that occupies
 * every decode thread).
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
/* Parts delivered before the lane thread checks again whether it can submit a slot. */
#define DELIVERED_AT_ONCE 64u

/* --- states ---------------------------------------------------------------------------------- */

void ring_make_ready(struct slot *slot)
{
    struct lane *lane = slot->lane;
    slot->next = NULL;
    if (lane->ready)
        lane->ready_last->next = slot;
    else
        lane->ready = slot;
    lane->ready_last = slot;
    pthread_cond_broadcast(&lane->staging->event);
}

void ring_seal(struct lane *lane)
{
    struct slot *slot = lane->filling;
    if (!slot)
        return;
    lane->filling = NULL;
    slot->state = SLOT_SEALED;
    if (slot->outstanding == 0)
        ring_make_ready(slot);
}

void ring_open_slot(struct lane *lane)
{
    for (unsigned i = 0; i < lane->slot_count; i++) {
        struct slot *slot = &lane->slot[i];
        if (slot->state != SLOT_FREE)
            continue;
        slot->state = SLOT_FILLING;
        slot->used_bytes = slot->parts = slot->outstanding = slot->delivered = 0;
        slot->cost = 0;
        memset(&slot->use, 0, sizeof slot->use);
        slot->opened = clock_now();
        lane->filling = slot;
        return;
    }
    if (!lane->wants_slot && lane->slot_count < lane->slots_wanted) {
        lane->wants_slot = true;
        pthread_cond_broadcast(&lane->staging->grow);
    }
}

bool ring_is_empty(const struct lane *lane)
{
    if (lane->failed)
        return lane->emptied;
    return !lane->ready && !lane->finished && lane->busy == 0 && !lane->filling;
}

/* --- the lane thread ------------------------------------------------------------------------- */

/* Event callback: the host owns the slot again. Notifies the lane thread. */
static void slot_done(cl_int result, void *context)
{
    struct slot *slot = context;
    struct lane *lane = slot->lane;
    pthread_mutex_lock(&lane->staging->lock);
    slot->result = result;
    slot->watched = false;
    slot->next = NULL;
    *(lane->finished ? &lane->finished_last->next : &lane->finished) = slot;
    lane->finished_last = slot;
    pthread_cond_broadcast(&lane->staging->event);
    pthread_mutex_unlock(&lane->staging->lock);
}

/* Delivers some parts of a finished slot, and frees it after the last one. Called with the lock
 * held; releases it meanwhile. */
static enum status deliver_some(struct lane *lane, struct slot *slot, struct error *err)
{
    struct staging *staging = lane->staging;
    pthread_mutex_unlock(&staging->lock);
    double seconds[3] = {0};
    slot_release_events(slot, lane->context, seconds);
    const bool counted = slot->result >= 0;
    const int64_t start = clock_now();
    const uint32_t end = min_u32(slot->parts, slot->delivered + DELIVERED_AT_ONCE);
    for (; slot->delivered < end && counted; slot->delivered++) {
        const uint32_t i = slot->delivered;
        uint32_t *row = (uint32_t *)slot->values.host + (size_t)i * lane->chain.words;
        const uint32_t words = staging->config.plan->words;
        const struct part_result result = {.proven = !lane->chain.refuses || row[words] == 0,
                                           .values = row};
        if (slot->picture[i])
            staging->config.deliver(staging->config.context, slot->picture[i], &result);
        if (lane->shape.shared) /* while it is in the cache */
            memset(row, 0, lane->chain.words * sizeof *row);
    }
    trace_span(staging->config.selection.trace, lane->track, "deliver", start, clock_now(), NULL);
    pthread_mutex_lock(&staging->lock);
    for (int i = 0; i < 3; i++)
        lane->seconds[i] += seconds[i];
    if (!counted) {
        ocl_error(err, slot->result, "event", "device %s failed while counting",
                  ocl_context_device(lane->context)->name);
        return share_alive(staging) > 1 ? STATUS_FAILED : error_remedy(err, REMEDY_RUN_AGAIN);
    }
    lane->delivering = slot->delivered < slot->parts ? slot : NULL;
    if (lane->delivering)
        return STATUS_OK;
    share_measure(lane, slot->cost, slot->given);
    lane->pending -= slot->cost;
    lane->busy--;
    slot->state = SLOT_FREE;
    pthread_cond_broadcast(&staging->room);
    return STATUS_OK;
}

/* Submits a ready slot to the device. Called with the lock held; releases it meanwhile. */
static enum status start_slot(struct lane *lane, struct slot *slot, struct error *err)
{
    struct staging *staging = lane->staging;
    slot->state = SLOT_BUSY;
    slot->given = clock_now();
    lane->busy++;
    pthread_mutex_unlock(&staging->lock);
    enum status status =
        slot_enqueue(slot, lane->context, lane->queues, &lane->shape, &lane->chain, slot_done, err);
    pthread_mutex_lock(&staging->lock);
    return status;
}

static enum status serve(struct lane *lane, struct error *err)
{
    struct staging *staging = lane->staging;
    enum status status = STATUS_OK;
    pthread_mutex_lock(&staging->lock);
    lane->built = true;
    pthread_cond_broadcast(&staging->room);
    while (status == STATUS_OK && !staging->aborted) {
        if (lane->ready) { /* first, so that the device does not wait */
            struct slot *slot = lane->ready;
            lane->ready = slot->next;
            status = start_slot(lane, slot, err);
        } else if (lane->delivering) {
            status = deliver_some(lane, lane->delivering, err);
        } else if (lane->finished) {
            struct slot *slot = lane->finished;
            lane->finished = slot->next;
            status = deliver_some(lane, slot, err);
        } else if (lane->filling && lane->busy == 0 && lane->filling->outstanding == 0 &&
                   clock_now() - lane->filling->opened >= IDLE_NS) {
            ring_seal(lane);
        } else if (staging->ending && ring_is_empty(lane)) {
            break;
        } else if (lane->filling && lane->busy == 0) {
            cond_wait_until(&staging->event, &staging->lock, clock_now() + IDLE_NS);
        } else if (lane->busy == 0) {
            /* A decode thread that starts to fill a slot does not signal it: poll. */
            cond_wait_until(&staging->event, &staging->lock, clock_now() + 2 * IDLE_NS);
        } else {
            pthread_cond_wait(&staging->event, &staging->lock);
        }
    }
    pthread_mutex_unlock(&staging->lock);
    return status;
}

/* Reports the parts in slots of a failed lane as lost, after decode threads have submitted those
 * that they are writing. Called with the lock held; releases it meanwhile. */
static void give_back(struct lane *lane)
{
    struct staging *staging = lane->staging;
    ring_seal(lane);
    for (unsigned i = 0; i < lane->slot_count; i++) {
        struct slot *slot = &lane->slot[i];
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
    lane->emptied = true;
    pthread_cond_broadcast(&staging->room);
}

/* Does the lane have work, or may it get some? */
static bool is_needed(struct lane *lane)
{
    struct staging *staging = lane->staging;
    pthread_mutex_lock(&staging->lock);
    const bool needed = !staging->aborted && (!staging->ending || lane->pending > 0);
    pthread_mutex_unlock(&staging->lock);
    return needed;
}

void *ring_serve(void *argument)
{
    struct lane *lane = argument;
    struct staging *staging = lane->staging;
    struct error err = ERROR_INIT;
    char name[32];
    snprintf(name, sizeof name, "deliver %u", (unsigned)(lane - staging->lane) + 1);
    lane->track = trace_track(staging->config.selection.trace, "host", name);
    enum status status = lane->opened ? STATUS_OK : staging_open_lane(lane, &err);
    if (status == STATUS_OK && is_needed(lane))
        status = chain_prove(&lane->chain, &err);
    if (status == STATUS_OK)
        status = serve(lane, &err);
    if (status == STATUS_OK || status == STATUS_INTERRUPTED || !is_needed(lane))
        return NULL;
    pthread_mutex_lock(&staging->lock);
    lane->failed = true;
    const unsigned alive = share_alive(staging);
    pthread_cond_broadcast(&staging->room);
    pthread_cond_broadcast(&staging->grow);
    pthread_mutex_unlock(&staging->lock);
    staging->config.failed(staging->config.context, &err, alive);
    pthread_mutex_lock(&staging->lock);
    give_back(lane);
    pthread_mutex_unlock(&staging->lock);
    return NULL;
}

/* --- allocation of slots during the run ------------------------------------------------------ */

enum status ring_allocate(struct lane *lane, struct error *err)
{
    struct slot *slot = &lane->slot[lane->slot_count];
    slot->lane = lane;
    const enum status status =
        slot_init(slot, lane->context, lane->queues, &lane->shape, &lane->chain, err);
    if (status != STATUS_OK)
        slot_clear(slot, lane->queues);
    return status;
}

static bool wants_more(const struct lane *lane)
{
    return lane->slot_count < lane->slots_wanted && !lane->failed && !lane->staging->aborted &&
           !lane->staging->ending;
}

void *ring_grow(void *argument)
{
    struct lane *lane = argument;
    struct staging *staging = lane->staging;
    struct error err = ERROR_INIT;
    pthread_mutex_lock(&staging->lock);
    while (wants_more(lane)) {
        if (!lane->wants_slot) {
            pthread_cond_wait(&staging->grow, &staging->lock);
            continue;
        }
        pthread_mutex_unlock(&staging->lock);
        const enum status status = ring_allocate(lane, &err);
        pthread_mutex_lock(&staging->lock);
        if (status != STATUS_OK) {
            log_message(LOG_NOTICE, "notice: %s has memory for %u slots instead of %u",
                        ocl_context_device(lane->context)->name, lane->slot_count,
                        lane->slots_wanted);
            break;
        }
        lane->slot_count++;
        lane->wants_slot = false;
        pthread_cond_broadcast(&staging->room);
    }
    pthread_mutex_unlock(&staging->lock);
    return NULL;
}
