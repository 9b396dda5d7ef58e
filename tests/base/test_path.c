/* test_path.c: paths with any bytes and of any length are opened, displayed and validated. */
#include "runner.h"

#include "base/path.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char root[] = "/tmp/clpipe-path-XXXXXX";
static int root_fd = -1;

/* Removes a directory of any depth, even if its paths exceed PATH_MAX. */
static void remove_tree(const char *path)
{
    char command[256];
    snprintf(command, sizeof command, "rm -rf -- '%s'", path);
    assert_int_equal(system(command), 0);
}

#define COMPONENT 200
#define DEPTH     60

/* A path of 60 directories whose names have 200 bytes, three times PATH_MAX; the last directory
 * contains a file, links and a subdirectory. */
static char deep[DEPTH * (COMPONENT + 1) + 1];

static int make_tree(void **state)
{
    (void)state;
    if (!mkdtemp(root))
        return -1;
    root_fd = open(root, O_RDONLY | O_DIRECTORY);
    if (root_fd < 0)
        return -1;
    char name[COMPONENT + 1];
    int at = dup(root_fd);
    for (int i = 0; i < DEPTH; i++) {
        memset(name, 'a' + i % 26, COMPONENT);
        name[COMPONENT] = 0;
        memcpy(deep + i * (COMPONENT + 1), name, COMPONENT);
        deep[i * (COMPONENT + 1) + COMPONENT] = '/';
        if (mkdirat(at, name, 0755))
            return -1;
        int next = openat(at, name, O_RDONLY | O_DIRECTORY);
        close(at);
        at = next;
    }
    deep[sizeof deep - 1] = 0;
    int file = openat(at, "file", O_WRONLY | O_CREAT, 0644);
    if (file < 0 || write(file, "deep", 4) != 4)
        return -1;
    close(file);
    if (symlinkat("file", at, "link") || symlinkat("nowhere", at, "dangling") ||
        symlinkat(".", at, "here") || mkdirat(at, "sub", 0755))
        return -1;
    close(at);
    return 0;
}

static int remove_all(void **state)
{
    (void)state;
    close(root_fd);
    remove_tree(root);
    return 0;
}

static char *joined(const char *tail)
{
    static char path[2 * sizeof deep + 64];
    snprintf(path, sizeof path, "%s%s", deep, tail);
    return path;
}

static void assert_opens(const char *path, const char *content)
{
    int fd = path_open_at(root_fd, path, O_RDONLY);
    assert_true(fd >= 0);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    char read_back[16] = {0};
    assert_int_equal(read(fd, read_back, sizeof read_back - 1), (ssize_t)strlen(content));
    assert_string_equal(read_back, content);
    close(fd);
    struct stat st;
    assert_int_equal(path_stat_at(root_fd, path, &st, 0), 0);
    assert_true(S_ISREG(st.st_mode));
    assert_int_equal(st.st_size, (off_t)strlen(content));
}

static void assert_fails(const char *path, int flags, int wanted)
{
    errno = 0;
    assert_int_equal(path_open_at(root_fd, path, flags), -1);
    assert_int_equal(errno, wanted);
}

static void opens_deep_paths(void **state)
{
    (void)state;
    assert_true(strlen(joined("file")) > 2 * PATH_MAX);
    assert_opens(joined("file"), "deep");
    assert_opens(joined("link"), "deep");
    assert_opens(joined("here/sub/../file"), "deep");
    assert_opens(joined("./sub//..///link"), "deep");
}

