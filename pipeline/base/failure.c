/* failure.c: the closed list of reasons and their names. */
#include "base/failure.h"
#include "base/text.h"
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const names[REASON_COUNT] = {
    [REASON_NONE] = "none",
    [REASON_UNREADABLE] = "unreadable",
    [REASON_VANISHED] = "vanished",
    [REASON_CHANGED] = "changed",
    [REASON_EMPTY] = "empty",
    [REASON_UNKNOWN_FORMAT] = "unknown-format",
    [REASON_UNSUPPORTED] = "unsupported",
    [REASON_CORRUPT] = "corrupt",
    [REASON_TRUNCATED] = "truncated",
    [REASON_TOO_LARGE] = "too-large",
    [REASON_TOO_MANY_SCANS] = "too-many-scans",
    [REASON_TIMEOUT] = "timeout",
    [REASON_OUT_OF_MEMORY] = "out-of-memory",
    [REASON_DECODER_CRASHED] = "decoder-crashed",
    [REASON_NOT_AN_IMAGE] = "not-an-image",
};

enum reason failure_set(struct failure *failure, enum reason reason, const char *format, ...)
{
    assert(reason > REASON_NONE && reason < REASON_COUNT);
    failure->reason = reason;
    failure->error_number = 0;
    va_list arguments;
    va_start(arguments, format);
    text_format(failure->message, sizeof failure->message, format, arguments);
    va_end(arguments);
    return reason;
}

enum reason failure_errno(struct failure *failure, enum reason reason, int errno_value,
                          const char *format, ...)
{
    assert(reason > REASON_NONE && reason < REASON_COUNT);
    failure->reason = reason;
    failure->error_number = errno_value;
    char text[96], cause[128];
    const char *described = strerror_r(errno_value, text, sizeof text);
    snprintf(cause, sizeof cause, ": %.96s", described);
    size_t length = text_clean(cause, false);
    va_list arguments;
    va_start(arguments, format);
    text_format(failure->message, sizeof failure->message - length, format, arguments);
    va_end(arguments);
    memcpy(failure->message + strlen(failure->message), cause, length + 1);
    return reason;
}

const char *reason_name(enum reason reason)
{
    assert(reason >= REASON_NONE && reason < REASON_COUNT);
    return names[reason];
}

enum reason reason_from_name(const char *name)
{
    for (int i = 0; i < REASON_COUNT; i++)
        if (strcmp(names[i], name) == 0)
            return (enum reason)i;
    return REASON_COUNT;
}

uint64_t failures_counted(const uint64_t by_reason[REASON_COUNT])
{
    uint64_t sum = 0;
    for (int i = REASON_NONE + 1; i < REASON_COUNT; i++)
        if (i != REASON_NOT_AN_IMAGE)
            sum += by_reason[i];
    return sum;
}
