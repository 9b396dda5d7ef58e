/* test_matrix_input.c: how INPUT is interpreted, and the digest that is computed while rows are
 * read. */
#include "runner.h"

#include "jobs/matrix_input.h"
#include "matrix/npy.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROWS    7
#define COLUMNS 3

static char directory[64], here[4096];

static int enter_directory(void **state)
{
    (void)state;
    snprintf(directory, sizeof directory, "/tmp/test_matrix_input.XXXXXX");
    return !getcwd(here, sizeof here) || !mkdtemp(directory) || chdir(directory) != 0;
}

static int leave_directory(void **state)
{
    (void)state;
    unlink("rows.npy");
    unlink("text.npy");
    unlink("text.txt");
    unlink("column.npy");
    return chdir(here) != 0 || rmdir(directory) != 0;
}

static void write_npy(const char *name, uint64_t rows, uint64_t columns)
{
    struct error err = ERROR_INIT;
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(npy_write_header(fd, "<f4", rows, columns, name, &err), STATUS_OK);
    for (uint64_t i = 0; i < rows * (columns ? columns : 1); i++) {
        const float value = (float)i;
        assert_int_equal(write(fd, &value, sizeof value), sizeof value);
    }
    close(fd);
}

static void write_text(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* The digest is that of all rows, whether they are read at once or in parts, and even if a range is
 * read twice or never. */
static void test_digest(void **state)
{
    (void)state;
    static const uint64_t ranges[][4][2] = {
        {{0, 0}}, {{0, 7}}, {{0, 3}, {3, 4}}, {{0, 3}, {1, 4}, {5, 2}}, {{4, 2}, {0, 5}, {0, 1}}};
    char first[65] = "", hex[65];
    float rows[ROWS * COLUMNS];
    struct error err = ERROR_INIT;
    write_npy("rows.npy", ROWS, COLUMNS);
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        struct matrix_input input;
        assert_int_equal(matrix_input_open(&input, "rows.npy", NULL, NULL, &err), STATUS_OK);
        assert_int_equal(input.source.rows, ROWS);
        assert_int_equal(input.source.dimension, COLUMNS);
        assert_string_equal(input.about.name, "rows.npy");
        assert_string_equal(input.about.spec, "");
        assert_null(input.result);
        for (int r = 0; r < 4 && ranges[i][r][1] > 0; r++)
            assert_int_equal(
                matrix_read(&input.source, ranges[i][r][0], ranges[i][r][1], rows, &err),
                STATUS_OK);
        assert_int_equal(matrix_input_identity(&input, hex, &err), STATUS_OK);
        matrix_input_close(&input);
        if (i == 0)
            snprintf(first, sizeof first, "%s", hex);
        assert_string_equal(hex, first);
        assert_int_equal(strncmp(hex, ROW_TREE, strlen(ROW_TREE)), 0);
        assert_int_equal(strlen(hex), 64);
    }
}

static void expect_refusal(const char *text, const char *feature, enum status status,
                           const char *words)
{
    struct matrix_input input;
    struct error err = ERROR_INIT;
    assert_int_equal(matrix_input_open(&input, text, feature, NULL, &err), status);
    if (!strstr(err.sentence, words))
        fail_msg("'%s' lacks '%s'", err.sentence, words);
    assert_null(input.path);
}

static void test_refusals(void **state)
{
    (void)state;
    write_npy("rows.npy", ROWS, COLUMNS);
    write_text("text.npy", "no array");
    write_text("text.txt", "no matrix");
    expect_refusal("none.npy", NULL, STATUS_USAGE, "there is no file none.npy");
    expect_refusal("none.h5:/x", NULL, STATUS_USAGE, "there is no file none.h5:/x");
    expect_refusal(".", NULL, STATUS_FAILED, "is a directory");
    expect_refusal("text.npy", NULL, STATUS_FAILED, "text.npy is not a .npy file");
    expect_refusal("text.txt", NULL, STATUS_FAILED, "neither HDF5 nor .npy");
    expect_refusal("text.txt:/x", NULL, STATUS_FAILED, "text.txt is not an HDF5 file");
    expect_refusal("rows.npy", "rgb", STATUS_USAGE,
                   "a feature can be chosen only in a clpipe file");
    write_npy("rows.npy", 0, COLUMNS);
    expect_refusal("rows.npy", NULL, STATUS_FAILED, "rows.npy has no rows");
    write_npy("rows.npy", ROWS, COLUMNS);
}

static void test_vector(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    float *values;
    uint64_t count;
    for (uint64_t columns = 0; columns < 2; columns++) {
        write_npy("column.npy", 4, columns);
        assert_int_equal(matrix_input_vector(&values, &count, "column.npy", &err), STATUS_OK);
        assert_int_equal(count, 4);
        for (int i = 0; i < 4; i++)
            assert_true(values[i] == (float)i);
        free(values);
    }
    write_npy("column.npy", 1, 3);
    assert_int_equal(matrix_input_vector(&values, &count, "column.npy", &err), STATUS_OK);
    assert_int_equal(count, 3);
    free(values);
    assert_int_equal(matrix_input_vector(&values, &count, "rows.npy", &err), STATUS_FAILED);
    assert_string_equal(err.sentence,
                        "rows.npy has 7 rows of 3 columns; expected one row or one column");
    assert_int_equal(matrix_input_vector(&values, &count, "none.npy", &err), STATUS_USAGE);
    assert_null(values);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_digest),
    cmocka_unit_test(test_refusals),
    cmocka_unit_test(test_vector),
};
TEST_GROUP(matrix_input, enter_directory, leave_directory)
