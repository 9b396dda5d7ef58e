/* ingest_decode.c: what a decode thread does: take the next file that is to be decoded, and decode
 * it strip by strip into slots.
 */
#include "ingest.h"

#include "base/clock.h"
#include "steps/blur_step.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Pictures are taken together up to about so many bytes of files: what is larger does not notice
 * what a question and its answer cost. */
#define AHEAD_BYTES (32u << 10)

static double seconds_since(int64_t start)
{
    return (double)(clock_now() - start) * 1e-9;
}

void picture_free(struct picture *picture)
{
    if (!picture)
        return;
    pthread_mutex_destroy(&picture->lock);
    free(picture->path);
    free(picture->counters);
    free(picture);
}

/* Puts a picture that a failed device has lost a part of before those that the walk still has. */
static void decode_again(struct picture *picture)
{
    struct pipeline *pipeline = picture->pipeline;
    free(picture->counters);
    picture->counters = NULL;
    picture->lost = false;
    atomic_store(&picture->holders, 1);
    pthread_mutex_lock(&pipeline->walk_lock);
    picture->next = pipeline->again;
    pipeline->again = picture;
    pthread_cond_broadcast(&pipeline->window_moved);
    pthread_mutex_unlock(&pipeline->walk_lock);
}

/* Lets go of a picture; the last holder sends it on. */
static void picture_release(struct picture *picture)
{
    if (atomic_fetch_sub(&picture->holders, 1) != 1)
        return;
    if (picture->dropped)
        picture_free(picture);
    else if (picture->lost && picture->record.failure.reason == REASON_NONE)
        decode_again(picture);
    else if (queue_send(picture->pipeline->finished, &picture) != QUEUE_OK)
        picture_free(picture);
}

void picture_deliver(void *context, void *item, const uint32_t *counters)
{
    (void)context;
    struct picture *picture = item;
    uint32_t count = picture->pipeline->config->features.counters;
    pthread_mutex_lock(&picture->lock);
    for (uint32_t i = 0; i < count; i++)
        picture->counters[i] += counters[i];
    pthread_mutex_unlock(&picture->lock);
    picture_release(picture);
}

void picture_lost(void *context, void *item)
{
    (void)context;
    struct picture *picture = item;
    pthread_mutex_lock(&picture->lock);
    picture->lost = true;
    pthread_mutex_unlock(&picture->lock);
    picture_release(picture);
}

/* --- decoding -------------------------------------------------------------------------------- */

/* What every part of one picture shares. */
struct strips {
    struct worker *worker;
    struct decode *decode;
    struct picture *picture;
    const struct image_info *info;
    uint32_t border; /* columns and rows that are decoded more than are counted: of the blur */
    uint32_t width, height; /* of what is counted */
    uint8_t *kept;          /* the last `border` rows of the part before; NULL until needed */
};

/* Decodes the rows of a part that the part before has not decoded, and keeps the last ones for the
 * next. */
static enum reason fill_part(struct strips *strips, const struct staging_part *part)
{
    const struct cell_rect rect = part->geometry.rect;
    struct failure *failure = &strips->picture->record.failure;
    const size_t kept = strips->border * part->stride;
    const uint32_t have = rect.y0 > 0 ? strips->border : 0;
    if (have > 0)
        memcpy(part->pixels, strips->kept, kept);
    enum reason reason = decode_rows(strips->decode, part->pixels + have * part->stride,
                                     part->stride, part->rows - have, failure);
    if (reason != REASON_NONE || kept == 0 || rect.y1 == strips->height)
        return reason;
    if (!strips->kept)
        strips->kept = malloc(kept);
    if (!strips->kept)
        return failure_set(failure, REASON_OUT_OF_MEMORY, "no memory for rows of %u pixels",
                           strips->info->out_width);
    memcpy(strips->kept, part->pixels + (part->rows - strips->border) * part->stride, kept);
    return REASON_NONE;
}

