/* test_journal.c: records are added in any order and blocks are written in order; journals are
 * stopped and resumed, have gaps, or are written by two processes at once. */
#include "result/journal.h"
#include "runner.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct place {
    char folder[64], output[80];
    struct workdir *workdir;
};

static int place_open(void **state)
{
    struct place *place = calloc(1, sizeof *place);
    if (!place)
        return -1;
    strcpy(place->folder, "/tmp/clpipe-journal-XXXXXX");
    if (!mkdtemp(place->folder))
        return -1;
    snprintf(place->output, sizeof place->output, "%s/f.h5", place->folder);
    *state = place;
    return workdir_open(&place->workdir, place->output, NULL) != STATUS_OK;
}

static int place_close(void **state)
{
    struct place *place = *state;
    workdir_close(&place->workdir, false);
    int failed = rmdir(place->folder);
    free(place);
    return failed;
}

/* One feature of 5 bytes, padded to 8, and one of 12 bytes. */
static const uint32_t widths[] = {5, 12};
static const uint8_t values[20] = {1, 2, 3,  4,  5,  0,  0,  0,  6,  7,
                                   8, 9, 10, 11, 12, 13, 14, 15, 16, 17};

static enum status put(struct journal *journal, uint64_t sequence, const char *path, bool image,
                       uint64_t origin)
{
    struct store_record record = {.sequence = sequence,
                                  .path = path,
                                  .path_length = (uint32_t)strlen(path),
                                  .image.bytes = 10,
                                  .image.width = 2,
                                  .image.height = 3 + (uint32_t)sequence,
                                  .thumbnail = (const uint8_t *)path,
                                  .thumbnail_length = (uint32_t)strlen(path),
                                  .origin = origin};
    if (!image)
        failure_set(&record.failure, REASON_CORRUPT, "broken");
    return journal_put(journal, &record, values, NULL);
}

static enum status open_journal(struct journal **journal, struct place *place,
                                const char *signature, bool fresh)
{
    struct records logs;
    assert_int_equal(
        records_open(&logs, place->workdir->directory, place->workdir->path, fresh, NULL),
        STATUS_OK);
    return journal_open(journal, place->workdir, &logs, widths, 2, fresh, signature, NULL, NULL);
}

static struct journal *begin(struct place *place, const char *signature, bool fresh)
{
    struct journal *journal;
    assert_int_equal(open_journal(&journal, place, signature, fresh), STATUS_OK);
    return journal;
}

static void assert_row(const struct records *records, uint64_t location, const char *path)
{
    const bool image = location_kind(location) == LOCATION_LOG_IMAGE;
    const uint64_t row = location_row(location);
    const struct log_row *found;
    uint8_t feature[12], *bytes = NULL;
    uint64_t end;
    size_t room = 0;
    assert_true(location_in_log(location));
    for (unsigned window = 1; window < 4; window++) {
        struct records_cursor cursor = {.records = records, .window = window};
        assert_int_equal(
            records_at(&cursor, image ? RECORDS_IMAGES : RECORDS_FAILURES, row, &found, NULL),
            STATUS_OK);
        assert_string_equal(found->image.path, path);
        assert_int_equal(image ? found->image.bytes : found->failure.bytes, 10);
        if (!image)
            assert_string_equal(found->failure.message, "broken");
        records_cursor_clear(&cursor);
    }
    for (unsigned i = 0; image && i < 2; i++) {
        assert_int_equal(
            records_read(records, LOG_FEATURE + i, 0, widths[i], row, 1, feature, NULL), STATUS_OK);
        assert_memory_equal(feature, values + 8 * i, widths[i]);
    }
    for (unsigned text = 0; text < 2; text++) {
        const enum records_column column = (image ? LOG_IMAGE_PATH : LOG_FAILURE_PATH) + text;
        const char *expected = text && !image ? "broken" : path;
        assert_int_equal(records_read_texts(records, column, row, 1, &end, &bytes, &room, NULL),
                         STATUS_OK);
        assert_int_equal(end, strlen(expected));
        assert_memory_equal(bytes, expected, end);
    }
    free(bytes);
}

