/* log.c: messages and the status line on standard error.
 *
 * One write() removes the status line, prints the message and draws the line again, so that neither
 * threads nor other writers on the same terminal can interleave. */
#include "base/log.h"
#include "base/text.h"
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define ERASE_LINE "\r\033[K"
/* Without wrapping, a line drawn just before the window shrank stays one line. */
#define WRAP_OFF "\033[?7l"
#define WRAP_ON  "\033[?7h"

static _Atomic int log_level = LOG_INFO;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static char *status_line; /* what is on the terminal's last line, or NULL; under log_lock */

static char name[32] = "clpipe"; /* of this process; written while there is one thread */

static pthread_once_t terminal_once = PTHREAD_ONCE_INIT;
static bool terminal, colour;
static bool plain; /* written while there is one thread */

static void terminal_look(void)
{
    const char *term = getenv("TERM"), *no_colour = getenv("NO_COLOR");
    const bool able = term && term[0] && strcmp(term, "dumb") != 0;
    terminal = able && isatty(STDERR_FILENO);
    colour = able && !(no_colour && no_colour[0]);
}

bool log_is_terminal(void)
{
    pthread_once(&terminal_once, terminal_look);
    return terminal;
}

bool log_wants_colour(int descriptor)
{
    pthread_once(&terminal_once, terminal_look);
    return colour && !plain && (descriptor == STDERR_FILENO ? terminal : isatty(descriptor) != 0);
}

void log_set_level(enum log_level level)
{
    atomic_store(&log_level, (int)level);
}

enum log_level log_get_level(void)
{
    return (enum log_level)atomic_load(&log_level);
}

/* There is nowhere to report an error of this write. */
static void write_stderr(const char *text, size_t length)
{
    while (length > 0) {
        ssize_t n = write(STDERR_FILENO, text, length);
        if (n >= 0) {
            text += n;
            length -= (size_t)n;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            struct pollfd wait = {STDERR_FILENO, POLLOUT, 0};
            poll(&wait, 1, 1000);
        } else if (errno != EINTR) {
            return;
        }
    }
}

void log_set_plain(void)
{
    plain = true;
}

void log_set_rank(unsigned rank)
{
    snprintf(name, sizeof name, "clpipe (rank %u)", rank);
}

/* "clpipe: ", coloured by level. */
static const char *prefix_of(char *buffer, size_t size, enum log_level level)
{
    const bool in_colour = log_wants_colour(STDERR_FILENO) && level <= LOG_NOTICE;
    const char *start = level == LOG_ERROR ? "\033[1;31m" : "\033[33m";
    snprintf(buffer, size, "%s%s:%s ", in_colour ? start : "", name, in_colour ? "\033[0m" : "");
    return level == LOG_INFO ? "" : buffer;
}

void log_message(enum log_level level, const char *format, ...)
{
    assert(level > LOG_QUIET);
    if (level > log_get_level())
        return;
    int saved_errno = errno;
    char on_stack[1024], *text = on_stack;
    va_list arguments;
    va_start(arguments, format);
    int wanted = vsnprintf(on_stack, sizeof on_stack, format, arguments);
    va_end(arguments);
    if (wanted < 0)
        return;
    if ((size_t)wanted >= sizeof on_stack) {
        /* Build logs are long; if there is no memory, only their beginning is shown. */
        char *whole = malloc((size_t)wanted + 1);
        if (whole) {
            va_start(arguments, format);
            vsnprintf(whole, (size_t)wanted + 1, format, arguments);
            va_end(arguments);
            text = whole;
        }
    }
    text_clean(text, level >= LOG_INFO);

    pthread_mutex_lock(&log_lock);
    char named[64];
    const char *prefix = prefix_of(named, sizeof named, level);
    const char *status = status_line ? status_line : "";
    const char *before = status_line ? ERASE_LINE : "";
    const char *off = status_line ? WRAP_OFF : "", *on = status_line ? WRAP_ON : "";
    char *out;
    const int size = asprintf(&out, "%s%s%s\n%s%s%s", before, prefix, text, off, status, on);
    if (size >= 0) {
        write_stderr(out, (size_t)size);
        free(out);
    } else {
        write_stderr(before, strlen(before));
        write_stderr(prefix, strlen(prefix));
        write_stderr(text, strlen(text));
        write_stderr("\n", 1);
    }
    pthread_mutex_unlock(&log_lock);

    if (text != on_stack)
        free(text);
    errno = saved_errno;
}

void log_error(const struct error *err)
{
    char line[sizeof err->sentence + sizeof err->subject + 4];
    log_message(LOG_ERROR, "%s", error_line(line, sizeof line, err));
}

void log_status_line(const char *line)
{
    if (!log_is_terminal())
        return;
    int saved_errno = errno;
    pthread_mutex_lock(&log_lock);
    char *drawn = NULL;
    if (line) {
        size_t size = sizeof ERASE_LINE WRAP_OFF WRAP_ON + strlen(line);
        char *out = malloc(size);
        drawn = strdup(line);
        if (out && drawn)
            write_stderr(
                out, (size_t)snprintf(out, size, "%s%s%s%s", ERASE_LINE, WRAP_OFF, line, WRAP_ON));
        free(out);
    } else if (status_line) {
        write_stderr(ERASE_LINE, strlen(ERASE_LINE));
    }
    if (drawn || !line) {
        free(status_line);
        status_line = drawn;
    }
    pthread_mutex_unlock(&log_lock);
    errno = saved_errno;
}

unsigned log_columns(int descriptor, unsigned otherwise)
{
    struct winsize size;
    return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : otherwise;
}
