/* test_move_rows.c: rows of two inputs, given as lists of runs, are copied to their places with the
 * right digests; and the file does not depend on the number of threads. */
#include "runner.h"

#include "base/hash.h"
#include "result/h5.h"
#include "result/move_rows.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define ROWS    70001
#define COLUMNS 5

enum { WIDE, NARROW, DEFLATED, TEXT, BLOB };

static char directory[] = "/tmp/test_move_rows.XXXXXX";

static int make_directory(void **state)
{
    (void)state;
    return mkdtemp(directory) == NULL;
}

static int remove_directory(void **state)
{
    char command[64];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", directory);
    return system(command);
}

/* --- inputs ------------------------------------------------------------------------------------ */

static const size_t widths[COLUMNS] = {37 * 4, 1, 24 * 4, 0, 0};

static uint8_t byte_of(uint32_t input, unsigned column, uint64_t row, uint64_t i)
{
    return (uint8_t)(1 + (row * 131 + i * 7 + column * 31 + input * 77) % 200);
}

/* Lengths of texts and blobs: one blob of 5 MB among small ones, and some empty ones. */
static uint64_t length_of(uint32_t input, unsigned column, uint64_t row)
{
    return column == TEXT              ? (row * 7 + input) % 41
           : row == 4321 && input == 0 ? 5000000
           : (row + input) % 3 == 0    ? 0
                                       : (row * 13 + input) % 600;
}

struct input {
    uint32_t number;
    uint64_t broken; /* a row that cannot be read; UINT64_MAX for none */
};

static enum status read_rows(void *context, const struct move_column *column, bool lengths,
                             uint64_t first, uint64_t count, void *rows, struct error *err)
{
    const struct input *input = context;
    uint8_t *at = rows;
    for (uint64_t i = 0; i < count && lengths; i++)
        ((uint64_t *)rows)[i] = length_of(input->number, column->number, first + i);
    if (lengths)
        return STATUS_OK;
    if (input->broken >= first && input->broken - first < count)
        return error_set(err, STATUS_FAILED, "row %llu is broken",
                         (unsigned long long)input->broken);
    for (uint64_t row = first; row < first + count; row++) {
        const uint64_t length = column->kind == MOVE_FIXED
                                    ? column->row_bytes
                                    : length_of(input->number, column->number, row);
        for (uint64_t i = 0; i < length; i++)
            at[i] = byte_of(input->number, column->number, row, i);
        if (column->kind == MOVE_TEXT)
            memset(at + length, 0, column->row_bytes - length);
        at += column->kind == MOVE_TEXT ? column->row_bytes : length;
    }
    return STATUS_OK;
}

/* --- files ------------------------------------------------------------------------------------- */

/* Long runs, single rows that alternate between the inputs, and rows that neither input has. */
static struct row_list make_list(void)
{
    struct row_list list = {.run = NULL};
    assert_int_equal(row_list_add(&list, 0, 0, 9000, NULL), STATUS_OK);
    for (uint64_t i = 0; i < 10000; i++) {
        assert_int_equal(row_list_add(&list, 0, 9000 + i, 1, NULL), STATUS_OK);
        assert_int_equal(row_list_add(&list, 1, 3 * i, 1, NULL), STATUS_OK);
    }
    assert_int_equal(row_list_add(&list, ROW_LIST_NONE, 0, 1000, NULL), STATUS_OK);
    assert_int_equal(row_list_add(&list, 1, 500, 40000, NULL), STATUS_OK);
    assert_int_equal(row_list_add(&list, 1, 40500, ROWS - 70000, NULL), STATUS_OK);
    assert_int_equal(list.rows, ROWS);
    assert_int_equal(list.runs, 20000 + 2);
    return list;
}

static struct row_run run_of(const struct row_list *list, uint64_t row)
{
    const struct row_run run = list->run[row_list_find(list, row)];
    assert_true(row >= run.row && row - run.row < run.count);
    return run;
}

struct made {
    char path[64];
    hid_t file, dataset[COLUMNS], data;
    struct move_column column[COLUMNS];
};