/* The coefficients of the picture, where they may go into a slot; else NULL. */
static const struct dct_layout *whole_coefficients(const struct strips *strips, uint64_t part_bytes)
{
    const struct dct_layout *dct = &strips->info->dct;
    return dct->colour != DCT_NONE && dct_bytes(dct) <= part_bytes ? dct : NULL;
}

/* Gets room for a rectangle of what is counted and decodes rows into it, or copies from the rows
 * in `window`. A device that wants them gets coefficients instead. false: the run is over. A
 * failure goes into the picture's record. *bottom is where the next part begins. */
static bool do_part(struct strips *strips, struct cell_rect rect, const uint8_t *window,
                    uint32_t *bottom)
{
    struct staging *staging = strips->worker->pipeline->staging;
    struct picture *picture = strips->picture;
    struct staging_part part;
    const struct dct_layout *dct =
        window ? NULL : whole_coefficients(strips, staging_part_bytes(staging));
    int64_t start = clock_now();
    if (!staging_acquire(staging, &part, strips->width, strips->height, strips->info->orientation,
                         rect, dct))
        return false;
    strips->worker->blocked += seconds_since(start);
    start = clock_now();
    enum reason reason = REASON_NONE;
    if (window) {
        for (uint32_t y = 0; y < part.rows; y++)
            memcpy(part.pixels + y * part.stride,
                   window + ((size_t)y * strips->info->out_width + rect.x0) * 3, part.stride);
    } else if (part.coefficients) {
        reason = decode_coefficients(strips->decode, part.pixels, &picture->record.failure);
    } else {
        reason = fill_part(strips, &part);
    }
    strips->worker->busy += seconds_since(start);
    if (reason != REASON_NONE) {
        staging_cancel(staging, &part);
        return true;
    }
    *bottom = part.geometry.rect.y1;
    atomic_fetch_add(&picture->holders, 1);
    staging_submit(staging, &part, picture);
    return true;
}

/* A picture of which no rows fit into a slot that could be counted, or that has none: rows are
 * decoded into memory of their own and counted in pieces. */
static bool do_wide(struct strips *strips, uint64_t part_bytes)
{
    const struct image_info *info = strips->info;
    const uint32_t border = strips->border;
    const uint32_t piece = (uint32_t)(part_bytes / 3 / (border + 1)) - border;
    const size_t row = (size_t)info->out_width * 3;
    uint8_t *window = malloc((border + 1) * row);
    if (!window) {
        failure_set(&strips->picture->record.failure, REASON_OUT_OF_MEMORY,
                    "no memory for rows of %u pixels", info->out_width);
        return true;
    }
    bool going = true;
    for (uint32_t y = 0; y < info->out_height && going; y++) {
        if (y > 0 && stop_overdue(strips->worker->pipeline->stop)) {
            going = false;
            break;
        }
        int64_t start = clock_now();
        enum reason reason = decode_rows(strips->decode, window + (y < border ? y : border) * row,
                                         row, 1, &strips->picture->record.failure);
        strips->worker->busy += seconds_since(start);
        if (reason != REASON_NONE)
            break;
        if (y < border)
            continue;
        for (uint32_t x = 0; x < strips->width && going; x += piece) {
            uint32_t end = strips->width - x > piece ? x + piece : strips->width, bottom;
            going = do_part(strips, (struct cell_rect){x, y - border, end, y - border + 1}, window,
                            &bottom);
        }
        memmove(window, window + row, border * row);
    }
    free(window);
    return going;
}

/* Are rows too long for slots, with those around them that are looked at? */
static bool is_wide(uint64_t width, uint32_t border, uint64_t part_bytes)
{
    return width * 3 * (border + 1) > part_bytes;
}

/* Memory for rows outside of slots. */
static uint64_t rows_memory(const struct image_info *info, uint32_t border, uint64_t part_bytes)
{
    const uint64_t row = (uint64_t)info->out_width * 3;
    if (is_wide(info->out_width, border, part_bytes))
        return row * (border + 1);
    return row * info->out_height > part_bytes ? row * border : 0;
}

