/* test_opening.c: a device is opened while another one works. A step delays its state on the second
 * device until the test releases it. */
#include "runner.h"

#include "device/plan.h"
#include "device/ring.h"
#include "device/staging.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIDE 40u

static struct {
    pthread_mutex_t lock;
    pthread_cond_t event;
    unsigned opened;  /* number of times the step was opened */
    bool open, fails; /* result of opening the second one, which waits for it */
    unsigned delivered, failures, alive;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .event = PTHREAD_COND_INITIALIZER};

static enum status open_behind_gate(void **out, struct step_needs *needs,
                                    struct ocl_context *context, const struct step_node *node,
                                    uint64_t launch_bytes, struct error *err)
{
    pthread_mutex_lock(&gate.lock);
    const bool first = gate.opened++ == 0;
    while (!first && !gate.open && !gate.fails)
        pthread_cond_wait(&gate.event, &gate.lock);
    const bool fails = !first && gate.fails;
    pthread_mutex_unlock(&gate.lock);
    return fails ? error_set(err, STATUS_FAILED, "there is no second device")
                 : count_step.open(out, needs, context, node, launch_bytes, err);
}

static void let(bool open, bool fails)
{
    pthread_mutex_lock(&gate.lock);
    gate.open = open;
    gate.fails = fails;
    pthread_cond_broadcast(&gate.event);
    pthread_mutex_unlock(&gate.lock);
}

static void deliver(void *context, void *picture, const struct part_result *result)
{
    (void)context;
    (void)picture;
    uint32_t sum = 0;
    for (unsigned i = 0; i < 4; i++)
        sum += result->values[i];
    pthread_mutex_lock(&gate.lock);
    gate.delivered += sum == SIDE * SIDE;
    pthread_mutex_unlock(&gate.lock);
}

static void fail_device(void *context, const struct error *err, unsigned alive)
{
    (void)context;
    (void)err;
    pthread_mutex_lock(&gate.lock);
    gate.failures++;
    gate.alive = alive;
    pthread_mutex_unlock(&gate.lock);
}

static unsigned read_count(const unsigned *count)
{
    pthread_mutex_lock(&gate.lock);
    const unsigned value = *count;
    pthread_mutex_unlock(&gate.lock);
    return value;
}

/* Two devices of the same kind; opening the second one waits. */
struct run {
    struct ocl_devices devices;
    struct feature_set features;
    struct count_config count;
    struct step step;
    struct step_plan plan;
    struct staging *staging;
    unsigned submitted;
};

static void begin(struct run *run)
{
    static const unsigned chosen[] = {0, 1};
    struct error err = ERROR_INIT;
    memset(run, 0, sizeof *run);
    let(false, false);
    gate.opened = gate.delivered = gate.failures = 0;
    setenv("POCL_DEVICES", "pthread pthread", 1);
    assert_int_equal(ocl_devices_open(&run->devices, 2, &err), STATUS_OK);
    if (run->devices.count < 2 ||
        strcmp(run->devices.device[0].name, run->devices.device[1].name) != 0)
        skip();
    assert_int_equal(feature_set_add(&run->features, "gray:bins=4", NORMALIZE_NONE, &err),
                     STATUS_OK);
    run->count = (struct count_config){.features = &run->features};
    run->step = count_step;
    run->step.open = open_behind_gate;
    run->plan.words = run->features.counters;
    step_plan_node(&run->plan,
                   (struct step_node){.step = &run->step, .input = -1, .config = &run->count});
    const struct staging_config config = {.selection = {&run->devices, chosen, 2, NULL, NULL},
                                          .plan = &run->plan,
                                          .host_memory = 64u << 20,
                                          .slot_bytes = 1u << 20,
                                          .deliver = deliver,
                                          .failed = fail_device};
    assert_int_equal(staging_open(&run->staging, &config, &err), STATUS_OK);
}

/* Submits two parts; returns whether the second device received one. */
static bool submit_two(struct run *run)
{
    const struct part_shape pixels = {
        .width = SIDE, .height = SIDE, .orientation = 1, .rect = {0, 0, SIDE, SIDE}};
    struct staging_part part[2];
    bool second = false;
    for (unsigned i = 0; i < 2; i++) {
        assert_true(staging_acquire(run->staging, &part[i], &pixels, NULL, 0, NULL));
        memset(part[i].bytes, 100, part[i].shape.bytes);
        second = second || part[i].slot->ring != &run->staging->ring[0];
    }
    for (unsigned i = 0; i < 2; i++)
        staging_submit(run->staging, &part[i], run);
    run->submitted += 2;
    staging_settle(run->staging);
    return second;
}

static void end(struct run *run)
{
    staging_close(&run->staging);
    assert_int_equal(read_count(&gate.delivered), run->submitted);
    ocl_devices_close(&run->devices);
}

static void the_first_device_works_meanwhile(void **state)
{
    (void)state;
    struct run run;
    begin(&run);
    for (unsigned i = 0; i < 5; i++)
        assert_false(submit_two(&run));
    assert_int_equal(read_count(&gate.delivered), 10);
    let(true, false);
    while (!submit_two(&run)) /* until it is open and proven, or the test times out */
        usleep(10000);
    end(&run);
    assert_int_equal(gate.failures, 0);
}

static void a_device_that_fails_to_open_is_left_out(void **state)
{
    (void)state;
    struct run run;
    begin(&run);
    assert_false(submit_two(&run));
    let(false, true);
    while (read_count(&gate.failures) == 0)
        usleep(1000);
    assert_int_equal(gate.alive, 1);
    for (unsigned i = 0; i < 5; i++)
        assert_false(submit_two(&run));
    end(&run);
    assert_int_equal(gate.failures, 1);
}

/* All parts are delivered before the second device is open. Closing waits for it, whether opening
 * it succeeds or not. */
static void the_run_ends_before_the_second_is_open(void **state)
{
    (void)state;
    for (unsigned fails = 0; fails < 2; fails++) {
        struct run run;
        begin(&run);
        assert_false(submit_two(&run));
        staging_drain(run.staging);
        assert_int_equal(read_count(&gate.delivered), 2);
        let(!fails, fails);
        end(&run);
        assert_int_equal(gate.failures, 0);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_first_device_works_meanwhile),
    cmocka_unit_test(a_device_that_fails_to_open_is_left_out),
    cmocka_unit_test(the_run_ends_before_the_second_is_open),
};
TEST_GROUP_WITHIN(60, opening, NULL, NULL)