static void test_order(void **state)
{
    struct place *place = *state;
    struct journal *journal = begin(place, "{}", false);
    assert_false(journal_holds_work(journal));
    assert_int_equal(put(journal, 2, "c", true, 0), STATUS_OK);
    assert_int_equal(put(journal, 1, "b", false, 0), STATUS_OK);
    assert_int_equal(journal_count(journal), 0);
    assert_int_equal(put(journal, 0, "a\xff", true, 0), STATUS_OK);
    const uint64_t elsewhere = location_of(LOCATION_IMAGE, 0);
    assert_int_equal(put(journal, 3, "d", true, elsewhere), STATUS_OK);
    assert_int_equal(journal_count(journal), 4);
    assert_true(journal_holds_work(journal));

    const struct row_lists *lists;
    struct journal_tally tally;
    assert_int_equal(journal_finish(journal, &lists, &tally, NULL), STATUS_OK);
    assert_int_equal(lists->images.rows, 3);
    assert_int_equal(lists->failures.rows, 1);
    assert_int_equal(lists->images.run[0].count, 2);
    assert_int_equal(lists->images.run[1].input, INPUT_FILE);
    assert_int_equal(lists->images.run[1].first, location_row(elsewhere));
    assert_row(journal_records(journal), location_of(LOCATION_LOG_IMAGE, 0), "a\xff");
    assert_row(journal_records(journal), location_of(LOCATION_LOG_FAILURE, 0), "b");
    assert_row(journal_records(journal), location_of(LOCATION_LOG_IMAGE, 1), "c");
    assert_int_equal(tally.by_reason[REASON_NONE], 3);
    assert_int_equal(tally.by_reason[REASON_CORRUPT], 1);
    journal_close(&journal);
}

/* Reads columns across the limits of blocks and logs: any range gives the same rows as reading
 * all. */
static void test_columns(void **state)
{
    enum { ROWS = 40 };
    struct place *place = *state;
    struct journal *journal;
    uint32_t height[ROWS], part[ROWS];
    uint64_t ends[ROWS], part_ends[ROWS], only_ends[ROWS], kept;
    uint8_t feature[5 * ROWS], *bytes = NULL, *part_bytes = NULL;
    size_t room = 0, part_room = 0;
    const size_t at = offsetof(struct log_row, image.height);
    for (unsigned run = 0; run < 4; run++) {
        journal = begin(place, "{}", false);
        for (unsigned i = 0; i < ROWS / 4; i++) {
            char path[16] = "0123456789";
            path[i % 7] = 0;
            assert_int_equal(put(journal, i, path, true, 0), STATUS_OK);
            if (i % 3 == 1)
                assert_int_equal(journal_seal(journal, NULL), STATUS_OK);
        }
        assert_int_equal(journal_stop(journal, &kept, NULL), STATUS_OK);
        journal_close(&journal);
    }
    journal = begin(place, "{}", false);
    const struct records *records = journal_records(journal);
    assert_int_equal(records->rows[RECORDS_IMAGES], ROWS);
    assert_int_equal(records->blocks, 16);
    assert_int_equal(records_read(records, LOG_IMAGES, at, 4, 0, ROWS, height, NULL), STATUS_OK);
    assert_int_equal(records_read(records, LOG_FEATURE, 0, 5, 0, ROWS, feature, NULL), STATUS_OK);
    assert_int_equal(
        records_read_texts(records, LOG_IMAGE_PATH, 0, ROWS, ends, &bytes, &room, NULL), STATUS_OK);
    assert_int_equal(ends[ROWS - 1], 4 * (0 + 1 + 2 + 3 + 4 + 5 + 6 + 0 + 1 + 2));
    for (unsigned i = 0; i < ROWS; i++) {
        assert_int_equal(height[i], 3 + i % (ROWS / 4));
        assert_memory_equal(feature + 5 * i, values, 5);
    }
    for (unsigned first = 0; first < ROWS; first += 3)
        for (unsigned count = 1; first + count <= ROWS; count += 4) {
            const uint64_t start = first > 0 ? ends[first - 1] : 0;
            assert_int_equal(records_read(records, LOG_IMAGES, at, 4, first, count, part, NULL),
                             STATUS_OK);
            assert_memory_equal(part, height + first, 4 * count);
            assert_int_equal(records_read_texts(records, LOG_IMAGE_PATH, first, count, part_ends,
                                                &part_bytes, &part_room, NULL),
                             STATUS_OK);
            assert_int_equal(part_ends[count - 1], ends[first + count - 1] - start);
            assert_memory_equal(part_bytes, bytes + start, part_ends[count - 1]);
            assert_int_equal(records_read_texts(records, LOG_IMAGE_PATH, first, count, only_ends,
                                                NULL, NULL, NULL),
                             STATUS_OK);
            assert_memory_equal(only_ends, part_ends, count * sizeof *only_ends);
        }
    free(bytes);
    free(part_bytes);
    journal_close(&journal);
}

