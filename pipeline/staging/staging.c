/* staging.c: lanes, their rings of slots, and who owns a slot when.
 *
 *   FREE ──(first part)──> FILLING ──(full | idle device | the end)──> SEALED ──(last part in)──>
 * BUSY ──> FREE decode threads, under the lock                            lane thread       device
 *
 * One lock guards all states; it is held for microseconds, pixels are written without it. A decode
 * thread waits for room only while it holds no part, so a slot that is sealed always becomes ready.
 * A slot that is filling while its device has nothing to do is sealed after IDLE_NS, so nothing
 * ever waits for company that does not come (the last pictures of a run, a slow disk, a huge
 * picture that keeps every decode thread busy).
 */
#include "staging/staging.h"

#include "staging/slot.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IDLE_NS (10 * 1000000ll)

struct lane {
    struct staging *staging;
    struct ocl_context *context;
    struct slot_queues queues;
    struct histogram *histogram;
    struct blur *blur; /* NULL: pictures are counted as they are */
    struct slot_shape shape;
    struct slot slot[SLOTS_MAX];
    unsigned slot_count;
    pthread_t thread;
    bool started;
    /* Guarded by the staging's lock: */
    struct slot *filling, *ready, *ready_last, *finished;
    unsigned busy; /* slots that the device has */
    bool failed;
    double seconds[3];
};

struct staging {
    struct staging_config config;
    struct lane *lane;
    unsigned lane_count;
    uint64_t part_bytes;
    pthread_mutex_t lock;
    pthread_cond_t room;  /* a slot became free */
    pthread_cond_t event; /* for the lane threads: a slot is ready or finished, or the end */
    bool ending, aborted;
};

/* --- the decode threads' side ---------------------------------------------------------------- */

/* With the lock: hands a sealed slot without outstanding parts to its lane thread. */
static void make_ready(struct slot *slot)
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

/* With the lock. */
static void seal(struct lane *lane)
{
    struct slot *slot = lane->filling;
    if (!slot)
        return;
    lane->filling = NULL;
    slot->state = SLOT_SEALED;
    if (slot->outstanding == 0)
        make_ready(slot);
}

/* With the lock: a free slot of the lane, opened for filling, or NULL. */
static struct slot *open_slot(struct lane *lane)
{
    for (unsigned i = 0; i < lane->slot_count; i++) {
        struct slot *slot = &lane->slot[i];
        if (slot->state != SLOT_FREE)
            continue;
        slot->state = SLOT_FILLING;
        slot->used_bytes = slot->parts = slot->outstanding = slot->blocks = 0;
        memset(slot->tiles, 0, sizeof slot->tiles);
        slot->opened = clock_now();
        lane->filling = slot;
        return slot;
    }
    return NULL;
}

/* What the pixels take that `rect` is counted from. */
static uint64_t rect_bytes(struct cell_rect rect, uint32_t border)
{
    return (uint64_t)(rect.x1 - rect.x0 + border) * 3 * (rect.y1 - rect.y0 + border);
}

/* Counts the tiles of a part for a lane, cutting its rows short until they fit into an empty table.
 */
static void count_tiles(struct staging_part *part, const struct lane *lane)
{
    struct histogram_part *geometry = &part->geometry;
    for (;;) {
        uint32_t most = 0;
        for (uint32_t p = 0; p < lane->shape.passes; p++) {
            part->tiles[p] = histogram_tiles(NULL, lane->histogram, p, geometry);
            most = part->tiles[p] > most ? part->tiles[p] : most;
        }
        uint32_t rows = geometry->rect.y1 - geometry->rect.y0;
        if (most <= lane->shape.tiles || rows == 1)
            return;
        geometry->rect.y1 = geometry->rect.y0 + rows / 2;
    }
}

/* With the lock: does the part fit into the slot? */
static bool fits(const struct staging_part *part, const struct slot *slot)
{
    const struct slot_shape *shape = &slot->lane->shape;
    if (slot->parts == shape->parts ||
        slot->used_bytes + rect_bytes(part->geometry.rect, shape->border) > shape->bytes)
        return false;
    for (uint32_t p = 0; p < shape->passes; p++) {
        if (slot->tiles[p] + part->tiles[p] > shape->tiles)
            return false;
    }
    return true;
}

