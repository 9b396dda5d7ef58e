/* error.h: errors of a run.
 *
 * A function that can fail returns `enum status` and takes a `struct error *` as its last
 * parameter, which it fills if (and only if) it does not return STATUS_OK. An error is filled once,
 * where it happens, and passed up unchanged; a caller may add a subject that the callee does not
 * know. Programmer errors are asserts. For errors of one item (a bad JPEG) see failure.h.
 */
#ifndef CLPIPE_BASE_ERROR_H
#define CLPIPE_BASE_ERROR_H

#include <stdbool.h>
#include <stddef.h>

/* The values up to STATUS_INTERRUPTED are the program's exit codes: cli/main.c returns them. */
enum status {
    STATUS_OK = 0,
    STATUS_PARTIAL = 1,     /* done, but something was wrong with the data */
    STATUS_USAGE = 2,       /* invalid request */
    STATUS_FAILED = 3,      /* device, output, disk or memory */
    STATUS_INTERRUPTED = 4, /* a stop was requested; sealed work is kept */
    STATUS_END = 5,         /* end of a stream; never leaves the program, never fills an error */
};

/* What the user can do about an error. The library names no command-line option; cli/remedy.c words
 * each remedy. */
enum remedy {
    REMEDY_NONE,
    REMEDY_SEE_HELP,       /* read how the command is used */
    REMEDY_OTHER_WRITER,   /* wait for it, or another output */
    REMEDY_SHARE,          /* several processes of one ingest: share it */
    REMEDY_OTHER_RANKS,    /* another output, as many ranks as before, or start over */
    REMEDY_SAME_PARTS,     /* start over */
    REMEDY_LESS_MEMORY,    /* smaller memory bound, fewer threads */
    REMEDY_OTHER_DEVICE,   /* select another device */
    REMEDY_DEVICE_MEMORY,  /* smaller bound on device memory */
    REMEDY_RUN_AGAIN,      /* finished work is kept: the same command resumes */
    REMEDY_START_OVER,     /* discard earlier work and begin again */
    REMEDY_OTHER_OUTPUT,   /* write to another file */
    REMEDY_REPLACE,        /* replace the existing result, or give the new one another name */
    REMEDY_REPLACE_OUTPUT, /* replace the result file, or write to another */
    REMEDY_REPLACE_FILE,   /* start the file over, or write to another */
    REMEDY_SAME_OPTIONS,   /* continue with the options of the file, or the same */
    REMEDY_FEWER_SAMPLES,  /* smaller mini-batches, or fewer of them */
    REMEDY_OTHER_METRIC,   /* another metric */

    REMEDY_LEAVE_OUT_FEATURE, /* do not choose a feature: the input has none to choose from */
    REMEDY_CHOOSE_FEATURE,    /* name one of several features */
    REMEDY_CHOOSE_CLUSTERS,   /* name one of several clusterings */
    REMEDY_OWN_OUTPUT,        /* write to a separate file */
    REMEDY_OTHER_NAME,        /* give the result another name */
    REMEDY_REPLACE_LABELS,    /* replace the existing labels */
    REMEDY_FIRST_CENTROIDS,   /* name an initialisation, or an existing file */
    REMEDY_MAKE_CLUSTERS,     /* cluster the file first */
    REMEDY_REPLACE_FEATURE,   /* replace the imported feature, or give this one another name */
    REMEDY_REMOVE_DEPENDENTS, /* also remove what was made from it */
    REMEDY_ALLOW_MISSING,     /* accept images without values */
    REMEDY_SMALLER_LAUNCHES,  /* fewer bytes in a launch */
    REMEDY_NO_REPORT,         /* leave the report out */
    REMEDY_ADD_CODES,         /* make the codes */
    REMEDY_ALLOW_REMOVAL,     /* remove that many images */
    REMEDY_GIVE_CLASSES,      /* name a table of classes */
    REMEDY_RETRAIN,           /* learn new codebooks */
    REMEDY_RETRAIN_GIVEN,     /* take another codebook */
    REMEDY_ALONE,             /* let each process work on its own */
    REMEDY_COUNT
};

/* What failed, for callers that act on it. */
enum cause {
    CAUSE_OTHER,    /* native is an errno, or 0 */
    CAUSE_OPENCL,   /* native is a cl_int */
    CAUSE_DISTINCT, /* k exceeds the number of distinct rows, which is native */
    CAUSE_CLOSED,   /* the handle is not open */
    CAUSE_FORKED,   /* the process was forked from one that uses drivers */
};

struct error {
    enum status status;
    enum remedy remedy;
    enum cause cause;
    int native;
    char subject[256];  /* file, device, kernel or dataset, or "" */
    char sentence[768]; /* what failed and, if no remedy fits, what to do; no newline */
};

#define ERROR_INIT                                                                                 \
    {                                                                                              \
        STATUS_OK, REMEDY_NONE, CAUSE_OTHER, 0, "", ""                                             \
    }

/* Fills *err with a formatted sentence and returns `status`. Control characters and bytes that are
 * not UTF-8 become '?', so that a file name cannot garble the terminal. err may be NULL. */
enum status error_set(struct error *err, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for a failed system call; keeps errno_value. The message reads
 * "SENTENCE: No space left on device (ENOSPC in CALL)". */
enum status error_errno(struct error *err, enum status status, int errno_value, const char *call,
                        const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Names the file, device, kernel or dataset concerned; returns err->status. */
enum status error_subject(struct error *err, const char *subject);

/* Sets what callers act on; returns err->status. err may be NULL. */
enum status error_cause(struct error *err, enum cause cause, int native);

/* Adds a remedy; returns err->status. err may be NULL. */
enum status error_remedy(struct error *err, enum remedy remedy);

/* Writes the error as one line without a newline, always terminated; returns buffer. */
const char *error_line(char *buffer, size_t size, const struct error *err);
/* The same in a buffer that lasts until the enclosing block ends. */
#define ERROR_LINE(err) error_line((char[1200]){0}, 1200, err)

/* "ENOSPC" for ENOSPC; "E#123" for a number without a name. The result is static or thread-local.
 */
const char *errno_name(int errno_value);

/* Out of host memory: `bytes` for `what` could not be allocated. Returns STATUS_FAILED. */
enum status error_memory(struct error *err, size_t bytes, const char *what);

#endif
