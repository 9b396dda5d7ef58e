/* test_ocl_watch.c: the completion of each watched event is reported once, with its status. The
 * events are user events, which do not depend on a device. */

#include "runner.h"

#include "ocl/ocl_watch.h"

#include <pthread.h>
#include <time.h>

#define EVENTS  24
#define ADDERS  4
#define PATIENT 2000 /* milliseconds */

static cl_context context;

struct told {
    pthread_mutex_t lock; /* guards the members below */
    int count;
    int number[EVENTS];
    cl_int status[EVENTS];
};

struct expected {
    struct told *told;
    int number;
};

static void on_done(cl_int status, void *argument)
{
    struct expected *expected = argument;
    struct told *told = expected->told;
    pthread_mutex_lock(&told->lock);
    if (told->count < EVENTS) {
        told->number[told->count] = expected->number;
        told->status[told->count] = status;
    }
    told->count++;
    pthread_mutex_unlock(&told->lock);
}

static int told_count(struct told *told)
{
    pthread_mutex_lock(&told->lock);
    int count = told->count;
    pthread_mutex_unlock(&told->lock);
    return count;
}

static void wait_for(struct told *told, int count)
{
    for (int i = 0; i < PATIENT && told_count(told) < count; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_int_equal(told_count(told), count);
}

static cl_event new_event(void)
{
    cl_int code;
    cl_event event = clCreateUserEvent(context, &code);
    assert_int_equal(code, CL_SUCCESS);
    return event;
}

struct fixture {
    struct ocl_watch *watch;
    struct told told;
    struct expected expected[EVENTS];
    cl_event event[EVENTS];
};

static void begin(struct fixture *f)
{
    *f = (struct fixture){.told = {.lock = PTHREAD_MUTEX_INITIALIZER}};
    struct error err = ERROR_INIT;
    assert_int_equal(ocl_watch_open(&f->watch, &err), STATUS_OK);
    for (int i = 0; i < EVENTS; i++) {
        f->expected[i] = (struct expected){&f->told, i};
        f->event[i] = new_event();
    }
}

static void end(struct fixture *f)
{
    ocl_watch_close(&f->watch);
    assert_null(f->watch);
    ocl_watch_close(&f->watch);
    for (int i = 0; i < EVENTS; i++)
        clReleaseEvent(f->event[i]);
}

static enum status add(struct fixture *f, int i)
{
    struct error err = ERROR_INIT;
    return ocl_watch_add(f->watch, f->event[i], on_done, &f->expected[i], &err);
}

static void test_each_when_it_completes(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    for (int i = 0; i < EVENTS; i++)
        assert_int_equal(add(&f, i), STATUS_OK);
    for (int i = 0; i < EVENTS; i++) {
        int number = i * 7 % EVENTS;
        assert_int_equal(told_count(&f.told), i);
        assert_int_equal(clSetUserEventStatus(f.event[number], CL_COMPLETE), CL_SUCCESS);
        wait_for(&f.told, i + 1);
        assert_int_equal(f.told.number[i], number);
        assert_int_equal(f.told.status[i], CL_COMPLETE);
    }
    end(&f);
}

static void test_several_in_order(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    for (int i = 0; i < EVENTS; i++) {
        assert_int_equal(clSetUserEventStatus(f.event[i], CL_COMPLETE), CL_SUCCESS);
        assert_int_equal(add(&f, i), STATUS_OK);
    }
    wait_for(&f.told, EVENTS);
    for (int i = 0; i < EVENTS; i++)
        assert_int_equal(f.told.number[i], i);
    end(&f);
}

static void test_a_failed_command(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    assert_int_equal(add(&f, 0), STATUS_OK);
    assert_int_equal(clSetUserEventStatus(f.event[0], CL_OUT_OF_RESOURCES), CL_SUCCESS);
    wait_for(&f.told, 1);
    assert_int_equal(f.told.status[0], CL_OUT_OF_RESOURCES);
    end(&f);
}

/* The watch retains the event, so the caller may release it at once. */
static void test_released_by_its_owner(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    assert_int_equal(add(&f, 0), STATUS_OK);
    cl_uint references = 0;
    assert_int_equal(
        clGetEventInfo(f.event[0], CL_EVENT_REFERENCE_COUNT, sizeof references, &references, NULL),
        CL_SUCCESS);
    assert_int_equal(references, 2);
    clSetUserEventStatus(f.event[0], CL_COMPLETE);
    wait_for(&f.told, 1);
    end(&f);
}

static void *complete_late(void *argument)
{
    struct fixture *f = argument;
    nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
    for (int i = 0; i < EVENTS; i++)
        clSetUserEventStatus(f->event[i], CL_COMPLETE);
    return NULL;
}

static void test_closing_waits(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    for (int i = 0; i < EVENTS; i++)
        assert_int_equal(add(&f, i), STATUS_OK);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, complete_late, &f), 0);
    ocl_watch_close(&f.watch);
    assert_int_equal(told_count(&f.told), EVENTS);
    pthread_join(thread, NULL);
    end(&f);
}

struct adder {
    struct fixture *fixture;
    int first;
    int failed;
};

static void *add_some(void *argument)
{
    struct adder *adder = argument;
    for (int i = adder->first; i < EVENTS; i += ADDERS) {
        adder->failed += add(adder->fixture, i) != STATUS_OK;
        clSetUserEventStatus(adder->fixture->event[i], CL_COMPLETE);
    }
    return NULL;
}

static void test_many_threads(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    pthread_t thread[ADDERS];
    struct adder adder[ADDERS];
    for (int i = 0; i < ADDERS; i++) {
        adder[i] = (struct adder){&f, i, 0};
        assert_int_equal(pthread_create(&thread[i], NULL, add_some, &adder[i]), 0);
    }
    for (int i = 0; i < ADDERS; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(adder[i].failed, 0);
    }
    wait_for(&f.told, EVENTS);
    int seen[EVENTS] = {0};
    for (int i = 0; i < EVENTS; i++)
        seen[f.told.number[i]]++;
    for (int i = 0; i < EVENTS; i++)
        assert_int_equal(seen[i], 1);
    end(&f);
}

static int open_context(void **state)
{
    (void)state;
    cl_platform_id platform;
    cl_device_id device;
    cl_int code;
    if (ocl_loader_platforms(&platform, 1) == 1 &&
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS)
        context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    return 0;
}

static int close_context(void **state)
{
    (void)state;
    if (context)
        clReleaseContext(context);
    return 0;
}

static int need_context(void **state)
{
    (void)state;
    if (!context)
        skip();
    return 0;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(test_each_when_it_completes, need_context),
    cmocka_unit_test_setup(test_several_in_order, need_context),
    cmocka_unit_test_setup(test_a_failed_command, need_context),
    cmocka_unit_test_setup(test_released_by_its_owner, need_context),
    cmocka_unit_test_setup(test_closing_waits, need_context),
    cmocka_unit_test_setup(test_many_threads, need_context),
};
TEST_GROUP(ocl_watch, open_context, close_context)
