/* failure.c: the closed list of reasons, with their names and advice for users. */
#include "base/failure.h"
#include "base/text.h"
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *advice;
} reasons[REASON_COUNT] = {
    [REASON_NONE] = {"none", "Nothing is wrong."},
    [REASON_UNREADABLE] = {"unreadable", "The file could not be read: check its permissions and "
                                         "the disk or network it is on."},
    [REASON_VANISHED] = {"vanished", "The file was removed or renamed while clpipe ran: run again "
                                     "when nothing else changes the directory."},
    [REASON_CHANGED] = {"changed", "The file changed while it was read: run again with "
                                   "--retry-failed when it is no longer written to."},
    [REASON_EMPTY] = {"empty", "The file has no bytes: an interrupted copy or download; fetch it "
                               "again or delete it."},
    [REASON_UNKNOWN_FORMAT] = {"unknown-format",
                               "The name says image but the content is of no format that clpipe "
                               "knows: see what it is with file(1)."},
    [REASON_UNSUPPORTED] = {"unsupported",
                            "This build cannot decode this format or variant: see clpipe formats, "
                            "or convert the file."},
    [REASON_CORRUPT] = {"corrupt", "The data contradicts itself: restore the file from a good "
                                   "copy."},
    [REASON_TRUNCATED] = {"truncated", "The data ends early: copy or download the file again."},
    [REASON_TOO_LARGE] = {"too-large", "The image has more pixels than --max-pixels allows: raise "
                                       "it if the file is to be trusted."},
    [REASON_TOO_MANY_SCANS] = {"too-many-scans",
                               "The progressive JPEG has more scans than --max-scans allows: raise "
                               "it if the file is to be trusted."},
    [REASON_TIMEOUT] = {"timeout", "Decoding took longer than the time limit that was asked for: "
                                   "raise it or leave it out."},
    [REASON_OUT_OF_MEMORY] = {"out-of-memory", "The decoder could not get memory: run again with "
                                               "--retry-failed and fewer --threads."},
    [REASON_DECODER_CRASHED] = {"decoder-crashed",
                                "The decoder died on this file: treat the file as hostile, and "
                                "update the image libraries."},
    [REASON_NOT_AN_IMAGE] = {"not-an-image", "Neither name nor content says image: skipped."},
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
    return reasons[reason].name;
}

enum reason reason_from_name(const char *name)
{
    for (int i = 0; i < REASON_COUNT; i++)
        if (strcmp(reasons[i].name, name) == 0)
            return (enum reason)i;
    return REASON_COUNT;
}

const char *reason_advice(enum reason reason)
{
    assert(reason >= REASON_NONE && reason < REASON_COUNT);
    return reasons[reason].advice;
}
