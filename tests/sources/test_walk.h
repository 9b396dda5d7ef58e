/* test_walk.h: a scratch directory for tests of the walk, and their common functions.
 *
 * Each test runs in a new directory, so that its paths are relative and short. */
#ifndef CLPIPE_TESTS_UNIT_TEST_WALK_H
#define CLPIPE_TESTS_UNIT_TEST_WALK_H

#include "runner.h"

#include "base/clock.h"
#include "decode/decode.h"
#include "sources/walk.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

struct scratch {
    char path[64];
    int home; /* descriptor of the original directory */
};

/* The scratch directory is in memory if there is space, because creating thousands of directories
 * on a busy disk is slow. */
static inline const char *scratch_parent(void)
{
    struct statvfs room;
    bool roomy = statvfs("/dev/shm", &room) == 0 && access("/dev/shm", W_OK) == 0 &&
                 (uint64_t)room.f_bavail * room.f_frsize >= (uint64_t)256 << 20;
    return roomy ? "/dev/shm" : "/tmp";
}

static inline int scratch_setup(void **state)
{
    struct scratch *scratch = calloc(1, sizeof *scratch);
    assert_non_null(scratch);
    snprintf(scratch->path, sizeof scratch->path, "%s/clpipe-test-walk-XXXXXX", scratch_parent());
    assert_non_null(mkdtemp(scratch->path));
    assert_int_equal(chmod(scratch->path, 0755), 0);
    scratch->home = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(scratch->home >= 0);
    assert_int_equal(chdir(scratch->path), 0);
    assert_int_equal(mkdir("spool", 0777), 0);
    *state = scratch;
    return 0;
}

/* rm(1) can remove trees that are too deep for a path. */
static inline int scratch_teardown(void **state)
{
    struct scratch *scratch = *state;
    assert_int_equal(fchdir(scratch->home), 0);
    pid_t child = fork();
    if (child == 0) {
        execlp("rm", "rm", "-rf", scratch->path, (char *)NULL);
        _exit(127);
    }
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    close(scratch->home);
    free(scratch);
    return result;
}

#define walk_test(function)                                                                        \
    cmocka_unit_test_setup_teardown(function, scratch_setup, scratch_teardown)

static inline void put_file_at(int directory, const char *path, const char *content)
{
    int fd = openat(directory, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    assert_true(fd >= 0);
    size_t size = strlen(content);
    assert_int_equal(write(fd, content, size), size);
    close(fd);
}

static inline void put_file(const char *path, const char *content)
{
    put_file_at(AT_FDCWD, path, content);
}

static inline void put_directory(const char *path)
{
    assert_int_equal(mkdir(path, 0777), 0);
}

/* Returns a configuration for one source that spools into the scratch directory. */
static inline struct walk_config config_for(const char *const *source)
{
    return (struct walk_config){.options = {.sources = source, .source_count = 1},
                                .spool_directory = "spool",
                                .promises_image = format_promised};
}

static inline struct walk *open_walk(const struct walk_config *config)
{
    struct error err = ERROR_INIT;
    struct walk *walk = NULL;
    enum status status = walk_open(&walk, config, &err);
    if (status != STATUS_OK)
        print_error("walk_open: %s\n", err.sentence);
    assert_int_equal(status, STATUS_OK);
    return walk;
}

/* Opens a walk, which must fail, and returns the error. */
static inline struct error fail_to_open(const struct walk_config *config, enum status expected)
{
    struct error err = ERROR_INIT;
    struct walk *walk = NULL;
    assert_int_equal(walk_open(&walk, config, &err), expected);
    assert_null(walk);
    assert_int_equal(err.status, expected);
    assert_null(strchr(err.sentence, '\n'));
    return err;
}

/* Reads the whole walk and compares it with `expected`, which has a line "path" for each item, or
 * "path reason" for a failure; also checks the number of items and the sum of sizes. */
static inline void assert_walk(struct walk *walk, const char *expected)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    struct walk_item item;
    struct error err = ERROR_INIT;
    uint64_t count = 0, bytes = 0;
    enum status status;
    while ((status = walk_next(walk, &item, &err)) == STATUS_OK) {
        assert_int_equal(item.sequence, count);
        assert_int_equal(strlen(item.path), item.path_length);
        fwrite(item.path, 1, item.path_length, out);
        if (item.entry.failure.reason != REASON_NONE) {
            fprintf(out, " %s", reason_name(item.entry.failure.reason));
            assert_true(item.entry.failure.message[0] != 0);
        }
        fputc('\n', out);
        count++;
        bytes += item.entry.bytes;
    }
    assert_int_equal(status, STATUS_END);
    assert_int_equal(walk_next(walk, &item, &err), STATUS_END);
    assert_int_equal(walk_count(walk), count);
    assert_int_equal(walk_bytes(walk), bytes);
    fclose(out);
    assert_string_equal(text, expected);
    free(text);
}

static inline void assert_walks(const struct walk_config *config, const char *expected)
{
    struct walk *walk = open_walk(config);
    assert_walk(walk, expected);
    walk_close(&walk);
    assert_null(walk);
}

/* Opens an item's file; returns a descriptor, or -1 with errno. */
static inline int open_member(const struct walk *walk, uint16_t source, const char *path)
{
    const struct source_member member = {.path = path};
    struct blob blob = BLOB_NOTHING;
    struct failure failure = {.reason = REASON_NONE};
    if (walk_open_member(&blob, walk, source, &member, &failure) != REASON_NONE)
        errno = failure.error_number;
    return blob.fd;
}

/* Skips `skip` items and returns the next one, whose pointers are valid until walk_close. */
static inline struct walk_item item_at(struct walk *walk, unsigned skip)
{
    struct walk_item item;
    struct error err = ERROR_INIT;
    for (unsigned i = 0; i <= skip; i++)
        assert_int_equal(walk_next(walk, &item, &err), STATUS_OK);
    return item;
}

/* Runs `body` in a child process without permission to read all files. After a failed assertion the
 * child continues as a test program, and its exit status is not 0. */
static inline void as_unprivileged(void (*body)(void))
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
            _exit(2);
        body();
        _exit(0);
    }
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result));
    assert_int_equal(WEXITSTATUS(result), 0);
}

#endif
