/* test_store.c: records in any order become a finished file. */
#include "test_store_common.h"
#include <pthread.h>
#include <stdatomic.h>

/* --- content --------------------------------------------------------------------------------- */

/* Each row of the file must be the record with its number. */
static void check_rows(struct fixture *f, uint64_t count)
{
    struct error error = ERROR_INIT;
    struct result *result;
    uint64_t images = 0, failures = 0;
    assert_ok(result_open(&result, f->output, &error));
    assert_int_equal(result->feature_count, 3);
    assert_string_equal(result->parameters, f->config.content.parameters);
    assert_int_equal(result->source_count, 1);
    assert_string_equal(result->sources[0], "photos");
    assert_string_equal(result->created, "2023-11-14T22:13:20Z");
    for (uint64_t id = 0; id < count; id++) {
        struct made made;
        make_record(&made, id, 0);
        const struct store_record *r = &made.record;
        if (r->failure.reason != REASON_NONE) {
            struct result_failure failure;
            assert_ok(result_failure_at(result, failures++, &failure, &error));
            assert_string_equal(failure.path_raw, r->path);
            assert_int_equal(failure.reason, r->failure.reason);
            assert_string_equal(failure.row->message, r->failure.message);
            assert_int_equal(failure.row->bytes, r->image.bytes);
            assert_int_equal(failure.row->error_number, r->failure.error_number);
            assert_int_equal(failure.row->mtime_ns, r->image.mtime_ns);
            continue;
        }
        struct result_image row;
        assert_ok(result_image_at(result, images, &row, &error));
        assert_string_equal(row.path_raw, r->path);
        if (id % 11 == 4)
            assert_non_null(strstr(row.path, "\\xff\\xe9m"));
        else
            assert_string_equal(row.path, r->path);
        assert_int_equal(row.width, r->image.width);
        assert_int_equal(row.height, r->image.height);
        assert_int_equal(row.orientation, r->image.orientation);
        assert_int_equal(row.channels, 3);
        assert_int_equal(row.source, 0);
        assert_int_equal(row.bytes, r->image.bytes);
        assert_int_equal(row.mtime_ns, r->image.mtime_ns);
        assert_memory_equal(row.digest, r->image.digest, sizeof row.digest);
        assert_string_equal(row.format, "jpeg");
        for (unsigned i = 0; i < f->features.count; i++) {
            const struct feature *feature = &f->features.feature[i];
            const struct result_feature *stored = result_feature_find(result, feature->name);
            uint32_t expected[24 * 4], found[24 * 4];
            feature_store_values(expected, feature, r->counters + feature->offset);
            if (stored->is_float)
                assert_ok(read_feature(result, stored, images, 1, (float *)found, &error));
            else
                assert_ok(result_feature_read_counts(stored, images, 1, found, &error));
            assert_memory_equal(found, expected, 4 * feature->dimension);
        }
        images++;
    }
    assert_int_equal(result_images(result), images);
    assert_int_equal(result_failures(result), failures);
    assert_int_equal(result->run_count, 1);
    struct store_run run;
    assert_ok(result_run_at(result, 0, &run, &error));
    assert_string_equal(run.command, test_run.command);
    assert_string_equal(run.host, "test");
    result_close(&result);
}

/* --- threads --------------------------------------------------------------------------------- */

#define ITEMS   3000
#define THREADS 4

struct workers {
    struct store *store;
    uint64_t order[ITEMS];
    _Atomic unsigned next;
    _Atomic unsigned failed;
};

static void *put_shuffled(void *context)
{
    struct workers *w = context;
    unsigned i;
    while ((i = atomic_fetch_add(&w->next, 1)) < ITEMS) {
        struct made made;
        struct error error = ERROR_INIT;
        make_record(&made, w->order[i], 0);
        made.record.sequence = w->order[i];
        if (store_put(w->store, &made.record, &error))
            atomic_fetch_add(&w->failed, 1);
        if (i % 500 == 0 && journal_seal(store_journal(w->store), &error))
            atomic_fetch_add(&w->failed, 1);
        if (journal_count(store_journal(w->store)) > ITEMS)
            atomic_fetch_add(&w->failed, 1);
    }
    return NULL;
}

