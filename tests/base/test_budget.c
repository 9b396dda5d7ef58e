/* test_budget.c: admission by bytes: order, requests larger than the budget, and abort. */

#include "runner.h"

#include "base/budget.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct budget *open_budget(uint64_t bytes)
{
    struct budget *budget;
    struct error err = ERROR_INIT;
    assert_int_equal(budget_open(&budget, bytes, &err), STATUS_OK);
    return budget;
}

struct taker {
    struct budget *budget;
    uint64_t bytes;
    pthread_t thread;
    _Atomic pid_t number;
    _Atomic int state; /* 0 waiting, 1 admitted, 2 refused */
    unsigned place;    /* order of admission */
    _Atomic unsigned *places;
};

static void *take(void *argument)
{
    struct taker *taker = argument;
    atomic_store(&taker->number, (pid_t)syscall(SYS_gettid));
    bool admitted = budget_take(taker->budget, taker->bytes);
    if (admitted)
        taker->place = atomic_fetch_add(taker->places, 1);
    atomic_store(&taker->state, admitted ? 1 : 2);
    return NULL;
}

/* After a taker has published its thread id, it sleeps only in budget_take(). */
static bool is_blocked(pid_t thread)
{
    char path[64], state = '?';
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
    fclose(file);
    return state == 'S';
}

/* Starts a taker and returns once it is waiting for the budget. */
static void start(struct taker *taker, struct budget *budget, uint64_t bytes,
                  _Atomic unsigned *places)
{
    taker->budget = budget;
    taker->bytes = bytes;
    taker->places = places;
    atomic_init(&taker->state, 0);
    atomic_init(&taker->number, 0);
    assert_int_equal(pthread_create(&taker->thread, NULL, take, taker), 0);
    while (atomic_load(&taker->number) == 0 || !is_blocked(atomic_load(&taker->number)))
        sched_yield();
}

static void takes_and_gives(void **state)
{
    (void)state;
    struct budget *budget = open_budget(100);
    assert_true(budget_take(budget, 60));
    assert_true(budget_take(budget, 40));
    assert_true(budget_take(budget, 0));
    budget_give(budget, 60);
    assert_true(budget_take(budget, 60));
    budget_give(budget, 100);
    budget_close(&budget);
    assert_null(budget);
    budget_close(&budget);
    budget_close(NULL);
}

/* A small taker that would fit must not overtake a large one that came first. */
static void first_come_first_served(void **state)
{
    (void)state;
    struct budget *budget = open_budget(100);
    _Atomic unsigned places = 0;
    struct taker large, small;
    assert_true(budget_take(budget, 50));
    start(&large, budget, 80, &places);
    start(&small, budget, 10, &places);
    assert_int_equal(atomic_load(&large.state), 0);
    assert_int_equal(atomic_load(&small.state), 0);
    budget_give(budget, 50);
    pthread_join(large.thread, NULL);
    pthread_join(small.thread, NULL);
    assert_int_equal(atomic_load(&large.state), 1);
    assert_int_equal(atomic_load(&small.state), 1);
    budget_give(budget, 90);
    budget_close(&budget);
}

static void order_of_requests_is_kept(void **state)
{
    (void)state;
    struct budget *budget = open_budget(10);
    _Atomic unsigned places = 0;
    struct taker takers[6];
    assert_true(budget_take(budget, 10));
    for (unsigned i = 0; i < 6; i++)
        start(&takers[i], budget, 10, &places);
    for (unsigned i = 0; i < 6; i++) {
        budget_give(budget, 10);
        pthread_join(takers[i].thread, NULL);
        assert_int_equal(takers[i].place, i);
    }
    budget_give(budget, 10);
    budget_close(&budget);
}

static void oversize_requests_run_alone(void **state)
{
    (void)state;
    struct budget *budget = open_budget(100);
    _Atomic unsigned places = 0;
    struct taker huge, small;
    assert_true(budget_take(budget, 1));
    start(&huge, budget, UINT64_MAX, &places);
    assert_int_equal(atomic_load(&huge.state), 0);
    budget_give(budget, 1);
    pthread_join(huge.thread, NULL);
    assert_int_equal(atomic_load(&huge.state), 1);
    start(&small, budget, 1, &places);
    assert_int_equal(atomic_load(&small.state), 0);
    budget_give(budget, UINT64_MAX);
    pthread_join(small.thread, NULL);
    assert_int_equal(atomic_load(&small.state), 1);
    budget_give(budget, 1);
    budget_close(&budget);
}

static void abort_wakes_waiters_and_persists(void **state)
{
    (void)state;
    struct budget *budget = open_budget(10);
    _Atomic unsigned places = 0;
    struct taker takers[3];
    assert_true(budget_take(budget, 10));
    for (int i = 0; i < 3; i++)
        start(&takers[i], budget, 5, &places);
    budget_abort(budget);
    for (int i = 0; i < 3; i++) {
        pthread_join(takers[i].thread, NULL);
        assert_int_equal(atomic_load(&takers[i].state), 2);
    }
    assert_false(budget_take(budget, 1));
    assert_false(budget_take(budget, 0));
    budget_give(budget, 10);
    assert_false(budget_take(budget, 1));
    budget_close(&budget);
}

struct crowd {
    struct budget *budget;
    unsigned seed;
    _Atomic uint64_t *held, *most;
};

static void *crowd_run(void *argument)
{
    struct crowd *crowd = argument;
    for (int i = 0; i < 3000; i++) {
        uint64_t bytes = (uint64_t)(rand_r(&crowd->seed) % 100) + 1;
        if (!budget_take(crowd->budget, bytes))
            return (void *)1;
        uint64_t now = atomic_fetch_add(crowd->held, bytes) + bytes;
        uint64_t most = atomic_load(crowd->most);
        while (now > most && !atomic_compare_exchange_weak(crowd->most, &most, now))
            continue;
        atomic_fetch_sub(crowd->held, bytes);
        budget_give(crowd->budget, bytes);
    }
    return NULL;
}

static void many_threads_stay_within_the_budget(void **state)
{
    (void)state;
    struct budget *budget = open_budget(250);
    _Atomic uint64_t held = 0, most = 0;
    struct crowd crowds[5];
    pthread_t threads[5];
    for (unsigned i = 0; i < 5; i++) {
        crowds[i] = (struct crowd){budget, i + 1, &held, &most};
        assert_int_equal(pthread_create(&threads[i], NULL, crowd_run, &crowds[i]), 0);
    }
    for (unsigned i = 0; i < 5; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_true(atomic_load(&most) <= 250);
    assert_int_equal(atomic_load(&held), 0);
    budget_close(&budget);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(takes_and_gives),
    cmocka_unit_test(first_come_first_served),
    cmocka_unit_test(order_of_requests_is_kept),
    cmocka_unit_test(oversize_requests_run_alone),
    cmocka_unit_test(abort_wakes_waiters_and_persists),
    cmocka_unit_test(many_threads_stay_within_the_budget),
};
TEST_GROUP(budget, NULL, NULL)
