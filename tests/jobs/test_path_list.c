/* test_path_list.c: lists of paths that are separated by newlines or NULs, and refused lists. */
#include "runner.h"

#include "jobs/path_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char directory[] = "/tmp/clpipe-path-list-XXXXXX";
static char file[64];

static int make_directory(void **state)
{
    (void)state;
    const bool made = mkdtemp(directory) != NULL;
    snprintf(file, sizeof file, "%s/list", directory);
    return made ? 0 : -1;
}

static int remove_directory(void **state)
{
    (void)state;
    unlink(file);
    return rmdir(directory);
}

static enum status open_bytes(struct path_list *list, const char *bytes, size_t size,
                              struct error *err)
{
    FILE *stream = fopen(file, "wb");
    assert_non_null(stream);
    assert_int_equal(fwrite(bytes, 1, size, stream), size);
    assert_int_equal(fclose(stream), 0);
    return path_list_open(list, file, false, err);
}

static void check(const char *bytes, size_t size, const char *const *paths, uint64_t count)
{
    struct path_list list;
    struct error err = ERROR_INIT;
    assert_int_equal(open_bytes(&list, bytes, size, &err), STATUS_OK);
    assert_int_equal(list.count, count);
    for (uint64_t i = 0; i < count; i++) {
        size_t length;
        const char *path = path_list_at(&list, i, &length);
        assert_int_equal(length, strlen(paths[i]));
        assert_memory_equal(path, paths[i], length);
        assert_int_equal(path_list_find(&list, paths[i], length), i);
    }
    assert_int_equal(path_list_find(&list, "nowhere", 7), PATH_LIST_NONE);
    assert_int_equal(path_list_find(&list, "", 0), PATH_LIST_NONE);
    path_list_close(&list);
}

static void test_separators(void **state)
{
    (void)state;
    static const char *const plain[] = {"a", "b/c", " d "};
    static const char lines[] = "a\nb/c\n d ", ended[] = "a\nb/c\n d \n\n";
    check(lines, sizeof lines - 1, plain, 3);
    check(ended, sizeof ended - 1, plain, 3);
    static const char *const odd[] = {"a\nb", "c\xe9"};
    static const char nuls[] = "a\nb\0c\xe9";
    check(nuls, sizeof nuls - 1, odd, 2);
    check(nuls, sizeof nuls, odd, 2);
}

static void test_one_name_for_a_file(void **state)
{
    (void)state;
    static const char *const paths[] = {"a", "b/c", "/d/e", "../f"};
    static const char lines[] = "./a\n././b//c\n//d///e\n../f\n";
    check(lines, sizeof lines - 1, paths, 4);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *said;
    } bad[] = {{"", "no paths"},
               {"\n\n", "no paths"},
               {"a\n\nb", "path 2 is empty"},
               {"a\nb\n./a", "names 'a' twice, for rows 0 and 2"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct path_list list;
        struct error err = ERROR_INIT;
        assert_int_equal(open_bytes(&list, bad[i].bytes, strlen(bad[i].bytes), &err),
                         STATUS_FAILED);
        if (!strstr(err.sentence, bad[i].said))
            fail_msg("'%s' lacks '%s'", err.sentence, bad[i].said);
        path_list_close(&list);
    }
    struct path_list list;
    struct error err = ERROR_INIT;
    assert_int_equal(path_list_open(&list, file, true, &err), STATUS_OK);
    assert_int_equal(list.count, 3);
    assert_int_equal(path_list_find(&list, "a", 1), 0);
    path_list_close(&list);
    assert_int_equal(path_list_open(&list, "/tmp/no such list", false, &err), STATUS_USAGE);
    path_list_close(&list);
    assert_int_equal(path_list_open(&list, directory, false, &err), STATUS_USAGE);
    path_list_close(&list);
}

/* Enough paths that the index grows and hash chains become long. */
static void test_many(void **state)
{
    (void)state;
    enum { COUNT = 5000, SIZE = 16 };
    char *bytes = malloc(COUNT * SIZE);
    size_t used = 0;
    struct path_list list;
    struct error err = ERROR_INIT;
    assert_non_null(bytes);
    for (unsigned i = 0; i < COUNT; i++)
        used += (size_t)snprintf(bytes + used, SIZE, "%u/%u\n", i % 7, i);
    assert_int_equal(open_bytes(&list, bytes, used, &err), STATUS_OK);
    assert_int_equal(list.count, COUNT);
    for (unsigned i = 0; i < COUNT; i++) {
        char path[SIZE];
        const int length = snprintf(path, sizeof path, "%u/%u", i % 7, i);
        assert_int_equal(path_list_find(&list, path, (size_t)length), i);
        assert_int_equal(path_list_find(&list, path, (size_t)length - 1) == i, false);
    }
    path_list_close(&list);
    free(bytes);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_separators),
    cmocka_unit_test(test_one_name_for_a_file),
    cmocka_unit_test(test_refused),
    cmocka_unit_test(test_many),
};
TEST_GROUP(path_list, make_directory, remove_directory)
