/* staging.c: opens and closes lanes; the decode threads' side of slots.
 *
 * One lock guards all states; it is held for microseconds, pixels are written without it. A decode
 * thread waits for room only while it holds no part, so a slot that is sealed always becomes ready.
 */
#include "staging/staging.h"

#include "staging/ring.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the decode threads' side ---------------------------------------------------------------- */

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

/* With the lock: are coefficients wanted for the part: all of the picture, where the lane takes
 * them? */
static bool wants_coefficients(const struct staging_part *part, const struct lane *lane,
                               const struct dct_layout *dct)
{
    const struct histogram_part *geometry = &part->geometry;
    return dct && lane->coefficients && geometry->rect.x0 == 0 && geometry->rect.y0 == 0 &&
           geometry->rect.x1 == geometry->width && geometry->rect.y1 == geometry->height;
}

/* What the part takes in a slot: its pixels have the place of its coefficients in another buffer.
 */
static uint64_t part_room(const struct staging_part *part, const struct lane *lane,
                          const struct dct_layout *dct)
{
    const uint64_t pixels = rect_bytes(part->geometry.rect, lane->shape.border);
    const uint64_t blocks = wants_coefficients(part, lane, dct) ? dct_bytes(dct) : 0;
    return blocks > pixels ? blocks : pixels;
}

/* With the lock: does the part fit into the slot? */
static bool fits(const struct staging_part *part, const struct slot *slot,
                 const struct dct_layout *dct)
{
    const struct slot_shape *shape = &slot->lane->shape;
    if (slot->parts == shape->parts ||
        slot->used_bytes + part_room(part, slot->lane, dct) > shape->bytes)
        return false;
    for (uint32_t p = 0; p < shape->passes; p++) {
        if (slot->tiles[p] + part->tiles[p] > shape->tiles)
            return false;
    }
    return true;
}

/* With the lock: gives the part its place. */
static void place(struct staging_part *part, struct slot *slot, const struct dct_layout *dct)
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
    part->coefficients = wants_coefficients(part, slot->lane, dct);
    if (shape->coefficients) {
        struct jpeg_part *table = slot->jpeg_table.host;
        reconstruct_part(&table[part->index], &slot->range, slot->used_bytes,
                         part->coefficients ? dct : NULL, rect_bytes(rect, shape->border));
        slot->coefficients += part->coefficients;
    }
    uint64_t end = slot->used_bytes + part_room(part, slot->lane, dct);
    end = (end + PART_ALIGNMENT - 1) / PART_ALIGNMENT * PART_ALIGNMENT;
    end = end < shape->bytes ? end : shape->bytes;
    slot->lane->pending += end - slot->used_bytes;
    slot->used_bytes = (uint32_t)end;
    for (uint32_t p = 0; p < shape->passes; p++) {
        part->first_tile[p] = slot->tiles[p];
        slot->tiles[p] += part->tiles[p];
    }
}

/* Cuts the rows of a rect short so that its pixels take no more than `bytes`, where it has more
 * than one. */
static struct cell_rect cut(struct cell_rect rect, uint64_t bytes, uint32_t border)
{
    const uint64_t row = (uint64_t)(rect.x1 - rect.x0 + border) * 3;
    const uint64_t rows = bytes / row > border + 1 ? bytes / row - border : 1;
    if (rect.y1 - rect.y0 > rows)
        rect.y1 = rect.y0 + (uint32_t)rows;
    return rect;
}

bool staging_acquire(struct staging *staging, struct staging_part *part, uint32_t width,
                     uint32_t height, uint8_t orientation, struct cell_rect rect,
                     const struct dct_layout *dct)
{
    part->geometry = (struct histogram_part){
        .width = width,
        .height = height,
        .orientation = orientation,
        .rect = rect,
        .stride = (rect.x1 - rect.x0) * 3, /* contiguous rows are cut otherwise than others */
    };
    const uint32_t border = staging->lane[0].shape.border;
    const struct lane *counted = NULL; /* whose tiles part->tiles are */
    uint64_t counted_bytes = 0;
    bool going = false;
    pthread_mutex_lock(&staging->lock);
    while (!staging->aborted && share_alive(staging) > 0) {
        uint64_t bytes = rect_bytes(rect, border);
        struct lane *lane = share_choose(&bytes, staging);
        if (lane && (counted != lane || counted_bytes != bytes)) {
            part->geometry.rect = cut(rect, bytes, border);
            count_tiles(part, lane);
            counted = lane;
            counted_bytes = bytes;
        }
        if (lane && lane->filling && !fits(part, lane->filling, dct))
            ring_seal(lane);
        if (lane && !lane->filling)
            ring_open_slot(lane);
        going = lane && lane->filling;
        if (going) {
            place(part, lane->filling, dct);
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
    if (part->slot->lane->shape.coefficients)
        ((struct jpeg_part *)part->slot->jpeg_table.host)[part->index].kind = JPEG_NOTHING;
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

static enum status open_slots(struct lane *lane, const struct staging_config *config,
                              struct error *err)
{
    unsigned wanted = slot_shape_choose(&lane->shape, config, ocl_context_device(lane->context),
                                        histogram_passes(lane->histogram));
    while (lane->slot_count < wanted) {
        struct slot *slot = &lane->slot[lane->slot_count];
        enum status status = STATUS_OK;
        slot->lane = lane;
        if (lane->shape.coefficients && !lane->reconstruct)
            status = reconstruct_open(&lane->reconstruct, lane->context, lane->shape.bytes, err);
        if (status == STATUS_OK && lane->shape.border && !lane->blur)
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
        reconstruct_close(&lane->reconstruct);
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
    struct slot_shape shape; /* of one pass; its bytes are those of any number */
    slot_shape_choose(&shape, config, &config->devices->device[device], 1);
    const struct histogram_config histogram = {
        .features = config->features, .variant = config->variant, .launch_bytes = shape.bytes};
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
        status = histogram_open(&lane->histogram, lane->context, &histogram, err);
    if (status == STATUS_OK)
        status = open_slots(lane, config, err);
    return status;
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
    reconstruct_close(&lane->reconstruct);
    blur_close(&lane->blur);
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
            log_message(LOG_NOTICE, "notice: device %s is passed over: %s",
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

bool staging_takes_coefficients(const struct staging *staging)
{
    for (unsigned i = 0; i < staging->lane_count; i++) {
        if (staging->lane[i].reconstruct)
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
        if (lane->reconstruct && used < size) {
            n = snprintf(text + used, size - used, " JPEG pixels,");
            used += n > 0 ? (size_t)n : 0;
        }
        for (unsigned p = 0; p < lane->shape.passes && used < size; p++) {
            const struct histogram_pass pass = histogram_pass(lane->histogram, p);
            n = snprintf(text + used, size - used, " %s%s", histogram_variant_name(pass.variant),
                         pass.tuned ? " (tuned)" : "");
            used += n > 0 ? (size_t)n : 0;
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
            histogram_abandon(lane->histogram);
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