static void test_any_order(void **state)
{
    struct fixture *f = *state;
    struct error error = ERROR_INIT;
    static struct workers w;
    pthread_t thread[THREADS];
    char first[65], second[65];
    /* The order is mixed within a window of 200, as by decoding. */
    memset(&w, 0, sizeof w);
    for (unsigned i = 0; i < ITEMS; i++)
        w.order[i] = i;
    for (unsigned i = 0; i < ITEMS; i++) {
        unsigned last = i + 200 < ITEMS ? i + 200 : ITEMS;
        unsigned other = i + (unsigned)(mix(i) % (last - i));
        uint64_t swap = w.order[i];
        w.order[i] = w.order[other];
        w.order[other] = swap;
    }
    assert_ok(store_open(&w.store, &f->config, &error));
    assert_string_equal(store_work_directory(w.store), f->work);
    for (int t = 0; t < THREADS; t++)
        assert_int_equal(pthread_create(&thread[t], NULL, put_shuffled, &w), 0);
    for (int t = 0; t < THREADS; t++)
        pthread_join(thread[t], NULL);
    assert_int_equal(w.failed, 0);
    assert_int_equal(journal_count(store_journal(w.store)), ITEMS);
    struct store_summary summary;
    assert_ok(store_finish(w.store, &test_run, &summary, &error));
    store_close(&w.store);
    assert_null(w.store);
    assert_false(summary.unchanged);
    assert_int_equal(summary.images + failures_counted(summary.by_reason) +
                         summary.by_reason[REASON_NOT_AN_IMAGE],
                     ITEMS);
    assert_int_equal(summary.by_reason[REASON_CORRUPT], failures_counted(summary.by_reason));
    assert_int_equal(count_entries(f->directory), 1);
    check_rows(f, ITEMS);
    identity_of(first, f->output);

    /* One thread, in order, writes the same bytes. */
    f->config.threads = 0;
    size_t size[2];
    char *bytes[2];
    bytes[0] = read_file(f->output, &size[0]);
    unlink(f->output);
    unsigned counts[3] = {0};
    run_items(f, 0, ITEMS, 1, 0, &summary, counts);
    identity_of(second, f->output);
    assert_string_equal(first, second);
    bytes[1] = read_file(f->output, &size[1]);
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(bytes[0], bytes[1], size[0]);
    free(bytes[0]);
    free(bytes[1]);
}

/* --- ends ------------------------------------------------------------------------------------ */

static void test_nothing(void **state)
{
    struct fixture *f = *state;
    struct store_summary summary;
    unsigned counts[3] = {0};
    char hex[65];
    run_items(f, 0, 0, 1, 0, &summary, counts);
    check_rows(f, 0);
    identity_of(hex, f->output);
    /* Only failures, or only images. */
    unlink(f->output);
    run_items(f, 3, 4, 1, 0, &summary, counts);
    assert_int_equal(summary.images, 0);
    assert_int_equal(failures_counted(summary.by_reason), 1);
    identity_of(hex, f->output);
    unlink(f->output);
    run_items(f, 0, 1, 1, 0, &summary, counts);
    assert_int_equal(summary.images, 1);
    identity_of(hex, f->output);
}

/* More paths that are not UTF-8 than one read returns, requested in various orders. */
static void test_many_raw_paths(void **state)
{
    struct fixture *f = *state;
    struct error error = ERROR_INIT;
    struct store *store;
    struct store_summary summary;
    struct result *result;
    struct result_failure failure;
    char path[16], hex[65];
    const uint64_t count = 5000;
    assert_ok(store_open(&store, &f->config, &error));
    for (uint64_t i = 0; i < count; i++) {
        struct store_record record = {.sequence = i, .path = path, .image.bytes = 1};
        bool text = i % 3 == 0 && i > 1500;
        record.path_length = (uint32_t)snprintf(path, sizeof path, text ? "%05u" : "%05u\xff%u",
                                                (unsigned)i, (unsigned)(i * i % 1000));
        failure_set(&record.failure, REASON_CORRUPT, "x");
        assert_ok(store_put(store, &record, &error));
    }
    assert_ok(store_finish(store, &test_run, &summary, &error));
    store_close(&store);
    assert_ok(result_open(&result, f->output, &error));
    for (uint64_t i = 0; i < 3 * count; i++) {
        uint64_t at = i < count ? i : i < 2 * count ? 2 * count - 1 - i : mix(i) % count;
        /* Only some are requested in reverse and random order, because each needs a search. */
        if (i >= count && i % 17)
            continue;
        bool text = at % 3 == 0 && at > 1500;
        assert_ok(result_failure_at(result, at, &failure, &error));
        snprintf(path, sizeof path, text ? "%05u" : "%05u\xff%u", (unsigned)at,
                 (unsigned)(at * at % 1000));
        assert_string_equal(failure.path_raw, path);
        assert_int_equal(strncmp(failure.row->path, path, 5), 0);
        assert_int_equal(strstr(failure.row->path, "\\xff") != NULL, !text);
    }
    result_close(&result);
    identity_of(hex, f->output);
}

