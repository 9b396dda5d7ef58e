/* test_update.c: updates of a result after the files have changed. */
#include "test_store_common.h"

#define MOST 2500

/* The items that a walk finds, in order, each with a source and a version. */
struct world {
    unsigned count;
    struct {
        uint16_t source;
        uint64_t id, version;
    } item[MOST];
};

static void add(struct world *world, uint16_t source, uint64_t id, uint64_t version)
{
    assert_true(world->count < MOST);
    world->item[world->count].source = source;
    world->item[world->count].id = id;
    world->item[world->count++].version = version;
}

static struct world plain(uint64_t count)
{
    struct world world = {.count = 0};
    for (uint64_t id = 0; id < count; id++)
        add(&world, 0, id, 0);
    return world;
}

struct outcome {
    struct store_summary summary;
    unsigned fresh, unchanged, resumed;
};

/* The number of files that are not images in the result. */
static uint64_t files_that_failed(const struct store_summary *summary)
{
    return failures_counted(summary->by_reason) + summary->by_reason[REASON_NOT_AN_IMAGE];
}

/* Runs over the first `count` items, and finishes if these are all. */
static struct outcome run_part(struct fixture *f, const struct world *world, unsigned count)
{
    struct error error = ERROR_INIT;
    struct store *store;
    unsigned counts[3] = {0};
    struct outcome outcome = {.fresh = 0};
    assert_ok(store_open(&store, &f->config, &error));
    for (unsigned i = 0; i < count; i++)
        counts[put_item(store, i, world->item[i].source, world->item[i].id,
                        world->item[i].version)]++;
    if (count == world->count)
        assert_ok(store_finish(store, &test_run, &outcome.summary, &error));
    store_close(&store);
    outcome.fresh = counts[0];
    outcome.unchanged = counts[1];
    outcome.resumed = counts[2];
    return outcome;
}

static struct outcome run(struct fixture *f, const struct world *world)
{
    return run_part(f, world, world->count);
}

/* Checks that the file equals the result of a run without earlier work. */
static void assert_like_new(struct fixture *f, const struct world *world)
{
    char hex[65], fresh[65], name[400];
    const char *output = f->config.output;
    identity_of(hex, output);
    snprintf(name, sizeof name, "%s/fresh.h5", f->directory);
    f->config.output = name;
    run(f, world);
    identity_of(fresh, name);
    unlink(name);
    f->config.output = output;
    assert_string_equal(hex, fresh);
}

