/* test_share.c: which of several devices gets the next part, depending on their measured speeds. */

#include "runner.h"

#include "base/clock.h"
#include "device/ring.h"

#define MB 1000000ull

/* Two open rings with built kernels: pending bytes and bytes counted per second. */
struct two {
    struct ring ring[2];
    struct staging staging;
};

static void set(struct two *two, uint64_t pending0, double rate0, uint64_t pending1, double rate1)
{
    *two = (struct two){.staging = {.ring = two->ring, .ring_count = 2}};
    for (int i = 0; i < 2; i++) {
        struct ring *ring = &two->ring[i];
        ring->opened = true;
        ring->built = true;
        ring->pending = i ? pending1 : pending0;
        ring->rate = i ? rate1 : rate0;
        ring->last_end = clock_now();
        ring->last_took = 60 * 1000000000ll;
    }
}

/* Returns the ring that gets a part of `bytes`, or -1, and sets *cut to the bytes that it gets. */
static int choose(uint64_t *cut, const struct two *two, uint64_t bytes)
{
    *cut = bytes;
    const struct ring *ring = share_choose(cut, &two->staging);
    return ring ? (int)(ring - two->ring) : -1;
}

static void the_earliest_to_finish_is_chosen(void **state)
{
    (void)state;
    struct two two;
    uint64_t cut;
    set(&two, 0, 1e9, 0, 2e9);
    assert_int_equal(choose(&cut, &two, MB), 1);
    assert_int_equal(cut, MB);
    /* The fast one is busy: it would need 11 ms for waiting and counting, the slow one 1 ms. */
    set(&two, 0, 1e9, 21 * MB, 2e9);
    assert_int_equal(choose(&cut, &two, MB), 0);
    /* Waiting for the fast one is still better than starting on a very slow one at once. */
    set(&two, 0, 1e6, 100 * MB, 2e9);
    assert_int_equal(choose(&cut, &two, MB), 1);
}

static void pending_work_is_limited(void **state)
{
    (void)state;
    struct two two;
    uint64_t cut;
    set(&two, 2 * MB, 1e7, 2 * MB, 1e7);
    assert_int_equal(choose(&cut, &two, MB), -1);
    set(&two, MB, 1e7, 2 * MB, 1e7);
    assert_int_equal(choose(&cut, &two, MB), 0);
    assert_int_equal(cut, MB);
    /* An idle ring gets a piece of that size from a large part. */
    set(&two, 0, 1e7, 2 * MB, 1e7);
    assert_int_equal(choose(&cut, &two, 50 * MB), 0);
    assert_in_range(cut, 19 * MB / 10, 21 * MB / 10);
}

static void unmeasured_rings_get_small_parts(void **state)
{
    (void)state;
    struct two two;
    uint64_t cut;
    set(&two, 0, 0, 0, 1e9);
    assert_int_equal(choose(&cut, &two, MB), 0);
    assert_in_range(cut, 1, MB / 10);
    /* An unmeasured ring gets only one part at a time. */
    two.ring[0].pending = cut;
    assert_int_equal(choose(&cut, &two, MB), 1);
    assert_int_equal(cut, MB);
    two.ring[1].pending = MB;
    two.ring[1].rate = 0;
    assert_int_equal(choose(&cut, &two, MB), -1);
}

static void rings_of_one_kind_share_a_rate(void **state)
{
    (void)state;
    struct two two;
    uint64_t cut;
    set(&two, 3 * MB, 0, 2 * MB, 0);
    two.ring[0].alike = two.ring[1].alike = 1;
    assert_int_equal(choose(&cut, &two, 900 * MB), 1);
    assert_int_equal(cut, 900 * MB);
    /* A rate measured for one ring also applies to the other. */
    two.ring[0].rate = 1e9;
    assert_int_equal(choose(&cut, &two, MB), 1);
    two.ring[1].pending = 4 * MB;
    assert_int_equal(choose(&cut, &two, MB), 0);
    two.ring[1].pending = 0;
    two.ring[1].last_took = 1;
    assert_int_equal(choose(&cut, &two, MB), 1);
    assert_int_equal(cut, MB);
    /* If there is also a device of another kind, the ring is tried. */
    two.ring[1].alike = 2;
    assert_int_equal(choose(&cut, &two, MB), 1);
    assert_int_equal(cut, 32 << 10);
}

