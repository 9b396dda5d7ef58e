/* test_describe.c: descriptors and the words that codebooks give them, compared with plain C on all
 * devices. Run it under Oclgrind, too. */
#include "runner.h"
#include "test_devices.h"

#include "device/plan.h"
#include "device/proof.h"

static void check(const struct ocl_devices *devices, const struct step *step)
{
    for (unsigned i = 0; i < devices->count; i++) {
        struct error err = ERROR_INIT;
        struct ocl_device device = devices->device[i];
        if (!device.usable)
            continue;
        for (int turn = 0; turn < (device.non_uniform_groups ? 2 : 1); turn++) {
            struct ocl_context *context;
            uint64_t compared = 0, wrong = 0;
            device.non_uniform_groups = device.non_uniform_groups && turn == 0;
            assert_int_equal(ocl_context_open(&context, &device, NULL, &err), STATUS_OK);
            if (proof_test(&compared, &wrong, (struct step_node){.step = step}, context, &err) !=
                STATUS_OK)
                fail_msg("%s", err.sentence);
            ocl_context_close(&context);
            if (wrong > 0 || compared == 0)
                fail_msg("%s: %llu of %llu bytes are wrong", step->name, (unsigned long long)wrong,
                         (unsigned long long)compared);
        }
    }
}

static void blocks_of_frequencies(void **state)
{
    check(*state, &dct_step);
}

static void patches(void **state)
{
    check(*state, &patch_step);
}

static void gradients(void **state)
{
    check(*state, &sift_step);
}

static void gradients_of_opponent_colours(void **state)
{
    check(*state, &opsift_step);
}

static void words_and_sums(void **state)
{
    check(*state, &words_step);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(blocks_of_frequencies),
    cmocka_unit_test(patches),
    cmocka_unit_test(gradients),
    cmocka_unit_test(gradients_of_opponent_colours),
    cmocka_unit_test(words_and_sums),
};

TEST_GROUP(describe, test_devices_open, test_devices_close)
