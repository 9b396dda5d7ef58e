/* test_reader.c: rows are read in the order of the requests until the reader is closed. */
#include "runner.h"

#include "kmeans/reader.h"
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { COLUMNS = 16, ROWS = 100, DEPTH = 4, BROKEN = 50 };

struct slow {
    _Atomic bool begun, ended;
    bool waits;
};

/* All values of row i are i; row BROKEN cannot be read. */
static enum status read_rows(void *context, uint64_t first, uint64_t count, float *rows,
                             struct error *err)
{
    struct slow *slow = context;
    atomic_store(&slow->begun, true);
    if (slow->waits)
        nanosleep(&(struct timespec){0, 50000000}, NULL);
    for (uint64_t i = 0; i < count * COLUMNS; i++)
        rows[i] = (float)(first + i / COLUMNS);
    atomic_store(&slow->ended, true);
    return first <= BROKEN && BROKEN < first + count
               ? error_set(err, STATUS_FAILED, "a row is broken")
               : STATUS_OK;
}

static const struct transform transform = {METRIC_EUCLIDEAN, COLUMNS, COLUMNS, "row"};

static struct reader *open_reader(struct matrix_source *source, struct slow *slow)
{
    struct error err = ERROR_INIT;
    struct reader *reader;
    *source = (struct matrix_source){
        .rows = ROWS, .dimension = COLUMNS, .read = read_rows, .context = slow};
    assert_int_equal(reader_open(&reader, source, &transform, NULL, NULL, DEPTH, &err), STATUS_OK);
    return reader;
}

static void requests_in_order(void **state)
{
    (void)state;
    struct slow slow = {.waits = false};
    struct matrix_source source;
    struct error err = ERROR_INIT;
    struct fill fill;
    float rows[DEPTH][10 * COLUMNS];
    struct reader *reader = open_reader(&source, &slow);
    for (uint32_t i = 0; i < DEPTH; i++)
        assert_int_equal(reader_request(reader, &(struct fill){10 * i, 10, rows[i]}, &err),
                         STATUS_OK);
    for (uint32_t i = 0; i < DEPTH; i++) {
        assert_int_equal(reader_take(reader, &fill, &err), STATUS_OK);
        assert_int_equal(fill.first, 10 * i);
        assert_ptr_equal(fill.to, rows[i]);
        for (uint32_t j = 0; j < 10 * COLUMNS; j++)
            assert_true(rows[i][j] == (float)(10 * i + j / COLUMNS));
    }
    assert_false(reader_ready(reader));
    /* A read error is reported when the row is taken, not when another one is requested. */
    assert_int_equal(reader_request(reader, &(struct fill){BROKEN, 1, rows[0]}, &err), STATUS_OK);
    assert_int_equal(reader_request(reader, &(struct fill){0, 1, rows[1]}, &err), STATUS_OK);
    assert_int_equal(reader_take(reader, &fill, &err), STATUS_FAILED);
    assert_string_equal(err.sentence, "a row is broken");
    reader_close(&reader);
    assert_null(reader);
    reader_close(&reader);
}

/* After closing, the caller may use the destination memory again. */
static void closing_waits_for_the_read(void **state)
{
    (void)state;
    struct slow slow = {.waits = true};
    struct matrix_source source;
    struct error err = ERROR_INIT;
    float row[COLUMNS];
    struct reader *reader = open_reader(&source, &slow);
    assert_int_equal(reader_request(reader, &(struct fill){0, 1, row}, &err), STATUS_OK);
    while (!atomic_load(&slow.begun))
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    reader_close(&reader);
    assert_true(atomic_load(&slow.ended));
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(requests_in_order),
                                          cmocka_unit_test(closing_waits_for_the_read)};
TEST_GROUP(reader, NULL, NULL)
