/* queue.c: the bounded queue: a ring under one lock, with a condition for each side. */
#include "base/queue.h"
#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct queue {
    size_t capacity, item_size;
    pthread_mutex_t lock;
    pthread_cond_t not_empty, not_full;
    /* Under the lock: */
    size_t head, length;
    bool aborted;
    unsigned char items[];
};

enum status queue_open(struct queue **out, size_t capacity, size_t item_size, struct error *err)
{
    assert(capacity > 0 && item_size > 0);
    *out = NULL;
    if (capacity > (SIZE_MAX - sizeof(struct queue)) / item_size)
        return error_memory(err, SIZE_MAX, "a queue");
    size_t size = sizeof(struct queue) + capacity * item_size;
    struct queue *queue = calloc(1, size);
    if (!queue)
        return error_memory(err, size, "a queue");
    queue->capacity = capacity;
    queue->item_size = item_size;
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->not_empty, NULL);
    pthread_cond_init(&queue->not_full, NULL);
    *out = queue;
    return STATUS_OK;
}

static void *slot(struct queue *queue, size_t index)
{
    return queue->items + (queue->head + index) % queue->capacity * queue->item_size;
}

enum queue_result queue_send(struct queue *queue, const void *item)
{
    enum queue_result result = QUEUE_OK;
    pthread_mutex_lock(&queue->lock);
    while (queue->length == queue->capacity && !queue->aborted)
        pthread_cond_wait(&queue->not_full, &queue->lock);
    if (queue->aborted) {
        result = QUEUE_ABORTED;
    } else {
        memcpy(slot(queue, queue->length), item, queue->item_size);
        queue->length++;
        pthread_cond_signal(&queue->not_empty);
    }
    pthread_mutex_unlock(&queue->lock);
    return result;
}

enum queue_result queue_receive(struct queue *queue, void *item)
{
    enum queue_result result = QUEUE_OK;
    pthread_mutex_lock(&queue->lock);
    while (queue->length == 0 && !queue->aborted)
        pthread_cond_wait(&queue->not_empty, &queue->lock);
    if (queue->aborted) {
        result = QUEUE_ABORTED;
    } else {
        memcpy(item, slot(queue, 0), queue->item_size);
        queue->head = (queue->head + 1) % queue->capacity;
        queue->length--;
        pthread_cond_signal(&queue->not_full);
    }
    pthread_mutex_unlock(&queue->lock);
    return result;
}

void queue_abort(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->aborted = true;
    pthread_cond_broadcast(&queue->not_empty);
    pthread_cond_broadcast(&queue->not_full);
    pthread_mutex_unlock(&queue->lock);
}

size_t queue_length(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    size_t length = queue->length;
    pthread_mutex_unlock(&queue->lock);
    return length;
}

void queue_close(struct queue **queue)
{
    if (!queue || !*queue)
        return;
    struct queue *q = *queue;
    *queue = NULL;
    pthread_cond_destroy(&q->not_full);
    pthread_cond_destroy(&q->not_empty);
    pthread_mutex_destroy(&q->lock);
    free(q);
}
