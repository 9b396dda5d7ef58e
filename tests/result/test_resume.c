/* test_resume.c: what a run that ended early leaves, and how the next run uses it. */
#include "base/stop.h"
#include "result/h5.h"
#include "test_store_common.h"
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

static void nap(long microseconds)
{
    struct timespec time = {microseconds / 1000000, microseconds % 1000000 * 1000};
    nanosleep(&time, NULL);
}

/* Returns the file that an uninterrupted run makes from items 0 to count. */
static char *reference(struct fixture *f, uint64_t count, size_t *size)
{
    struct store_summary summary;
    unsigned counts[3] = {0};
    run_items(f, 0, count, 1, 0, &summary, counts);
    char *bytes = read_file(f->output, size);
    unlink(f->output);
    return bytes;
}

static void assert_same_file(const char *path, const char *bytes, size_t size)
{
    size_t now;
    char *found = read_file(path, &now);
    assert_int_equal(now, size);
    assert_memory_equal(found, bytes, size);
    free(found);
}

/* --- kills ----------------------------------------------------------------------------------- */

#define KILLED_ITEMS 3000

/* Memory that a killed process shares with its parent. */
struct shared {
    volatile uint64_t sealed; /* records that survive in any case */
    volatile uint64_t found;  /* earlier records that this process found */
    volatile bool finishing;  /* all records are in the log */
};

/* A run that may be killed anywhere. It must not use cmocka, because it is another process. */
static int run_in_child(struct fixture *f, struct shared *shared)
{
    struct error error = ERROR_INIT;
    struct store *store;
    struct store_summary summary;
    static struct made made;
    if (store_open(&store, &f->config, &error))
        return 1;
    shared->found = 0;
    for (uint64_t id = 0; id < KILLED_ITEMS; id++) {
        struct store_record prior;
        make_record(&made, id, 0);
        struct store_record *record = &made.record;
        if (prior_find(store_prior(store), 0, record->path, record->path_length,
                       record->image.bytes, record->image.mtime_ns, &prior)) {
            shared->found++;
            record = &prior;
        }
        record->sequence = id;
        if (store_put(store, record, &error))
            return 2;
        if (mix(id) % 97 == 0) {
            uint64_t written = journal_count(store_journal(store));
            if (journal_seal(store_journal(store), &error))
                return 3;
            if (written > shared->sealed)
                shared->sealed = written;
        }
    }
    shared->finishing = true;
    if (store_finish(store, &test_run, &summary, &error))
        return 4;
    store_close(&store);
    return 0;
}

/* Kills runs at any time, or while they write the file from the log. */
static void kill_often(struct fixture *f, bool when_finishing)
{
    size_t size;
    char *bytes = reference(f, KILLED_ITEMS, &size);
    struct shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(shared, MAP_FAILED);
    int kills = 0;
    uint64_t seed = (uint64_t)getpid();
    print_message("seed %llu\n", (unsigned long long)seed);
    for (bool done = false; !done;) {
        uint64_t sealed = shared->sealed;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            _exit(run_in_child(f, shared));
        for (int i = 0; when_finishing && i < 10000 && !shared->finishing && kills < 25; i++)
            nap(100);
        shared->finishing = false;
        if (when_finishing && kills < 25)
            nap((long)(mix(seed + (uint64_t)kills) % 12000));
        /* The first kills come early, later ones later; the last runs are not killed. */
        else if (kills < 25)
            nap(500 + (long)(mix(seed + (uint64_t)kills) % (uint64_t)(2000 + 2000 * kills)));
        if (kills < 25 && kill(child, SIGKILL) == 0)
            kills++;
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFEXITED(status)) {
            assert_int_equal(WEXITSTATUS(status), 0);
            assert_true(shared->found >= sealed);
            done = true;
        }
    }
    print_message("%d kills, %llu of %d records found by the last run\n", kills,
                  (unsigned long long)shared->found, KILLED_ITEMS);
    assert_same_file(f->output, bytes, size);
    assert_int_equal(count_entries(f->directory), 1);
    munmap(shared, sizeof *shared);
    free(bytes);
}

static void test_kills(void **state)
{
    kill_often(*state, false);
}

static void test_kills_while_the_file_is_written(void **state)
{
    kill_often(*state, true);
}

/* --- torn tails ------------------------------------------------------------------------------ */

/* Opens the store with a given log, of whose `count` records the first `whole` must be found. */
static void expect_prior(struct fixture *f, const char *log, size_t size, uint64_t whole,
                         uint64_t count)
{
    struct error error = ERROR_INIT;
    struct store *store;
    put_log(f, log, size);
    assert_ok(store_open(&store, &f->config, &error));
    for (uint64_t id = 0; id < count; id++)
        assert_int_equal(put_item(store, id, 0, id, 0), id < whole ? 2 : 0);
    store_close(&store);
    assert_int_equal(access(f->log, F_OK), whole > 0 ? 0 : -1);
}