static hid_t make_text(hid_t file, const char *name, size_t width)
{
    const hsize_t size[2] = {ROWS, width};
    hid_t dataset;
    assert_int_equal(h5_create_dataset(&dataset, file, name, VALUE_U8, 2, size, NULL), STATUS_OK);
    return dataset;
}

static void check_progress(void *context, const char *phase, uint64_t done, uint64_t total)
{
    (void)context;
    (void)phase;
    assert_in_range(done, 1, total);
}

static enum status make_file(struct made *made, const char *name, const struct row_list *list,
                             uint64_t broken, unsigned threads, struct error *err)
{
    static const char fill[37 * 4] = "fill";
    struct input from[2] = {{0, broken}, {1, UINT64_MAX}};
    const struct row_input input[2] = {{read_rows, &from[0]}, {read_rows, &from[1]}};
    const hsize_t wide[2] = {ROWS, 37}, deflated[2] = {ROWS, 24}, rows = ROWS;
    memset(made, 0, sizeof *made);
    snprintf(made->path, sizeof made->path, "%s/%s", directory, name);
    assert_int_equal(h5_create_file(&made->file, made->path, made->path, false, err), STATUS_OK);
    for (unsigned c = 0; c < COLUMNS; c++)
        made->column[c] = (struct move_column){.kind = c == TEXT   ? MOVE_TEXT
                                                       : c == BLOB ? MOVE_BLOB
                                                                   : MOVE_FIXED,
                                               .number = c,
                                               .row_bytes = widths[c],
                                               .fill = c == WIDE ? fill : NULL,
                                               .list = list,
                                               .input = input};
    const struct move move = {.column = made->column,
                              .columns = COLUMNS,
                              .threads = threads,
                              .watch.show = check_progress};
    enum status status = move_measure(&move, err);
    assert_int_equal(status, STATUS_OK);
    assert_int_equal(made->column[TEXT].row_bytes, 40);
    h5_create_dataset(&made->dataset[WIDE], made->file, "wide", VALUE_F32, 2, wide, err);
    h5_create_dataset(&made->dataset[NARROW], made->file, "narrow", VALUE_U8, 1, &rows, err);
    h5_create_chunked(&made->dataset[DEFLATED], made->file, "deflated", VALUE_F32, deflated, 1000,
                      true, err);
    made->dataset[TEXT] = make_text(made->file, "text", 40);
    h5_create_dataset(&made->dataset[BLOB], made->file, "end", VALUE_U64, 1, &rows, err);
    h5_create_dataset(&made->data, made->file, "data", VALUE_U8, 1,
                      &(hsize_t){made->column[BLOB].bytes}, err);
    for (unsigned c = 0; c < COLUMNS; c++) {
        struct move_column *column = &made->column[c];
        assert_int_equal(raw_open(&column->to, made->dataset[c], "test", err), STATUS_OK);
        assert_int_equal(column->to->row_bytes, column->row_bytes);
        assert_int_equal(
            row_tree_open(&column->tree, ROW_TREE_SHA256, ROWS, column->row_bytes, err), STATUS_OK);
    }
    raw_open(&made->column[BLOB].data, made->data, "test", err);
    row_tree_open(&made->column[BLOB].data_tree, ROW_TREE_SHA256, made->column[BLOB].bytes, 1, err);
    return move_rows(&move, err);
}

static void close_file(struct made *made)
{
    for (unsigned c = 0; c < COLUMNS; c++) {
        free(made->column[c].before);
        row_tree_close(&made->column[c].tree);
        row_tree_close(&made->column[c].data_tree);
        raw_close(&made->column[c].to);
        raw_close(&made->column[c].data);
        h5_close(&made->dataset[c]);
    }
    h5_close(&made->data);
    if (made->file > 0)
        h5_discard_file(&made->file);
}

/* --- what is right ----------------------------------------------------------------------------- */

