/* test_extsort.c: the external sort compared with qsort: in memory, with several runs, and with
 * several merge passes. */

#include "runner.h"

#include "sources/extsort.h"
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SMALL_MEMORY (64 * 1024)
#define LARGE_MEMORY (64 * 1024 * 1024)

struct key {
    uint32_t length, number;
    unsigned char *bytes;
};

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static int by_key_then_number(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    int order = memcmp(x->bytes, y->bytes, x->length < y->length ? x->length : y->length);
    order = order ? order : (x->length > y->length) - (x->length < y->length);
    return order ? order : (x->number > y->number) - (x->number < y->number);
}

enum fill { FILL_RANDOM, FILL_PATHS, FILL_EQUAL, FILL_SORTED, FILL_REVERSED, FILL_ZEROS, FILLS };
static const char *const fill_names[] = {"random", "paths", "equal", "sorted", "reversed", "zeros"};

static struct key make_key(enum fill fill, uint32_t number, uint32_t count, uint64_t *state)
{
    struct key key = {.number = number};
    char text[512];
    switch (fill) {
    case FILL_RANDOM: /* few distinct bytes, so that many keys are equal or share a prefix */
        key.length = (uint32_t)(next_random(state) % 24);
        for (uint32_t i = 0; i < key.length; i++)
            text[i] = (char)(next_random(state) % 3 + (next_random(state) % 2 ? 0 : 253));
        break;
    case FILL_PATHS:
        key.length = (uint32_t)snprintf(text, sizeof text, "%0200u/directory%u/image_%u.jpg", 0,
                                        (unsigned)(next_random(state) % 7),
                                        (unsigned)(next_random(state) % (2 * count)));
        break;
    case FILL_EQUAL:
        key.length = (uint32_t)snprintf(text, sizeof text, "always the same");
        break;
    case FILL_SORTED:
        key.length = (uint32_t)snprintf(text, sizeof text, "%08u", number);
        break;
    case FILL_REVERSED:
        key.length = (uint32_t)snprintf(text, sizeof text, "%08u", count - number);
        break;
    default: /* zeros of any length: padding must not make them equal */
        key.length = (uint32_t)(next_random(state) % 40);
        memset(text, 0, key.length);
    }
    key.bytes = malloc(key.length + 1);
    assert_non_null(key.bytes);
    memcpy(key.bytes, text, key.length);
    return key;
}

static struct extsort *open_sort(uint64_t memory, struct stop *stop)
{
    struct extsort *sort = NULL;
    struct error err = ERROR_INIT;
    assert_int_equal(extsort_open(&sort, "/tmp", memory, stop, &err), STATUS_OK);
    return sort;
}

/* Sorts `count` keys of a fill, each with its number as payload, and compares them with qsort: the
 * keys have the same order, and each payload occurs once, with its key. */
static void check_fill(enum fill fill, uint32_t count, uint64_t memory)
{
    struct error err = ERROR_INIT;
    struct extsort *sort = open_sort(memory, NULL);
    struct key *keys = calloc(count, sizeof *keys);
    bool *seen = calloc(count, sizeof *seen);
    uint64_t state = 88172645463325252u + fill;
    assert_non_null(keys);
    assert_non_null(seen);
    for (uint32_t i = 0; i < count; i++) {
        keys[i] = make_key(fill, i, count, &state);
        struct extsort_record record = {.key = (char *)keys[i].bytes,
                                        .key_length = keys[i].length,
                                        .payload = (char *)&keys[i].number,
                                        .payload_length = sizeof keys[i].number};
        assert_int_equal(extsort_add(sort, &record, &err), STATUS_OK);
    }
    struct key *sorted = calloc(count, sizeof *sorted);
    assert_non_null(sorted);
    memcpy(sorted, keys, count * sizeof *keys);
    qsort(sorted, count, sizeof *sorted, by_key_then_number);
    assert_int_equal(extsort_finish(sort, &err), STATUS_OK);
    for (uint32_t i = 0; i < count; i++) {
        struct extsort_record record;
        uint32_t number;
        assert_int_equal(extsort_next(sort, &record, &err), STATUS_OK);
        if (record.key_length != sorted[i].length ||
            memcmp(record.key, sorted[i].bytes, record.key_length) != 0)
            fail_msg("fill %s, %u records, memory %llu: record %u differs", fill_names[fill], count,
                     (unsigned long long)memory, i);
        assert_int_equal(record.payload_length, sizeof number);
        memcpy(&number, record.payload, sizeof number);
        assert_true(number < count && !seen[number]);
        seen[number] = true;
        assert_int_equal(keys[number].length, record.key_length);
        assert_memory_equal(keys[number].bytes, record.key, record.key_length);
    }
    struct extsort_record record;
    assert_int_equal(extsort_next(sort, &record, &err), STATUS_END);
    assert_int_equal(extsort_next(sort, &record, &err), STATUS_END);
    extsort_close(&sort);
    assert_null(sort);
    for (uint32_t i = 0; i < count; i++)
        free(keys[i].bytes);
    free(keys);
    free(sorted);
    free(seen);
}

