/* test_original.c: the file of a row: whether it is the one that was read, a unique name for each
 * directory entry, and which two rows certainly have different files. */
#include "runner.h"

#include "base/clock.h"
#include "jobs/original.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char scratch[64];

static void put(const char *name, const char *text)
{
    const int fd = open(name, O_CREAT | O_TRUNC | O_WRONLY, 0666);
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

static int setup(void **state)
{
    (void)state;
    strcpy(scratch, "/tmp/clpipe-test-original-XXXXXX");
    assert_non_null(mkdtemp(scratch));
    assert_int_equal(chdir(scratch), 0);
    assert_int_equal(mkdir("a", 0777) | mkdir("b", 0777) | mkdir("a/dir.tar", 0777), 0);
    put("a/x.jpg", "picture");
    put("a/y.jpg", "picture");
    put("a/pictures.tar", "archive");
    put("a/dir.tar/x.jpg", "picture");
    assert_int_equal(symlink("../a/x.jpg", "b/link.jpg") | symlink("a", "c"), 0);
    assert_int_equal(symlink("../a/pictures.tar", "b/also.tar") | link("a/x.jpg", "b/hard.jpg"), 0);
    return 0;
}

static int teardown(void **state)
{
    char command[96];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", scratch);
    return chdir("/") | system(command);
}

static struct result_image row_of(const char *path, const char *file)
{
    struct stat st;
    assert_int_equal(stat(file, &st), 0);
    return (struct result_image){
        .path_raw = path, .bytes = (uint64_t)st.st_size, .mtime_ns = clock_file_time(&st.st_mtim)};
}

static struct original look(const char *path)
{
    char whole[128], file[128];
    struct original out;
    snprintf(whole, sizeof whole, "%s/%s", scratch, path);
    strcpy(file, path);
    char *tail = strstr(file, ".tar/");
    if (tail && strstr(file, "dir.tar/") == NULL)
        tail[4] = 0;
    struct result_image image = row_of(path, file);
    original_look(&out, whole, &image);
    assert_int_equal(out.state, ORIGINAL_THERE);
    return out;
}

static void test_states(void **state)
{
    bool member;
    struct result_image image = row_of("x.jpg", "a/x.jpg");
    (void)state;
    assert_int_equal(original_check("a/x.jpg", &image, &member), ORIGINAL_THERE);
    assert_false(member);
    assert_int_equal(original_check("b/x.jpg", &image, NULL), ORIGINAL_GONE);
    assert_int_equal(original_check("a", &image, NULL), ORIGINAL_CHANGED);
    image.mtime_ns++;
    assert_int_equal(original_check("a/x.jpg", &image, NULL), ORIGINAL_CHANGED);
    image.mtime_ns--;
    image.bytes++;
    assert_int_equal(original_check("a/x.jpg", &image, NULL), ORIGINAL_CHANGED);
    /* For a member, the archive's time and the member's size are compared. */
    image = row_of("pictures.tar/m.jpg", "a/pictures.tar");
    image.bytes = 12345;
    assert_int_equal(original_check("a/pictures.tar/m.jpg", &image, &member), ORIGINAL_THERE);
    assert_true(member);
    image.mtime_ns++;
    assert_int_equal(original_check("a/pictures.tar/m.jpg", &image, NULL), ORIGINAL_CHANGED);
    image = row_of("dir.tar/x.jpg", "a/dir.tar/x.jpg");
    assert_int_equal(original_check("a/dir.tar/x.jpg", &image, &member), ORIGINAL_THERE);
    assert_false(member);
}

static void test_names(void **state)
{
    static const struct {
        const char *path, *name;
    } names[] = {
        {"a/x.jpg", "a/x.jpg"},
        {"c/x.jpg", "a/x.jpg"},
        {"b/../c//x.jpg", "a/x.jpg"},
        {"b/link.jpg", "b/link.jpg"}, /* a directory entry of its own */
        {"a/none.jpg", "a/none.jpg"},
        {"b/also.tar/m/n.jpg", "a/pictures.tar/m/n.jpg"},
        {"c/dir.tar/x.jpg", "a/dir.tar/x.jpg"},
        {"none/x.jpg", NULL},
    };
    char path[128], expected[128];
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        for (int absolute = 0; absolute < 2; absolute++) {
            snprintf(path, sizeof path, "%s/%s", absolute ? scratch : ".", names[i].path);
            char *name = original_name(path);
            if (names[i].name) {
                snprintf(expected, sizeof expected, "%s/%s", scratch, names[i].name);
                assert_string_equal(name, expected);
            } else {
                assert_null(name);
            }
            free(name);
        }
    }
    char *root = original_name("/etc");
    assert_string_equal(root, "/etc");
    free(root);
}

