/* test_code_pairs.c: the kernel for pairs of codes compared with plain C on all devices: incomplete
 * bands and columns, and limits that are lowered. Run it under Oclgrind, too. */
#include "runner.h"
#include "test_devices.h"

#include "base/random.h"
#include "features/code.h"
#include "jobs/code_pairs.h"

#include <stdlib.h>
#include <string.h>

#define COUNT 1300u
#define FEW   140u /* under Oclgrind */

static uint8_t codes[COUNT][CODE_BYTES];

static void check(struct ocl_context *context, uint32_t count, uint64_t most)
{
    struct error err = ERROR_INIT;
    struct code_pairs got, want;
    struct code_pairs_config config = {.codes = codes[0],
                                       .count = count,
                                       .limit = 104,
                                       .floor = 24,
                                       .most = most,
                                       .memory = 64u << 20};
    assert_int_equal(workers_open(&config.workers, 1, &err), STATUS_OK);
    assert_int_equal(code_pairs_find(&want, &config, &err), STATUS_OK);
    if (device_code_pairs_find(&got, context, &config, &err) != STATUS_OK)
        fail_msg("%s", err.sentence);
    assert_true(want.count > 0);
    assert_int_equal(got.limit, want.limit);
    assert_int_equal(got.count, want.count);
    assert_memory_equal(got.pair, want.pair, want.count * sizeof *want.pair);
    code_pairs_clear(&got);
    code_pairs_clear(&want);
    workers_close(&config.workers);
}

static void pairs_equal_those_of_the_host(void **state)
{
    const struct ocl_devices *devices = *state;
    struct error err = ERROR_INIT;
    uint32_t random = RANDOM_START;
    for (uint32_t c = 0; c < COUNT; c++) {
        for (uint32_t i = 0; i < CODE_BYTES; i++) {
            random_next(&random);
            const uint8_t flips = (uint8_t)(random >> 9 & random >> 15 & random >> 21);
            codes[c][i] = c % 3 == 2 ? codes[c % 50 * 5 % c][i] ^ flips : (uint8_t)(random >> 9);
        }
    }
    for (unsigned i = 0; i < devices->count; i++) {
        struct ocl_context *context;
        if (!devices->device[i].usable)
            continue;
        const uint32_t count = strstr(devices->device[i].platform, "Oclgrind") ? FEW : COUNT;
        assert_int_equal(ocl_context_open(&context, &devices->device[i], NULL, &err), STATUS_OK);
        check(context, count, UINT64_MAX);
        check(context, count - count / 7, 2000);
        ocl_context_close(&context);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(pairs_equal_those_of_the_host),
};
TEST_GROUP(code_pairs, test_devices_open, test_devices_close)