static void test_torn_tails(void **state)
{
    struct fixture *f = *state;
    struct error error = ERROR_INIT;
    struct store *store;
    const uint64_t count = 4; /* the last record is a failure, which is short */
    size_t all, size, before;
    const size_t step = test_brief() ? 17 : 1;
    char *bytes = reference(f, count, &all);
    assert_ok(store_open(&store, &f->config, &error));
    for (uint64_t id = 0; id + 1 < count; id++)
        put_item(store, id, 0, id, 0);
    assert_ok(journal_seal(store_journal(store), &error));
    free(get_log(f, &before));
    put_item(store, count - 1, 0, count - 1, 0);
    store_close(&store);
    char *log = get_log(f, &size);
    assert_true(size > before + 60);
    while (log[size - 1] == 0)
        size--;
    /* The last block is truncated at each length, and each of its bytes is changed. */
    for (size_t cut = before; cut < size; cut += step)
        expect_prior(f, log, cut, count - 1, count);
    for (size_t at = before; at < size; at += step) {
        log[at] ^= 0x10;
        expect_prior(f, log, size, count - 1, count);
        log[at] ^= 0x10;
    }
    expect_prior(f, log, size, count, count);
    /* A file system may leave other data after the end. */
    char *longer = calloc(1, size + 5000);
    memcpy(longer, log, size);
    expect_prior(f, longer, size + 5000, count, count);
    for (size_t i = size; i < size + 5000; i++)
        longer[i] = (char)mix(i);
    expect_prior(f, longer, size + 5000, count, count);
    free(longer);
    /* The log is truncated anywhere; if only part of its header remains, it is not a log. */
    for (size_t cut = 0; cut < before; cut += 7 * step) {
        put_log(f, log, cut);
        assert_ok(store_open(&store, &f->config, &error));
        store_close(&store);
    }
    /* A damaged block in the middle loses only its own rows. */
    for (unsigned i = 0; i < 100 / step; i++) {
        const size_t at = 4096 + mix(i) % (before - 4096);
        log[at] ^= 0x08;
        put_log(f, log, size);
        log[at] ^= 0x08;
        assert_ok(store_open(&store, &f->config, &error));
        unsigned found = 0;
        for (uint64_t id = 0; id < count; id++)
            found += put_item(store, id, 0, id, 0) == 2;
        /* Nothing is lost if the damage is after the block's columns. */
        assert_true(found == 1 || found == count);
        store_close(&store);
    }
    put_log(f, log, before + 5);
    struct store_summary summary;
    unsigned counts[3] = {0};
    run_items(f, 0, count, 1, 0, &summary, counts);
    assert_int_equal(counts[2], count - 1);
    assert_same_file(f->output, bytes, all);
    free(log);
    free(bytes);
}

/* --- stops ----------------------------------------------------------------------------------- */

/* Writing the file, and reading the log before that, can be interrupted; the log is kept. */
static void test_stop(void **state)
{
    struct fixture *f = *state;
    struct error error = ERROR_INIT;
    struct store *store;
    struct store_summary summary;
    struct stop stop = {0};
    const uint64_t count = 200;
    f->config.stop = &stop;
    assert_ok(store_open(&store, &f->config, &error));
    for (uint64_t id = 0; id < count; id++)
        put_item(store, id, 0, id, 0);
    stop_request(&stop, STOP_SIGNAL);
    assert_int_equal(store_finish(store, &test_run, &summary, &error), STATUS_INTERRUPTED);
    store_close(&store);
    assert_int_equal(access(f->output, F_OK), -1);
    assert_int_equal(store_open(&store, &f->config, &error), STATUS_INTERRUPTED);
    assert_null(store);
    stop.cause = STOP_NONE;
    unsigned counts[3] = {0};
    run_items(f, 0, count, 1, 0, &summary, counts);
    assert_int_equal(counts[2], count);
    /* An interrupted update does not change the file. */
    char before[65], after[65];
    identity_of(before, f->output);
    assert_ok(store_open(&store, &f->config, &error));
    for (uint64_t id = 0; id <= count; id++)
        put_item(store, id, 0, id, 0);
    stop_request(&stop, STOP_TIME);
    assert_int_equal(store_finish(store, &test_run, &summary, &error), STATUS_INTERRUPTED);
    store_close(&store);
    identity_of_unverified(after, f->output);
    assert_string_equal(before, after);
    stop.cause = STOP_NONE;
    memset(counts, 0, sizeof counts);
    run_items(f, 0, count + 1, 1, 0, &summary, counts);
    assert_int_equal(counts[0], 0);
    assert_int_equal(counts[2], 1);
}

