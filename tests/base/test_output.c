/* test_output.c: files that appear completely or not at all, and all clear refusals. Where
 * permissions of other users matter, a child process drops root's privileges first. */
#include "runner.h"

#include "base/output.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534

static char root[64];

static int make_root(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/clpipe-output-XXXXXX");
    return mkdtemp(root) && chmod(root, 0777) == 0 && chdir(root) == 0 ? 0 : -1;
}

static int remove_root(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf -- '%s'", root);
    return chdir("/") || system(command);
}

static void put(const char *path, const char *content)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void assert_content(const char *path, const char *wanted)
{
    char content[64] = {0};
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t n = fread(content, 1, sizeof content - 1, file);
    fclose(file);
    content[n] = 0;
    assert_string_equal(content, wanted);
}

static unsigned entries(const char *directory)
{
    DIR *dir = opendir(directory);
    assert_non_null(dir);
    unsigned count = 0;
    for (struct dirent *entry; (entry = readdir(dir));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(dir);
    return count;
}

static void write_output(const char *path, const char *content)
{
    struct output *output;
    struct error err = ERROR_INIT;
    assert_int_equal(output_open(&output, path, &err), STATUS_OK);
    assert_int_equal(write_all(output_descriptor(output), content, strlen(content), path, &err),
                     STATUS_OK);
    assert_int_equal(output_commit(output, &err), STATUS_OK);
    output_close(&output);
    assert_null(output);
}

static void assert_refused(const char *path, int native, const char *words)
{
    struct output *output = (struct output *)1;
    struct error err = ERROR_INIT;
    assert_int_equal(output_open(&output, path, &err), STATUS_FAILED);
    assert_null(output);
    assert_int_equal(err.status, STATUS_FAILED);
    assert_int_equal(err.native, native);
    if (!strstr(err.sentence, words))
        fail_msg("\"%s\" is not in \"%s\"", words, err.sentence);
}

static void appears_at_commit(void **state)
{
    (void)state;
    assert_int_equal(mkdir("new", 0777), 0);
    struct output *output;
    struct error err = ERROR_INIT;
    assert_int_equal(output_open(&output, "new/a.h5", &err), STATUS_OK);
    char name[64];
    snprintf(name, sizeof name, "new/a.h5.tmp-clpipe-%ld", (long)getpid());
    assert_string_equal(output_temporary(output), name);
    assert_int_equal(access(name, F_OK), 0);
    assert_int_equal(access("new/a.h5", F_OK), -1);
    int fd = output_descriptor(output);
    assert_int_equal(write_all(fd, "whole", 5, "new/a.h5", &err), STATUS_OK);
    char back[6] = {0};
    assert_int_equal(pread(fd, back, 5, 0), 5);
    assert_string_equal(back, "whole");
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(output_commit(output, &err), STATUS_OK);
    assert_int_equal(access(name, F_OK), -1);
    output_close(&output);
    assert_content("new/a.h5", "whole");
    assert_int_equal(entries("new"), 1);
    output_close(&output);
    output_close(NULL);
}

static void vanishes_without_commit(void **state)
{
    (void)state;
    assert_int_equal(mkdir("gone", 0777), 0);
    put("gone/old", "old");
    struct output *output;
    struct error err = ERROR_INIT;
    assert_int_equal(output_open(&output, "gone/old", &err), STATUS_OK);
    assert_int_equal(entries("gone"), 2);
    assert_int_equal(write_all(output_descriptor(output), "half", 4, "x", &err), STATUS_OK);
    output_close(&output);
    assert_content("gone/old", "old");
    assert_int_equal(entries("gone"), 1);
}

static void replaces_and_keeps_permissions(void **state)
{
    (void)state;
    struct stat st;
    put("kept", "old");
    assert_int_equal(chmod("kept", 0640), 0);
    write_output("kept", "new");
    assert_content("kept", "new");
    assert_int_equal(stat("kept", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);

    /* The temporary file is private while it is written, and readable by us even if the old file
     * was not. */
    assert_int_equal(chmod("kept", 0200), 0);
    struct output *output;
    struct error err = ERROR_INIT;
    assert_int_equal(output_open(&output, "kept", &err), STATUS_OK);
    assert_int_equal(stat(output_temporary(output), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(output_commit(output, &err), STATUS_OK);
    output_close(&output);
    assert_int_equal(stat("kept", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0200);

    mode_t before = umask(027);
    write_output("masked", "x");
    umask(before);
    assert_int_equal(stat("masked", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
}

/* Creates a file and locks it, as if another process were writing it. */
static int put_locked(const char *path, const char *text)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    put(path, text);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &whole), 0);
    return fd;
}

static void temporary_files_of_others_are_kept(void **state)
{
    (void)state;
    assert_int_equal(mkdir("others", 0777), 0);
    char name[64];
    snprintf(name, sizeof name, "others/f.tmp-clpipe-%ld", (long)getpid());
    int theirs = put_locked(name, "theirs");
    write_output("others/f", "mine");
    assert_content(name, "theirs");
    assert_content("others/f", "mine");
    assert_int_equal(entries("others"), 2);

    /* Two outputs for one name, open at the same time in one process. */
    struct output *a, *b;
    struct error err = ERROR_INIT;
    assert_int_equal(output_open(&a, "others/g", &err), STATUS_OK);
    assert_int_equal(output_open(&b, "others/g", &err), STATUS_OK);
    assert_string_not_equal(output_temporary(a), output_temporary(b));
    output_close(&a);
    output_close(&b);
    assert_int_equal(entries("others"), 2);
    close(theirs);
}

static void temporary_files_of_dead_processes_are_removed(void **state)
{
    (void)state;
    assert_int_equal(mkdir("dead", 0777), 0);
    put("dead/f.tmp-clpipe-123", "half");
    put("dead/f.tmp-clpipe-4194304-2", "half");
    /* These are not ours: other programs' copies, and temporary files for other names. */
    const char *const kept[] = {"dead/f.tmp-20260101",   "dead/f.tmp-clpipe-old",
                                "dead/ff.tmp-clpipe-1",  "dead/f.tmp",
                                "dead/g.tmp-clpipe-123", "dead/f.tmp-clpipe-1.bak"};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        put(kept[i], "kept");
    assert_int_equal(mkdir("dead/f.tmp-clpipe-7", 0777), 0);
    write_output("dead/f", "whole");
    assert_content("dead/f", "whole");
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        assert_content(kept[i], "kept");
    assert_int_equal(entries("dead"), 2 + sizeof kept / sizeof *kept);
}

static void links_stay_links(void **state)
{
    (void)state;
    struct stat st;
    assert_int_equal(mkdir("far", 0777), 0);
    assert_int_equal(mkdir("far/off", 0777), 0);
    put("far/off/target", "old");
    assert_int_equal(symlink("off/target", "far/near"), 0);
    assert_int_equal(symlink("far/near", "two-steps"), 0);
    write_output("two-steps", "new");
    assert_content("far/off/target", "new");
    assert_int_equal(lstat("two-steps", &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(lstat("far/near", &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(entries("far/off"), 1);

    char absolute[128];
    snprintf(absolute, sizeof absolute, "%s/far/off/made", root);
    assert_int_equal(symlink(absolute, "dangling"), 0);
    write_output("dangling", "made");
    assert_content("far/off/made", "made");

    assert_int_equal(symlink("round", "round"), 0);
    assert_refused("round", ELOOP, "form a loop");
    assert_int_equal(symlink("/dev/null", "to-null"), 0);
    assert_refused("to-null", EINVAL, "a device node");
    assert_int_equal(symlink("far", "to-far"), 0);
    assert_refused("to-far", EISDIR, "it is a directory");
    assert_int_equal(symlink("nowhere/x", "to-nowhere"), 0);
    assert_refused("to-nowhere", ENOENT, "the directory nowhere/ does not exist");
    write_output("to-far/through", "dir links work too");
    assert_content("far/through", "dir links work too");
}

static void refuses_special_files(void **state)
{
    (void)state;
    assert_refused("", 0, "empty name");
    assert_refused(".", EISDIR, "it is a directory; name a file inside it");
    assert_refused("..", EISDIR, "it is a directory");
    assert_refused("/", EISDIR, "it is a directory");
    assert_int_equal(mkdir("dir", 0777), 0);
    assert_refused("dir", EISDIR, "it is a directory");
    assert_refused("dir/", EISDIR, "it is a directory");
    assert_refused("dir/.", EISDIR, "it is a directory");
    assert_refused("missing/", ENOENT, "missing/ does not exist; create it");
    assert_refused("/dev/null", EINVAL, "a device node");
    assert_int_equal(mkfifo("fifo", 0666), 0);
    assert_refused("fifo", EINVAL, "a named pipe");
    assert_refused("missing/a.h5", ENOENT,
                   "cannot write missing/a.h5: the directory missing/ "
                   "does not exist; create it");
    put("plain", "x");
    assert_refused("plain/a.h5", ENOTDIR, "plain/ is not a directory");
    char name[300];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    assert_refused(name, ENAMETOOLONG, "too long");
    name[250] = 0; /* the name itself fits, but not with the suffix */
    assert_refused(name, ENAMETOOLONG, "too long");
    assert_refused("missing\033[2J/x", ENOENT, "missing\\x1b[2J/");
}

/* A file that appeared under the final name while the output was open is not replaced. */
static void checks_again_at_commit(void **state)
{
    (void)state;
    struct output *output;
    struct error err = ERROR_INIT;
    assert_int_equal(output_open(&output, "late", &err), STATUS_OK);
    assert_int_equal(mkfifo("late", 0666), 0);
    assert_int_equal(output_commit(output, &err), STATUS_FAILED);
    assert_non_null(strstr(err.sentence, "a named pipe"));
    char temporary[64];
    snprintf(temporary, sizeof temporary, "%s", output_temporary(output));
    output_close(&output);
    assert_int_equal(access(temporary, F_OK), -1);
    struct stat st;
    assert_int_equal(stat("late", &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
}

/* Runs `body` in a child process as an unprivileged user. A failed check ends the child. */
static void as_nobody(void (*body)(void))
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (geteuid() == 0 && (setgid(NOBODY) || setuid(NOBODY)))
            _exit(99);
        body();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* A failed cmocka assertion would run the remaining tests in the child, so these checks end the
 * child instead. */
static void child_refused(const char *path, int native, const char *words)
{
    struct output *output = NULL;
    struct error err = ERROR_INIT;
    if (output_open(&output, path, &err) != STATUS_FAILED || output || err.native != native ||
        !strstr(err.sentence, words)) {
        fprintf(stderr, "%s: not refused with %d and \"%s\": \"%s\"\n", path, native, words,
                err.sentence);
        _exit(1);
    }
}

static void closed_doors(void)
{
    child_refused("closed/a.h5", EACCES, "you may not create files in its directory");
    child_refused("locked/in/a.h5", EACCES, "no permission to enter the directory locked/in/");
    child_refused("protected", EACCES, "write-protected");
    child_refused("sticky/theirs", EPERM, "belongs to another user");
    /* A directory where files can be created but not listed is sufficient. */
    struct output *output = NULL;
    struct error err = ERROR_INIT;
    if (output_open(&output, "blind/a.h5", &err) || output_commit(output, &err)) {
        fprintf(stderr, "blind: %s\n", err.sentence);
        _exit(2);
    }
    output_close(&output);
}

static void assert_not_committed(struct output *output, const char *words)
{
    struct error err = ERROR_INIT;
    assert_int_equal(output_commit(output, &err), STATUS_FAILED);
    if (!strstr(err.sentence, words))
        fail_msg("\"%s\" is not in \"%s\"", words, err.sentence);
    output_close(&output);
}

static void replaces_only_the_original_file(void **state)
{
    (void)state;
    struct output *output;
    struct stat st;
    assert_int_equal(mkdir("began", 0777), 0);
    assert_int_equal(output_open(&output, "began/a", NULL), STATUS_OK);
    put("began/a", "other");
    assert_not_committed(output, "has appeared");
    assert_content("began/a", "other");

    /* A replacement with the same size and time is detected. */
    assert_int_equal(output_open(&output, "began/a", NULL), STATUS_OK);
    assert_int_equal(stat("began/a", &st), 0);
    put("began/a", "OTHER");
    const struct timespec times[] = {st.st_atim, st.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, "began/a", times, 0), 0);
    assert_not_committed(output, "replaced, changed or removed");
    assert_content("began/a", "OTHER");

    assert_int_equal(output_open(&output, "began/a", NULL), STATUS_OK);
    assert_int_equal(unlink("began/a"), 0);
    assert_not_committed(output, "replaced, changed or removed");
    assert_int_equal(entries("began"), 0);

    /* Another mode or an additional name does not change the contents. */
    put("began/a", "old");
    assert_int_equal(output_open(&output, "began/a", NULL), STATUS_OK);
    assert_int_equal(chmod("began/a", 0600), 0);
    assert_int_equal(link("began/a", "began/b"), 0);
    assert_int_equal(output_commit(output, NULL), STATUS_OK);
    output_close(&output);
    assert_content("began/a", "");
    assert_content("began/b", "old");
}

static enum status ask(const void *context, struct error *err)
{
    return *(const bool *)context ? STATUS_OK : error_set(err, STATUS_FAILED, "it is not ours");
}

static void claims_last_until_closed(void **state)
{
    (void)state;
    struct output *output, *claim, *other;
    struct error err = ERROR_INIT;
    bool ours = true;
    put("claimed", "old");
    assert_int_equal(output_claim(&claim, "./claimed", NULL, NULL, NULL), STATUS_OK);
    put("claimed", "theirs");
    assert_int_equal(output_open(&output, "./claimed", NULL), STATUS_OK);
    assert_not_committed(output, "replaced, changed or removed");
    output_close(&claim);
    assert_null(claim);
    output_close(&claim);
    write_output("./claimed", "ours");

    /* If one claimed file may no longer be replaced, no file is replaced. */
    assert_int_equal(output_claim(&claim, "claimed", ask, &ours, NULL), STATUS_OK);
    assert_int_equal(output_claim(&other, "unrelated", NULL, NULL, NULL), STATUS_OK);
    write_output("claimed", "asked");
    ours = false;
    assert_int_equal(output_open(&output, "unrelated", NULL), STATUS_OK);
    assert_not_committed(output, "it is not ours");
    output_close(&claim);
    write_output("unrelated", "free");
    assert_int_equal(output_check_free("unrelated", &err), STATUS_FAILED);
    assert_non_null(strstr(err.sentence, "has appeared"));
    output_close(&other);
    assert_content("unrelated", "free");
}

static void permissions_are_explained(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(mkdir("closed", 0755), 0);
    assert_int_equal(mkdir("locked", 0700), 0);
    assert_int_equal(mkdir("locked/in", 0777), 0);
    put("protected", "x");
    assert_int_equal(chmod("protected", 0444), 0);
    assert_int_equal(mkdir("sticky", 0777), 0);
    assert_int_equal(chmod("sticky", 01777), 0);
    put("sticky/theirs", "x");
    assert_int_equal(chmod("sticky/theirs", 0666), 0);
    assert_int_equal(mkdir("blind", 0333), 0);
    assert_int_equal(chmod("blind", 0333), 0);
    as_nobody(closed_doors);
    assert_int_equal(entries("closed"), 0);
    assert_int_equal(entries("blind"), 1);
}

static void a_full_disk_is_explained(void **state)
{
    (void)state;
    assert_int_equal(mkdir("small", 0777), 0);
    if (geteuid() != 0 || mount("none", "small", "tmpfs", 0, "size=64k,nr_inodes=8"))
        skip();
    struct output *output = NULL;
    struct error err = ERROR_INIT;
    static char data[128 * 1024];
    enum status opened = output_open(&output, "small/a.h5", &err);
    enum status written =
        opened ? opened
               : write_all(output_descriptor(output), data, sizeof data, "small/a.h5", &err);
    output_close(&output);
    struct error inodes = ERROR_INIT;
    for (int i = 0; i < 8; i++) {
        char name[32];
        snprintf(name, sizeof name, "small/%d", i);
        int fd = open(name, O_CREAT | O_WRONLY, 0666);
        if (fd >= 0)
            close(fd);
    }
    enum status no_inode = output_open(&output, "small/b.h5", &inodes);
    output_close(&output);
    struct error read_only = ERROR_INIT;
    int remounted = mount("none", "small", "tmpfs", MS_REMOUNT | MS_RDONLY, "size=64k");
    enum status on_read_only = output_open(&output, "small/c.h5", &read_only);
    output_close(&output);
    umount2("small", MNT_DETACH);

    assert_int_equal(opened, STATUS_OK);
    assert_int_equal(written, STATUS_FAILED);
    assert_int_equal(err.native, ENOSPC);
    assert_string_equal(err.sentence, "cannot write small/a.h5: the disk is full; free some space "
                                      "or name a file on another disk");
    assert_int_equal(no_inode, STATUS_FAILED);
    assert_non_null(strstr(inodes.sentence, "free some space"));
    assert_int_equal(remounted, 0);
    assert_int_equal(on_read_only, STATUS_FAILED);
    assert_int_equal(read_only.native, EROFS);
    assert_non_null(strstr(read_only.sentence, "the file system is read-only"));
}

static void beyond_the_limit(void)
{
    struct rlimit limit = {1000, 1000};
    struct output *output = NULL;
    struct error err = ERROR_INIT;
    char data[2000] = {0};
    signal(SIGXFSZ, SIG_IGN);
    if (output_open(&output, "limited", &err) || setrlimit(RLIMIT_FSIZE, &limit) ||
        write_all(output_descriptor(output), data, sizeof data, "limited", &err) != STATUS_FAILED ||
        err.native != EFBIG || !strstr(err.sentence, "ulimit -f"))
        _exit(1);
    output_close(&output);
}

static void a_file_size_limit_is_explained(void **state)
{
    (void)state;
    as_nobody(beyond_the_limit);
}

static void write_all_reports_the_file(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    int fd = open("/dev/full", O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(write_all(fd, "x", 1, "dir/a.json", &err), STATUS_FAILED);
    close(fd);
    assert_non_null(strstr(err.sentence, "dir/a.json"));
    assert_non_null(strstr(err.sentence, "free some space"));
    assert_int_equal(write_all(-1, "x", 1, "b", &err), STATUS_FAILED);
    assert_int_equal(err.native, EBADF);
    assert_int_equal(write_all(-1, NULL, 0, "b", &err), STATUS_OK);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(appears_at_commit),
    cmocka_unit_test(vanishes_without_commit),
    cmocka_unit_test(replaces_and_keeps_permissions),
    cmocka_unit_test(temporary_files_of_others_are_kept),
    cmocka_unit_test(temporary_files_of_dead_processes_are_removed),
    cmocka_unit_test(links_stay_links),
    cmocka_unit_test(refuses_special_files),
    cmocka_unit_test(checks_again_at_commit),
    cmocka_unit_test(replaces_only_the_original_file),
    cmocka_unit_test(claims_last_until_closed),
    cmocka_unit_test(permissions_are_explained),
    cmocka_unit_test(a_full_disk_is_explained),
    cmocka_unit_test(a_file_size_limit_is_explained),
    cmocka_unit_test(write_all_reports_the_file),
};
TEST_GROUP(output, make_root, remove_root)