static void test_nothing_new(void **state)
{
    struct fixture *f = *state;
    struct world world = plain(200);
    struct stat before, after;
    run(f, &world);
    assert_int_equal(stat(f->output, &before), 0);
    for (int i = 0; i < 2; i++) {
        struct outcome again = run(f, &world);
        assert_true(again.summary.unchanged);
        assert_int_equal(again.unchanged, 200);
        assert_int_equal(again.summary.images + files_that_failed(&again.summary), 200);
        /* Failures are tried again, with the same outcome. */
        f->config.retry_failed = true;
        again = run(f, &world);
        assert_true(again.summary.unchanged);
        assert_int_equal(again.fresh, files_that_failed(&again.summary));
        assert_true(again.fresh > 0);
        f->config.retry_failed = false;
    }
    assert_int_equal(stat(f->output, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    assert_memory_equal(&before.st_mtim, &after.st_mtim, sizeof before.st_mtim);
    assert_int_equal(count_entries(f->directory), 1);
}

static void test_added_removed_changed(void **state)
{
    struct fixture *f = *state;
    struct world world = plain(200), next;
    run(f, &world);

    next = plain(230);
    struct outcome outcome = run(f, &next);
    assert_int_equal(outcome.fresh, 30);
    assert_int_equal(outcome.unchanged, 200);
    assert_false(outcome.summary.unchanged);
    assert_like_new(f, &next);

    next.count = 0;
    for (uint64_t id = 0; id < 230; id++)
        if (id % 5)
            add(&next, 0, id, 0);
    outcome = run(f, &next);
    assert_int_equal(outcome.fresh, 0);
    assert_false(outcome.summary.unchanged);
    assert_like_new(f, &next);

    for (unsigned i = 0; i < next.count; i += 3)
        next.item[i].version = 1;
    outcome = run(f, &next);
    assert_int_equal(outcome.fresh, (next.count + 2) / 3);
    assert_like_new(f, &next);

    /* Added, changed and removed items at once; then all items are removed. */
    world.count = 0;
    for (uint64_t id = 3; id < 250; id += 2)
        add(&world, 0, id, id % 4 == 1);
    run(f, &world);
    assert_like_new(f, &world);
    world.count = 0;
    outcome = run(f, &world);
    assert_int_equal(outcome.summary.images, 0);
    assert_like_new(f, &world);

    /* All runs were recorded. */
    struct error error = ERROR_INIT;
    struct result *result;
    assert_ok(result_open(&result, f->output, &error));
    assert_int_equal(result->run_count, 6);
    struct store_run last;
    assert_ok(result_run_at(result, 5, &last, &error));
    assert_string_equal(last.command, test_run.command);
    result_close(&result);
}

static void test_interrupted_update(void **state)
{
    struct fixture *f = *state;
    struct world world = plain(100), next = plain(160);
    run(f, &world);
    for (unsigned i = 0; i < next.count; i += 4)
        next.item[i].version = 2;
    char before[65], after[65];
    identity_of(before, f->output);
    /* The update is interrupted three times, each time a little later. */
    for (unsigned part = 50; part < 160; part += 40) {
        struct outcome outcome = run_part(f, &next, part);
        assert_true(outcome.fresh > 0);
        assert_int_equal(outcome.fresh + outcome.unchanged + outcome.resumed, part);
        identity_of_unverified(after, f->output);
        assert_string_equal(before, after);
    }
    struct outcome outcome = run(f, &next);
    assert_int_equal(outcome.unchanged, 75);
    assert_true(outcome.resumed > 50);
    assert_like_new(f, &next);
}

static void test_retry_failed(void **state)
{
    struct fixture *f = *state;
    struct world world = plain(50);
    run(f, &world);
    f->config.retry_failed = true;
    struct error error = ERROR_INIT;
    struct store *store;
    assert_ok(store_open(&store, &f->config, &error));
    unsigned again = 0;
    for (uint64_t id = 0; id < 50; id++) {
        struct made made;
        struct store_record prior;
        make_record(&made, id, 0);
        bool found = prior_find(store_prior(store), 0, made.path, made.record.path_length,
                                made.record.image.bytes, made.record.image.mtime_ns, &prior);
        struct store_record *record = found ? &prior : &made.record;
        if (!found) {
            /* The item is an image now. */
            struct made image;
            make_record(&image, 1, 0);
            image.record.path = made.path;
            image.record.path_length = made.record.path_length;
            made.record = image.record;
            memcpy(made.counters, image.counters, sizeof made.counters);
            made.record.counters = made.counters;
            again++;
        }
        record->sequence = id;
        assert_ok(store_put(store, record, &error));
    }
    struct store_summary summary;
    assert_ok(store_finish(store, &test_run, &summary, &error));
    store_close(&store);
    assert_int_equal(again, 14);
    assert_int_equal(summary.images, 50);
    assert_int_equal(files_that_failed(&summary), 0);
    char hex[65];
    identity_of(hex, f->output);
}

/* Failures that do not depend on a file's content are always tried again. */
static void test_unreadable_is_tried_again(void **state)
{
    struct fixture *f = *state;
    struct error error = ERROR_INIT;
    for (int round = 0; round < 2; round++) {
        struct store *store;
        struct made made;
        struct store_record prior;
        struct store_summary summary;
        make_record(&made, 3, 0);
        made.record.failure.reason = REASON_UNREADABLE;
        assert_ok(store_open(&store, &f->config, &error));
        assert_false(prior_find(store_prior(store), 0, made.path, made.record.path_length,
                                made.record.image.bytes, made.record.image.mtime_ns, &prior));
        made.record.sequence = 0;
        assert_ok(store_put(store, &made.record, &error));
        assert_ok(store_finish(store, &test_run, &summary, &error));
        assert_int_equal(summary.unchanged, round == 1);
        store_close(&store);
    }
}

/* Three sources: a directory, a list and a directory. The list is not in the order of its paths. */
static struct world with_list(unsigned list_count, uint64_t stride, uint64_t start)
{
    struct world world = {.count = 0};
    for (uint64_t id = 0; id < 40; id++)
        add(&world, 0, id, 0);
    for (uint64_t i = 0; i < list_count; i++)
        add(&world, 1, (start + i * stride) % 131, 0);
    for (uint64_t id = 20; id < 60; id++)
        add(&world, 2, id, 0);
    return world;
}

static void test_lists(void **state)
{
    struct fixture *f = *state;
    f->sources[0] = "photos";
    f->sources[1] = "@list";
    f->sources[2] = "more";
    f->config.content.source_count = 3;
    struct world world = with_list(100, 37, 5);
    run(f, &world);
    struct outcome outcome = run(f, &world);
    assert_true(outcome.summary.unchanged);
    assert_int_equal(outcome.unchanged, 180);

    /* The list is longer now: the rows of its old lines are found. */
    world = with_list(120, 37, 5);
    outcome = run(f, &world);
    assert_int_equal(outcome.unchanged, 180);
    assert_int_equal(outcome.fresh, 20);
    assert_like_new(f, &world);

    /* The same lines in another order, without the first one. */
    struct world shuffled = world;
    for (unsigned i = 0; i < 120; i++)
        shuffled.item[40 + i] = world.item[40 + (i * 77 + 13) % 120];
    outcome = run(f, &shuffled);
    assert_int_equal(outcome.unchanged, 200);
    assert_false(outcome.summary.unchanged);
    assert_like_new(f, &shuffled);
    memmove(&shuffled.item[40], &shuffled.item[41], (shuffled.count - 41) * sizeof *shuffled.item);
    shuffled.count--;
    outcome = run(f, &shuffled);
    assert_int_equal(outcome.unchanged, 199);
    assert_like_new(f, &shuffled);
    assert_int_equal(count_entries(f->directory), 1);
}

/* A list that has another order after a kill: its records are found in the log. */
static void test_list_in_log(void **state)
{
    struct fixture *f = *state;
    f->sources[0] = "-";
    struct world world = {.count = 0};
    for (uint64_t i = 0; i < 120; i++)
        add(&world, 0, i * 37 % 131, 0);
    run_part(f, &world, 70);
    run_part(f, &world, 100);
    struct world reversed = world;
    for (unsigned i = 0; i < 120; i++)
        reversed.item[i] = world.item[119 - i];
    struct outcome outcome = run(f, &reversed);
    assert_int_equal(outcome.resumed, 100);
    assert_int_equal(outcome.fresh, 20);
    assert_like_new(f, &reversed);
}

/* Items in the log that the walk no longer finds are omitted. */
static void test_vanished_before_resuming(void **state)
{
    struct fixture *f = *state;
    struct world world = plain(100), next = {.count = 0};
    run_part(f, &world, 80);
    for (uint64_t id = 0; id < 100; id++)
        if (id % 3)
            add(&next, 0, id, id == 40);
    struct outcome outcome = run(f, &next);
    assert_int_equal(outcome.resumed, 52);
    assert_int_equal(outcome.fresh, 14);
    assert_like_new(f, &next);
}

/* Batches of rows from the log only, from the file only and from both, with any number of
 * threads. */
static void test_many_rows(void **state)
{
    struct fixture *f = *state;
    static struct world some, all;
    all = plain(MOST);
    some.count = 0;
    for (unsigned i = 0; i < MOST; i++)
        if (i < 1100 || i > 2300 || (i > 1800 && i % 50 == 0))
            add(&some, 0, i, 0);
    for (unsigned threads = 0; threads < 5; threads += 2) {
        f->config.threads = threads;
        run(f, &some);
        const struct outcome outcome = run(f, &all);
        assert_int_equal(outcome.unchanged, some.count);
        assert_like_new(f, &all);
        unlink(f->output);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_nothing_new, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_added_removed_changed, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_interrupted_update, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_retry_failed, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_unreadable_is_tried_again, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_lists, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_list_in_log, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_vanished_before_resuming, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_many_rows, fixture_open, fixture_close),
};
TEST_GROUP(update, NULL, NULL)
