/* error.c: filling errors and writing them as one line. */
#include "base/error.h"
#include "base/path.h"
#include "base/text.h"
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* strerrorname_np() requires glibc 2.32. */
static const struct {
    int value;
    const char *name;
} errno_names[] = {
#define NAMED(e)                                                                                   \
    {                                                                                              \
        e, #e                                                                                      \
    }
    NAMED(EPERM),       NAMED(ENOENT),       NAMED(ESRCH),
    NAMED(EINTR),       NAMED(EIO),          NAMED(ENXIO),
    NAMED(E2BIG),       NAMED(ENOEXEC),      NAMED(EBADF),
    NAMED(ECHILD),      NAMED(EAGAIN),       NAMED(ENOMEM),
    NAMED(EACCES),      NAMED(EFAULT),       NAMED(ENOTBLK),
    NAMED(EBUSY),       NAMED(EEXIST),       NAMED(EXDEV),
    NAMED(ENODEV),      NAMED(ENOTDIR),      NAMED(EISDIR),
    NAMED(EINVAL),      NAMED(ENFILE),       NAMED(EMFILE),
    NAMED(ENOTTY),      NAMED(ETXTBSY),      NAMED(EFBIG),
    NAMED(ENOSPC),      NAMED(ESPIPE),       NAMED(EROFS),
    NAMED(EMLINK),      NAMED(EPIPE),        NAMED(EDOM),
    NAMED(ERANGE),      NAMED(EDEADLK),      NAMED(ENAMETOOLONG),
    NAMED(ENOLCK),      NAMED(ENOSYS),       NAMED(ENOTEMPTY),
    NAMED(ELOOP),       NAMED(ENODATA),      NAMED(ETIME),
    NAMED(ENOLINK),     NAMED(EPROTO),       NAMED(EBADMSG),
    NAMED(EOVERFLOW),   NAMED(EILSEQ),       NAMED(EUSERS),
    NAMED(ENOTSUP),     NAMED(ESTALE),       NAMED(EDQUOT),
    NAMED(EREMOTEIO),   NAMED(ENOMEDIUM),    NAMED(EMEDIUMTYPE),
    NAMED(ECANCELED),   NAMED(ENOKEY),       NAMED(EKEYEXPIRED),
    NAMED(EKEYREVOKED), NAMED(EKEYREJECTED), NAMED(EOWNERDEAD),
    NAMED(ECOMM),       NAMED(ETIMEDOUT),    NAMED(ECONNREFUSED),
    NAMED(ECONNRESET),  NAMED(ECONNABORTED), NAMED(ENOTCONN),
    NAMED(EHOSTDOWN),   NAMED(EHOSTUNREACH), NAMED(ENETDOWN),
    NAMED(ENETUNREACH), NAMED(ENOBUFS),      NAMED(EALREADY),
    NAMED(EINPROGRESS), NAMED(EUCLEAN),      NAMED(ESHUTDOWN),
    NAMED(ENONET),      NAMED(EREMOTE),      NAMED(ENOTUNIQ),
    NAMED(EBADFD),      NAMED(EADDRINUSE),   NAMED(EPROTONOSUPPORT),
#undef NAMED
};

const char *errno_name(int errno_value)
{
    static _Thread_local char unnamed[24];
    for (size_t i = 0; i < sizeof errno_names / sizeof errno_names[0]; i++)
        if (errno_names[i].value == errno_value)
            return errno_names[i].name;
    snprintf(unnamed, sizeof unnamed, "E#%d", errno_value);
    return unnamed;
}

enum status error_set(struct error *err, enum status status, const char *format, ...)
{
    assert(status > STATUS_OK && status < STATUS_END);
    if (!err)
        return status;
    *err = (struct error)ERROR_INIT;
    err->status = status;
    va_list arguments;
    va_start(arguments, format);
    text_format(err->sentence, sizeof err->sentence, format, arguments);
    va_end(arguments);
    return status;
}

enum status error_errno(struct error *err, enum status status, int errno_value, const char *call,
                        const char *format, ...)
{
    assert(status > STATUS_OK && status < STATUS_END);
    if (!err)
        return status;
    *err = (struct error)ERROR_INIT;
    err->status = status;
    err->native = errno_value;

    /* The cause must not be cut off, however long the file name is. */
    char text[96], cause[256];
    const char *described = strerror_r(errno_value, text, sizeof text);
    snprintf(cause, sizeof cause, ": %.96s (%s in %s)", described, errno_name(errno_value), call);
    size_t length = text_clean(cause, false);
    va_list arguments;
    va_start(arguments, format);
    text_format(err->sentence, sizeof err->sentence - length, format, arguments);
    va_end(arguments);
    memcpy(err->sentence + strlen(err->sentence), cause, length + 1);
    return status;
}

enum status error_subject(struct error *err, const char *subject)
{
    if (!err)
        return STATUS_FAILED;
    path_for_message(err->subject, sizeof err->subject, subject);
    return err->status;
}

enum status error_cause(struct error *err, enum cause cause, int native)
{
    if (!err)
        return STATUS_FAILED;
    err->cause = cause;
    err->native = native;
    return err->status;
}

enum status error_remedy(struct error *err, enum remedy remedy)
{
    if (!err)
        return STATUS_FAILED;
    err->remedy = remedy;
    return err->status;
}

const char *error_line(char *buffer, size_t size, const struct error *err)
{
    if (size == 0)
        return buffer;
    bool named = err->subject[0] && !strstr(err->sentence, err->subject);
    snprintf(buffer, size, "%s%s%s", named ? err->subject : "", named ? ": " : "", err->sentence);
    return buffer;
}

enum status error_memory(struct error *err, size_t bytes, const char *what)
{
    error_set(err, STATUS_FAILED, "out of memory: cannot allocate %zu bytes for %s", bytes, what);
    error_cause(err, CAUSE_OTHER, ENOMEM);
    error_remedy(err, REMEDY_LESS_MEMORY);
    return STATUS_FAILED;
}
