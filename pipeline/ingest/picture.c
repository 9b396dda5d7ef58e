/* picture.c: pictures in flight: their holders and the sum of their parts' counters. */
#include "ingest/picture.h"

#include "decode/shrink.h"

#include <stdlib.h>
#include <string.h>

struct picture *picture_new(const struct picture_sink *sink, const struct walk_item *item)
{
    struct picture *picture = calloc(1, sizeof *picture);
    char *path = malloc((size_t)item->path_length + 1);
    if (!picture || !path) {
        free(picture);
        free(path);
        return NULL;
    }
    memcpy(path, item->path, (size_t)item->path_length + 1);
    picture->sink = sink;
    picture->path = path;
    picture->where = item->entry.where;
    picture->blob = (struct blob)BLOB_NOTHING;
    pthread_mutex_init(&picture->lock, NULL);
    atomic_init(&picture->holders, 1);
    picture->record = (struct store_record){
        .sequence = item->sequence,
        .image.source = item->source,
        .path = path,
        .path_length = item->path_length,
        .image.bytes = item->entry.bytes,
        .image.mtime_ns = item->entry.mtime_ns,
        .image.inode = item->entry.inode,
        .image.ctime_ns = item->entry.ctime_ns,
        .failure = item->entry.failure,
        .image.orientation = 1,
    };
    return picture;
}

void picture_thumbnail_size(uint32_t *width, uint32_t *height, const struct picture *picture)
{
    const struct store_record *record = &picture->record;
    const bool swapped = record->image.orientation >= 5;
    *width = swapped ? record->image.height : record->image.width;
    *height = swapped ? record->image.width : record->image.height;
    shrink_dimensions(width, height, picture->sink->thumbnail_size);
}

void picture_hold(struct picture *picture)
{
    atomic_fetch_add(&picture->holders, 1);
}

void picture_release(struct picture *picture)
{
    const struct picture_sink *sink = picture->sink;
    if (atomic_fetch_sub(&picture->holders, 1) != 1)
        return;
    if (picture->dropped) {
        picture_free(picture);
    } else if (picture->lost && picture->record.failure.reason == REASON_NONE) {
        /* Back to the state before decoding. */
        free(picture->counters);
        picture->counters = NULL;
        picture->counted = false;
        free(picture->thumbnail);
        picture->thumbnail = NULL;
        picture->record.thumbnail = NULL;
        free(picture->pixels_of_thumbnail);
        picture->pixels_of_thumbnail = NULL;
        picture->lost = false;
        atomic_store(&picture->holders, 1);
        sink->again(sink->context, picture);
    } else {
        blob_close(&picture->blob);
        sink->finished(sink->context, picture);
    }
}

/* Copies the thumbnail computed by a device for a picture submitted whole, as coefficients or
 * stream. */
static void take_thumbnail(struct picture *picture, const uint32_t *words)
{
    uint32_t width, height;
    if (picture->sink->thumbnail_size == 0 ||
        (picture->way != JPEG_STREAM && picture->way != JPEG_COEFFICIENTS))
        return;
    picture_thumbnail_size(&width, &height, picture);
    const size_t bytes = 3 * (size_t)width * height;
    picture->pixels_of_thumbnail = malloc(bytes);
    if (picture->pixels_of_thumbnail) /* if there is no memory, there is no thumbnail */
        memcpy(picture->pixels_of_thumbnail, words, bytes);
}

void picture_deliver(void *context, void *item, const struct part_result *result)
{
    (void)context;
    struct picture *picture = item;
    const uint32_t count = picture->sink->counters;
    pthread_mutex_lock(&picture->lock);
    if (!result->proven) {
        picture->lost = picture->handed_back = true;
        *(picture->way == JPEG_STREAM ? &picture->no_stream : &picture->host_only) = true;
    } else if (!picture->counted) {
        memcpy(picture->counters, result->values, count * sizeof *result->values);
    } else {
        for (uint32_t i = 0; i < count; i++)
            picture->counters[i] += result->values[i];
    }
    if (result->proven)
        take_thumbnail(picture, result->values + count);
    picture->counted = picture->counted || result->proven;
    pthread_mutex_unlock(&picture->lock);
    picture_release(picture);
}

void picture_begin_again(struct picture *picture)
{
    pthread_mutex_lock(&picture->lock);
    picture->record.failure = (struct failure){.reason = REASON_NONE};
    picture->display_scale = 0;
    picture->lost = true;
    pthread_mutex_unlock(&picture->lock);
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

void picture_free(struct picture *picture)
{
    if (!picture)
        return;
    blob_close(&picture->blob);
    pthread_mutex_destroy(&picture->lock);
    free(picture->path);
    free(picture->prior);
    free(picture->counters);
    free(picture->thumbnail);
    free(picture->pixels_of_thumbnail);
    free(picture);
}

void picture_free_list(struct picture *list)
{
    while (list) {
        struct picture *next = list->next;
        picture_free(list);
        list = next;
    }
}
