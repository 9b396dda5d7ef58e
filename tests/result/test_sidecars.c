/* test_sidecars.c: rows find their sidecar files, including rows that the walk could not read. */
#include "result/sidecars.h"

#include "result/row_inputs.h"
#include "runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECORDS 40000

/* Every third record was an image that failed; after every tenth row there are rows without a
 * record. */
static void test_rows_without_records(void **state)
{
    char directory[] = "/tmp/clpipe-sidecars-XXXXXX", path[32];
    struct error error = ERROR_INIT;
    struct sidecars *sidecars;
    struct move_column column[SIDECAR_COLUMNS];
    (void)state;
    const unsigned most = 2 * RECORDS;
    int64_t *expected = malloc(most * sizeof *expected), *found = malloc(most * sizeof *found);
    uint64_t rows = 0;
    assert_true(expected && found && mkdtemp(directory));
    assert_int_equal(sidecars_open(&sidecars, directory, &error), STATUS_OK);
    for (unsigned i = 0; i < RECORDS; i++) {
        char number[16];
        const int length = snprintf(path, sizeof path, "seen/%u.jpg", i);
        snprintf(number, sizeof number, "%u", i);
        const char *const text[SIDECAR_COLUMNS] = {"key", number};
        assert_int_equal(sidecars_add(sidecars, i % 7 == 0, path, (uint32_t)length, text, &error),
                         STATUS_OK);
    }
    for (unsigned i = 0; i < RECORDS; i++) {
        if (i % 3 == 0)
            continue;
        int length = snprintf(path, sizeof path, "seen/%u.jpg", i);
        assert_int_equal(
            sidecars_row(sidecars, i % 7 == 0, path, (uint32_t)length, SIDECAR_NO_ROW, &error),
            STATUS_OK);
        expected[rows++] = i;
        for (unsigned j = 0; i % 10 == 0 && j < 10; j++, expected[rows++] = SIDECAR_NO_CLS) {
            length = snprintf(path, sizeof path, "unseen/%u.%u.jpg", i, j);
            assert_int_equal(
                sidecars_row(sidecars, 0, path, (uint32_t)length, SIDECAR_NO_ROW, &error),
                STATUS_OK);
        }
    }
    assert_true(rows > RECORDS);
    assert_int_equal(sidecars_columns(column, sidecars, &error), STATUS_OK);
    assert_int_equal(column[1].kind, MOVE_FIXED);
    assert_int_equal(column[1].list->rows, rows);
    assert_int_equal(row_input_read(column[1].input, &column[1], false, 0, rows, found, &error),
                     STATUS_OK);
    assert_memory_equal(found, expected, rows * sizeof *found);
    sidecars_close(&sidecars);
    assert_int_equal(rmdir(directory), 0);
    free(expected);
    free(found);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows_without_records)};

TEST_GROUP(sidecars, NULL, NULL)
