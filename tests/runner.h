/* runner.h: what each test file includes: cmocka, and the group that the file's tests are.
 *
 * The files of a folder are one program, whose main is runner.c. A file ends with
 *
 *     static const struct CMUnitTest tests[] = {cmocka_unit_test(test_one), ...};
 *     TEST_GROUP(queue, setup, teardown)
 *
 * where the group has the name of the source that it tests. Each group runs in a process of its own,
 * with signals as a program finds them in a terminal. */
#ifndef CLPIPE_TESTS_RUNNER_H
#define CLPIPE_TESTS_RUNNER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>

struct test_group {
    const char *name;
    const struct CMUnitTest *tests;
    size_t count;
    CMFixtureFunction setup, teardown;
    unsigned seconds; /* without progress that end a test, times CLPIPE_TEST_PATIENCE */
    struct test_group *next;
};

/* Called by constructors. */
void test_group_register(struct test_group *group);

/* The seed for everything random in a test: CLPIPE_TEST_SEED, or 1. It is printed. */
uint32_t test_seed(void);

/* CLPIPE_TEST_BRIEF is set: checks are slow here (sanitizers, simulators), and a test that takes the
 * same way through the code many times need not. */
bool test_brief(void);

#define TEST_SECONDS                       30
#define TEST_GROUP(group, setup, teardown) TEST_GROUP_WITHIN(TEST_SECONDS, group, setup, teardown)
#define TEST_GROUP_WITHIN(limit, group, setup, teardown)                                           \
    __attribute__((constructor)) static void register_tests(void)                                  \
    {                                                                                              \
        static struct test_group group_of_tests = {                                                \
            #group, tests, sizeof tests / sizeof *tests, setup, teardown, limit, NULL};            \
        test_group_register(&group_of_tests);                                                      \
    }

#endif
