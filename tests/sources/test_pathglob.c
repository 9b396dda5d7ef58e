/* test_pathglob.c: the rules of --include and --exclude that pathglob.h defines. */

#include "runner.h"

#include "sources/pathglob.h"
#include <string.h>

static struct pathglob *open_globs(const char *include, const char *exclude)
{
    struct pathglob *globs = NULL;
    struct error err = ERROR_INIT;
    assert_int_equal(
        pathglob_open(&globs, &include, include != NULL, &exclude, exclude != NULL, &err),
        STATUS_OK);
    return globs;
}

static const struct {
    const char *glob, *path;
    bool file, directory; /* whether the exclude glob matches such a file or directory */
} matches[] = {
    /* Globs for the last component. */
    {"*.jpg", "a.jpg", true, true},
    {"*.jpg", "d/e/a.jpg", true, true},
    {"*.jpg", "d.jpg/a.png", false, false},
    {"*.jpg", "a.JPG", false, false},
    {"*.jpg", ".jpg", true, true},
    {"*", "d/.hidden", true, true},
    {"a?c", "abc", true, true},
    {"a?c", "ac", false, false},
    {"[a-c]x", "d/bx", true, true},
    {"[!a-c]x", "d/bx", false, false},
    {"\\*", "*", true, true},
    {"\\*", "x", false, false},
    {"[", "[", true, true},
    {"a*", "a\xff\xfe", true, true},
    {"dir", "dir", true, true},
    {"dir", "x/dir", true, true},
    {"**", "x/y", true, true},
    /* Globs for directories only. */
    {"dir/", "dir", false, true},
    {"dir/", "x/dir", false, true},
    {"d*//", "x/dir", false, true},
    {"x/dir/", "x/dir", false, true},
    {"x/dir/", "dir", false, false},
    /* Globs for the whole path. */
    {"/a.jpg", "a.jpg", true, true},
    {"/a.jpg", "d/a.jpg", false, false},
    {"./a.jpg", "a.jpg", true, true},
    {"d/*.jpg", "d/a.jpg", true, true},
    {"d/*.jpg", "d/e/a.jpg", false, false},
    {"d/*.jpg", "x/d/a.jpg", false, false},
    {"*/a", "d/a", true, true},
    {"*/a", "a", false, false},
    {"d//./a", "d/a", true, true},
    {"d/a", "./d//a", true, true},
    {"d?e/a", "d/e/a", false, false},
    {"[d/]*", "d/a", false, false},
    /* Any number of components. */
    {"**/a", "a", true, true},
    {"**/a", "x/a", true, true},
    {"**/a", "x/y/z/a", true, true},
    {"**/a", "x/y/b", false, false},
    {"d/**/a", "d/a", true, true},
    {"d/**/a", "d/x/y/a", true, true},
    {"d/**/a", "e/x/a", false, false},
    {"d/**", "d", false, false},
    {"d/**", "d/x", true, true},
    {"d/**", "d/x/y", true, true},
    {"**/b/**/c", "a/b/x/b/c", true, true},
    {"**/b/**/c", "a/x/c", false, false},
    {"**/**/a", "a", true, true},
    {"**/*.jpg", "x/y.d/z.jpg", true, true},
    {"a**b/c", "axxb/c", true, true},
    {"a**b/c", "ax/xb/c", false, false},
};

static void test_matches(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof matches / sizeof matches[0]; i++) {
        struct pathglob *globs = open_globs(NULL, matches[i].glob);
        size_t length = strlen(matches[i].path);
        bool file = !pathglob_takes(globs, matches[i].path, length, false);
        bool directory = pathglob_excludes_directory(globs, matches[i].path, length);
        pathglob_close(&globs);
        if (file != matches[i].file || directory != matches[i].directory)
            fail_msg("\"%s\" on \"%s\": file %d, directory %d", matches[i].glob, matches[i].path,
                     file, directory);
    }
}

static const struct {
    const char *include, *exclude, *path;
    bool taken; /* whether a single path is included */
} alone[] = {
    {NULL, NULL, "a", true},
    {"*.jpg", NULL, "d/a.jpg", true},
    {"*.jpg", NULL, "d/a.png", false},
    {"*.jpg", "a*", "d/a.jpg", false},
    {NULL, "d", "d/a.jpg", false},
    {NULL, "d/", "x/d/e/a.jpg", false},
    {NULL, "d/", "x/d", true},
    {NULL, "/d", "x/d/a", true},
    {"d", NULL, "d/a.jpg", false},
    {"d/", NULL, "d/e/a.jpg", true},
    {"d/", NULL, "e/d", false},
    {"d/", "*.png", "d/a.png", false},
    {NULL, "/data/x", "/data/x/a.jpg", false},
    {NULL, "*.jpg", "/data/a.jpg", false},
};

static void test_single_paths(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof alone / sizeof alone[0]; i++) {
        struct pathglob *globs = open_globs(alone[i].include, alone[i].exclude);
        bool taken = pathglob_takes_alone(globs, alone[i].path, strlen(alone[i].path));
        pathglob_close(&globs);
        if (taken != alone[i].taken)
            fail_msg("include %s, exclude %s, path %s: %d", alone[i].include, alone[i].exclude,
                     alone[i].path, taken);
    }
}

static void test_empty_globs(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "/", "./", "//"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct error err = ERROR_INIT;
        struct pathglob *globs = NULL;
        assert_int_equal(pathglob_open(&globs, NULL, 0, &bad[i], 1, &err), STATUS_USAGE);
        assert_non_null(strstr(err.sentence, "exclude"));
        assert_int_equal(pathglob_open(&globs, &bad[i], 1, NULL, 0, &err), STATUS_USAGE);
        assert_non_null(strstr(err.sentence, "include"));
        assert_null(globs);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_matches),
    cmocka_unit_test(test_single_paths),
    cmocka_unit_test(test_empty_globs),
};
TEST_GROUP(pathglob, NULL, NULL)
