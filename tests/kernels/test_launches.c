/* test_launches.c: a program is built, saved and launched with ranges of many sizes on several
 * devices and queues at the same time. PoCL before 6.0 can crash in this case without the
 * workaround of ocl/ocl_pocl.h. */
#include "runner.h"

#include "ocl/ocl.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES  4
#define QUEUES   2 /* per device */
#define KERNELS  24
#define LAUNCHES 6 /* of each kernel on each queue */
#define GROUP    16

static struct ocl_devices devices;

/* PoCL treats each kernel as different, so that there are many first launches. */
static const char source[] =
    "#define KERNEL(n) \\\n"
    "    __kernel __attribute__((reqd_work_group_size(16, 1, 1))) void \\\n"
    "    count##n(__global uint *counts, uint rounds) \\\n"
    "    { \\\n"
    "        uint x = (uint)get_global_id(0); \\\n"
    "        for (uint i = 0; i < rounds; i++) \\\n"
    "            x = x * 1664525u + 1013904223u; \\\n"
    "        atomic_add(counts + (x == n), 1u); \\\n"
    "        atomic_add(counts + 2, 1u); \\\n"
    "    }\n"
    "#define EIGHT(n) KERNEL(n##0) KERNEL(n##1) KERNEL(n##2) KERNEL(n##3) \\\n"
    "                 KERNEL(n##4) KERNEL(n##5) KERNEL(n##6) KERNEL(n##7)\n"
    "EIGHT(1) EIGHT(2) EIGHT(3)\n";

struct lane {
    struct ocl_context *context;
    struct ocl_queue *queue;
    cl_program program;
    uint32_t seed, items, counted[3];
    pthread_t thread;
};

/* These are other threads, which must not use cmocka's assertions. */
static void need(enum status status)
{
    if (status != STATUS_OK)
        abort();
}

static void *launch_all(void *argument)
{
    struct lane *lane = argument;
    struct error err = ERROR_INIT;
    cl_mem counts;
    need(ocl_program_build_source(&lane->program, lane->context, "count", source, "-cl-std=CL1.2",
                                  &err));
    need(ocl_buffer(&counts, lane->context, CL_MEM_READ_WRITE, sizeof lane->counted, NULL, "counts",
                    &err));
    need(ocl_enqueue_fill(lane->queue, "zero", counts, 0, 0, sizeof lane->counted, OCL_NO_WAITS,
                          NULL, &err));
    for (unsigned k = 0; k < KERNELS; k++) {
        char name[16];
        cl_kernel kernel;
        snprintf(name, sizeof name, "count%u%u", 1 + k / 8, k % 8);
        need(ocl_kernel(&kernel, lane->program, name, &err));
        for (uint32_t i = 0; i < LAUNCHES; i++) {
            lane->seed = lane->seed * 1664525u + 1013904223u;
            const size_t global = GROUP * (1 + (lane->seed >> 16) % (8 << i)), local = GROUP;
            const cl_uint rounds = 100 + (lane->seed >> 8) % 4000;
            need(ocl_args(kernel, &err, sizeof counts, (void *)&counts, sizeof rounds, &rounds,
                          OCL_ARGS_END));
            need(ocl_enqueue_kernel(lane->queue, "count", kernel, 1, &global, &local, OCL_NO_WAITS,
                                    NULL, &err));
            need(ocl_flush(lane->queue, &err));
            lane->items += (uint32_t)global;
        }
        clReleaseKernel(kernel);
    }
    need(ocl_enqueue_read(lane->queue, "read", counts, true, 0, sizeof lane->counted, lane->counted,
                          OCL_NO_WAITS, NULL, &err));
    ocl_buffer_release(&counts);
    return NULL;
}

static void ranges_of_all_sizes_at_once(void **state)
{
    (void)state;
    struct lane lanes[DEVICES * QUEUES] = {0};
    struct ocl_context *contexts[DEVICES] = {0};
    struct error err = ERROR_INIT;
    /* Oclgrind runs one kernel at a time and aborts if there are two. */
    if (strstr(devices.device[0].platform, "Oclgrind"))
        skip();
    const unsigned used = devices.count < DEVICES ? devices.count : DEVICES;
    for (unsigned d = 0; d < used; d++)
        assert_int_equal(ocl_context_open(&contexts[d], &devices.device[d], NULL, &err), STATUS_OK);
    for (unsigned i = 0; i < used * QUEUES; i++) {
        lanes[i] = (struct lane){.context = contexts[i / QUEUES], .seed = i};
        assert_int_equal(ocl_queue_open(&lanes[i].queue, lanes[i].context, "count", &err),
                         STATUS_OK);
    }
    for (unsigned i = 0; i < used * QUEUES; i++)
        assert_int_equal(pthread_create(&lanes[i].thread, NULL, launch_all, &lanes[i]), 0);
    for (unsigned i = 0; i < used * QUEUES; i++) {
        pthread_join(lanes[i].thread, NULL);
        assert_int_equal(lanes[i].counted[0] + lanes[i].counted[1], lanes[i].items);
        assert_int_equal(lanes[i].counted[2], lanes[i].items);
        ocl_queue_close(&lanes[i].queue);
        clReleaseProgram(lanes[i].program);
    }
    for (unsigned d = 0; d < used; d++)
        ocl_context_close(&contexts[d]);
}

struct asking {
    struct ocl_context *context;
    cl_program program[2];
    pthread_t thread;
};

static void *ask_for_programs(void *argument)
{
    struct asking *asking = argument;
    struct error err = ERROR_INIT;
    need(ocl_context_program(&asking->program[0], asking->context, "ndrange_probe", "-cl-std=CL1.2",
                             &err));
    need(ocl_context_program(&asking->program[1], asking->context, "ndrange_probe",
                             "-cl-std=CL1.2 -DOTHER", &err));
    return NULL;
}

/* A context builds a program once for all threads, and builds it again for other options. */
static void programs_of_a_context(void **state)
{
    (void)state;
    struct asking asking[4] = {0};
    struct ocl_context *context;
    struct error err = ERROR_INIT;
    assert_int_equal(ocl_context_open(&context, &devices.device[0], NULL, &err), STATUS_OK);
    for (unsigned i = 0; i < 4; i++) {
        asking[i].context = context;
        assert_int_equal(pthread_create(&asking[i].thread, NULL, ask_for_programs, &asking[i]), 0);
    }
    for (unsigned i = 0; i < 4; i++) {
        pthread_join(asking[i].thread, NULL);
        for (unsigned p = 0; p < 2; p++) {
            assert_non_null(asking[i].program[p]);
            assert_ptr_equal(asking[i].program[p], asking[0].program[p]);
        }
    }
    assert_ptr_not_equal(asking[0].program[0], asking[0].program[1]);
    ocl_context_close(&context);
}

/* PoCL can present the CPU as any number of devices. */
static int open_devices(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    setenv("POCL_DEVICES", "pthread pthread pthread pthread", 1);
    return ocl_devices_open(&devices, 2, &err) == STATUS_OK && devices.count > 0 ? 0 : -1;
}

static int close_devices(void **state)
{
    (void)state;
    ocl_devices_close(&devices);
    return 0;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(ranges_of_all_sizes_at_once),
    cmocka_unit_test(programs_of_a_context),
};
TEST_GROUP(launches, open_devices, close_devices)
