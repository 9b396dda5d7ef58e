/* test_async_copy.c: asynchronous work-group copies, on which kernels/histogram_staged.cl relies,
 * checked element by element: in both directions, plain and strided, several with one event, and
 * two alternating blocks. Runs on all devices; run it under Oclgrind, too. */
#include "runner.h"

#include "ocl/ocl.h"

#include <stdio.h>
#include <string.h>

#define GROUP 32
#define MOST  257u  /* maximum number of pixels per launch */
#define BLOCK 16    /* size of each half */
#define SPARE 0xa5u /* value of bytes that no copy may change */

static const char source[] =
    "#define GROUP 32\n"
    "#define MOST 257\n"
    "#define BLOCK 16\n"
    "__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void\n"
    "copies(__global const uchar *pixels, uint count, __global uchar *plain,\n"
    "       __global uchar *channels, __global uchar *interleaved, __global uint4 *vectors,\n"
    "       __global uint *words)\n"
    "{\n"
    "    __local uchar all[3 * MOST];\n"
    "    __local uchar channel[3 * MOST];\n"
    "    __local uint4 quads[BLOCK];\n"
    "    const uint item = (uint)get_local_id(0);\n"
    /* Global to local: all bytes, and each channel separately, with one event. */
    "    event_t event = async_work_group_copy(all, pixels, 3 * count, 0);\n"
    "    for (uint c = 0; c < 3; c++)\n"
    "        event = async_work_group_strided_copy(channel + c * MOST, pixels + c, count, 3,\n"
    "                                              event);\n"
    "    wait_group_events(1, &event);\n"
    "    for (uint i = item; i < 3 * count; i += GROUP)\n"
    "        plain[i] = all[i];\n"
    "    for (uint i = item; i < count; i += GROUP)\n"
    "        for (uint c = 0; c < 3; c++)\n"
    "            channels[c * MOST + i] = channel[c * MOST + i];\n"
    "    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);\n"
    /* Local to global: interleaves the channels again; then copies vectors of 16 bytes. */
    "    event_t back = 0;\n"
    "    for (uint c = 0; c < 3; c++)\n"
    "        back = async_work_group_strided_copy(interleaved + c, channel + c * MOST, count, 3,\n"
    "                                             back);\n"
    "    wait_group_events(1, &back);\n"
    "    for (uint i = item; i < BLOCK; i += GROUP)\n"
    "        quads[i] = (uint4)(i, i + 1, i * i, 7 * count);\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    back = async_work_group_copy(vectors, quads, BLOCK, 0);\n"
    "    wait_group_events(1, &back);\n"
    "    back = async_work_group_strided_copy(words, (__local uint *)quads, 4 * BLOCK, 2, 0);\n"
    "    wait_group_events(1, &back);\n"
    "}\n"
    /* Inverts all bytes in two alternating blocks: one is filled while the other is read. */
    "__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void\n"
    "in_turn(__global const uchar *pixels, uint bytes, __global uchar *out)\n"
    "{\n"
    "    __local uchar half_of[2 * BLOCK];\n"
    "    const uint item = (uint)get_local_id(0);\n"
    "    const uint blocks = (bytes + BLOCK - 1) / BLOCK;\n"
    "    event_t here = async_work_group_copy(half_of, pixels, min(bytes, (uint)BLOCK), 0), next = "
    "0;\n"
    "    for (uint b = 0; b < blocks; b++) {\n"
    "        const uint from = b * BLOCK, after = from + BLOCK;\n"
    "        if (after < bytes)\n"
    "            next = async_work_group_copy(half_of + (b + 1) % 2 * BLOCK, pixels + after,\n"
    "                                         min(bytes - after, (uint)BLOCK), 0);\n"
    "        wait_group_events(1, &here);\n"
    "        for (uint i = item; i < min(bytes - from, (uint)BLOCK); i += GROUP)\n"
    "            out[from + i] = half_of[b % 2 * BLOCK + i] ^ 0xff;\n"
    "        here = next;\n"
    "        barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    }\n"
    "}\n";

/* The output of the kernels; all buffers are filled with SPARE before a launch. */
struct results {
    uint8_t plain[3 * MOST], channels[3 * MOST], interleaved[3 * MOST], turned[3 * MOST];
    uint32_t vectors[4 * BLOCK], words[8 * BLOCK];
};

struct rig {
    struct ocl_context *context;
    struct ocl_queue *queue;
    cl_program program;
    cl_kernel copies, in_turn;
    uint8_t pixels[3 * MOST];
};

static cl_mem buffer(struct rig *rig, size_t bytes, void *host)
{
    struct error err = ERROR_INIT;
    cl_mem made;
    if (ocl_buffer(&made, rig->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, bytes, host,
                   "a test's data", &err) != STATUS_OK)
        fail_msg("%s", err.sentence);
    return made;
}

static void read_back(struct rig *rig, cl_mem *from, void *host, size_t bytes)
{
    struct error err = ERROR_INIT;
    assert_int_equal(
        ocl_enqueue_read(rig->queue, "read", *from, true, 0, bytes, host, OCL_NO_WAITS, NULL, &err),
        STATUS_OK);
    ocl_buffer_release(from);
}

