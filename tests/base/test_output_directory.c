/* test_output_directory.c: directories that appear completely or not at all, and replace only
 * directories of the same kind. */
#include "runner.h"

#include "base/output.h"
#include "base/output_directory.h"
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const names[] = {".mine", "page", "data", NULL};
static char root[64];

static int make_root(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/clpipe-directory-XXXXXX");
    return mkdtemp(root) && chdir(root) == 0 ? 0 : -1;
}

static int remove_root(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf -- '%s'", root);
    return chdir("/") || system(command);
}

static unsigned entries(const char *path)
{
    DIR *stream = opendir(path);
    unsigned count = 0;
    assert_non_null(stream);
    while (readdir(stream))
        count++;
    closedir(stream);
    return count - 2;
}

static bool holds(const char *path, const char *text)
{
    char content[64] = "";
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    const size_t size = fread(content, 1, sizeof content - 1, file);
    fclose(file);
    return size == strlen(text) && strcmp(content, text) == 0;
}

static void fill(struct output_directory **out, const char *path, const char *text)
{
    struct error err = ERROR_INIT;
    assert_int_equal(output_directory_open(out, path, names, &err), STATUS_OK);
    assert_int_equal(output_directory_add(*out, "data", &err), STATUS_OK);
    assert_int_equal(output_directory_write(*out, ".mine", "", 0, &err), STATUS_OK);
    assert_int_equal(output_directory_write(*out, "page", text, strlen(text), &err), STATUS_OK);
    assert_int_equal(output_directory_write(*out, "data/1", "x", 1, &err), STATUS_OK);
}

static void write_whole(const char *path, const char *text)
{
    struct output_directory *directory;
    struct error err = ERROR_INIT;
    fill(&directory, path, text);
    assert_int_equal(output_directory_commit(directory, &err), STATUS_OK);
    output_directory_close(&directory);
    assert_null(directory);
}

static void appears_and_is_replaced_completely(void **state)
{
    (void)state;
    struct output_directory *directory;
    fill(&directory, "d/", "first");
    assert_int_equal(access("d", F_OK), -1);
    output_directory_close(&directory); /* closed without a commit */
    assert_int_equal(entries("."), 0);
    write_whole("d", "first");
    assert_true(holds("d/page", "first"));
    write_whole("d//", "second");
    assert_true(holds("d/page", "second") && holds("d/data/1", "x"));
    assert_int_equal(entries("."), 1);
    assert_int_equal(entries("d"), 3);
}

static void assert_refused(const char *path, const char *part)
{
    struct output_directory *directory;
    struct error err = ERROR_INIT;
    assert_int_equal(output_directory_open(&directory, path, names, &err), STATUS_FAILED);
    assert_null(directory);
    if (!strstr(err.sentence, part))
        fail_msg("'%s' does not contain '%s'", err.sentence, part);
}

static void replaces_only_its_own_kind(void **state)
{
    (void)state;
    assert_int_equal(mkdir("empty", 0777) | mkdir("foreign", 0777) | mkdir("foreign/page", 0777),
                     0);
    write_whole("empty", "text");
    assert_refused("foreign", "was not written by clpipe");
    write_whole("d", "text");
    FILE *file = fopen("d/other", "w");
    assert_non_null(file);
    fclose(file);
    assert_refused("d", "holds other, which clpipe did not write");
    assert_refused("d/other", "is not a directory");
    assert_refused("no/such", "must exist");
    assert_refused(".", "name a directory in it");
    assert_refused("/", "name a directory in it");
    assert_true(holds("d/page", "text"));
    /* A file that is added while the new directory is being written is not lost either. */
    struct output_directory *directory;
    struct error err = ERROR_INIT;
    assert_int_equal(unlink("d/other"), 0);
    fill(&directory, "d", "later");
    assert_int_equal(mkdir("d/other", 0777), 0);
    assert_int_equal(output_directory_commit(directory, &err), STATUS_FAILED);
    output_directory_close(&directory);
    assert_true(holds("d/page", "text"));
    assert_int_equal(entries("."), 3);
}

/* Another process makes the directory as soon as it was found to be free. */
static enum status find_free(void *context, struct error *err)
{
    unsigned *calls = context;
    (void)err;
    if (++*calls == 2) {
        assert_int_equal(mkdir("d", 0777), 0);
        FILE *file = fopen("d/foreign", "w");
        assert_non_null(file);
        fclose(file);
    }
    return STATUS_OK;
}

static void replaces_nothing_that_was_not_checked(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct output_directory *directory;
    unsigned calls = 0;
    assert_int_equal(output_directory_open_if(&directory, "d", find_free, &calls, &err), STATUS_OK);
    assert_int_equal(output_directory_write(directory, "page", "x", 1, &err), STATUS_OK);
    const enum status status = output_directory_commit(directory, &err);
    output_directory_close(&directory);
    /* Either the new one is there, or the foreign one still is. */
    assert_true(status == STATUS_OK ? holds("d/page", "x") : access("d/foreign", F_OK) == 0);
    assert_int_equal(calls == 2, access("d/foreign", F_OK) == 0);
    assert_int_equal(entries("."), 1);
}

static void a_link_is_kept(void **state)
{
    (void)state;
    assert_int_equal(symlink("target", "link"), 0);
    write_whole("link", "one");
    write_whole("link", "two");
    struct stat st;
    assert_int_equal(lstat("link", &st), 0);
    assert_true(S_ISLNK(st.st_mode) && holds("target/page", "two"));
    assert_int_equal(entries("."), 2);
}

static void leftovers_of_a_killed_writer_are_removed(void **state)
{
    (void)state;
    struct output_directory *directory;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct error err = ERROR_INIT;
        if (output_directory_open(&directory, "d", names, &err) == STATUS_OK)
            output_directory_write(directory, "page", "half", 4, &err);
        raise(SIGKILL);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(entries("."), 1);
    assert_int_equal(access("d", F_OK), -1);
    write_whole("d", "whole");
    assert_int_equal(entries("."), 1);
    assert_true(holds("d/page", "whole"));
}

/* Other processes that start at the same time remove abandoned directories, but never one that is
 * in use. */
static void concurrent_writers_do_not_interfere(void **state)
{
    (void)state;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            output_directory_remove_abandoned("d");
    }
    for (unsigned i = 0; i < 3000; i++) {
        struct output_directory *directory;
        struct error err = ERROR_INIT;
        if (output_directory_open(&directory, "d", names, &err) != STATUS_OK)
            fail_msg("%u: %s", i, err.sentence);
        assert_int_equal(access(output_directory_temporary(directory), F_OK), 0);
        output_directory_close(&directory);
    }
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(entries("."), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(appears_and_is_replaced_completely, make_root, remove_root),
    cmocka_unit_test_setup_teardown(replaces_only_its_own_kind, make_root, remove_root),
    cmocka_unit_test_setup_teardown(replaces_nothing_that_was_not_checked, make_root, remove_root),
    cmocka_unit_test_setup_teardown(a_link_is_kept, make_root, remove_root),
    cmocka_unit_test_setup_teardown(leftovers_of_a_killed_writer_are_removed, make_root,
                                    remove_root),
    cmocka_unit_test_setup_teardown(concurrent_writers_do_not_interfere, make_root, remove_root),
};

TEST_GROUP(output_directory, NULL, NULL)
