/* test_workers.c: data that belongs to one thread of a team is used by one thread at a time. */
#include "runner.h"

#include "base/workers.h"

enum { THREADS = 4, PARTS = 2000 };

struct used {
    struct workers *workers, *inner;
    _Atomic unsigned now[THREADS], parts, wrong;
};

static void inner_part(void *context, uint64_t i)
{
    (void)i;
    struct used *used = context;
    used->wrong += workers_number() != 0; /* a team that consists of its caller */
    used->parts++;
}

static void part(void *context, uint64_t i)
{
    struct used *used = context;
    const unsigned own = workers_number();
    if (own >= workers_count(used->workers)) {
        used->wrong++;
        return;
    }
    used->wrong += used->now[own]++ != 0;
    if (i % 100 == 0)
        workers_run(used->inner, inner_part, used, 3);
    used->wrong += workers_number() != own;
    used->now[own]--;
}

static void numbers(void **state)
{
    (void)state;
    struct used used = {.parts = 0};
    assert_int_equal(workers_open(&used.workers, THREADS, NULL), STATUS_OK);
    assert_int_equal(workers_open(&used.inner, 1, NULL), STATUS_OK);
    workers_run(used.workers, part, &used, PARTS);
    assert_int_equal(used.wrong, 0);
    assert_int_equal(used.parts, PARTS / 100 * 3);
    workers_close(&used.inner);
    workers_close(&used.workers);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(numbers),
};
TEST_GROUP(workers, NULL, NULL)
