/* runner.h: included by each test file: cmocka, and registration of the file's tests as a group.
 *
 * The test files of a folder form one program, whose main() is in runner.c. A file ends with
 *
 *     static const struct CMUnitTest tests[] = {cmocka_unit_test(test_one), ...};
 *     TEST_GROUP(queue, setup, teardown)
 *
 * where the group is named after the source that it tests. Groups run in processes of their own,
 * with the signal dispositions of a program started in a terminal. */
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
    unsigned seconds; /* limit without progress, multiplied by CLPIPE_TEST_PATIENCE */
    struct test_group *next;
};

/* Called by the constructors that TEST_GROUP defines. */
void test_group_register(struct test_group *group);

/* The seed for all random data of a test: CLPIPE_TEST_SEED, or 1. The function prints it. */
uint32_t test_seed(void);

/* True if CLPIPE_TEST_BRIEF is set: checks are slow here (sanitizers, simulators), so tests that
 * repeat the same code path many times should take fewer cases. */
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
