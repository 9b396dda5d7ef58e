/* picture.c: pictures under way: their holders and the sum of their parts' counters. */
#include "ingest/picture.h"

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
    picture->where = item->where;
    picture->blob = (struct blob)BLOB_NOTHING;
    pthread_mutex_init(&picture->lock, NULL);
    atomic_init(&picture->holders, 1);
    picture->record = (struct store_record){
        .sequence = item->sequence,
        .source = item->source,
        .path = path,
        .path_length = item->path_length,
        .bytes = item->bytes,
        .mtime_ns = item->mtime_ns,
        .failure = item->failure,
        .orientation = 1,
    };
    return picture;
}

bool picture_make_counters(struct picture *picture)
{
    if (!picture->counters)
        picture->counters = calloc(picture->sink->counters, sizeof *picture->counters);
    return picture->counters != NULL;
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
        /* As it was before it was decoded. */
        free(picture->counters);
        picture->counters = NULL;
        free(picture->thumbnail);
        picture->thumbnail = NULL;
        picture->record.thumbnail = NULL;
        picture->lost = false;
        atomic_store(&picture->holders, 1);
        sink->again(sink->context, picture);
    } else {
        sink->finished(sink->context, picture);
    }
}

/* As vectors: a small picture has more counters than pixels. */
static void add_values(uint32_t *counters, const uint32_t *values, uint32_t count)
{
    typedef uint32_t four __attribute__((vector_size(16), aligned(4), may_alias));
    uint32_t i = 0;
    for (; i + 4 <= count; i += 4)
        *(four *)(counters + i) += *(const four *)(values + i);
    for (; i < count; i++)
        counters[i] += values[i];
}

void picture_deliver(void *context, void *item, const struct part_result *result)
{
    (void)context;
    struct picture *picture = item;
    const uint32_t count = picture->sink->counters;
    pthread_mutex_lock(&picture->lock);
    if (!result->proven)
        picture->lost = picture->host_only = true;
    if (result->proven)
        add_values(picture->counters, result->values, count);
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

void picture_free(struct picture *picture)
{
    if (!picture)
        return;
    blob_close(&picture->blob);
    pthread_mutex_destroy(&picture->lock);
    free(picture->path);
    free(picture->counters);
    free(picture->thumbnail);
    free(picture);
}