static void test_one_file(void **state)
{
    static const struct {
        const char *a, *b;
        enum originals verdict;
    } pairs[] = {
        {"a/x.jpg", "a/y.jpg", ORIGINALS_TWO},
        {"a/x.jpg", "c/x.jpg", ORIGINALS_ONE},
        {"a/x.jpg", "b/link.jpg", ORIGINALS_ONE},
        {"a/x.jpg", "b/hard.jpg", ORIGINALS_ONE},
        {"b/link.jpg", "b/hard.jpg", ORIGINALS_ONE},
        {"a/pictures.tar/m.jpg", "b/also.tar/m.jpg", ORIGINALS_ONE},
        {"a/pictures.tar/m.jpg", "b/also.tar/n.jpg", ORIGINALS_TWO},
        {"a/pictures.tar/x.jpg", "a/x.jpg", ORIGINALS_TWO},
    };
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct original a = look(pairs[i].a), b = look(pairs[i].b);
        a.system = b.system = FILE_SYSTEM_LOCAL; /* independent of the file system of /tmp */
        assert_int_equal(originals_compare(&a, &b), pairs[i].verdict);
        assert_int_equal(originals_compare(&b, &a), pairs[i].verdict);
        assert_true(original_same(&a, &a));
        assert_int_equal(original_same(&a, &b), strcmp(a.name, b.name) == 0);
        original_clear(&a);
        original_clear(&b);
    }
}

/* An original with device, inode, file system, mount, name and change time. */
static struct original made(unsigned device, unsigned inode, enum file_system system,
                            unsigned mount, const char *name, int changed)
{
    struct original out = {.state = ORIGINAL_THERE, .system = system, .mount = mount};
    out.name = (char *)name;
    out.st.st_dev = device;
    out.st.st_ino = inode;
    out.st.st_ctim.tv_sec = changed;
    return out;
}

static void test_file_systems(void **state)
{
    const enum file_system local = FILE_SYSTEM_LOCAL, shared = FILE_SYSTEM_SHARED,
                           stacked = FILE_SYSTEM_STACKED, fuse = FILE_SYSTEM_UNTRUSTED;
    const struct {
        struct original a, b;
        enum originals verdict;
    } pairs[] = {
        {made(1, 1, local, 0, "/a", 5), made(2, 1, local, 0, "/b", 5), ORIGINALS_TWO},
        {made(1, 1, local, 0, "/a", 5), made(1, 1, local, 0, "/b", 5), ORIGINALS_ONE},
        {made(1, 1, shared, 0, "/a", 5), made(1, 2, shared, 0, "/b", 5), ORIGINALS_TWO},
        {made(1, 1, shared, 0, "/a", 5), made(2, 2, shared, 0, "/b", 5), ORIGINALS_UNCERTAIN},
        {made(1, 1, shared, 0, "/a", 5), made(2, 2, local, 0, "/b", 7), ORIGINALS_UNCERTAIN},
        {made(1, 1, stacked, 0, "/a", 5), made(2, 2, local, 0, "/b", 5), ORIGINALS_UNCERTAIN},
        {made(1, 1, stacked, 0, "/a", 5), made(2, 2, local, 0, "/b", 7), ORIGINALS_TWO},
        {made(1, 1, fuse, 7, "/a", 5), made(1, 2, fuse, 7, "/b", 5), ORIGINALS_TWO},
        {made(1, 1, fuse, 7, "/a", 5), made(1, 1, fuse, 7, "/b", 5), ORIGINALS_UNCERTAIN},
        {made(1, 1, fuse, 7, "/a", 5), made(1, 2, fuse, 8, "/b", 5), ORIGINALS_UNCERTAIN},
        {made(1, 1, fuse, 0, "/a", 5), made(1, 2, fuse, 0, "/b", 5), ORIGINALS_UNCERTAIN},
        {made(1, 1, fuse, 7, "/a", 5), made(2, 2, local, 0, "/b", 6), ORIGINALS_UNCERTAIN},
        {made(1, 1, fuse, 7, "/P.JPG", 5), made(1, 2, fuse, 7, "/p.jpg", 5), ORIGINALS_UNCERTAIN},
        {made(1, 1, fuse, 7, "/\xc3\xa9", 5), made(1, 2, fuse, 7, "/\xc3\x89", 5),
         ORIGINALS_UNCERTAIN},
        {made(1, 1, fuse, 7, "/p1", 5), made(1, 2, fuse, 7, "/p", 5), ORIGINALS_TWO},
    };
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        assert_int_equal(originals_compare(&pairs[i].a, &pairs[i].b), pairs[i].verdict);
        assert_int_equal(originals_compare(&pairs[i].b, &pairs[i].a), pairs[i].verdict);
    }
}

static void test_changes_are_detected(void **state)
{
    (void)state;
    struct original before = look("a/y.jpg");
    put("a/z.jpg", "picture");
    assert_int_equal(rename("a/z.jpg", "a/y.jpg"), 0);
    struct original now = look("a/y.jpg");
    assert_false(original_same(&before, &now));
    original_clear(&before);
    original_clear(&now);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_states),
    cmocka_unit_test(test_names),
    cmocka_unit_test(test_one_file),
    cmocka_unit_test(test_file_systems),
    cmocka_unit_test(test_changes_are_detected),
};
TEST_GROUP(original, setup, teardown)
