/* failure.h: reasons why a file was not decoded. The list is closed; its names are part of the file
 * format.
 *
 * A failure belongs to one item and travels with it into /failures; it never stops a run. */
#ifndef CLPIPE_BASE_FAILURE_H
#define CLPIPE_BASE_FAILURE_H

#include <stdbool.h>
#include <stdint.h>

enum reason {
    REASON_NONE = 0,        /* an image */
    REASON_UNREADABLE,      /* open, stat or read failed: see errno */
    REASON_VANISHED,        /* existed during the walk, but no longer does */
    REASON_CHANGED,         /* changed while it was read */
    REASON_EMPTY,           /* no bytes */
    REASON_UNKNOWN_FORMAT,  /* the name is that of an image, but the format of the content is
                             * unknown */
    REASON_UNSUPPORTED,     /* a known format or variant that this build cannot decode */
    REASON_CORRUPT,         /* the data contradicts itself */
    REASON_TRUNCATED,       /* the data ends early */
    REASON_TOO_LARGE,       /* over --max-pixels, or much longer than its pixels need */
    REASON_TOO_MANY_SCANS,  /* over --max-scans */
    REASON_TIMEOUT,         /* over the decode time limit, if one is set */
    REASON_OUT_OF_MEMORY,   /* the codec could not get memory */
    REASON_DECODER_CRASHED, /* an isolated decoder died */
    REASON_NOT_AN_IMAGE,    /* neither content nor name is that of an image: skipped, not failed */
    REASON_COUNT
};

struct failure {
    enum reason reason;
    int error_number;  /* errno, or 0 */
    char message[200]; /* one line: the codec's message or clpipe's */
};

/* Fills *failure with a formatted message (control characters and bytes that are not UTF-8 become
 * '?'); returns reason. */
enum reason failure_set(struct failure *failure, enum reason reason, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same with an errno, whose text is appended to the message. */
enum reason failure_errno(struct failure *failure, enum reason reason, int errno_value,
                          const char *format, ...) __attribute__((format(printf, 4, 5)));

/* "not-an-image" for REASON_NOT_AN_IMAGE; the longest name has REASON_NAME_MAX - 1 characters. */
const char *reason_name(enum reason reason);
#define REASON_NAME_MAX 16

/* The reason of that name, or REASON_COUNT. */
enum reason reason_from_name(const char *name);

/* The files that failed, without those that are not images. */
uint64_t failures_counted(const uint64_t by_reason[REASON_COUNT]);

#endif
