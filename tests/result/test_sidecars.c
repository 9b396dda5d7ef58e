/* test_sidecars.c: rows find their sidecar files, including rows that the walk could not read. */
#include "result/sidecars.h"

#include "result/schema.h"
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
    char directory[] = "/tmp/clpipe-sidecars-XXXXXX", name[64], path[32];
    struct error error = ERROR_INIT;
    struct sidecars *sidecars;
    hid_t file, images, cls;
    (void)state;
    const unsigned most = 2 * RECORDS;
    int64_t *expected = malloc(most * sizeof *expected), *found = malloc(most * sizeof *found);
    hsize_t rows = 0, size;
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
    snprintf(name, sizeof name, "%s/x.h5", directory);
    assert_int_equal(h5_create_file(&file, name, name, false, &error), STATUS_OK);
    assert_int_equal(h5_create_scale(file, image_table.axis, rows, &error), STATUS_OK);
    assert_int_equal(h5_create_group(&images, file, "images", &error), STATUS_OK);
    assert_int_equal(sidecars_write(sidecars, file, &error), STATUS_OK);
    assert_int_equal(h5_open_dataset(&cls, images, "cls", VALUE_I64, 1, &size, &error), STATUS_OK);
    assert_int_equal(size, rows);
    assert_int_equal(h5_read_rows(cls, VALUE_I64, 0, rows, found, &error), STATUS_OK);
    assert_memory_equal(found, expected, rows * sizeof *found);
    h5_close(&cls);
    h5_close(&images);
    h5_discard_file(&file);
    sidecars_close(&sidecars);
    unlink(name);
    assert_int_equal(rmdir(directory), 0);
    free(expected);
    free(found);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows_without_records)};

TEST_GROUP(sidecars, NULL, NULL)
