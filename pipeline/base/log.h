/* log.h: messages on standard error, and the live status line that they must not garble.
 *
 * Any thread may call all functions; each message is written by one write(). The log is
 * process-wide because standard error is. */
#ifndef CLPIPE_BASE_LOG_H
#define CLPIPE_BASE_LOG_H

#include "base/error.h"

enum log_level { LOG_QUIET = 0, LOG_ERROR, LOG_NOTICE, LOG_INFO, LOG_DEBUG };

/* Messages above `level` are dropped. Default LOG_INFO; -q is LOG_ERROR, -v is LOG_DEBUG. */
void log_set_level(enum log_level level);
enum log_level log_get_level(void);

/* From now on messages include this process's rank. Call while the process has one thread. */
void log_set_rank(unsigned rank);

/* No colours from now on: launchers of several processes may give them a terminal that is not the
 * user's. Call while the process has one thread. */
void log_set_plain(void);

/* Writes "clpipe: MESSAGE\n" (LOG_INFO without the prefix). Control characters and bytes
 * that are not UTF-8 become '?', except newlines and tabs in LOG_INFO and LOG_DEBUG texts. */
void log_message(enum log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Logs the error as one line at LOG_ERROR. */
void log_error(const struct error *err);

/* Shows `line` (UTF-8, no newline; may hold colour escapes) as the live status line, which the
 * caller has cut to the terminal's width; NULL removes it. Later messages appear above it. Only for
 * a terminal. */
void log_status_line(const char *line);

/* True if standard error is a terminal that understands cursor movement (TERM is not "dumb"). */
bool log_is_terminal(void);

/* True if what is written to that descriptor (standard output or standard error) may be coloured: a
 * terminal, NO_COLOR unset or empty, and log_set_plain not called. */
bool log_wants_colour(int descriptor);

/* The columns of the terminal behind that descriptor; `otherwise` if there is none. */
unsigned log_columns(int descriptor, unsigned otherwise);

#endif
