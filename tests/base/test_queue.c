/* test_queue.c: the bounded queue with several senders and receivers, and all ways in which it
 * ends. */

#include "runner.h"

#include "base/queue.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SENDERS   4
#define RECEIVERS 3
#define EACH      20000
#define LAST      UINT32_MAX /* tells a receiver to stop */

static struct queue *open_queue(size_t capacity, size_t item_size)
{
    struct queue *queue;
    struct error err = ERROR_INIT;
    assert_int_equal(queue_open(&queue, capacity, item_size, &err), STATUS_OK);
    return queue;
}

static void keeps_order_and_wraps(void **state)
{
    (void)state;
    /* The item size is not a power of two, which would reveal wrong slot offsets. */
    struct item {
        unsigned char bytes[13];
    } in, out;
    struct queue *queue = open_queue(3, sizeof in);
    unsigned sent = 0, received = 0;
    for (int round = 0; round < 50; round++) {
        while (queue_length(queue) < 3) {
            memset(&in, (int)sent++, sizeof in);
            assert_int_equal(queue_send(queue, &in), QUEUE_OK);
        }
        for (int i = 0; i < 1 + round % 3; i++) {
            struct item wanted;
            memset(&wanted, (int)received++, sizeof wanted);
            assert_int_equal(queue_receive(queue, &out), QUEUE_OK);
            assert_memory_equal(&out, &wanted, sizeof out);
        }
    }
    queue_close(&queue);
    assert_null(queue);
    queue_close(&queue);
    queue_close(NULL);
}

struct crowd {
    struct queue *queue;
    unsigned char *seen; /* one counter per value; each value reaches exactly one receiver */
    unsigned index;
    uint64_t received;
};

static void *crowd_send(void *argument)
{
    struct crowd *crowd = argument;
    for (uint32_t i = 0; i < EACH; i++) {
        uint32_t value = crowd->index * EACH + i;
        if (queue_send(crowd->queue, &value) != QUEUE_OK)
            return (void *)1;
    }
    return NULL;
}

static void *crowd_receive(void *argument)
{
    struct crowd *crowd = argument;
    uint32_t value, last[SENDERS] = {0};
    enum queue_result result;
    while ((result = queue_receive(crowd->queue, &value)) == QUEUE_OK && value != LAST) {
        crowd->seen[value]++;
        crowd->received++;
        /* Items from one sender arrive in order. */
        if (last[value / EACH] > value)
            return (void *)1;
        last[value / EACH] = value;
    }
    return result == QUEUE_OK ? NULL : (void *)2;
}

static void many_threads_lose_nothing(void **state)
{
    (void)state;
    struct queue *queue = open_queue(7, sizeof(uint32_t));
    unsigned char *seen = calloc(SENDERS * EACH, 1);
    assert_non_null(seen);
    pthread_t senders[SENDERS], receivers[RECEIVERS];
    struct crowd crowds[SENDERS + RECEIVERS];
    for (unsigned i = 0; i < SENDERS + RECEIVERS; i++) {
        crowds[i] = (struct crowd){queue, seen, i, 0};
        pthread_t *thread = i < SENDERS ? &senders[i] : &receivers[i - SENDERS];
        assert_int_equal(
            pthread_create(thread, NULL, i < SENDERS ? crowd_send : crowd_receive, &crowds[i]), 0);
    }
    void *failed;
    for (unsigned i = 0; i < SENDERS; i++) {
        pthread_join(senders[i], &failed);
        assert_null(failed);
    }
    const uint32_t last = LAST;
    for (unsigned i = 0; i < RECEIVERS; i++)
        assert_int_equal(queue_send(queue, &last), QUEUE_OK);
    uint64_t received = 0;
    for (unsigned i = 0; i < RECEIVERS; i++) {
        pthread_join(receivers[i], &failed);
        assert_null(failed);
        received += crowds[SENDERS + i].received;
    }
    assert_int_equal(received, SENDERS * EACH);
    for (size_t i = 0; i < SENDERS * EACH; i++)
        assert_int_equal(seen[i], 1);
    free(seen);
    queue_close(&queue);
}

static void abort_leaves_items(void **state)
{
    (void)state;
    int value;
    struct queue *queue = open_queue(4, sizeof(int));
    for (value = 9; value < 13; value++)
        assert_int_equal(queue_send(queue, &value), QUEUE_OK);
    assert_int_equal(queue_receive(queue, &value), QUEUE_OK);
    queue_abort(queue);
    assert_int_equal(queue_send(queue, &value), QUEUE_ABORTED);
    assert_int_equal(queue_receive(queue, &value), QUEUE_ABORTED);
    assert_int_equal(queue_length(queue), 3);
    queue_close(&queue);
}

static void *blocked_send(void *argument)
{
    int value = 5;
    return (void *)(intptr_t)queue_send(argument, &value);
}

static void *blocked_receive(void *argument)
{
    int value;
    return (void *)(intptr_t)queue_receive(argument, &value);
}

/* Aborts the queue while threads are blocked on it, or, if the machine starts them slowly, about to
 * block. */
static void wakes(bool full)
{
    struct queue *queue = open_queue(1, sizeof(int));
    int value = 1;
    if (full)
        assert_int_equal(queue_send(queue, &value), QUEUE_OK);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, full ? blocked_send : blocked_receive, queue), 0);
    struct timespec moment = {0, 20 * 1000 * 1000};
    nanosleep(&moment, NULL);
    queue_abort(queue);
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_int_equal((intptr_t)result, QUEUE_ABORTED);
    }
    queue_close(&queue);
}

static void abort_wakes_all_threads(void **state)
{
    (void)state;
    wakes(true);
    wakes(false);
}

static void refuses_impossible_sizes(void **state)
{
    (void)state;
    struct queue *queue = (struct queue *)1;
    struct error err = ERROR_INIT;
    assert_int_equal(queue_open(&queue, SIZE_MAX / 2, 16, &err), STATUS_FAILED);
    assert_null(queue);
    assert_int_equal(err.native, ENOMEM);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(keeps_order_and_wraps),    cmocka_unit_test(many_threads_lose_nothing),
    cmocka_unit_test(abort_leaves_items),       cmocka_unit_test(abort_wakes_all_threads),
    cmocka_unit_test(refuses_impossible_sizes),
};
TEST_GROUP(queue, NULL, NULL)
