/* queue.h: the bounded queue between two stages: many senders, many receivers, fixed-size items.
 *
 * Any thread may call `queue_abort` to end the run: all blocked threads wake and get QUEUE_ABORTED. */
#ifndef CLPIPE_BASE_QUEUE_H
#define CLPIPE_BASE_QUEUE_H

#include "base/error.h"
#include <stdint.h>

struct queue;

enum queue_result {
    QUEUE_OK = 0,
    QUEUE_ABORTED, /* the run is over */
};

/* A queue of at most `capacity` items of `item_size` bytes. */
enum status queue_open(struct queue **out, size_t capacity, size_t item_size, struct error *err);

/* Copies *item in; blocks while full. OK or ABORTED. */
enum queue_result queue_send(struct queue *queue, const void *item);

/* Copies the oldest item to *item; blocks while empty. OK or ABORTED. */
enum queue_result queue_receive(struct queue *queue, void *item);

/* Any thread; may be called more than once. */
void queue_abort(struct queue *queue);
/* The current number of items. */
size_t queue_length(struct queue *queue);

/* Frees the queue; no thread may be using it. Accepts NULL; sets *queue to NULL. */
void queue_close(struct queue **queue);

#endif
