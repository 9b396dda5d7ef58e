/* gather.c: a ring of batches. A batch goes to the thread that finds it free; which row of the file its
 * first image is, it learns when the batch before it has been read. Writes of different batches may
 * overlap: they have different places. */
#include "file/gather.h"
#include "base/output.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_BYTES  (4u << 20) /* of values and thumbnails */
#define MOST_ROWS    4096
#define MOST_THREADS 8
#define BATCHES_MORE 2 /* than threads */

enum state {
    FREE,
    TAKEN,  /* a thread reads it */
    MIXED,  /* rows of it lie in the finished file: left to the caller's thread */
    READY,  /* or failed */
};

struct batch {
    enum state state;
    enum status status; /* STATUS_END: the last one */
    struct error error;
    uint64_t *location;
    struct feed_item *item;
    unsigned rows, images;
    uint8_t *values[FEATURE_MAX]; /* of the images, for each feature */
    /* Paths with a NUL, messages and thumbnails, in the order of the items. */
    char *text;
    size_t text_length, text_capacity;
};

struct gather {
    struct gather_config config;
    const struct feature_set *features;
    unsigned batch_rows;
    pthread_t thread[MOST_THREADS];
    unsigned threads;
    struct feed *feed; /* of the caller's thread */

    pthread_mutex_t lock; /* guards what follows, and states of batches */
    pthread_cond_t changed;
    struct feed *order;  /* only its order */
    struct batch *batch; /* batch n is at n % batches */
    unsigned batches;
    uint64_t taken, placed, consumed; /* batches */
    uint64_t next_row;                /* first image of batch `placed` */
    bool ended;                       /* no further batch is taken */
    bool closing;

    unsigned at; /* item of the batch that the caller reads */
};

/* --- one batch ------------------------------------------------------------------------------- */

/* Copies `size` bytes and a NUL behind the batch's texts; the address is known when all are there. */
static enum status keep(struct batch *batch, const void *bytes, size_t size, struct error *err)
{
    if (size >= batch->text_capacity - batch->text_length) {
        const size_t capacity = 2 * (batch->text_capacity + size) + 4096;
        char *more = realloc(batch->text, capacity);
        if (!more)
            return error_memory(err, capacity, "texts");
        batch->text = more;
        batch->text_capacity = capacity;
    }
    if (size > 0)
        memcpy(batch->text + batch->text_length, bytes, size);
    batch->text_length += size;
    batch->text[batch->text_length++] = 0;
    return STATUS_OK;
}

static void set_pointers(struct batch *batch)
{
    const char *at = batch->text;
    for (unsigned i = 0; i < batch->rows; i++) {
        struct feed_item *item = &batch->item[i];
        item->path = at;
        at += item->path_length + 1;
        if (item->is_image) {
            item->thumbnail = (const uint8_t *)at;
            at += item->thumbnail_length + 1;
        } else {
            item->failure.message = at;
            at += strlen(at) + 1;
        }
    }
}

static enum status read_batch(struct gather *gather, struct batch *batch, struct feed *feed,
                              struct error *err)
{
    const struct feature_set *features = gather->features;
    batch->images = 0;
    batch->text_length = 0;
    for (unsigned i = 0; i < batch->rows; i++) {
        struct feed_item *item = &batch->item[i];
        enum status status = feed_read(feed, batch->location[i], item, err);
        if (!status)
            status = keep(batch, item->path, item->path_length, err);
        if (!status && item->is_image)
            status = keep(batch, item->thumbnail, item->thumbnail_length, err);
        else if (!status)
            status = keep(batch, item->failure.message, strlen(item->failure.message), err);
        if (status)
            return status;
        for (unsigned f = 0; item->is_image && f < features->count; f++) {
            const size_t bytes = feature_row_bytes(&features->feature[f]);
            memcpy(batch->values[f] + batch->images * bytes,
                   (const uint8_t *)item->values + 4 * (size_t)features->feature[f].place, bytes);
        }
        item->values = NULL;
        batch->images += item->is_image;
    }
    set_pointers(batch);
    return STATUS_OK;
}

static enum status write_values(const struct gather *gather, const struct batch *batch,
                                uint64_t row, struct error *err)
{
    for (unsigned f = 0; batch->images > 0 && f < gather->features->count; f++) {
        const size_t bytes = feature_row_bytes(&gather->features->feature[f]);
        if (write_at(gather->config.fd, batch->values[f], batch->images * bytes,
                     gather->config.start[f] + row * bytes, gather->config.path, err))
            return STATUS_FAILED;
    }
    return STATUS_OK;
}

