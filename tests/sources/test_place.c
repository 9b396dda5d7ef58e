/* test_place.c: which SOURCEs are the same place, and how an update changes a file's sources. */
#include "test_walk.h"

#include "sources/place.h"

static int setup(void **state)
{
    int result = scratch_setup(state);
    put_directory("dir");
    put_directory("dir/sub");
    put_directory("other");
    put_file("list", "");
    put_file("dir/file.jpg", "");
    assert_int_equal(symlink("dir", "link"), 0);
    assert_int_equal(symlink("dir/file.jpg", "picture"), 0);
    return result;
}

static const struct {
    const char *source, *text;
} texts[] = {
    {"dir", "dir"},
    {"dir/", "dir"},
    {"dir///", "dir"},
    {"./dir", "dir"},
    {".//././/dir//sub/", "dir/sub"},
    {"dir/./sub", "dir/./sub"},
    {"../dir", "../dir"},
    {"/", "/"},
    {"///", "/"},
    {"//tmp//x/", "/tmp/x"},
    {".", "."},
    {"./", "."},
    {"././/", "."},
    {"..", ".."},
    {".hidden", ".hidden"},
    {"./.hidden/", ".hidden"},
    {"-", "-"},
    {"./-", "./-"},
    {"@list", "@list"},
    {"@./list", "@list"},
    {"@.//a//list", "@a/list"},
    {"./@list", "./@list"},
    {"@@list", "@@list"},
    {"a\xff/", "a\\xff"},
    {"k\xc3\xa4se/", "k\xc3\xa4se"},
};

static void test_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char *text = place_text(texts[i].source);
        assert_string_equal(text, texts[i].text);
        free(text);
    }
}

static const struct {
    const char *a, *b;
    bool same;
} pairs[] = {
    {"dir", "dir/", true},
    {"dir", "./dir", true},
    {"dir", "link", true},
    {"dir/", "link//", true},
    {"dir", "other/../dir", true},
    {"dir", "dir/.", true},
    {"dir", "other", false},
    {"dir", "dir/sub", false},
    {"dir/file.jpg", "picture", true},
    {"dir/file.jpg", "link/file.jpg", true},
    {"list", "@list", false},
    {"@list", "@./list", true},
    {"@dir", "dir", false},
    {"-", "-", true},
    {"-", "./-", false},
    {"-", "@-", false},
    {"@list", "./@list", false},
    {"nowhere", "nowhere/", true}, /* only the texts are compared */
    {"nowhere", "dir/../nowhere", false},
    {"nowhere", "gone", false},
};

static void check_pair(const char *a, const char *b, bool same)
{
    const char *const names[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        char *text = place_text(names[i]);
        const char *const theirs[] = {text};
        const struct stored_sources stored = {theirs, NULL, 1};
        struct places places;
        struct error error = ERROR_INIT;
        assert_int_equal(places_update(&places, &stored, &names[1 - i], 1, NULL, 0, NULL, &error),
                         STATUS_OK);
        if ((places.added == 0) != same)
            fail_msg("%s and %s", a, b);
        places_clear(&places);
        free(text);
    }
}

static void test_pairs(void **state)
{
    (void)state;
    char here[4096], whole[4200];
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        check_pair(pairs[i].a, pairs[i].b, pairs[i].same);
    assert_non_null(getcwd(here, sizeof here));
    snprintf(whole, sizeof whole, "%s//dir/", here);
    check_pair("dir", whole, true);
    check_pair(whole, "link", true);
    check_pair(whole, "other", false);
}

/* The lists of sources are texts separated by spaces. */
static unsigned split(const char **out, char *text)
{
    unsigned count = 0;
    for (char *at = strtok(text, " "); at; at = strtok(NULL, " "))
        out[count++] = at;
    return count;
}

/* The result lists each source as STORED, as STORED=SPELLING if it is walked by another name, as
 * -STORED if it is not walked, or as +STORED if it is new. */
