/* test_journal.c: records in any order in, frames in order out; resumed, stopped, with gaps. */
#include "log/journal.h"
#include "runner.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COUNTERS 6

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
    return workdir_open(&place->workdir, place->output, NULL, NULL) != STATUS_OK;
}

static int place_close(void **state)
{
    struct place *place = *state;
    workdir_close(&place->workdir, false);
    int failed = rmdir(place->folder);
    free(place);
    return failed;
}

static const uint32_t values[COUNTERS] = {0, 0, 0, 0, 7, 1};

static enum status put(struct journal *journal, uint64_t sequence, const char *path, bool image,
                       uint64_t origin)
{
    struct store_record record = {.sequence = sequence,
                                  .path = path,
                                  .path_length = (uint32_t)strlen(path),
                                  .bytes = 10,
                                  .width = 2,
                                  .height = 3,
                                  .origin = origin};
    if (!image)
        failure_set(&record.failure, REASON_CORRUPT, "broken");
    return journal_put(journal, &record, values, NULL);
}

static struct journal *open_journal(struct place *place, bool resume)
{
    struct journal *journal;
    const char *signature = "?";
    assert_int_equal(journal_open(&journal, place->workdir, COUNTERS, NULL), STATUS_OK);
    assert_int_equal(journal_read_signature(&signature, journal, NULL), STATUS_OK);
    if (resume)
        assert_string_equal(signature, "{}");
    else
        assert_null(signature);
    assert_int_equal(journal_begin(journal, "{}", resume, NULL, NULL), STATUS_OK);
    return journal;
}

static void assert_record(struct journal *journal, uint64_t location, uint64_t log_end,
                          const char *path, bool image)
{
    struct records_reader reader;
    struct records_entry entry;
    uint32_t found[COUNTERS];
    assert_int_equal(location_kind(location), LOCATION_LOG);
    records_reader_init(&reader, journal_log(journal), "log", COUNTERS, log_end, 64);
    assert_int_equal(records_read(&reader, location_position(location), &entry, NULL), STATUS_OK);
    assert_int_equal(entry.record.path_length, strlen(path));
    assert_memory_equal(entry.record.path, path, strlen(path));
    if (image) {
        assert_true(records_unpack(found, COUNTERS, &entry));
        assert_memory_equal(found, values, sizeof values);
    } else {
        assert_string_equal(entry.record.failure.message, "broken");
    }
    records_reader_clear(&reader);
}

static void test_order(void **state)
{
    struct place *place = *state;
    struct journal *journal = open_journal(place, false);
    assert_false(journal_holds_work(journal));
    assert_int_equal(put(journal, 2, "c", true, 0), STATUS_OK);
    assert_int_equal(put(journal, 1, "b", false, 0), STATUS_OK);
    assert_int_equal(journal_written(journal), 0);
    assert_int_equal(put(journal, 0, "a\xff", true, 0), STATUS_OK);
    const uint64_t elsewhere = location_of(LOCATION_IMAGE, 5);
    assert_int_equal(put(journal, 3, "d", true, elsewhere), STATUS_OK);
    assert_int_equal(journal_written(journal), 4);
    assert_true(journal_holds_work(journal));

    int order;
    uint64_t records, log_end, location[4];
    struct journal_tally tally;
    assert_int_equal(journal_finish(journal, &order, &records, &log_end, &tally, NULL), STATUS_OK);
    assert_int_equal(records, 4);
    assert_int_equal(pread(order, location, sizeof location, 0), sizeof location);
    assert_record(journal, location[0], log_end, "a\xff", true);
    assert_record(journal, location[1], log_end, "b", false);
    assert_record(journal, location[2], log_end, "c", true);
    assert_int_equal(location[3], elsewhere);
    assert_int_equal(tally.by_reason[REASON_NONE], 3);
    assert_int_equal(tally.by_reason[REASON_CORRUPT], 1);
    assert_int_equal(tally.pixels, 18);
    assert_int_equal(tally.bytes, 40);
    assert_int_equal(tally.raw_images.rows, 1);
    assert_int_equal(tally.raw_images.bytes, 2);
    assert_int_equal(tally.raw_failures.rows, 0);
    journal_close(&journal);
}