static void errors_are_those_of_the_kernel(void **state)
{
    (void)state;
    assert_fails(joined("missing"), O_RDONLY, ENOENT);
    assert_fails(joined("missing/file"), O_RDONLY, ENOENT);
    assert_fails(joined("dangling"), O_RDONLY, ENOENT);
    assert_fails(joined("link"), O_RDONLY | O_NOFOLLOW, ELOOP);
    assert_fails(joined("file/"), O_RDONLY, ENOTDIR);
    assert_fails(joined("file/x"), O_RDONLY, ENOTDIR);
    assert_fails(joined("file"), O_RDONLY | O_DIRECTORY, ENOTDIR);
    struct stat st;
    assert_int_equal(path_stat_at(root_fd, joined("dangling"), &st, 0), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(path_stat_at(root_fd, joined("dangling"), &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(path_stat_at(root_fd, joined("link/"), &st, AT_SYMLINK_NOFOLLOW), -1);
    assert_int_equal(errno, ENOTDIR);

    /* A component that is too long for any file system. */
    char *path = joined("");
    memset(path + strlen(path), 'x', 300);
    path[sizeof deep - 1 + 300] = 0;
    assert_fails(path, O_RDONLY, ENAMETOOLONG);
    static char monster[3 * PATH_MAX];
    memset(monster, 'm', sizeof monster - 1);
    assert_fails(monster, O_RDONLY, ENAMETOOLONG);
    monster[PATH_MAX] = '/';
    assert_fails(monster, O_RDONLY, ENAMETOOLONG);
    assert_fails("", O_RDONLY, ENOENT);
    /* A missing directory in the middle of the path. */
    path = joined("file");
    path[10] = '!';
    assert_fails(path, O_RDONLY, ENOENT);
    path[10] = 'a';
    int closed = open(root, O_RDONLY);
    close(closed);
    assert_int_equal(path_open_at(closed, joined("file"), O_RDONLY), -1);
    assert_int_equal(errno, EBADF);
}

/* Repeated slashes mean the same as one, even more of them than the kernel accepts in one call. */
static void extra_slashes_and_dots_are_ignored(void **state)
{
    (void)state;
    static char path[4 * PATH_MAX];
    struct stat st, wanted;
    assert_int_equal(fstat(root_fd, &wanted), 0);

    memset(path, '/', 2 * PATH_MAX);
    path[2 * PATH_MAX] = 0;
    assert_int_equal(path_stat_at(root_fd, path, &st, 0), 0);
    assert_int_equal(stat("/", &wanted), 0);
    assert_int_equal(st.st_ino, wanted.st_ino);
    assert_int_equal(st.st_dev, wanted.st_dev);

    /* Leading slashes: the path is absolute, whatever the base directory. */
    snprintf(path + 2 * PATH_MAX, PATH_MAX, "%s", root + 1);
    assert_int_equal(path_stat_at(-1, path, &st, 0), 0);
    assert_int_equal(fstat(root_fd, &wanted), 0);
    assert_int_equal(st.st_ino, wanted.st_ino);

    /* Trailing slashes: the path must be a directory. */
    memset(path, '/', sizeof path - 1);
    path[0] = '.';
    assert_int_equal(path_stat_at(root_fd, path, &st, 0), 0);
    assert_int_equal(st.st_ino, wanted.st_ino);

    /* "./" repeated many times. */
    for (size_t i = 0; i + 2 < sizeof path; i += 2)
        memcpy(path + i, "./", 3);
    int fd = path_open_at(root_fd, path, O_RDONLY | O_DIRECTORY);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_ino, wanted.st_ino);
    close(fd);
}

/* All lengths around PATH_MAX, so that the path is split at every possible position. */
static void every_length_opens(void **state)
{
    (void)state;
    static char path[PATH_MAX + 600];
    size_t prefix = PATH_MAX / (COMPONENT + 1) * (COMPONENT + 1);
    struct stat wanted, st;
    memcpy(path, deep, prefix);
    path[prefix] = 0;
    assert_int_equal(path_stat_at(root_fd, path, &wanted, 0), 0);
    for (size_t length = prefix + 2; length < PATH_MAX + 110; length++) {
        memset(path + prefix, '/', length - prefix);
        for (size_t at = prefix; at + 1 < length; at += 2)
            path[at] = '.';
        path[length - 1] = '/';
        path[length] = 0;
        assert_int_equal(path_stat_at(root_fd, path, &st, 0), 0);
        assert_int_equal(st.st_ino, wanted.st_ino);
    }
}

static void no_descriptor_leaks(void **state)
{
    (void)state;
    int before = dup(0);
    assert_true(before >= 0);
    close(before);
    struct stat st;
    path_stat_at(root_fd, joined("file"), &st, 0);
    path_stat_at(root_fd, joined("missing/x"), &st, 0);
    path_open_at(root_fd, joined("missing"), O_RDONLY);
    int after = dup(0);
    close(after);
    assert_int_equal(after, before);
}

static void utf8(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t length;
        bool valid;
    } cases[] = {
        {"", 0, true},
        {"plain", 5, true},
        {"a\0b", 3, false},
        {"\x7f\t\n", 3, true},
        {"\xc2\x80", 2, true},
        {"\xdf\xbf", 2, true},
        {"\xe0\xa0\x80", 3, true},
        {"\xed\x9f\xbf", 3, true},
        {"\xee\x80\x80", 3, true},
        {"\xef\xbf\xbf", 3, true},
        {"\xf0\x90\x80\x80", 4, true},
        {"\xf4\x8f\xbf\xbf", 4, true},
        {"\x80", 1, false},             /* continuation byte alone */
        {"\xc0\x80", 2, false},         /* overlong */
        {"\xc1\xbf", 2, false},         /* overlong */
        {"\xe0\x9f\xbf", 3, false},     /* overlong */
        {"\xf0\x8f\xbf\xbf", 4, false}, /* overlong */
        {"\xed\xa0\x80", 3, false},     /* surrogate */
        {"\xed\xbf\xbf", 3, false},     /* surrogate */
        {"\xf4\x90\x80\x80", 4, false}, /* above U+10FFFF */
        {"\xf5\x80\x80\x80", 4, false},
        {"\xff", 1, false},
        {"\xc3", 1, false},         /* truncated */
        {"\xe2\x82", 2, false},     /* truncated */
        {"\xf0\x9f\x8d", 3, false}, /* truncated */
        {"\xc3(", 2, false},
        {"\xe2(\xa1", 3, false},
        {"\xe2\x82(", 3, false},
        {"\xf0\x9f\x8d(", 4, false},
        {"ok\xe2\x82\xac\xff", 6, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        /* A copy of the exact size lets a sanitizer detect reads past the end. */
        char *bytes = malloc(cases[i].length + 1);
        assert_non_null(bytes);
        memcpy(bytes + 1, cases[i].bytes, cases[i].length);
        assert_int_equal(utf8_valid(bytes + 1, cases[i].length), cases[i].valid);
        free(bytes);
    }
}

static void to_utf8(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t length;
        const char *text;
    } cases[] = {
        {"", 0, ""},
        {"caf\xc3\xa9/\\x41", 10, "caf\xc3\xa9/\\x5cx41"},
        {"\\\\x\\y\\", 6, "\\\\x5cx\\y\\"},
        {"\\x5cx", 5, "\\x5cx5cx"},
        {"caf\xe9.jpg", 8, "caf\\xe9.jpg"},
        {"\xff\xfe", 2, "\\xff\\xfe"},
        {"a\0b", 3, "a\\x00b"},
        {"\xe2\x82", 2, "\\xe2\\x82"},
        {"\xe2\x82\xac\xe2\x82", 5, "\xe2\x82\xac\\xe2\\x82"},
        {"\xed\xa0\x80", 3, "\\xed\\xa0\\x80"},
        {"\n\t", 2, "\n\t"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t size = 4 * cases[i].length + 1;
        char *out = malloc(size);
        assert_non_null(out);
        assert_int_equal(path_to_utf8(out, size, cases[i].bytes, cases[i].length),
                         strlen(cases[i].text));
        assert_string_equal(out, cases[i].text);
        path_from_utf8(out);
        assert_memory_equal(out, cases[i].bytes, cases[i].length);
        free(out);
    }
}

static void for_message(void **state)
{
    (void)state;
    char out[64];
    assert_string_equal(path_for_message(out, sizeof out, "a/b.jpg"), "a/b.jpg");
    assert_string_equal(path_for_message(out, sizeof out, ""), "");
    assert_string_equal(path_for_message(out, sizeof out, "a\nb\033[2J\xff\xc2\x9bz"),
                        "a\\x0ab\\x1b[2J\\xff\\xc2\\x9bz");
    assert_string_equal(path_for_message(out, 11, "0123456789"), "0123456789");
    assert_string_equal(path_for_message(out, 10, "0123456789"), "012...789");
    assert_string_equal(path_for_message(out, 4, "0123456789"), "...");
    assert_string_equal(path_for_message(out, 3, "0123456789"), "..");
    assert_string_equal(path_for_message(out, 1, "0123456789"), "");

    /* For any buffer size, the result fits and contains only complete characters and escapes. */
    const char *path = "\xe2\x82\xac\xf0\x9f\x8d\x8e\xff\xc3\xa9\xe2\x82\xac\x01\xc3\xa9\xfe"
                       "\xf0\x9f\x8d\x8e";
    for (size_t size = 1; size < sizeof out; size++) {
        char *exact = malloc(size);
        assert_non_null(exact);
        path_for_message(exact, size, path);
        size_t length = strlen(exact);
        assert_true(length < size);
        assert_true(utf8_valid(exact, length));
        for (const char *e = strchr(exact, '\\'); e; e = strchr(e + 1, '\\')) {
            assert_int_equal(e[1], 'x');
            assert_int_equal(strspn(e + 2, "0123456789abcdef") >= 2, 1);
        }
        free(exact);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(opens_deep_paths),
    cmocka_unit_test(errors_are_those_of_the_kernel),
    cmocka_unit_test(extra_slashes_and_dots_are_ignored),
    cmocka_unit_test(every_length_opens),
    cmocka_unit_test(no_descriptor_leaks),
    cmocka_unit_test(utf8),
    cmocka_unit_test(to_utf8),
    cmocka_unit_test(for_message),
};
TEST_GROUP(path, make_tree, remove_all)