static void launch(struct results *results, struct rig *rig, uint32_t count)
{
    struct error err = ERROR_INIT;
    const size_t group = GROUP;
    const uint32_t bytes = 3 * count;
    memset(results, SPARE, sizeof *results);
    cl_mem pixels = buffer(rig, sizeof rig->pixels, rig->pixels);
    cl_mem plain = buffer(rig, sizeof results->plain, results->plain);
    cl_mem channels = buffer(rig, sizeof results->channels, results->channels);
    cl_mem interleaved = buffer(rig, sizeof results->interleaved, results->interleaved);
    cl_mem turned = buffer(rig, sizeof results->turned, results->turned);
    cl_mem vectors = buffer(rig, sizeof results->vectors, results->vectors);
    cl_mem words = buffer(rig, sizeof results->words, results->words);
    assert_int_equal(ocl_args(rig->copies, &err, sizeof pixels, &pixels, sizeof count, &count,
                              sizeof plain, &plain, sizeof channels, &channels, sizeof interleaved,
                              &interleaved, sizeof vectors, &vectors, sizeof words, &words,
                              OCL_ARGS_END),
                     STATUS_OK);
    assert_int_equal(ocl_enqueue_kernel(rig->queue, "copies", rig->copies, 1, &group, &group,
                                        OCL_NO_WAITS, NULL, &err),
                     STATUS_OK);
    assert_int_equal(ocl_args(rig->in_turn, &err, sizeof pixels, &pixels, sizeof bytes, &bytes,
                              sizeof turned, &turned, OCL_ARGS_END),
                     STATUS_OK);
    assert_int_equal(ocl_enqueue_kernel(rig->queue, "in turn", rig->in_turn, 1, &group, &group,
                                        OCL_NO_WAITS, NULL, &err),
                     STATUS_OK);
    read_back(rig, &plain, results->plain, sizeof results->plain);
    read_back(rig, &channels, results->channels, sizeof results->channels);
    read_back(rig, &interleaved, results->interleaved, sizeof results->interleaved);
    read_back(rig, &turned, results->turned, sizeof results->turned);
    read_back(rig, &vectors, results->vectors, sizeof results->vectors);
    read_back(rig, &words, results->words, sizeof results->words);
    ocl_buffer_release(&pixels);
}

static void check(const struct results *results, const struct rig *rig, uint32_t count)
{
    for (uint32_t i = 0; i < 3 * MOST; i++) {
        const bool inside = i < 3 * count;
        assert_int_equal(results->plain[i], inside ? rig->pixels[i] : SPARE);
        assert_int_equal(results->interleaved[i], inside ? rig->pixels[i] : SPARE);
        assert_int_equal(results->turned[i], inside ? rig->pixels[i] ^ 0xff : SPARE);
        assert_int_equal(results->channels[i],
                         i % MOST < count ? rig->pixels[3 * (i % MOST) + i / MOST] : SPARE);
    }
    for (uint32_t i = 0; i < 4 * BLOCK; i++) {
        const uint32_t q = i / 4;
        const uint32_t want[] = {q, q + 1, q * q, 7 * count};
        assert_int_equal(results->vectors[i], want[i % 4]);
        assert_int_equal(results->words[2 * i], want[i % 4]);
        assert_int_equal(results->words[2 * i + 1], SPARE * 0x01010101u);
    }
}

static void copy_on_device(const struct ocl_device *device)
{
    struct error err = ERROR_INIT;
    struct rig rig = {0};
    static struct results results;
    static const uint32_t counts[] = {1, 5, 16, 33, MOST};
    for (uint32_t i = 0; i < sizeof rig.pixels; i++)
        rig.pixels[i] = (uint8_t)(i * 37 + i / 256 * 11 + 1);
    assert_int_equal(ocl_context_open(&rig.context, device, NULL, &err), STATUS_OK);
    assert_int_equal(ocl_queue_open(&rig.queue, rig.context, "test", &err), STATUS_OK);
    if (ocl_program_build_source(&rig.program, rig.context, "async_copy", source,
                                 ocl_copy_option(device), &err) != STATUS_OK)
        fail_msg("%s", err.sentence);
    assert_int_equal(ocl_kernel(&rig.copies, rig.program, "copies", &err), STATUS_OK);
    assert_int_equal(ocl_kernel(&rig.in_turn, rig.program, "in_turn", &err), STATUS_OK);
    for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++) {
        printf("  %s: %u pixels\n", device->name, counts[i]);
        launch(&results, &rig, counts[i]);
        check(&results, &rig, counts[i]);
    }
    clReleaseKernel(rig.in_turn);
    clReleaseKernel(rig.copies);
    clReleaseProgram(rig.program);
    ocl_queue_close(&rig.queue);
    ocl_context_close(&rig.context);
}

static void test_copies_equal_their_source(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct ocl_devices devices;
    assert_int_equal(ocl_devices_open(&devices, 2, &err), STATUS_OK);
    unsigned done = 0;
    for (unsigned i = 0; i < devices.count; i++) {
        if (!devices.device[i].usable || devices.device[i].max_work_group < GROUP)
            continue;
        copy_on_device(&devices.device[i]);
        done++;
    }
    ocl_devices_close(&devices);
    if (done == 0)
        skip();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_copies_equal_their_source),
};
TEST_GROUP(async_copy, NULL, NULL)