static void test_time_does_not_change_the_identity(void **state)
{
    struct fixture *f = *state;
    struct store_summary summary;
    unsigned counts[3] = {0};
    char first[65], second[65];
    run_items(f, 0, 20, 1, 0, &summary, counts);
    identity_of(first, f->output);
    unlink(f->output);
    setenv("SOURCE_DATE_EPOCH", "1", 1);
    run_items(f, 0, 20, 1, 0, &summary, counts);
    identity_of(second, f->output);
    assert_string_equal(first, second);
}

static void test_unused_store_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    struct error error = ERROR_INIT;
    struct store *store;
    assert_ok(store_open(&store, &f->config, &error));
    assert_int_equal(access(f->work, F_OK), 0);
    store_close(&store);
    assert_int_equal(count_entries(f->directory), 0);
    store_close(&store);
}

static void refused(struct fixture *f, enum status expected, const char *part)
{
    struct error error = ERROR_INIT;
    struct store *store = (struct store *)f;
    enum status status = store_open(&store, &f->config, &error);
    if (status != expected || !strstr(error.sentence, part))
        print_error("wanted %d '%s', got %d '%s'\n", expected, part, status, error.sentence);
    assert_int_equal(status, expected);
    assert_int_equal(error.status, expected);
    assert_non_null(strstr(error.sentence, part));
    assert_null(strchr(error.sentence, '\n'));
    assert_null(store);
}

static void test_second_run_refused(void **state)
{
    struct fixture *f = *state;
    struct error error = ERROR_INIT;
    struct store *store;
    char text[64];
    assert_ok(store_open(&store, &f->config, &error));
    snprintf(text, sizeof text, "process %ld on ", (long)getpid());
    refused(f, STATUS_FAILED, text);
    f->config.fresh = true;
    refused(f, STATUS_FAILED, text);
    assert_int_equal(access(f->work, F_OK), 0);
    put_item(store, 0, 0, 0, 0);
    store_close(&store);
    size_t size;
    free(get_log(f, &size));
    /* The lock of a process that has ended does not block others. */
    assert_ok(store_open(&store, &f->config, &error));
    store_close(&store);
}

static void test_foreign_files_refused(void **state)
{
    struct fixture *f = *state;
    const char *text = "somebody's notes\n";
    for (int fresh = 0; fresh < 2; fresh++) {
        f->config.fresh = fresh;
        write_file(f->output, text, strlen(text));
        refused(f, STATUS_FAILED, "not overwritten");
        size_t size;
        char *now = read_file(f->output, &size);
        assert_string_equal(now, text);
        free(now);
        assert_int_equal(count_entries(f->directory), 1);
        write_file(f->output, "", 0);
        refused(f, STATUS_FAILED, "not overwritten");
        unlink(f->output);
        assert_int_equal(mkdir(f->output, 0777), 0);
        refused(f, STATUS_FAILED, "directory");
        rmdir(f->output);
        assert_int_equal(mkfifo(f->output, 0666), 0);
        refused(f, STATUS_FAILED, "pipe");
        unlink(f->output);
        assert_int_equal(symlink("/dev/null", f->output), 0);
        refused(f, STATUS_FAILED, "device");
        unlink(f->output);
    }
    /* A file has the name of the work directory. */
    write_file(f->work, text, strlen(text));
    refused(f, STATUS_FAILED, "not a directory");
    assert_int_equal(access(f->work, F_OK), 0);
    unlink(f->work);
    f->config.output = "/nonexistent/directory/out.h5";
    refused(f, STATUS_FAILED, "does not exist");
}

