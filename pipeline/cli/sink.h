/* sink.h: the main output of a command: to standard output, a pipe or device, or a file that appears
 * when complete.
 *
 * Errors stay with the sink until sink_close, so that writing needs no checks; a reader that closes
 * the pipe is not an error: everything after that is silently dropped. One thread. */
#ifndef CLPIPE_CLI_SINK_H
#define CLPIPE_CLI_SINK_H

#include "base/error.h"
#include "base/output.h"
#include <stdbool.h>
#include <stddef.h>

struct sink {
    int fd;
    struct output *file; /* NULL: standard output, or a pipe or device */
    bool opened;         /* fd is that of a pipe or device */
    const char *path;    /* for messages */
    char *buffer;
    size_t used;
    bool closed; /* the reader has closed the pipe, or an error: stop producing */
    struct error error;
};

/* True for "-", /dev/stdout and other names of standard output in /dev. */
bool sink_is_stdout(const char *path);

/* Checks that sink_open may write the file named by `option`: an existing one must be empty or start with
 * one of `beginnings`. STATUS_FAILED: it is not a `kind`, or cannot be written. */
enum status sink_check(const char *option, const char *path, const char *const *beginnings,
                       const char *kind, struct error *err);

/* path NULL: standard output. Pipes and devices are written directly; a file appears when complete.
 * The path is kept, not copied. */
enum status sink_open(struct sink *out, const char *path, struct error *err);
void sink_write(struct sink *sink, const void *data, size_t size);
void sink_text(struct sink *sink, const char *text);
/* Writes `text` with hidden characters (base/text.h) and bytes that are not UTF-8 escaped. */
void sink_clean(struct sink *sink, const char *text);
/* Writes a line in this way, and its end. */
void sink_line(struct sink *sink, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes `text` as a field of a table with this separator: quoted according to RFC 4180 if it holds
 * the separator, a quote or a line end. */
void sink_field(struct sink *sink, const char *text, char separator);
void sink_printf(struct sink *sink, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes out what is buffered, so that others may write to sink->fd. */
void sink_flush(struct sink *sink);
/* Flushes; the file appears if `keep` and nothing failed. Reports the first error. Accepts a sink
 * that was never opened (zeroed). */
enum status sink_close(struct sink *sink, bool keep, struct error *err);
/* The same after work that ended with `status`: the file appears if that is STATUS_OK. Returns the first
 * failure. */
enum status sink_end(struct sink *sink, enum status status, struct error *err);

#endif