/* Rows to count at a time, so that a strip and its border are half of `bytes`; at least 1. */
static uint32_t strip_rows(const struct strips *strips, uint64_t bytes)
{
    const uint64_t row = (uint64_t)strips->info->out_width * 3;
    if (row * strips->info->out_height <= bytes)
        return strips->height;
    const uint64_t rows = bytes / 2 / row;
    return rows > strips->border + 1 ? (uint32_t)rows - strips->border : 1;
}

/* Decodes a picture whose header has been read into slots. false: the run is over. */
static bool do_rows(struct strips *strips)
{
    const struct image_info *info = strips->info;
    struct picture *picture = strips->picture;
    const uint64_t part_bytes = staging_part_bytes(strips->worker->pipeline->staging);
    if (strips->width == 0 || strips->height == 0 ||
        is_wide(info->out_width, strips->border, part_bytes))
        return do_wide(strips, part_bytes);
    const uint32_t step = strip_rows(strips, part_bytes);
    uint32_t y = 0;
    bool going = true;
    while (y < strips->height && picture->record.failure.reason == REASON_NONE && going) {
        if (y > 0 && stop_overdue(strips->worker->pipeline->stop)) {
            going = false;
            break;
        }
        uint32_t bottom = strips->height - y > step ? y + step : strips->height;
        going = do_part(strips, (struct cell_rect){0, y, strips->width, bottom}, NULL, &y);
    }
    free(strips->kept);
    strips->kept = NULL;
    return going;
}

static void take_info(struct picture *picture, const struct image_info *info)
{
    struct store_record *record = &picture->record;
    bool swapped = info->orientation >= 5;
    memcpy(record->format, info->format, sizeof record->format);
    record->width = swapped ? info->height : info->width;
    record->height = swapped ? info->width : info->height;
    record->orientation = info->orientation;
    record->channels = info->channels;
    picture->pixels = (uint64_t)info->out_width * info->out_height;
}

/* Everything behind an open file. false: the run is over. */
static bool do_file(struct worker *worker, struct decode *decode, struct picture *picture, int fd)
{
    struct pipeline *pipeline = worker->pipeline;
    struct failure *failure = &picture->record.failure;
    struct image_info info;
    int64_t start = clock_now();
    enum reason reason = decode_begin(decode, fd, picture->path, picture->record.bytes,
                                      picture->record.mtime_ns, &info, failure);
    worker->busy += seconds_since(start);
    if (reason != REASON_NONE)
        return true;
    take_info(picture, &info);
    if (pipeline->config->dry_run) {
        decode_abort(decode);
        return true;
    }
    picture->counters = calloc(pipeline->config->features.counters, sizeof *picture->counters);
    if (!picture->counters) {
        failure_set(failure, REASON_OUT_OF_MEMORY, "no memory for the counters");
        decode_abort(decode);
        return true;
    }
    const uint32_t border = feature_set_blurred(&pipeline->config->features) ? BLUR_BORDER : 0;
    uint64_t memory =
        info.memory + rows_memory(&info, border, staging_part_bytes(pipeline->staging));
    start = clock_now();
    if (!budget_take(pipeline->budget, memory)) {
        decode_abort(decode);
        return false;
    }
    worker->blocked += seconds_since(start);
    struct strips strips = {
        .worker = worker,
        .decode = decode,
        .picture = picture,
        .info = &info,
        .border = border,
        .width = info.out_width > border ? info.out_width - border : 0,
        .height = info.out_height > border ? info.out_height - border : 0,
    };
    bool going = do_rows(&strips);
    start = clock_now();
    if (going && failure->reason == REASON_NONE)
        decode_end(decode, picture->record.digest, failure);
    if (!going || failure->reason != REASON_NONE)
        decode_abort(decode);
    budget_give(pipeline->budget, memory);
    picture->bytes_read = decode_bytes_read(decode);
    worker->busy += seconds_since(start);
    return going;
}