static void test_stopped_and_resumed(void **state)
{
    struct place *place = *state;
    struct journal *journal = open_journal(place, false);
    uint64_t kept;
    assert_int_equal(put(journal, 0, "a", true, 0), STATUS_OK);
    assert_int_equal(put(journal, 400, "later", true, 0), STATUS_OK);
    assert_int_equal(journal_stop(journal, &kept, NULL), STATUS_OK);
    assert_int_equal(kept, 2);
    journal_close(&journal);

    journal = open_journal(place, true);
    const struct stretches *earlier = journal_earlier(journal);
    assert_int_equal(earlier->records, 2);
    assert_int_equal(earlier->count, 1);
    assert_int_equal(earlier->damaged, 0);
    assert_true(journal_holds_work(journal));
    const uint64_t end = earlier->end;
    assert_int_equal(put(journal, 0, "b", true, 0), STATUS_OK);
    assert_int_equal(journal_seal(journal, NULL), STATUS_OK);
    journal_close(&journal);

    /* A torn frame at the end is cut off; what lies before it is two stretches. */
    journal = open_journal(place, true);
    assert_int_equal(journal_earlier(journal)->count, 2);
    const uint64_t whole = journal_earlier(journal)->end;
    assert_true(whole > end);
    char log[128];
    snprintf(log, sizeof log, "%s", journal_path(journal));
    journal_close(&journal);
    assert_int_equal(truncate(log, (off_t)whole - 1), 0);
    journal = open_journal(place, true);
    assert_int_equal(journal_earlier(journal)->records, 2);
    assert_true(journal_earlier(journal)->end < whole);
    journal_close(&journal);

    /* Begun anew, nothing of it is left. */
    assert_int_equal(journal_open(&journal, place->workdir, COUNTERS, NULL), STATUS_OK);
    assert_int_equal(journal_begin(journal, "{\"a\":1}", false, NULL, NULL), STATUS_OK);
    assert_int_equal(journal_earlier(journal)->records, 0);
    assert_false(journal_holds_work(journal));
    journal_close(&journal);
}

/* Another process has replaced the lock file: nothing more is written or removed. */
static void test_taken_over(void **state)
{
    static const char *const files[] = {"lock", "records"};
    struct place *place = *state;
    struct journal *journal = open_journal(place, false);
    struct error err = ERROR_INIT;
    char path[2][128];
    struct stat before, after;
    for (int i = 0; i < 2; i++)
        snprintf(path[i], sizeof path[i], "%s/%s", workdir_path(place->workdir), files[i]);
    assert_int_equal(put(journal, 0, "a", true, 0), STATUS_OK);
    assert_int_equal(journal_seal(journal, NULL), STATUS_OK);
    assert_int_equal(workdir_check(place->workdir, NULL), STATUS_OK);
    assert_int_equal(unlink(path[0]), 0);
    FILE *lock = fopen(path[0], "w");
    assert_non_null(lock);
    assert_true(fputs("4321 elsewhere 00000000-aaaa 0000000000\n", lock) >= 0);
    assert_int_equal(fclose(lock), 0);
    assert_int_equal(stat(path[1], &before), 0);
    assert_int_equal(put(journal, 1, "b", true, 0), STATUS_OK);
    assert_int_equal(journal_seal(journal, &err), STATUS_FAILED);
    assert_non_null(strstr(err.sentence, "process 4321 on elsewhere took over "));
    journal_close(&journal);
    assert_int_equal(journal_open(&journal, place->workdir, COUNTERS, NULL), STATUS_OK);
    assert_int_equal(journal_begin(journal, "{}", false, NULL, NULL), STATUS_FAILED);
    journal_close(&journal);
    workdir_close(&place->workdir, false);
    assert_int_equal(stat(path[1], &after), 0);
    assert_int_equal(after.st_size, before.st_size);
    for (int i = 0; i < 2; i++)
        assert_int_equal(unlink(path[i]), 0);
    *strrchr(path[0], '/') = 0;
    assert_int_equal(rmdir(path[0]), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_order, place_open, place_close),
    cmocka_unit_test_setup_teardown(test_stopped_and_resumed, place_open, place_close),
    cmocka_unit_test_setup_teardown(test_taken_over, place_open, place_close),
};
TEST_GROUP(journal, NULL, NULL)