/* Reads batch `number`, waits until its place is known, and writes its values. Without the lock. */
static void do_batch(struct gather *gather, uint64_t number, struct feed *feed)
{
    struct batch *batch = &gather->batch[number % gather->batches];
    batch->error = (struct error)ERROR_INIT;
    enum status status = read_batch(gather, batch, feed, &batch->error);
    pthread_mutex_lock(&gather->lock);
    while (gather->placed != number && !gather->closing)
        pthread_cond_wait(&gather->changed, &gather->lock);
    const uint64_t row = gather->next_row;
    const bool closing = gather->closing;
    gather->next_row += batch->images;
    gather->placed++;
    /* Nothing is of use behind a failure. */
    gather->ended = gather->ended || status != STATUS_OK;
    pthread_cond_broadcast(&gather->changed);
    pthread_mutex_unlock(&gather->lock);
    if (!status && !closing && !gather->config.take)
        status = write_values(gather, batch, row, &batch->error);
    pthread_mutex_lock(&gather->lock);
    batch->status = status;
    batch->state = READY;
    pthread_cond_broadcast(&gather->changed);
    pthread_mutex_unlock(&gather->lock);
}

/* --- the ring -------------------------------------------------------------------------------- */

/* Takes the next batch, whose place in the ring is free; false: rows of it lie in the finished file, or
 * there is nothing to read. With the lock. */
static bool take_batch(struct gather *gather)
{
    struct batch *batch = &gather->batch[gather->taken++ % gather->batches];
    enum status status = STATUS_OK;
    bool mixed = false;
    batch->error = (struct error)ERROR_INIT;
    batch->rows = 0;
    while (batch->rows < gather->batch_rows &&
           !(status = feed_next_location(gather->order, &batch->location[batch->rows],
                                         &batch->error)))
        mixed |= !location_in_log(batch->location[batch->rows++]);
    gather->ended = status != STATUS_OK;
    /* What came before the end is a batch of its own. */
    const bool some = batch->rows > 0 && (status == STATUS_OK || status == STATUS_END);
    batch->state = !some ? READY : mixed ? MIXED : TAKEN;
    batch->status = status;
    pthread_cond_broadcast(&gather->changed);
    return batch->state == TAKEN;
}

static bool may_take(const struct gather *gather)
{
    return !gather->ended && gather->taken - gather->consumed < gather->batches;
}

static void *gather_batches(void *context)
{
    struct gather *gather = context;
    struct feed_config config = *gather->config.feed;
    struct feed *feed = NULL;
    struct error error = ERROR_INIT;
    config.finished = NULL;
    const bool opened = feed_open(&feed, &config, &error) == STATUS_OK;
    pthread_mutex_lock(&gather->lock);
    while (opened && !gather->closing) {
        if (!may_take(gather)) {
            if (gather->ended)
                break;
            pthread_cond_wait(&gather->changed, &gather->lock);
            continue;
        }
        const uint64_t number = gather->taken;
        if (!take_batch(gather))
            continue;
        pthread_mutex_unlock(&gather->lock);
        do_batch(gather, number, feed);
        pthread_mutex_lock(&gather->lock);
    }
    pthread_mutex_unlock(&gather->lock);
    feed_close(&feed);
    return NULL;
}

/* The batch whose turn it is, ready; the caller's thread helps where only it can. NULL: there is none. */
static struct batch *next_batch(struct gather *gather)
{
    const uint64_t number = gather->consumed;
    struct batch *batch = &gather->batch[number % gather->batches];
    pthread_mutex_lock(&gather->lock);
    if (gather->taken == number && may_take(gather) && take_batch(gather))
        batch->state = MIXED;
    if (gather->taken == number)
        batch = NULL;
    while (batch && batch->state != READY) {
        if (batch->state == MIXED) {
            batch->state = TAKEN;
            pthread_mutex_unlock(&gather->lock);
            do_batch(gather, number, gather->feed);
            pthread_mutex_lock(&gather->lock);
        } else {
            pthread_cond_wait(&gather->changed, &gather->lock);
        }
    }
    pthread_mutex_unlock(&gather->lock);
    return batch;
}

