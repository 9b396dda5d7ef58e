/* test_search_pairs.c: neighbours found on all devices equal those of the definition: with all rows
 * on the device (an odd and an even number of panels) and block by block, with candidate lists that
 * are too short, and with ties. */
#include "../neighbours/search_reference.h"

#include "test_devices.h"

#include <string.h>

static void check_device(const struct ocl_device *device)
{
    static const struct {
        uint64_t rows;
        uint32_t dimension, n, block_rows, list;
    } cases[] = {{1, 5, 2, 0, 0},       {40, 20, 50, 0, 0},  {140, 20, 3, 0, 16},
                 {150, 20, 3, 140, 20}, {300, 500, 7, 0, 0}, {300, 20, 5, 200, 0},
                 {420, 130, 3, 0, 16},  {150, 600, 5, 0, 0}, {1000, 12, 4, 0, 0},
                 {1100, 7, 2, 0, 0}};
    enum { SMALL = 4, SIMULATED = 2 }; /* numbers of cases */
    /* The simulator is a hundred times slower. */
    const bool simulated = strstr(device->platform, "Oclgrind");
    struct error err = ERROR_INIT;
    struct ocl_context *context;
    assert_int_equal(ocl_context_open(&context, device, NULL, &err), STATUS_OK);
    for (enum pattern pattern = 0; pattern < PATTERNS; pattern++)
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
            if (test_brief() && (c >= SMALL || (pattern + c) % 2 != 0))
                continue;
            if (simulated && (c >= SIMULATED || pattern > 1))
                continue;
            struct memory_matrix matrix;
            const struct matrix_source source =
                make(&matrix, cases[c].rows, cases[c].dimension, pattern);
            const struct neighbours_choice choice = {
                .device = true, .block_rows = cases[c].block_rows, .list = cases[c].list};
            const struct neighbours_config config = {.n = cases[c].n,
                                                     .threads = 2,
                                                     .memory = 4u << 20,
                                                     .devices = {&context, 1},
                                                     .choice = &choice};
            check_all(&source, &config);
            free(matrix.values);
        }
    ocl_context_close(&context);
}

static void all_devices(void **state)
{
    const struct ocl_devices *devices = *state;
    unsigned checked = 0;
    random_state = test_seed();
    for (unsigned i = 0; i < devices->count; i++)
        if (devices->device[i].usable && devices->device[i].fp64) {
            check_device(&devices->device[i]);
            checked++;
        }
    printf("# %u devices\n", checked);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(all_devices)};
TEST_GROUP_WITHIN(120, search_pairs, test_devices_open, test_devices_close)
