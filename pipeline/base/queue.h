/* queue.h: the bounded queue between two stages: many senders, many receivers, fixed-size items.
 *
 * End of stream can come from either side. `queue_finish` is the senders' word that nothing more
 * comes: receivers drain what is there, then get QUEUE_END. `queue_abort` is anybody's word that
 * the run is over: everyone blocked is woken and gets QUEUE_ABORTED; items still inside are handed
 * to the drop callback by queue_close. A send that does not return QUEUE_OK leaves the item with
 * the caller. */
#ifndef CLPIPE_BASE_QUEUE_H
#define CLPIPE_BASE_QUEUE_H

#include "base/error.h"
#include <stdint.h>

struct queue;

enum queue_result {
    QUEUE_OK = 0,
    QUEUE_END,     /* receive: finished and empty; send: the queue was finished */
    QUEUE_ABORTED, /* the run is over */
    QUEUE_TIMEOUT, /* receive_for only: nothing came in time */
};

/* Frees what an item holds; the item itself is the queue's. In queue_close's thread. */
typedef void (*queue_drop_fn)(void *item, void *context);

/* A queue of at most `capacity` items of `item_size` bytes. drop may be NULL. */
enum status queue_open(struct queue **out, size_t capacity, size_t item_size, queue_drop_fn drop,
                       void *context, struct error *err);

/* Copies *item in; blocks while full. OK, END or ABORTED. */
enum queue_result queue_send(struct queue *queue, const void *item);

/* Copies the oldest item to *item; blocks while empty. OK, END or ABORTED. */
enum queue_result queue_receive(struct queue *queue, void *item);

/* The same, waiting at most `nanoseconds` (0: poll). OK, END, ABORTED or TIMEOUT. */
enum queue_result queue_receive_for(struct queue *queue, void *item, int64_t nanoseconds);

/* Any thread; more than once does no harm. */
void queue_finish(struct queue *queue);
void queue_abort(struct queue *queue);
/* Items inside at this moment. */
size_t queue_length(struct queue *queue);

/* Frees the queue, dropping what is inside; nobody may be using it. Accepts NULL and NULLs. */
void queue_close(struct queue **queue);

#endif
