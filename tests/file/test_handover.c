/* test_handover.c: a log that gives its space back while it becomes the file.
 */
#include "log/handover.h"
#include "log/unfinished.h"
#include "test_store_common.h"

#define ITEMS     2000
#define THUMBNAIL 48

/* A run over all items, with codes and thumbnails, as far as it comes. */
static enum status run(struct fixture *f, bool in_the_way, struct error *why)
{
    struct error error;
    struct store *store;
    struct store_summary summary;
    assert_ok(store_open(&store, &f->config, &error));
    store_make_thumbnails(store, THUMBNAIL, true);
    for (uint64_t id = 0; id < ITEMS; id++) {
        struct made made;
        make_record(&made, id, 0);
        add_extras(&made, true, THUMBNAIL);
        made.record.sequence = id;
        assert_ok(store_put(store, &made.record, &error));
    }
    if (in_the_way)
        write_file(f->output, "mine", 4);
    *why = (struct error)ERROR_INIT;
    const enum status status = store_finish(store, &test_run, &summary, why);
    store_close(&store);
    return status;
}

static char *reference(struct fixture *f, size_t *size)
{
    struct error error = ERROR_INIT;
    f->config.handover = 0;
    assert_int_equal(run(f, false, &error), STATUS_OK);
    char *bytes = read_file(f->output, size);
    unlink(f->output);
    f->config.handover = 1;
    return bytes;
}

static void assert_same_file(const struct fixture *f, const char *bytes, size_t size)
{
    size_t now;
    char hex[65], *found = read_file(f->output, &now);
    assert_int_equal(now, size);
    assert_memory_equal(found, bytes, size);
    free(found);
    identity_of(hex, f->output);
    assert_int_equal(count_entries(f->directory), 1);
}

static void test_same_bytes(void **state)
{
    struct fixture *f = *state;
    struct error error = ERROR_INIT;
    size_t size;
    char *bytes = reference(f, &size);
    assert_int_equal(run(f, false, &error), STATUS_OK);
    assert_same_file(f, bytes, size);
    free(bytes);
}

/* The final name is taken. */
static void test_name_is_taken(void **state)
{
    struct fixture *f = *state;
    struct error error = ERROR_INIT;
    struct unfinished unfinished;
    struct stat st;
    struct store *store;
    size_t size;
    char *bytes = reference(f, &size);
    assert_int_equal(run(f, true, &error), STATUS_FAILED);
    assert_non_null(strstr(error.sentence, "a file with this name has appeared"));
    assert_int_equal(stat(f->log, &st), 0);
    assert_in_range(st.st_size, size / 4, 4 * size);
    assert_ok(unfinished_look(&unfinished, f->output, &error));
    assert_true(unfinished.handing_over);
    assert_int_equal(unfinished.handed_over, 0);
    assert_int_equal(unfinished.records, ITEMS);
    assert_int_equal(unfinished.by_reason[REASON_CORRUPT], (ITEMS - 3 + 6) / 7);
    unfinished_clear(&unfinished);
    /* What is there stays until it is moved away. */
    assert_int_equal(handover_resume(f->output, 2, false, NULL, &error), STATUS_FAILED);
    unlink(f->output);
    assert_ok(store_open(&store, &f->config, &error));
    store_close(&store);
    assert_same_file(f, bytes, size);
    assert_ok(handover_resume(f->output, 2, false, NULL, &error));
    free(bytes);
}

/* A plan that is damaged is not followed; --fresh takes it away. */
static void test_damage(void **state)
{
    struct fixture *f = *state;
    struct error error = ERROR_INIT;
    size_t size, plan_size;
    char path[400], *bytes = reference(f, &size);
    assert_int_equal(run(f, true, &error), STATUS_FAILED);
    unlink(f->output);
    snprintf(path, sizeof path, "%s/handover", f->work);
    char *plan = read_file(path, &plan_size);
    for (size_t at = 8; at < plan_size; at += plan_size / 50) {
        plan[at] ^= 1;
        write_file(path, plan, plan_size);
        plan[at] ^= 1;
        assert_int_equal(handover_resume(f->output, 2, false, NULL, &error), STATUS_FAILED);
        assert_non_null(strstr(error.sentence, at < 12 ? "another version of clpipe" : "is damaged"));
    }
    /* A result that is missing has its name already only if all is in it. */
    char result[400];
    snprintf(result, sizeof result, "%s/result", f->work);
    size_t result_size;
    char *kept = read_file(result, &result_size);
    unlink(result);
    write_file(path, plan, plan_size);
    assert_int_equal(handover_resume(f->output, 2, false, NULL, &error), STATUS_FAILED);
    assert_int_equal(access(f->log, F_OK), 0);
    write_file(result, kept, result_size);
    free(kept);
    free(plan);
    f->config.fresh = true;
    assert_int_equal(run(f, false, &error), STATUS_OK);
    assert_same_file(f, bytes, size);
    free(bytes);
}

/* Thumbnails that were asked for, and none was made. */
static void test_no_thumbnail(void **state)
{
    struct fixture *f = *state;
    struct error error = ERROR_INIT;
    struct store *store;
    struct store_summary summary;
    struct made made;
    char hex[65];
    f->config.handover = 1;
    assert_ok(store_open(&store, &f->config, &error));
    store_make_thumbnails(store, THUMBNAIL, false);
    make_record(&made, 0, 0);
    assert_ok(store_put(store, &made.record, &error));
    assert_ok(store_finish(store, &test_run, &summary, &error));
    store_close(&store);
    identity_of(hex, f->output);
    assert_int_equal(count_entries(f->directory), 1);
}

/* A work directory on another file system: the result could not be renamed from there. */
static void test_link_as_work_directory(void **state)
{
    struct fixture *f = *state;
    struct error error = ERROR_INIT;
    char elsewhere[300], hex[65];
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", f->directory);
    assert_int_equal(mkdir(elsewhere, 0777), 0);
    assert_int_equal(symlink(elsewhere, f->work), 0);
    f->config.handover = 1;
    assert_int_equal(run(f, false, &error), STATUS_OK);
    identity_of_unverified(hex, f->output);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_same_bytes, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_name_is_taken, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_damage, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_no_thumbnail, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_link_as_work_directory, fixture_open, fixture_close),
};
TEST_GROUP(handover, NULL, NULL)
