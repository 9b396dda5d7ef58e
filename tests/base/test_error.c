/* test_error.c: errors, failures and the cleaning of their texts. */

#include "runner.h"

#include "base/error.h"
#include "base/failure.h"
#include "base/text.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

static void set_fills_all_members(void **state)
{
    (void)state;
    struct error err;
    memset(&err, 'x', sizeof err);
    assert_int_equal(error_set(&err, STATUS_USAGE, "k is %d", 0), STATUS_USAGE);
    assert_int_equal(err.status, STATUS_USAGE);
    assert_int_equal(err.cause, CAUSE_OTHER);
    assert_int_equal(err.native, 0);
    assert_string_equal(err.subject, "");
    assert_string_equal(err.sentence, "k is 0");
    assert_int_equal(error_set(NULL, STATUS_FAILED, "nobody listens"), STATUS_FAILED);
    assert_int_equal(error_errno(NULL, STATUS_FAILED, EIO, "read", "nobody"), STATUS_FAILED);
}

static void errno_has_name_and_text(void **state)
{
    (void)state;
    struct error err;
    assert_int_equal(error_errno(&err, STATUS_FAILED, ENOSPC, "write", "cannot write %s", "a.h5"),
                     STATUS_FAILED);
    assert_int_equal(err.native, ENOSPC);
    assert_string_equal(err.sentence,
                        "cannot write a.h5: No space left on device (ENOSPC in write)");
    assert_string_equal(errno_name(EAGAIN), "EAGAIN");
    assert_string_equal(errno_name(ENOENT), "ENOENT");
    assert_string_equal(errno_name(EUCLEAN), "EUCLEAN");
    assert_string_equal(errno_name(0), "E#0");
    assert_string_equal(errno_name(-7), "E#-7");
    assert_string_equal(errno_name(98765), "E#98765");
}

/* A long file name is shortened; the cause at the end of the sentence is kept. */
static void long_text_keeps_the_cause(void **state)
{
    (void)state;
    char name[4000];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    struct error err;
    error_errno(&err, STATUS_FAILED, EIO, "read", "cannot read %s", name);
    const char *tail = "...: Input/output error (EIO in read)";
    size_t length = strlen(err.sentence);
    assert_int_equal(length, sizeof err.sentence - 1);
    assert_string_equal(err.sentence + length - strlen(tail), tail);

    struct failure failure;
    assert_int_equal(failure_errno(&failure, REASON_UNREADABLE, EACCES, "%s", name),
                     REASON_UNREADABLE);
    tail = "...: Permission denied";
    length = strlen(failure.message);
    assert_int_equal(length, sizeof failure.message - 1);
    assert_string_equal(failure.message + length - strlen(tail), tail);
    assert_int_equal(failure.error_number, EACCES);
}

/* The shortened text is valid UTF-8 wherever it is cut. */
static void cut_falls_between_characters(void **state)
{
    (void)state;
    char name[1200];
    for (size_t shift = 0; shift < 4; shift++) {
        memset(name, 'x', shift);
        for (size_t i = shift; i + 4 < sizeof name; i += 4)
            memcpy(name + i, "\xf0\x9f\x8d\x8e", 5);
        struct error err;
        error_set(&err, STATUS_FAILED, "%s", name);
        assert_null(strchr(err.sentence, '?'));
        size_t length = strlen(err.sentence);
        for (size_t i = 0; i < length;) {
            size_t n = utf8_sequence(err.sentence + i, length - i);
            assert_int_not_equal(n, 0);
            i += n;
        }
        assert_string_equal(err.sentence + length - 3, "...");
    }
}