/* When a run ends early, records that wait for a missing one are written to the log. */
static void test_stop_with_gaps(void **state)
{
    struct fixture *f = *state;
    struct error error = ERROR_INIT;
    struct store *store;
    struct store_summary summary;
    const uint64_t count = 400;
    uint64_t kept;
    unsigned counts[3] = {0};
    size_t size;
    char *bytes = reference(f, count, &size);
    assert_ok(store_open(&store, &f->config, &error));
    for (uint64_t id = count; id-- > 0;)
        if (id % 100 != 37)
            put_item(store, id, 0, id, 0);
    assert_int_equal(journal_count(store_journal(store)), 37);
    assert_ok(journal_stop(store_journal(store), &kept, &error));
    assert_int_equal(kept, count - 4);
    store_close(&store);
    run_items(f, 0, count, 1, 0, &summary, counts);
    assert_int_equal(counts[0], 4);
    assert_int_equal(counts[2], count - 4);
    assert_same_file(f->output, bytes, size);
    free(bytes);
}

/* --- full disks ------------------------------------------------------------------------------ */

/* A run with too little disk space, in a process of its own. Returns 0 if it succeeds, 1 for a
 * proper failure, and other values for errors. */
static int run_without_room(struct fixture *f, uint64_t count)
{
    struct error error = ERROR_INIT;
    struct store *store;
    struct store_summary summary;
    static struct made made;
    enum status status = store_open(&store, &f->config, &error);
    for (uint64_t id = 0; !status && id < count; id++) {
        struct store_record prior;
        make_record(&made, id, 0);
        struct store_record *record = &made.record;
        if (prior_find(store_prior(store), 0, record->path, record->path_length,
                       record->image.bytes, record->image.mtime_ns, &prior))
            record = &prior;
        record->sequence = id;
        status = store_put(store, record, &error);
        if (status && store_put(store, record, &error) != status)
            return 10;
    }
    if (!status)
        status = store_finish(store, &test_run, &summary, &error);
    store_close(&store);
    if (!status)
        return access(f->output, F_OK) ? 11 : 0;
    if (status != STATUS_FAILED || error.status != status || strchr(error.sentence, '\n'))
        return 12;
    if (!strstr(error.sentence, "full") && !strstr(error.sentence, "larger than")) {
        fprintf(stderr, "unclear: %s\n", error.sentence);
        return 13;
    }
    return access(f->output, F_OK) ? 1 : 14;
}

static int exit_of(pid_t child)
{
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void test_file_size_limit(void **state)
{
    struct fixture *f = *state;
    const uint64_t count = 400;
    size_t size;
    char *bytes = reference(f, count, &size);
    int failed = 0, passed = 0;
    for (size_t limit = 2000; passed == 0; limit += 19 * 1024) {
        pid_t child = fork();
        if (child == 0) {
            struct rlimit no_more = {limit, limit};
            signal(SIGXFSZ, SIG_IGN);
            setrlimit(RLIMIT_FSIZE, &no_more);
            _exit(run_without_room(f, count));
        }
        int code = exit_of(child);
        assert_in_range(code, 0, 1);
        failed += code;
        passed += !code;
    }
    assert_true(failed > 5);
    assert_same_file(f->output, bytes, size);
    assert_int_equal(count_entries(f->directory), 1);
    free(bytes);
}

static void test_file_size_limit_of_chunks(void **state)
{
    struct fixture *f = *state;
    f->config.compress = true;
    test_file_size_limit(state);
}

/* The same test on small file systems, each in a mount namespace of its own. */
static int run_on_small_disk(struct fixture *f, unsigned kilobytes, uint64_t count)
{
    char options[64];
    snprintf(options, sizeof options, "size=%uk", kilobytes);
    if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("none", f->directory, "tmpfs", 0, options))
        return 77;
    int code = run_without_room(f, count);
    if (code != 1)
        return code;
    /* Records in the log are kept: with more space, the rest is done quickly. */
    if (count_entries(f->directory) > (access(f->work, F_OK) == 0))
        return 15;
    snprintf(options, sizeof options, "size=%uk", 64 * 1024);
    if (mount("none", f->directory, "tmpfs", MS_REMOUNT, options))
        return 16;
    code = run_without_room(f, count);
    return code ? 20 + code : 1;
}

static void test_full_disk(void **state)
{
    struct fixture *f = *state;
    int failed = 0, passed = 0;
    for (unsigned kilobytes = 8; passed == 0; kilobytes += 68) {
        pid_t child = fork();
        if (child == 0)
            _exit(run_on_small_disk(f, kilobytes, 600));
        int code = exit_of(child);
        if (code == 77) {
            print_message("skipped: no file system can be mounted here\n");
            skip();
        }
        assert_in_range(code, 0, 1);
        failed += code;
        passed += !code;
    }
    assert_true(failed > 5);
}

/* As the program does: HDF5 1.10 crashes at exit if a file was abandoned. */
static int setup(void **state)
{
    (void)state;
    h5_without_exit_handler();
    return 0;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_kills, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_kills_while_the_file_is_written, fixture_open,
                                    fixture_close),
    cmocka_unit_test_setup_teardown(test_torn_tails, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_stop, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_stop_with_gaps, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_file_size_limit, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_file_size_limit_of_chunks, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_full_disk, fixture_open, fixture_close),
};
TEST_GROUP(resume, setup, NULL)