static void test_stopped_and_resumed(void **state)
{
    struct place *place = *state;
    struct journal *journal = begin(place, "{}", false);
    uint64_t kept;
    assert_int_equal(put(journal, 0, "a", true, 0), STATUS_OK);
    assert_int_equal(put(journal, 400, "later", true, 0), STATUS_OK);
    assert_int_equal(journal_stop(journal, &kept, NULL), STATUS_OK);
    assert_int_equal(kept, 2);
    journal_close(&journal);

    /* Two journals at once, as without working locks; the first one's signature is kept. */
    struct journal *both[2] = {begin(place, "{ }", false), begin(place, "{ }", false)};
    for (int i = 0; i < 2; i++) {
        const struct records *records = journal_records(both[i]);
        assert_int_equal(records->rows[RECORDS_IMAGES], 2);
        assert_int_equal(records->damaged, 0);
        assert_string_equal(records->signature, "{}");
        assert_true(journal_holds_work(both[i]));
        for (unsigned row = 0; row < 50; row++)
            assert_int_equal(put(both[i], row, i ? "b" : "c", true, 0), STATUS_OK);
    }
    for (int i = 0; i < 2; i++)
        journal_close(&both[i]);
    journal = begin(place, "{}", false);
    assert_int_equal(journal_records(journal)->rows[RECORDS_IMAGES], 102);
    /* Both have the same number, so their names determine the order. */
    const struct log_row *found;
    struct records_cursor cursor = {.records = journal_records(journal), .window = 1};
    assert_int_equal(records_at(&cursor, RECORDS_IMAGES, 2, &found, NULL), STATUS_OK);
    const bool b_first = *found->image.path == 'b';
    records_cursor_clear(&cursor);
    for (unsigned row = 2; row < 102; row++)
        assert_row(journal_records(journal), location_of(LOCATION_LOG_IMAGE, row),
                   (row < 52) == b_first ? "b" : "c");
    journal_close(&journal);

    /* A fresh start leaves nothing of the old logs. */
    journal = begin(place, "{\"a\":1}", true);
    assert_int_equal(journal_records(journal)->rows[RECORDS_IMAGES], 0);
    assert_int_equal(journal_records(journal)->logs, 1);
    assert_false(journal_holds_work(journal));
    journal_close(&journal);
}

/* If another process has replaced the lock file, nothing more is removed and the next sync
 * fails. */
static void test_taken_over(void **state)
{
    struct place *place = *state;
    struct journal *journal = begin(place, "{}", false);
    struct error err = ERROR_INIT;
    char path[2][128];
    struct stat before, after;
    snprintf(path[0], sizeof path[0], "%s/lock", place->workdir->path);
    snprintf(path[1], sizeof path[1], "%s/%s", place->workdir->path,
             journal_records(journal)->log[0].name);
    assert_int_equal(put(journal, 0, "a", true, 0), STATUS_OK);
    assert_int_equal(journal_seal(journal, NULL), STATUS_OK);
    assert_int_equal(workdir_check(place->workdir, NULL), STATUS_OK);
    assert_int_equal(unlink(path[0]), 0);
    FILE *lock = fopen(path[0], "w");
    assert_non_null(lock);
    assert_true(fputs("4321 elsewhere 00000000-aaaa\n", lock) >= 0);
    assert_int_equal(fclose(lock), 0);
    assert_int_equal(put(journal, 1, "b", true, 0), STATUS_OK);
    assert_int_equal(journal_seal(journal, &err), STATUS_FAILED);
    assert_non_null(strstr(err.sentence, "process 4321 on elsewhere has taken over "));
    assert_int_equal(put(journal, 2, "c", true, 0), STATUS_FAILED);
    journal_close(&journal);
    assert_int_equal(stat(path[1], &before), 0);
    assert_int_equal(open_journal(&journal, place, "{}", true), STATUS_FAILED);
    workdir_close(&place->workdir, false);
    assert_int_equal(stat(path[1], &after), 0);
    assert_int_equal(after.st_size, before.st_size);
    for (int i = 0; i < 2; i++)
        assert_int_equal(unlink(path[i]), 0);
    *strrchr(path[0], '/') = 0;
    assert_int_equal(rmdir(path[0]), 0);
}

/* A log that is opened for each read, and whose name a FIFO has taken, is an error. */
static void test_fifo(void **state)
{
    struct place *place = *state;
    const int directory = place->workdir->directory;
    struct records logs;
    struct error err = ERROR_INIT;
    assert_int_equal(records_open(&logs, directory, place->workdir->path, true, NULL), STATUS_OK);
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(records_create(&logs, "{}", NULL), STATUS_OK);
    records_clear(&logs);
    assert_int_equal(records_open(&logs, directory, place->workdir->path, false, NULL), STATUS_OK);
    assert_int_equal(logs.logs, 20);
    unsigned closed = 0;
    while (logs.log[closed].fd >= 0)
        assert_true(++closed < 20);
    assert_int_equal(unlinkat(directory, logs.log[closed].name, 0), 0);
    assert_int_equal(mkfifoat(directory, logs.log[closed].name, 0600), 0);
    assert_int_equal(records_scan(&logs, widths, 2, NULL, &err), STATUS_FAILED);
    assert_non_null(strstr(err.sentence, "is not a regular file"));
    records_clear(&logs);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_order, place_open, place_close),
    cmocka_unit_test_setup_teardown(test_columns, place_open, place_close),
    cmocka_unit_test_setup_teardown(test_stopped_and_resumed, place_open, place_close),
    cmocka_unit_test_setup_teardown(test_taken_over, place_open, place_close),
    cmocka_unit_test_setup_teardown(test_fifo, place_open, place_close),
};
TEST_GROUP(journal, NULL, NULL)