/* With the lock: gives the part its place. */
static void place(struct staging_part *part, struct slot *slot)
{
    const struct slot_shape *shape = &slot->lane->shape;
    const struct cell_rect rect = part->geometry.rect;
    part->slot = slot;
    part->index = slot->parts++;
    slot->outstanding++;
    slot->picture[part->index] = NULL;
    part->geometry.offset = slot->used_bytes;
    part->geometry.counters = part->index * shape->counters;
    part->pixels = (uint8_t *)slot->pixels.host + slot->used_bytes;
    part->stride = (size_t)(rect.x1 - rect.x0 + shape->border) * 3;
    part->rows = rect.y1 - rect.y0 + shape->border;
    if (shape->border) {
        struct blur_part *table = slot->blur_table.host;
        table[part->index] = (struct blur_part){slot->used_bytes, rect.x1 - rect.x0,
                                                rect.y1 - rect.y0, slot->blocks};
        slot->blocks += blur_blocks(rect.x1 - rect.x0, rect.y1 - rect.y0);
    }
    uint64_t end = slot->used_bytes + rect_bytes(rect, shape->border);
    end = (end + PART_ALIGNMENT - 1) / PART_ALIGNMENT * PART_ALIGNMENT;
    slot->used_bytes = (uint32_t)(end < shape->bytes ? end : shape->bytes);
    for (uint32_t p = 0; p < shape->passes; p++) {
        part->first_tile[p] = slot->tiles[p];
        slot->tiles[p] += part->tiles[p];
    }
}

bool staging_acquire(struct staging *staging, struct staging_part *part, uint32_t width,
                     uint32_t height, uint8_t orientation, struct cell_rect rect)
{
    part->geometry = (struct histogram_part){
        .width = width,
        .height = height,
        .orientation = orientation,
        .rect = rect,
        .stride = (rect.x1 - rect.x0) * 3, /* contiguous rows are cut otherwise than others */
    };
    /* All lanes cut alike but for the kernels' tile sizes: counted for the lane that is tried. */
    const struct lane *counted = NULL;
    pthread_mutex_lock(&staging->lock);
    for (;;) {
        bool alive = false;
        struct lane *choice = NULL;
        for (unsigned i = 0; i < staging->lane_count && !staging->aborted; i++) {
            struct lane *lane = &staging->lane[i];
            if (lane->failed)
                continue;
            alive = true;
            if (counted != lane) {
                part->geometry.rect = rect;
                count_tiles(part, lane);
                counted = lane;
            }
            if (lane->filling && !fits(part, lane->filling))
                seal(lane);
            if (!lane->filling)
                open_slot(lane);
            if (lane->filling && (!choice || lane->busy < choice->busy))
                choice = lane;
        }
        if (!alive) {
            pthread_mutex_unlock(&staging->lock);
            return false;
        }
        if (choice) {
            if (counted != choice) {
                part->geometry.rect = rect;
                count_tiles(part, choice);
            }
            place(part, choice->filling);
            pthread_mutex_unlock(&staging->lock);
            return true;
        }
        pthread_cond_wait(&staging->room, &staging->lock);
    }
}

static void hand_in(struct staging *staging, struct slot *slot)
{
    pthread_mutex_lock(&staging->lock);
    slot->outstanding--;
    if (slot->state == SLOT_SEALED && slot->outstanding == 0)
        make_ready(slot);
    pthread_mutex_unlock(&staging->lock);
}

/* The part's tiles in the slot's table of one pass. */
static struct histogram_tile *part_tiles(const struct staging_part *part, uint32_t pass)
{
    struct slot *slot = part->slot;
    return (struct histogram_tile *)slot->tile_table.host + (size_t)pass * slot->lane->shape.tiles +
           part->first_tile[pass];
}

void staging_submit(struct staging *staging, struct staging_part *part, void *picture)
{
    struct lane *lane = part->slot->lane;
    for (uint32_t p = 0; p < lane->shape.passes; p++)
        histogram_tiles(part_tiles(part, p), lane->histogram, p, &part->geometry);
    part->slot->picture[part->index] = picture;
    hand_in(staging, part->slot);
}