static const struct {
    const char *theirs, *given, *drop, *result;
} updates[] = {
    {"", "dir other", "", "+dir +other"},
    {"", "./dir/ dir link other", "", "+dir=./dir/ +other"},
    {"dir", "dir/", "", "dir=dir/"},
    {"dir", "other", "", "-dir +other"},
    {"dir", "other link", "", "dir=link +other"},
    {"dir other", "other", "", "-dir other"},
    {"dir other", "other dir", "", "dir other"},
    {"dir other list", "", "other", "-dir -list"},
    {"dir other", "list", "link other/", "+list"},
    {"dir dir", "dir", "", "dir -dir"}, /* as stored by earlier versions */
    {"dir dir", "dir dir/", "", "dir dir=dir/"},
    {"dir dir", "", "dir", "-dir"},
    {"@list", "@./list -", "", "@list=@./list +-"},
    {"- @list", "-", "", "- -@list"},
    {"gone", "gone/", "", "gone=gone/"},
    {"gone", "dir", "./gone", "+dir"},
    {"link", "dir", "", "link=dir"},
    {"dir link", "link", "", "-dir link"}, /* equal spellings are matched first */
    {"dir", "dir/sub", "", "-dir +dir/sub"},
    {"dir", "other", "list", NULL},
    {"dir", "dir", "dir/", NULL},
    {"dir", "", "dir", NULL},
    {"dir", "other", "dir dir", NULL},
};

static void test_updates(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof updates / sizeof *updates; i++) {
        char text[3][200], result[400] = "";
        const char *list[3][8];
        unsigned count[3];
        const char *const from[3] = {updates[i].theirs, updates[i].given, updates[i].drop};
        for (int j = 0; j < 3; j++) {
            snprintf(text[j], sizeof text[j], "%s", from[j]);
            count[j] = split(list[j], text[j]);
        }
        struct places places;
        struct error error = ERROR_INIT;
        const struct stored_sources theirs = {list[0], NULL, count[0]};
        enum status status =
            places_update(&places, &theirs, list[1], count[1], list[2], count[2], NULL, &error);
        assert_int_equal(status, updates[i].result ? STATUS_OK : STATUS_USAGE);
        assert_int_equal(error.status, status);
        for (unsigned j = 0; !status && j < places.count; j++) {
            const size_t used = strlen(result);
            const char *walked = places.walked[j], *stored = places.stored[j];
            const bool renamed = walked && strcmp(walked, stored) != 0;
            snprintf(result + used, sizeof result - used, "%s%s%s%s%s", j ? " " : "",
                     places.source_before[j] < 0 ? "+"
                     : walked                    ? ""
                                                 : "-",
                     stored, renamed ? "=" : "", renamed ? walked : "");
        }
        if (!status)
            assert_string_equal(result, updates[i].result);
        places_clear(&places);
    }
}

static void test_many(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    static char name[COUNT][24];
    static const char *list[COUNT], *reversed[COUNT];
    struct places places;
    struct error error = ERROR_INIT;
    for (unsigned i = 0; i < COUNT; i++) {
        snprintf(name[i], sizeof name[i], "dir/none-%06u", i * 7919u % COUNT);
        list[i] = reversed[COUNT - 1 - i] = name[i];
    }
    const struct stored_sources theirs = {list, NULL, COUNT};
    assert_int_equal(places_update(&places, &theirs, reversed, COUNT, NULL, 0, NULL, &error),
                     STATUS_OK);
    assert_int_equal(places.count, COUNT);
    assert_int_equal(places.added + places.unread + places.repeated, 0);
    places_clear(&places);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_texts, setup, scratch_teardown),
    cmocka_unit_test_setup_teardown(test_pairs, setup, scratch_teardown),
    cmocka_unit_test_setup_teardown(test_updates, setup, scratch_teardown),
    cmocka_unit_test_setup_teardown(test_many, setup, scratch_teardown),
};

TEST_GROUP(place, NULL, NULL)