static void release_batch(struct gather *gather, struct batch *batch)
{
    pthread_mutex_lock(&gather->lock);
    batch->state = FREE;
    gather->consumed++;
    pthread_cond_broadcast(&gather->changed);
    pthread_mutex_unlock(&gather->lock);
    gather->at = 0;
}

/* --- from outside ---------------------------------------------------------------------------- */

static enum status make_batches(struct gather *gather, struct error *err)
{
    const size_t row_bytes =
        4 * (size_t)gather->features->values + gather->config.thumbnail_bytes;
    const uint64_t records = gather->config.feed->records;
    unsigned rows = row_bytes < BATCH_BYTES ? (unsigned)(BATCH_BYTES / row_bytes) : 1;
    rows = rows < MOST_ROWS ? rows : MOST_ROWS;
    gather->batch_rows = records < rows && records > 0 ? (unsigned)records : rows;
    const uint64_t needed = records / gather->batch_rows + 1;
    gather->threads = gather->config.threads < MOST_THREADS ? gather->config.threads : MOST_THREADS;
    /* One batch is the caller's. */
    if (gather->threads >= needed)
        gather->threads = (unsigned)needed - 1;
    gather->batches = gather->threads + BATCHES_MORE;
    gather->batch = calloc(gather->batches, sizeof *gather->batch);
    bool made = gather->batch != NULL;
    for (unsigned b = 0; made && b < gather->batches; b++) {
        struct batch *batch = &gather->batch[b];
        batch->location = malloc(gather->batch_rows * sizeof *batch->location);
        batch->item = malloc(gather->batch_rows * sizeof *batch->item);
        made = batch->location && batch->item;
        for (unsigned f = 0; made && f < gather->features->count; f++) {
            batch->values[f] =
                malloc(feature_row_bytes(&gather->features->feature[f]) * gather->batch_rows);
            made = batch->values[f] != NULL;
        }
    }
    return made ? STATUS_OK : error_memory(err, gather->batch_rows * row_bytes, "rows");
}

enum status gather_open(struct gather **out, const struct gather_config *config, struct error *err)
{
    *out = NULL;
    struct gather *gather = calloc(1, sizeof *gather);
    if (!gather)
        return error_memory(err, sizeof *gather, "rows");
    gather->config = *config;
    gather->features = config->feed->features;
    pthread_mutex_init(&gather->lock, NULL);
    pthread_cond_init(&gather->changed, NULL);
    enum status status = make_batches(gather, err);
    const unsigned wanted = gather->threads;
    gather->threads = 0;
    if (!status && !(status = feed_open(&gather->order, config->feed, err)))
        status = feed_open(&gather->feed, config->feed, err);
    while (!status && gather->threads < wanted &&
           pthread_create(&gather->thread[gather->threads], NULL, gather_batches, gather) == 0)
        gather->threads++;
    *out = gather;
    if (status)
        gather_close(out);
    return status;
}

void gather_close(struct gather **out)
{
    struct gather *gather = *out;
    if (!gather)
        return;
    *out = NULL;
    pthread_mutex_lock(&gather->lock);
    gather->closing = true;
    pthread_cond_broadcast(&gather->changed);
    pthread_mutex_unlock(&gather->lock);
    for (unsigned i = 0; i < gather->threads; i++)
        pthread_join(gather->thread[i], NULL);
    for (unsigned b = 0; gather->batch && b < gather->batches; b++) {
        for (unsigned f = 0; f < FEATURE_MAX; f++)
            free(gather->batch[b].values[f]);
        free(gather->batch[b].location);
        free(gather->batch[b].item);
        free(gather->batch[b].text);
    }
    free(gather->batch);
    feed_close(&gather->feed);
    feed_close(&gather->order);
    pthread_cond_destroy(&gather->changed);
    pthread_mutex_destroy(&gather->lock);
    free(gather);
}

enum status gather_next(struct gather *gather, const struct feed_item **item, struct error *err)
{
    struct batch *batch = &gather->batch[gather->consumed % gather->batches];
    if (gather->at > 0 && gather->at == batch->rows)
        release_batch(gather, batch);
    if (gather->at == 0) {
        batch = next_batch(gather);
        if (!batch)
            return STATUS_END;
        if (!batch->status && batch->images > 0 && gather->config.take)
            batch->status = gather->config.take(gather->config.context, batch->values,
                                                batch->images, &batch->error);
        if (batch->status) {
            if (err)
                *err = batch->error;
            return batch->status;
        }
    }
    *item = &batch->item[gather->at++];
    return STATUS_OK;
}