void staging_cancel(struct staging *staging, struct staging_part *part)
{
    for (uint32_t p = 0; p < part->slot->lane->shape.passes; p++)
        memset(part_tiles(part, p), 0, part->tiles[p] * sizeof(struct histogram_tile));
    if (part->slot->lane->blur)
        ((struct blur_part *)part->slot->blur_table.host)[part->index].rows = 0;
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

/* --- the lane thread ------------------------------------------------------------------------- */

/* The device's word that a slot is the host's again: posts it to the lane thread. */
static void slot_done(cl_int result, void *context)
{
    struct slot *slot = context;
    struct lane *lane = slot->lane;
    pthread_mutex_lock(&lane->staging->lock);
    slot->result = result;
    slot->watched = false;
    slot->next = lane->finished;
    lane->finished = slot;
    pthread_cond_broadcast(&lane->staging->event);
    pthread_mutex_unlock(&lane->staging->lock);
}

/* Delivers a finished slot and frees it. Called and returns with the lock, which it drops. */
static enum status finish_slot(struct lane *lane, struct slot *slot, struct error *err)
{
    struct staging *staging = lane->staging;
    pthread_mutex_unlock(&staging->lock);
    enum status status = STATUS_OK;
    double seconds[3] = {0};
    slot_release_events(slot, lane->context, lane->shape.passes, seconds);
    if (slot->result < 0)
        status = ocl_error(err, slot->result, "event",
                           "device %s failed while counting; finished work is kept: run the same "
                           "command again, or choose another device with --device",
                           ocl_context_device(lane->context)->name);
    for (uint32_t i = 0; i < slot->parts && status == STATUS_OK; i++) {
        if (slot->picture[i])
            staging->config.deliver(staging->config.context, slot->picture[i],
                                    (const uint32_t *)slot->counters.host +
                                        (size_t)i * lane->shape.counters);
    }
    pthread_mutex_lock(&staging->lock);
    for (int i = 0; i < 3; i++)
        lane->seconds[i] += seconds[i];
    lane->busy--;
    slot->state = SLOT_FREE;
    pthread_cond_broadcast(&staging->room);
    return status;
}

/* Starts a ready slot on the device. Called and returns with the lock, which it drops. */
static enum status start_slot(struct lane *lane, struct slot *slot, struct error *err)
{
    struct staging *staging = lane->staging;
    slot->state = SLOT_BUSY;
    lane->busy++;
    pthread_mutex_unlock(&staging->lock);
    enum status status = slot_enqueue(slot, lane->context, lane->queues, lane->histogram,
                                      lane->blur, &lane->shape, slot_done, err);
    pthread_mutex_lock(&staging->lock);
    return status;
}

/* With the lock: is everything that was filled delivered? */
static bool drained(const struct lane *lane)
{
    return !lane->ready && !lane->finished && lane->busy == 0 && !lane->filling;
}

static enum status lane_loop(struct lane *lane, struct error *err)
{
    struct staging *staging = lane->staging;
    enum status status = STATUS_OK;
    pthread_mutex_lock(&staging->lock);
    while (status == STATUS_OK && !staging->aborted) {
        if (lane->finished) {
            struct slot *slot = lane->finished;
            lane->finished = slot->next;
            status = finish_slot(lane, slot, err);
        } else if (lane->ready) {
            struct slot *slot = lane->ready;
            lane->ready = slot->next;
            status = start_slot(lane, slot, err);
        } else if (lane->filling && lane->busy == 0 && lane->filling->outstanding == 0 &&
                   clock_now() - lane->filling->opened >= IDLE_NS) {
            seal(lane);
        } else if (staging->ending && drained(lane)) {
            break;
        } else if (lane->filling && lane->busy == 0) {
            cond_wait_until(&staging->event, &staging->lock, clock_now() + IDLE_NS);
        } else if (lane->busy == 0) {
            /* Somebody may begin to fill a slot without telling: look now and then. */
            cond_wait_until(&staging->event, &staging->lock, clock_now() + 2 * IDLE_NS);
        } else {
            pthread_cond_wait(&staging->event, &staging->lock);
        }
    }
    pthread_mutex_unlock(&staging->lock);
    return status;
}

static void *lane_main(void *argument)
{
    struct lane *lane = argument;
    struct staging *staging = lane->staging;
    struct error err = ERROR_INIT;
    enum status status = histogram_build(lane->histogram, &err);
    if (status == STATUS_OK && lane->blur)
        status = blur_build(lane->blur, &err);
    if (status == STATUS_OK)
        status = lane_loop(lane, &err);
    if (status != STATUS_OK) {
        pthread_mutex_lock(&staging->lock);
        lane->failed = true;
        pthread_cond_broadcast(&staging->room);
        pthread_mutex_unlock(&staging->lock);
        staging->config.failed(staging->config.context, &err);
    }
    return NULL;
}

/* --- opening and closing --------------------------------------------------------------------- */

static enum status open_slots(struct lane *lane, const struct staging_config *config,
                              struct error *err)
{
    unsigned wanted = slot_shape_choose(&lane->shape, config, ocl_context_device(lane->context),
                                        histogram_passes(lane->histogram));
    while (lane->slot_count < wanted) {
        struct slot *slot = &lane->slot[lane->slot_count];
        enum status status = STATUS_OK;
        slot->lane = lane;
        if (lane->shape.border && !lane->blur)
            status = blur_open(&lane->blur, lane->context, lane->shape.bytes, err);
        if (status == STATUS_OK)
            status = slot_init(slot, lane->context, lane->queues, &lane->shape, err);
        if (status == STATUS_OK) {
            lane->slot_count++;
            continue;
        }
        slot_clear(slot, lane->queues);
        struct error failed = *err;
        *err = (struct error)ERROR_INIT;
        if (lane->slot_count >= 2) {
            log_message(LOG_NOTICE, "notice: %s has memory for %u slots instead of %u",
                        ocl_context_device(lane->context)->name, lane->slot_count, wanted);
            return STATUS_OK;
        }
        if (lane->shape.bytes / 2 < SLOT_BYTES_MIN) {
            *err = failed;
            return status;
        }
        while (lane->slot_count > 0)
            slot_clear(&lane->slot[--lane->slot_count], lane->queues);
        blur_close(&lane->blur);
        struct staging_config smaller = *config;
        smaller.slot_bytes = lane->shape.bytes / 2;
        slot_shape_choose(&lane->shape, &smaller, ocl_context_device(lane->context),
                          histogram_passes(lane->histogram));
        log_message(LOG_NOTICE, "notice: %s is short of memory; trying slots of %u MiB",
                    ocl_context_device(lane->context)->name, (unsigned)(lane->shape.bytes >> 20));
    }
    return STATUS_OK;
}

static enum status open_lane(struct lane *lane, struct staging *staging, unsigned device,
                             struct error *err)
{
    const struct staging_config *config = &staging->config;
    lane->staging = staging;
    enum status status =
        ocl_context_open(&lane->context, &config->devices->device[device], config->trace, err);
    if (status == STATUS_OK)
        status = ocl_queue_open(&lane->queues.upload, lane->context, "upload", err);
    if (status == STATUS_OK)
        status = ocl_queue_open(&lane->queues.compute, lane->context, "compute", err);
    if (status == STATUS_OK)
        status = ocl_queue_open(&lane->queues.read, lane->context, "read back", err);
    if (status == STATUS_OK)
        status =
            histogram_open(&lane->histogram, lane->context, config->features, config->variant, err);
    if (status == STATUS_OK)
        status = open_slots(lane, config, err);
    return status;
}

enum status staging_open(struct staging **out, const struct staging_config *config,
                         struct error *err)
{
    *out = NULL;
    struct staging *staging = calloc(1, sizeof *staging);
    if (!staging)
        return error_memory(err, sizeof *staging, "the slot rings");
    staging->config = *config;
    pthread_mutex_init(&staging->lock, NULL);
    pthread_cond_init(&staging->room, NULL);
    cond_init_monotonic(&staging->event);
    enum status status = STATUS_OK;
    staging->lane = calloc(config->chosen_count, sizeof *staging->lane);
    if (!staging->lane)
        status = error_memory(err, config->chosen_count * sizeof *staging->lane, "the slot rings");
    staging->part_bytes = UINT64_MAX;
    while (status == STATUS_OK && staging->lane_count < config->chosen_count) {
        struct lane *lane = &staging->lane[staging->lane_count];
        status = open_lane(lane, staging, config->chosen[staging->lane_count], err);
        staging->lane_count++;
        if (lane->shape.bytes / 2 < staging->part_bytes)
            staging->part_bytes = lane->shape.bytes / 2;
    }
    for (unsigned i = 0; i < staging->lane_count && status == STATUS_OK; i++) {
        struct lane *lane = &staging->lane[i];
        int code = pthread_create(&lane->thread, NULL, lane_main, lane);
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
        for (unsigned p = 0; p < lane->shape.passes && used < size; p++) {
            n = snprintf(text + used, size - used, " %s",
                         histogram_variant_name(histogram_pass_variant(lane->histogram, p)));
            used += n > 0 ? (size_t)n : 0;
        }
    }
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
            slot_release_events(&lane->slot[i], lane->context, lane->shape.passes, seconds);
            slot_clear(&lane->slot[i], lane->queues);
        }
    }
    histogram_close(&lane->histogram);
    blur_close(&lane->blur);
    ocl_queue_close(&lane->queues.read);
    ocl_queue_close(&lane->queues.compute);
    ocl_queue_close(&lane->queues.upload);
    ocl_context_close(&lane->context);
}

void staging_drain(struct staging *staging)
{
    pthread_mutex_lock(&staging->lock);
    staging->ending = true;
    for (unsigned i = 0; i < staging->lane_count; i++)
        seal(&staging->lane[i]);
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