static void slow_rings_are_tried_again(void **state)
{
    (void)state;
    struct two two;
    uint64_t cut;
    set(&two, 0, 1e5, 0, 1e9);
    assert_int_equal(choose(&cut, &two, MB), 1);
    two.ring[0].last_took = 1; /* it has been idle for longer */
    assert_int_equal(choose(&cut, &two, MB), 0);
    assert_int_equal(cut, 32 << 10);
    /* The ring is left alone for 16 times the duration of its last slot, here a minute. */
    two.ring[0].last_took = 60 * 1000000000ll;
    two.ring[0].last_end = clock_now() - 15 * two.ring[0].last_took;
    assert_int_equal(choose(&cut, &two, MB), 1);
    two.ring[0].last_end = clock_now() - 17 * two.ring[0].last_took;
    assert_int_equal(choose(&cut, &two, MB), 0);
}

static void while_kernels_are_built(void **state)
{
    (void)state;
    struct two two;
    uint64_t cut;
    set(&two, 0, 0, 50 * MB, 1e9);
    two.ring[0].built = false;
    assert_int_equal(choose(&cut, &two, MB), 1);
    two.ring[1].built = false;
    assert_int_equal(choose(&cut, &two, MB), -1);
    /* Meanwhile devices of one kind get pixels; a device that is not open gets none. */
    two.ring[0].alike = two.ring[1].alike = 1;
    assert_int_equal(choose(&cut, &two, MB), 0);
    two.ring[0].opened = false;
    assert_int_equal(choose(&cut, &two, MB), 1);
    two.ring[1].failed = true;
    assert_int_equal(choose(&cut, &two, MB), -1);
    two.ring[1].failed = false;
    two.ring[1].built = true;
    assert_int_equal(choose(&cut, &two, MB), 1);
    /* A ring without kernels is not chosen, however high its rate. */
    set(&two, 0, 1e12, 0, 1e6);
    two.ring[0].built = false;
    assert_int_equal(choose(&cut, &two, 100), 1);
}

static void the_last_ring_gets_everything(void **state)
{
    (void)state;
    struct two two;
    uint64_t cut;
    set(&two, 100 * MB, 1e3, 0, 1e9);
    two.ring[1].failed = true;
    assert_int_equal(share_alive(&two.staging), 1);
    assert_int_equal(choose(&cut, &two, 50 * MB), 0);
    assert_int_equal(cut, 50 * MB);
    two.ring[0].built = false;
    assert_int_equal(choose(&cut, &two, MB), 0);
    two.ring[0].failed = true;
    assert_int_equal(choose(&cut, &two, MB), -1);
}

static void rates_are_measured_from_the_second_slot_on(void **state)
{
    (void)state;
    struct ring ring = {0};
    share_measure(&ring, MB, clock_now() - 1000000000);
    assert_true(ring.rate == 0);
    ring.last_end = clock_now() - 500000000; /* the ring had earlier slots */
    share_measure(&ring, MB, clock_now() - 1000000000);
    assert_in_range((uint64_t)ring.rate, MB * 18 / 10, MB * 2);
    ring.last_end = clock_now() - 1000000000;
    share_measure(&ring, MB, clock_now() - 500000000);
    assert_in_range((uint64_t)ring.rate, MB * 18 / 10, MB * 2);
    /* The new rate is the mean of the known and the measured rate. */
    ring.rate = 10e6;
    ring.last_end = clock_now() - 1000000000;
    share_measure(&ring, MB, clock_now() - 500000000);
    assert_in_range((uint64_t)ring.rate, MB * 59 / 10, MB * 6);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_earliest_to_finish_is_chosen),
    cmocka_unit_test(pending_work_is_limited),
    cmocka_unit_test(unmeasured_rings_get_small_parts),
    cmocka_unit_test(rings_of_one_kind_share_a_rate),
    cmocka_unit_test(slow_rings_are_tried_again),
    cmocka_unit_test(while_kernels_are_built),
    cmocka_unit_test(the_last_ring_gets_everything),
    cmocka_unit_test(rates_are_measured_from_the_second_slot_on),
};
TEST_GROUP(share, NULL, NULL)