static void test_fills(void **state)
{
    (void)state;
    static const uint32_t counts[] = {0, 1, 2, 3, 19, 20, 21, 1000, 9000};
    for (int fill = 0; fill < FILLS; fill++)
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
            check_fill((enum fill)fill, counts[i], LARGE_MEMORY);
            check_fill((enum fill)fill, counts[i], SMALL_MEMORY);
        }
}

/* 64 KiB suffice to merge two runs at a time: 130 runs need eight passes. */
static void test_many_passes(void **state)
{
    (void)state;
    check_fill(FILL_PATHS, 30000, SMALL_MEMORY);
}

/* Records larger than the whole memory among small ones. */
static void test_large_records(void **state)
{
    (void)state;
    enum { COUNT = 40, SIZE = 150000 };
    struct error err = ERROR_INIT;
    struct extsort *sort = open_sort(SMALL_MEMORY, NULL);
    char *bytes = malloc(SIZE);
    assert_non_null(bytes);
    memset(bytes, 'x', SIZE);
    for (int i = COUNT; i-- > 0;) {
        uint32_t size = i % 2 ? SIZE : 1000;
        snprintf(bytes + size - 16, 16, "%015d", i);
        struct extsort_record record = {.key = bytes, .key_length = size};
        assert_int_equal(extsort_add(sort, &record, &err), STATUS_OK);
        memset(bytes + size - 16, 'x', 16);
    }
    assert_int_equal(extsort_finish(sort, &err), STATUS_OK);
    for (int i = 0; i < COUNT; i++) {
        /* Short records come first: they have digits where the long ones still have x. */
        int expected = i < COUNT / 2 ? 2 * i : 2 * (i - COUNT / 2) + 1;
        struct extsort_record record;
        assert_int_equal(extsort_next(sort, &record, &err), STATUS_OK);
        assert_int_equal(record.key_length, expected % 2 ? SIZE : 1000);
        assert_int_equal(atoi(record.key + record.key_length - 16), expected);
    }
    free(bytes);
    extsort_close(&sort);
}

static enum status add_until_failure(struct extsort *sort, struct error *err, unsigned count)
{
    char key[200] = {0};
    for (unsigned i = 0; i < count; i++) {
        snprintf(key, sizeof key, "%u", i);
        struct extsort_record record = {.key = key, .key_length = sizeof key};
        enum status status = extsort_add(sort, &record, err);
        if (status != STATUS_OK)
            return status;
    }
    return extsort_finish(sort, err);
}

static void test_stop(void **state)
{
    (void)state;
    struct stop stop = {0};
    struct error err = ERROR_INIT;
    struct extsort *sort = open_sort(LARGE_MEMORY, &stop);
    stop_request(&stop, STOP_SIGNAL);
    assert_int_equal(add_until_failure(sort, &err, 2000), STATUS_INTERRUPTED);
    assert_int_equal(err.status, STATUS_INTERRUPTED);
    extsort_close(&sort);
}

/* Prepares a disk that fills up: a small tmpfs if mounting is permitted, otherwise a limit on file
 * sizes, which makes the same write() fail with another error. Returns the expected errno. */
static int fill_soon(char *directory)
{
    if (unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
        mount("none", directory, "tmpfs", 0, "size=256k") == 0)
        return ENOSPC;
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit = {256 * 1024, 256 * 1024};
    setrlimit(RLIMIT_FSIZE, &limit);
    return EFBIG;
}

static void test_full_disk(void **state)
{
    (void)state;
    char directory[] = "/tmp/clpipe-test-extsort-XXXXXX";
    assert_non_null(mkdtemp(directory));
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int expected = fill_soon(directory);
        struct error err = ERROR_INIT;
        struct extsort *sort = NULL;
        if (extsort_open(&sort, directory, SMALL_MEMORY, NULL, &err) != STATUS_OK)
            _exit(2);
        enum status status = add_until_failure(sort, &err, 10000);
        extsort_close(&sort);
        if (status != STATUS_FAILED || err.native != expected)
            _exit(3);
        if (!strstr(err.sentence, directory) || strchr(err.sentence, '\n'))
            _exit(4);
        if (expected == ENOSPC && !strstr(err.sentence, "free some space"))
            _exit(5);
        _exit(0);
    }
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    assert_int_equal(rmdir(directory), 0); /* all files were removed */
}

static void test_no_directory(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct extsort *sort = NULL;
    assert_int_equal(extsort_open(&sort, "/nonexistent/spool", SMALL_MEMORY, NULL, &err),
                     STATUS_OK);
    assert_int_equal(add_until_failure(sort, &err, 10000), STATUS_FAILED);
    assert_int_equal(err.native, ENOENT);
    extsort_close(&sort);

    /* Data that fit into memory need no spool directory. */
    assert_int_equal(extsort_open(&sort, "/nonexistent/spool", SMALL_MEMORY, NULL, &err),
                     STATUS_OK);
    assert_int_equal(add_until_failure(sort, &err, 100), STATUS_OK);
    extsort_close(&sort);
    extsort_close(&sort);
    extsort_close(NULL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_fills),         cmocka_unit_test(test_many_passes),
    cmocka_unit_test(test_large_records), cmocka_unit_test(test_stop),
    cmocka_unit_test(test_full_disk),     cmocka_unit_test(test_no_directory),
};
TEST_GROUP(extsort, NULL, NULL)