static bool is_ready(struct pipeline *pipeline, struct decode *decode)
{
    struct error err = ERROR_INIT;
    if (decode_ready(decode, &err) == STATUS_OK)
        return true;
    ingest_fail(pipeline, &err);
    return false;
}

/* Takes pictures: one, or several small ones where they are decoded together. 0 at the end. */
static unsigned take_pictures(struct opened *opened, struct worker *worker, struct decode *decode)
{
    const unsigned open_files = worker->pipeline->open_files, ahead = decode_ahead(decode);
    const unsigned most = ahead < open_files ? ahead : open_files;
    struct decode_file file[DECODE_AHEAD_MAX];
    uint64_t bytes = 0;
    unsigned count = 0, files = 0;
    while (count < most && bytes < AHEAD_BYTES && ingest_take(&opened[count], worker, count == 0)) {
        const struct opened *last = &opened[count++];
        if (last->fd < 0)
            break;
        const struct picture *picture = last->picture;
        bytes += picture->record.bytes;
        file[files++] = (struct decode_file){last->fd, picture->path, picture->record.bytes,
                                             picture->record.mtime_ns};
    }
    if (files > 0)
        decode_announce(decode, file, files);
    return count;
}

/* false: the run is over. */
static bool do_picture(struct worker *worker, struct decode *decode, const struct opened *opened)
{
    struct pipeline *pipeline = worker->pipeline;
    struct picture *picture = opened->picture;
    if (opened->fd < 0)
        return true;
    unsigned track = 0;
    if (pipeline->config->trace) {
        char name[32];
        snprintf(name, sizeof name, "decode %u", worker->number + 1);
        track = trace_track(pipeline->config->trace, "host", name);
    }
    if (!is_ready(pipeline, decode))
        return false;
    int64_t start = clock_now();
    bool going = do_file(worker, decode, picture, opened->fd);
    /* Where no decoder can be started any more, it was not the file that ended the last one. */
    if (picture->record.failure.reason == REASON_DECODER_CRASHED && !is_ready(pipeline, decode))
        going = false;
    /* It may have failed because nobody waited for it any more. */
    if (picture->record.failure.reason != REASON_NONE && stop_overdue(pipeline->stop))
        going = false;
    trace_span(pipeline->config->trace, track, "decode", start, clock_now(), picture->path);
    return going;
}

void *ingest_decode_main(void *argument)
{
    struct worker *worker = argument;
    struct pipeline *pipeline = worker->pipeline;
    struct decode *decode = NULL;
    struct error err = ERROR_INIT;
    struct isolate *isolate = pipeline->config->isolate;
    struct decode_options options = pipeline->config->decode;
    options.coefficients = pipeline->coefficients;
    options.stop = pipeline->stop;
    if ((isolate ? decode_open_isolated(&decode, isolate, &err)
                 : decode_open(&decode, &options, &err)) != STATUS_OK)
        ingest_fail(pipeline, &err);
    struct opened opened[DECODE_AHEAD_MAX];
    unsigned count;
    bool going = decode != NULL;
    while (going && (count = take_pictures(opened, worker, decode)) > 0) {
        for (unsigned i = 0; i < count; i++) {
            struct picture *picture = opened[i].picture;
            going = going && do_picture(worker, decode, &opened[i]);
            if (opened[i].fd >= 0)
                close(opened[i].fd);
            /* Parts already submitted still hold it. */
            picture->dropped = !going;
            picture_release(picture);
        }
    }
    decode_close(&decode);
    pthread_mutex_lock(&pipeline->lock);
    pipeline->working--;
    pthread_cond_broadcast(&pipeline->changed);
    pthread_mutex_unlock(&pipeline->lock);
    return NULL;
}