static void test_other_parameters_refused(void **state)
{
    struct fixture *f = *state;
    struct store_summary summary;
    unsigned counts[3] = {0};
    char before[65], after[65];
    run_items(f, 0, 50, 1, 0, &summary, counts);
    identity_of(before, f->output);
    const char *parameters = f->config.content.parameters;
    f->config.content.parameters = "{\"alpha\":\"black\",\"max_pixels\":100}";
    refused(f, STATUS_USAGE, "alpha: this file has white; the command asks for black");
    f->config.content.parameters = "{\"alpha\":\"white\"}";
    refused(f, STATUS_USAGE, "max_pixels: this file has 100; the command asks for none");
    f->config.content.parameters = parameters;
    f->sources[0] = "other";
    refused(f, STATUS_USAGE, "sources: this file has photos; the command asks for other");
    f->sources[0] = "photos";
    f->config.content.decode_scale = 2;
    refused(f, STATUS_USAGE, "decode_scale: this file has 1; the command asks for 2");
    f->config.content.decode_scale = 1;
    struct feature_set features = f->features;
    f->features.count = 2;
    refused(f, STATUS_USAGE, "joint: this file has ");
    f->features = features;
    identity_of(after, f->output);
    assert_string_equal(before, after);
    assert_int_equal(count_entries(f->directory), 1);
    /* --fresh replaces the file. */
    f->config.content.parameters = "{\"alpha\":\"black\",\"max_pixels\":100}";
    f->config.fresh = true;
    memset(counts, 0, sizeof counts);
    run_items(f, 0, 50, 1, 0, &summary, counts);
    assert_int_equal(counts[0], 50);
    identity_of(after, f->output);
    assert_string_not_equal(before, after);
    check_rows(f, 50);
}

static void test_unfinished_work_of_another_command(void **state)
{
    struct fixture *f = *state;
    struct error error = ERROR_INIT;
    struct store *store;
    assert_ok(store_open(&store, &f->config, &error));
    put_item(store, 0, 0, 0, 0);
    store_close(&store);
    const char *parameters = f->config.content.parameters;
    f->config.content.parameters = "{\"alpha\":\"drop\",\"max_pixels\":100}";
    refused(f, STATUS_USAGE,
            "unfinished work of another command: alpha: the unfinished run has white; the command "
            "asks for drop");
    /* The unfinished work is still there. */
    f->config.content.parameters = parameters;
    struct store_summary summary;
    unsigned counts[3] = {0};
    run_items(f, 0, 1, 1, 0, &summary, counts);
    assert_int_equal(counts[2], 1);
}

static void test_damaged_log_refused(void **state)
{
    struct fixture *f = *state;
    struct error error = ERROR_INIT;
    struct store *store;
    assert_ok(store_open(&store, &f->config, &error));
    put_item(store, 0, 0, 0, 0);
    store_close(&store);
    size_t size;
    char *log = get_log(f, &size);
    log[40] ^= 1; /* changes a bit of the signature */
    write_file(f->log, log, size);
    refused(f, STATUS_FAILED, "damaged");
    log[40] ^= 1;
    log[0] ^= 1;
    write_file(f->log, log, size);
    refused(f, STATUS_FAILED, "not a clpipe log");
    log[0] ^= 1;
    log[8] ^= 2; /* changes the version */
    write_file(f->log, log, size);
    refused(f, STATUS_USAGE, "another version");
    log[8] ^= 2;
    write_file(f->log, log, size);
    /* Earlier versions left other names. */
    for (int i = 0; i < 2; i++) {
        char old[400];
        snprintf(old, sizeof old, "%s/%s", f->work, i ? "handover" : "records");
        write_file(old, "CLPIPLOG", 8);
        refused(f, STATUS_USAGE, "clpipe 0.2");
        assert_int_equal(access(old, F_OK), 0);
        unlink(old);
    }
    free(log);
    f->config.fresh = true;
    assert_ok(store_open(&store, &f->config, &error));
    store_close(&store);
    assert_int_equal(access(f->work, F_OK), -1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_any_order, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_nothing, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_many_raw_paths, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_time_does_not_change_the_identity, fixture_open,
                                    fixture_close),
    cmocka_unit_test_setup_teardown(test_unused_store_leaves_nothing, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_second_run_refused, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_foreign_files_refused, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_other_parameters_refused, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_unfinished_work_of_another_command, fixture_open,
                                    fixture_close),
    cmocka_unit_test_setup_teardown(test_damaged_log_refused, fixture_open, fixture_close),
};
TEST_GROUP(store, NULL, NULL)
