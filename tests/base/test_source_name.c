/* test_source_name.c: which file names denote archives, and the order of rows. */
#include "runner.h"

#include "base/source_name.h"

#include <string.h>

static bool promised(const char *name)
{
    return archive_promised(name, strlen(name));
}

static void names_of_archives(void **state)
{
    (void)state;
    assert_true(promised("a.tar"));
    assert_true(promised("dir/a.TAR.GZ"));
    assert_true(promised("a.tgz"));
    assert_true(promised("b.Zip"));
    assert_true(promised("x.tar.zst"));
    assert_false(promised(".tar"));
    assert_false(promised("a/.zip"));
    assert_false(promised("tar"));
    assert_false(promised("a.tar.jpg"));
    assert_false(promised("a.gz"));
}

static void prefixes(void **state)
{
    (void)state;
    assert_int_equal(archive_prefix("a.tar/x"), 6);
    assert_int_equal(archive_prefix("d/a.zip/e/b.tar/x"), 8);
    assert_int_equal(archive_prefix("d/a.tar"), 0);
    assert_int_equal(archive_prefix("d/.tar/x"), 0);
    assert_int_equal(archive_prefix(""), 0);
}

static void sorted_sources(void **state)
{
    (void)state;
    assert_true(source_is_sorted("photos", false));
    assert_false(source_is_sorted("photos", true));
    assert_false(source_is_sorted("@list", false));
    assert_false(source_is_sorted("-", false));
    assert_false(source_is_sorted("a.tar", false));
}

static void order_of_rows(void **state)
{
    (void)state;
    assert_true(source_row_follows("a", "b"));
    assert_false(source_row_follows("b", "a"));
    assert_false(source_row_follows("a", "a"));
    assert_true(source_row_follows("a.tar/z", "a.tar/b"));
    assert_true(source_row_follows("a.tar.jpg", "a.tar/b"));
    assert_false(source_row_follows("a.tar/b", "a.tar.jpg"));
    assert_false(source_row_follows("b.tar/a", "a.tar/b"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(names_of_archives),
    cmocka_unit_test(prefixes),
    cmocka_unit_test(sorted_sources),
    cmocka_unit_test(order_of_rows),
};
TEST_GROUP(source_name, NULL, NULL)