static void control_characters_become_question_marks(void **state)
{
    (void)state;
    struct error err;
    error_set(&err, STATUS_FAILED,
              "a\033[2Jb\nc\td\177e\xc2\x9b"
              "f\xffg\xc3\xa9");
    assert_string_equal(err.sentence, "a?[2Jb?c?d?e?f?g\xc3\xa9");
    struct failure failure;
    assert_int_equal(failure_set(&failure, REASON_CORRUPT, "bad\r\n%s", "\033]0;x\a"),
                     REASON_CORRUPT);
    assert_string_equal(failure.message, "bad???]0;x?");
    assert_int_equal(failure.error_number, 0);
    assert_int_equal(failure.reason, REASON_CORRUPT);

    char layout[] = "a\tb\nc\r\xed\xa0\x80"
                    "d";
    assert_int_equal(text_clean(layout, true), strlen("a\tb\nc????d"));
    assert_string_equal(layout, "a\tb\nc????d");
}

static void line_names_the_subject_once(void **state)
{
    (void)state;
    struct error err;
    char line[1200];
    error_set(&err, STATUS_FAILED, "the device is lost");
    assert_string_equal(error_line(line, sizeof line, &err), "the device is lost");
    assert_int_equal(error_subject(&err, "gpu\n0"), STATUS_FAILED);
    assert_string_equal(error_line(line, sizeof line, &err), "gpu\\x0a0: the device is lost");
    error_set(&err, STATUS_USAGE, "cannot read photos/a.jpg");
    assert_int_equal(error_subject(&err, "photos/a.jpg"), STATUS_USAGE);
    assert_string_equal(error_line(line, sizeof line, &err), "cannot read photos/a.jpg");
    char tiny[8];
    assert_string_equal(error_line(tiny, sizeof tiny, &err), "cannot ");
}

static void memory_error_states_the_size(void **state)
{
    (void)state;
    struct error err;
    assert_int_equal(error_memory(&err, 123456, "the slots"), STATUS_FAILED);
    assert_int_equal(err.native, ENOMEM);
    assert_non_null(strstr(err.sentence, "123456"));
    assert_non_null(strstr(err.sentence, "the slots"));
    assert_int_equal(error_memory(NULL, 1, "x"), STATUS_FAILED);
}

/* The names are part of the file format, so they are deliberately repeated here. */
static void reasons_have_their_names(void **state)
{
    (void)state;
    static const struct {
        enum reason reason;
        const char *name;
    } names[] = {
        {REASON_UNREADABLE, "unreadable"},
        {REASON_VANISHED, "vanished"},
        {REASON_CHANGED, "changed"},
        {REASON_EMPTY, "empty"},
        {REASON_UNKNOWN_FORMAT, "unknown-format"},
        {REASON_UNSUPPORTED, "unsupported"},
        {REASON_CORRUPT, "corrupt"},
        {REASON_TRUNCATED, "truncated"},
        {REASON_TOO_LARGE, "too-large"},
        {REASON_TOO_MANY_SCANS, "too-many-scans"},
        {REASON_TIMEOUT, "timeout"},
        {REASON_OUT_OF_MEMORY, "out-of-memory"},
        {REASON_DECODER_CRASHED, "decoder-crashed"},
        {REASON_NOT_AN_IMAGE, "not-an-image"},
    };
    assert_int_equal(sizeof names / sizeof names[0], REASON_COUNT - 1);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_string_equal(reason_name(names[i].reason), names[i].name);
        assert_int_equal(reason_from_name(names[i].name), names[i].reason);
        assert_true(strlen(names[i].name) < REASON_NAME_MAX);
    }
    assert_int_equal(reason_from_name("Corrupt"), REASON_COUNT);
    assert_int_equal(reason_from_name(""), REASON_COUNT);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(set_fills_all_members),
    cmocka_unit_test(errno_has_name_and_text),
    cmocka_unit_test(long_text_keeps_the_cause),
    cmocka_unit_test(cut_falls_between_characters),
    cmocka_unit_test(control_characters_become_question_marks),
    cmocka_unit_test(line_names_the_subject_once),
    cmocka_unit_test(memory_error_states_the_size),
    cmocka_unit_test(reasons_have_their_names),
};
TEST_GROUP(error, NULL, NULL)
