/* test_options.c: parsing of command lines. */
#include "runner.h"

#include "cli/options.h"

#include <string.h>

/* Parses "clpipe" followed by the words, which end with NULL; the first word is the command. */
static enum status parse(struct options **options, struct error *err, const char *const *words)
{
    char *argv[16] = {"clpipe"};
    const char *nearest;
    int argc = 1;
    for (; words[argc - 1]; argc++)
        argv[argc] = (char *)words[argc - 1];
    return options_parse(options, command_find(words[0], &nearest), argc, argv, err);
}

/* The value of an option, as the given type. */
#define VALUE(type, options, name) (*(type const *)option_at(options, name))
#define PARSE(options, err, ...)   parse(options, err, (const char *const[]){__VA_ARGS__, NULL})

static void test_defaults(void **state)
{
    (void)state;
    struct options *options;
    struct error err = ERROR_INIT;
    assert_int_equal(PARSE(&options, &err, "run", "photos"), STATUS_OK);
    assert_int_equal(options->operand_count, 1);
    assert_string_equal(options->operand[0], "photos");
    assert_string_equal(options->output, "clpipe.h5");
    assert_string_equal(VALUE(const char *, options, "name"), "kmeans");
    assert_string_equal(VALUE(const char *, options, "init"), "kmeans++");
    assert_int_equal(VALUE(struct number_range, options, "k").first, 10);
    assert_int_equal(VALUE(struct number_range, options, "k").last, 10);
    assert_int_equal(VALUE(uint64_t, options, "max-iter"), 100);
    assert_int_equal(options->memory, 256 << 20);
    assert_int_equal(VALUE(int, options, "metric"), -1);
    assert_true(VALUE(double, options, "checkpoint") == 60);
    assert_false(options_given(options, "k"));
    assert_false(json_owns_stdout(options));
    assert_string_equal(options->command_line, "clpipe run photos");
    options_close(&options);
}

static void test_values(void **state)
{
    (void)state;
    struct options *options;
    struct error err = ERROR_INIT;
    char word[32];
    assert_int_equal(PARSE(&options, &err, "cluster", "-k2:9:3", "x.npy", "--metric=cosine", "-qo",
                           "r.h5", "--json", "-", "--max-time", "01:30", "--tol", "1e-4"),
                     STATUS_USAGE); /* the unit is missing: HH:MM:SS is accepted, too */
    options_close(&options);
    assert_int_equal(PARSE(&options, &err, "cluster", "-k2:9:3", "x.npy", "--metric=cosine", "-qo",
                           "r.h5", "--json", "-", "--max-time", "2m", "--tol", "1e-4"),
                     STATUS_OK);
    assert_int_equal(VALUE(struct number_range, options, "k").first, 2);
    assert_int_equal(VALUE(struct number_range, options, "k").last,
                     8); /* the last value of the range with this step */
    assert_int_equal(VALUE(struct number_range, options, "k").step, 3);
    assert_int_equal(VALUE(int, options, "metric"), 1);
    assert_string_equal(option_choice(word, sizeof word, options, "metric"), "cosine");
    assert_true(options->quiet);
    assert_string_equal(options->output, "r.h5");
    assert_true(options->max_time == 120);
    assert_true(VALUE(double, options, "tol") == 1e-4);
    assert_true(json_owns_stdout(options));
    assert_true(options_given(options, "k"));
    options_close(&options);
    /* The value of --checkpoint is optional; lists keep their order; otherwise the last value is
     * used. */
    assert_int_equal(PARSE(&options, &err, "run", "--checkpoint", "a", "--feature", "hsv",
                           "--feature=gray", "--seed", "1", "--seed", "2", "--", "-b"),
                     STATUS_OK);
    assert_true(VALUE(double, options, "checkpoint") == 60);
    assert_int_equal(VALUE(struct text_list, options, "feature").count, 2);
    assert_string_equal(VALUE(struct text_list, options, "feature").text[0], "hsv");
    assert_string_equal(VALUE(struct text_list, options, "feature").text[1], "gray");
    assert_int_equal(VALUE(uint64_t, options, "seed"), 2);
    assert_int_equal(options->operand_count, 2);
    assert_string_equal(options->operand[1], "-b");
    options_close(&options);
}

/* A command's own option takes precedence over a general option with another default. */
static void test_own_default(void **state)
{
    (void)state;
    struct options *options;
    struct error err = ERROR_INIT;
    assert_int_equal(PARSE(&options, &err, "select", "F.h5", "5"), STATUS_OK);
    assert_int_equal(options->memory, 1 << 30);
    options_close(&options);
}

static void expect_misuse(const char *words, struct error *err)
{
    if (!strstr(err->sentence, words))
        fail_msg("'%s' lacks '%s'", err->sentence, words);
}

static void test_misuse(void **state)
{
    (void)state;
    static const struct {
        const char *words[6], *said;
    } lines[] = {
        {{"run"}, "SOURCE is missing"},
        {{"run", "x", "--treads", "3"}, "did you mean --threads?"},
        {{"run", "x", "--what", "y"}, "is an option of clpipe export"},
        {{"verify", "x", "y"}, "unexpected argument 'y'"},
        {{"cluster", "x", "-k", "0"}, "from 1 to"},
        {{"cluster", "x", "-k", "9:2"}, "not '9:2'"},
        {{"cluster", "x", "-k", "1:2:3:4"}, "not '1:2:3:4'"},
        {{"cluster", "x", "-k"}, "requires a value"},
        {{"run", "x", "--memory", "much"}, "a size such as"},
        {{"run", "x", "--strict=yes"}, "takes no value"},
        {{"run", "x", "--metric", "l2"}, "must be one of euclidean|cosine|hellinger"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct options *options;
        struct error err = ERROR_INIT;
        assert_int_equal(parse(&options, &err, lines[i].words), STATUS_USAGE);
        expect_misuse(lines[i].said, &err);
        assert_int_equal(err.remedy, REMEDY_SEE_HELP);
        options_close(&options);
    }
}

static void test_commands(void **state)
{
    (void)state;
    const char *nearest;
    assert_string_equal(command_find("ndrange", &nearest)->name, "ndrange");
    assert_null(command_find("ingets", &nearest));
    assert_string_equal(nearest, "ingest");
    assert_null(command_find("exp", &nearest));
    assert_string_equal(nearest, "export");
    assert_null(command_find("predict", &nearest));
    assert_null(nearest);
}

static void test_ranges(void **state)
{
    (void)state;
    struct options *options;
    struct error err = ERROR_INIT;
    assert_int_equal(
        PARSE(&options, &err, "ingest", "s-{08..11}.tar", "{x}", "a{2..1}/{7..8}", "-o", "F"),
        STATUS_OK);
    static const char *const names[] = {"s-08.tar", "s-09.tar", "s-10.tar", "s-11.tar", "{x}",
                                        "a2/7",     "a2/8",     "a1/7",     "a1/8"};
    assert_int_equal(options->operand_count, 9);
    for (unsigned i = 0; i < 9; i++)
        assert_string_equal(options->operand[i], names[i]);
    options_close(&options);
    assert_int_equal(PARSE(&options, &err, "ingest", "{0..99999}", "-o", "F"), STATUS_USAGE);
    assert_non_null(strstr(err.sentence, "65535"));
    options_close(&options);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_defaults),    cmocka_unit_test(test_values),
    cmocka_unit_test(test_own_default), cmocka_unit_test(test_misuse),
    cmocka_unit_test(test_commands),    cmocka_unit_test(test_ranges),
};
TEST_GROUP(options, NULL, NULL)