static void check_tree(const struct row_tree *tree, const uint8_t *values, uint64_t rows,
                       size_t row_bytes)
{
    uint64_t pieces;
    const uint8_t *leaves = row_tree_leaves(tree, &pieces);
    const uint64_t piece = row_tree_piece(row_bytes);
    assert_int_equal(pieces, (rows + piece - 1) / piece);
    for (uint64_t p = 0; p < pieces; p++) {
        const uint64_t left = rows - p * piece;
        uint8_t digest[32];
        sha256_of(digest, values + p * piece * row_bytes,
                  (left < piece ? left : piece) * row_bytes);
        assert_memory_equal(digest, leaves + 32 * p, 32);
    }
}

static void check_fixed(const struct made *made, unsigned c, const struct row_list *list)
{
    const struct move_column *column = &made->column[c];
    const size_t width = column->row_bytes;
    uint8_t *values = malloc(ROWS * width), expected[200];
    hid_t type = H5Dget_type(made->dataset[c]);
    assert_true(H5Dread(made->dataset[c], type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Tclose(type);
    for (uint64_t row = 0; row < ROWS; row++) {
        const struct row_run run = run_of(list, row);
        memset(expected, 0, sizeof expected);
        if (run.input == ROW_LIST_NONE && c == WIDE)
            memcpy(expected, "fill", 4);
        if (run.input != ROW_LIST_NONE) {
            const uint64_t from = run.first + row - run.row;
            for (uint64_t i = 0; i < (c == TEXT ? length_of(run.input, c, from) : width); i++)
                expected[i] = byte_of(run.input, c, from, i);
        }
        assert_memory_equal(values + row * width, expected, width);
    }
    check_tree(column->tree, values, ROWS, width);
    free(values);
}

static void check_blobs(const struct made *made, const struct row_list *list)
{
    const struct move_column *column = &made->column[BLOB];
    uint8_t *data = malloc(column->bytes);
    uint64_t *end = malloc(ROWS * sizeof *end), at = 0;
    H5Dread(made->data, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, data);
    H5Dread(made->dataset[BLOB], H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, end);
    for (uint64_t row = 0; row < ROWS; row++) {
        const struct row_run run = run_of(list, row);
        const uint64_t from = run.first + row - run.row,
                       length = run.input == ROW_LIST_NONE ? 0 : length_of(run.input, BLOB, from);
        assert_int_equal(end[row], at + length);
        for (uint64_t i = 0; i < length; i++)
            if (data[at + i] != byte_of(run.input, BLOB, from, i))
                fail_msg("row %llu has the wrong blob", (unsigned long long)row);
        at += length;
    }
    assert_int_equal(at, column->bytes);
    check_tree(column->data_tree, data, column->bytes, 1);
    check_tree(column->tree, (const uint8_t *)end, ROWS, sizeof *end);
    free(data);
    free(end);
}

static char *file_bytes(const struct made *made, size_t *size)
{
    FILE *file = fopen(made->path, "rb");
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(*size);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

static void test_values_and_threads(void **state)
{
    static const unsigned threads[] = {1, 2, 8};
    struct row_list list = make_list();
    char *first = NULL;
    size_t first_size = 0;
    (void)state;
    for (unsigned t = 0; t < 3; t++) {
        struct made made;
        struct error error = ERROR_INIT;
        size_t size;
        assert_int_equal(make_file(&made, "threads.h5", &list, UINT64_MAX, threads[t], &error),
                         STATUS_OK);
        for (unsigned c = 0; c < BLOB && !(t == 1 && test_brief()); c++)
            check_fixed(&made, c, &list);
        if (!(t == 1 && test_brief()))
            check_blobs(&made, &list);
        for (unsigned c = 0; c < COLUMNS; c++)
            h5_close(&made.dataset[c]);
        h5_close(&made.data);
        assert_int_equal(h5_finish_file(&made.file, &error), STATUS_OK);
        char *bytes = file_bytes(&made, &size);
        if (t > 0) {
            assert_int_equal(size, first_size);
            assert_memory_equal(bytes, first, size);
            free(bytes);
        } else {
            first = bytes;
            first_size = size;
        }
        close_file(&made);
    }
    free(first);
    row_list_clear(&list);
}

/* A broken row does no harm unless it is requested; then all threads end. */
static void test_broken_rows(void **state)
{
    struct row_list list = make_list(), gap = {.run = NULL};
    struct made made;
    struct error error = ERROR_INIT;
    (void)state;
    for (unsigned threads = 1; threads <= 8; threads += 7) {
        error = (struct error)ERROR_INIT;
        assert_int_equal(make_file(&made, "broken.h5", &list, 9500, threads, &error),
                         STATUS_FAILED);
        assert_string_equal(error.sentence, "row 9500 is broken");
        close_file(&made);
    }
    row_list_clear(&list);
    for (uint64_t i = 0; i < ROWS; i++)
        row_list_add(&gap, 0, i + (i >= 777), 1, NULL);
    assert_int_equal(gap.runs, 2);
    assert_int_equal(make_file(&made, "broken.h5", &gap, 777, 2, &error), STATUS_OK);
    close_file(&made);
    row_list_clear(&gap);
}

/* The disk fills up at different points: all threads end, and the first failure is reported. */
static void test_full_disk(void **state)
{
    struct row_list list = make_list();
    struct rlimit limit, small;
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &limit);
    for (rlim_t at = 200000; at < 20000000; at += test_brief() ? 9876543 : 3456789) {
        struct made made;
        struct error error = ERROR_INIT;
        small = limit;
        small.rlim_cur = at;
        setrlimit(RLIMIT_FSIZE, &small);
        const enum status status = make_file(&made, "full.h5", &list, UINT64_MAX, 8, &error);
        close_file(&made);
        setrlimit(RLIMIT_FSIZE, &limit);
        assert_int_equal(status, STATUS_FAILED);
        assert_int_equal(error.native, EFBIG);
    }
    row_list_clear(&list);
}

/* Records which rows are read. */
static enum status note_read(void *context, const struct move_column *column, bool lengths,
                             uint64_t first, uint64_t count, void *rows, struct error *err)
{
    char *text = context;
    (void)err;
    assert_false(lengths);
    snprintf(text + strlen(text), 64, "%llu+%llu ", (unsigned long long)first,
             (unsigned long long)count);
    for (uint64_t i = 0; i < count * column->row_bytes; i++)
        ((uint8_t *)rows)[i] = (uint8_t)(first + i / column->row_bytes);
    return STATUS_OK;
}

/* Runs of input 0 (first row, count), each followed by `between` runs of input 1, and the expected
 * reads. */
static void check_reads(const uint64_t (*runs)[2], unsigned count, unsigned between,
                        size_t row_bytes, const char *expected)
{
    char reads[1024] = "", others[2048] = "", path[64];
    const struct row_input input[2] = {{note_read, reads}, {note_read, others}};
    struct row_list list = {.run = NULL};
    hid_t file, dataset;
    for (unsigned i = 0; i < count; i++) {
        row_list_add(&list, 0, runs[i][0], runs[i][1], NULL);
        for (unsigned j = 0; j < between; j++)
            row_list_add(&list, 1, 1000 - j, 1, NULL);
    }
    const uint64_t rows = list.rows;
    const hsize_t size[2] = {rows, row_bytes};
    struct move_column column = {
        .kind = MOVE_FIXED, .row_bytes = row_bytes, .list = &list, .input = input};
    const struct move move = {.column = &column, .columns = 1, .threads = 1};
    uint8_t *values = malloc(rows * row_bytes);
    snprintf(path, sizeof path, "%s/spans.h5", directory);
    assert_int_equal(h5_create_file(&file, path, path, false, NULL), STATUS_OK);
    assert_int_equal(h5_create_dataset(&dataset, file, "rows", VALUE_U8, 2, size, NULL), STATUS_OK);
    assert_int_equal(raw_open(&column.to, dataset, path, NULL), STATUS_OK);
    assert_int_equal(move_rows(&move, NULL), STATUS_OK);
    assert_int_equal(h5_read_rows(dataset, VALUE_U8, 0, rows, values, NULL), STATUS_OK);
    raw_close(&column.to);
    h5_close(&dataset);
    h5_close(&file);
    for (uint64_t row = 0; row < rows; row++) {
        const struct row_run run = run_of(&list, row);
        for (size_t i = 0; i < row_bytes; i++)
            assert_int_equal(values[row * row_bytes + i], (uint8_t)(run.first + row - run.row));
    }
    assert_string_equal(reads, expected);
    free(values);
    row_list_clear(&list);
}

/* Rows of an input that are close together are read at once, whatever is between them in the
 * list. */
static void test_spans(void **state)
{
    (void)state;
    check_reads((const uint64_t[][2]){{50, 1}, {51, 2}, {55, 1}}, 3, 1, 1, "50+6 ");
    /* A read has at most four times the requested bytes. */
    check_reads((const uint64_t[][2]){{0, 1}, {7, 1}}, 2, 1, 1, "0+8 ");
    check_reads((const uint64_t[][2]){{0, 1}, {8, 1}}, 2, 1, 1, "0+1 8+1 ");
    check_reads((const uint64_t[][2]){{0, 1}, {7, 1}, {11, 1}, {16, 1}}, 4, 1, 1, "0+12 16+1 ");
    /* A read never continues with a row before the previous one. */
    check_reads((const uint64_t[][2]){{5, 2}, {7, 1}, {4, 1}, {8, 1}}, 4, 1, 1, "5+3 4+5 ");
    check_reads((const uint64_t[][2]){{5, 2}, {6, 1}}, 2, 1, 1, "5+2 6+1 ");
    /* At most 15 runs of other inputs may be between them. */
    check_reads((const uint64_t[][2]){{0, 1}, {1, 1}}, 2, 15, 1, "0+2 ");
    check_reads((const uint64_t[][2]){{0, 1}, {1, 1}}, 2, 16, 1, "0+1 1+1 ");
    /* A joined read has at most 256 KiB and starts with a run of less than 16 KiB. */
    check_reads((const uint64_t[][2]){{0, 1}, {1, 31}}, 2, 1, 8192, "0+32 ");
    check_reads((const uint64_t[][2]){{0, 1}, {1, 32}}, 2, 1, 8192, "0+1 1+32 ");
    check_reads((const uint64_t[][2]){{0, 1}, {1, 1}}, 2, 1, 16383, "0+2 ");
    check_reads((const uint64_t[][2]){{0, 1}, {1, 1}}, 2, 1, 16384, "0+1 1+1 ");
}

static void test_stop(void **state)
{
    struct row_list list = make_list();
    struct stop stop = {0};
    struct error error = ERROR_INIT;
    const struct row_input input = {read_rows, &(struct input){0, UINT64_MAX}};
    struct move_column column = {.kind = MOVE_TEXT, .number = TEXT, .list = &list, .input = &input};
    const struct move move = {.column = &column, .columns = 1, .threads = 2, .watch.stop = &stop};
    (void)state;
    stop_request(&stop, STOP_SIGNAL);
    assert_int_equal(move_measure(&move, &error), STATUS_INTERRUPTED);
    free(column.before);
    row_list_clear(&list);
}

static void test_empty(void **state)
{
    struct row_list list = {.run = NULL};
    struct error error = ERROR_INIT;
    struct move_column column = {.kind = MOVE_BLOB};
    const struct move move = {.column = &column, .columns = 1, .threads = 2};
    (void)state;
    column.list = &list;
    assert_int_equal(move_measure(&move, &error), STATUS_OK);
    assert_int_equal(column.bytes, 0);
    assert_int_equal(move_rows(&move, &error), STATUS_OK);
    free(column.before);
    row_list_clear(&list);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_values_and_threads),
                                          cmocka_unit_test(test_broken_rows),
                                          cmocka_unit_test(test_full_disk),
                                          cmocka_unit_test(test_spans),
                                          cmocka_unit_test(test_stop),
                                          cmocka_unit_test(test_empty)};

TEST_GROUP(move_rows, make_directory, remove_directory)
