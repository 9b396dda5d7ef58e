/* test_failure.c: the message of a failure ends with its cause, however long the rest of the
 * message is. */
#include "runner.h"

#include "base/failure.h"
#include <errno.h>
#include <string.h>

static void messages_end_with_the_cause(void **state)
{
    (void)state;
    struct failure failure;
    char name[2 * sizeof failure.message];
    memset(&failure, 'x', sizeof failure); /* the memory is not zero */
    assert_int_equal(failure_errno(&failure, REASON_CORRUPT, EACCES, "cannot read %s", "it"),
                     REASON_CORRUPT);
    assert_int_equal(failure.reason, REASON_CORRUPT);
    assert_int_equal(failure.error_number, EACCES);
    assert_string_equal(failure.message, "cannot read it: Permission denied");
    memset(&failure, 'x', sizeof failure);
    assert_int_equal(failure_set(&failure, REASON_TRUNCATED, "%u rows", 3), REASON_TRUNCATED);
    assert_int_equal(failure.error_number, 0);
    assert_string_equal(failure.message, "3 rows");
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    failure_errno(&failure, REASON_CORRUPT, EACCES, "%s", name);
    assert_int_equal(strlen(failure.message), sizeof failure.message - 1);
    assert_string_equal(strchr(failure.message, ':'), ": Permission denied");
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(messages_end_with_the_cause)};
TEST_GROUP(failure, NULL, NULL)
