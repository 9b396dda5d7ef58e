/* sink.c: buffered output to a file or to standard output. */
#include "cli/sink.h"
#include "base/path.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SINK_BUFFER ((size_t)1 << 16)

bool sink_is_stdout(const char *path)
{
    struct stat one, other;
    return strcmp(path, "-") == 0 || (strncmp(path, "/dev/", 5) == 0 && stat(path, &one) == 0 &&
                                      fstat(STDOUT_FILENO, &other) == 0 &&
                                      one.st_dev == other.st_dev && one.st_ino == other.st_ino);
}

static bool begins_as(const char *path, const char *const *beginnings)
{
    char start[64] = {0};
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    const ssize_t size = read(fd, start, sizeof start - 1);
    close(fd);
    const char *text = start + strspn(start, " \t\r\n");
    for (; size > 0 && *beginnings; beginnings++)
        if (strncmp(text, *beginnings, strlen(*beginnings)) == 0)
            return true;
    return size == 0;
}

enum status sink_check(const char *option, const char *path, const char *const *beginnings,
                       const char *kind, struct error *err)
{
    struct output *trial = NULL;
    struct stat st;
    const bool there = stat(path, &st) == 0;
    if (there && S_ISREG(st.st_mode) && !begins_as(path, beginnings))
        return error_set(err, STATUS_FAILED,
                         "%s: %s exists and is not %s, so it is not overwritten; name another file",
                         option, PATH_TEXT(path), kind);
    if (there && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return STATUS_OK;
    const enum status status = output_open(&trial, path, err);
    output_close(&trial);
    return status;
}

enum status sink_open(struct sink *out, const char *path, struct error *err)
{
    memset(out, 0, sizeof *out);
    out->buffer = malloc(SINK_BUFFER);
    if (!out->buffer)
        return error_memory(err, SINK_BUFFER, "an output buffer");
    out->fd = STDOUT_FILENO;
    out->path = path ? path : "standard output";
    if (!path || sink_is_stdout(path))
        return STATUS_OK;
    enum status status = STATUS_OK;
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
        /* Pipes and devices accept any output. */
        out->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        out->opened = out->fd >= 0;
        if (out->fd < 0)
            status =
                error_errno(err, STATUS_FAILED, errno, "open", "cannot write %s", PATH_TEXT(path));
    } else {
        status = output_open(&out->file, path, err);
    }
    if (status != STATUS_OK) {
        free(out->buffer);
        out->buffer = NULL;
        return status;
    }
    if (out->file)
        out->fd = output_descriptor(out->file);
    return STATUS_OK;
}

static void put(struct sink *sink, const void *data, size_t size)
{
    if (sink->closed || size == 0)
        return;
    if (write_all(sink->fd, data, size, sink->path, &sink->error) != STATUS_OK) {
        sink->closed = true;
        if (!sink->file && sink->error.native == EPIPE)
            sink->error = (struct error)ERROR_INIT;
    }
}

void sink_flush(struct sink *sink)
{
    put(sink, sink->buffer, sink->used);
    sink->used = 0;
}

void sink_write(struct sink *sink, const void *data, size_t size)
{
    if (sink->closed)
        return;
    if (size > SINK_BUFFER - sink->used)
        sink_flush(sink);
    if (size > SINK_BUFFER) {
        put(sink, data, size);
        return;
    }
    memcpy(sink->buffer + sink->used, data, size);
    sink->used += size;
}

void sink_text(struct sink *sink, const char *text)
{
    sink_write(sink, text, strlen(text));
}

void sink_clean(struct sink *sink, const char *text)
{
    size_t size = 4 * strlen(text) + 16;
    char *clean = malloc(size);
    if (!clean) {
        sink_text(sink, "?");
        return;
    }
    sink_text(sink, path_for_message(clean, size, text));
    free(clean);
}

static void put_format(struct sink *sink, void (*put_text)(struct sink *sink, const char *text),
                       const char *format, va_list arguments)
{
    char *text;
    if (vasprintf(&text, format, arguments) >= 0) {
        put_text(sink, text);
        free(text);
        return;
    }
    if (!sink->closed)
        error_memory(&sink->error, 1024, "a line of output");
    sink->closed = true;
}

void sink_printf(struct sink *sink, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    put_format(sink, sink_text, format, arguments);
    va_end(arguments);
}

void sink_line(struct sink *sink, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    put_format(sink, sink_clean, format, arguments);
    va_end(arguments);
    sink_text(sink, "\n");
}

void sink_field(struct sink *sink, const char *text, char separator)
{
    char special[] = {'"', '\r', '\n', separator, 0};
    if (!text[strcspn(text, special)]) {
        sink_text(sink, text);
        return;
    }
    sink_text(sink, "\"");
    for (const char *quote = strchr(text, '"'); quote; quote = strchr(text, '"')) {
        sink_write(sink, text, (size_t)(quote - text) + 1);
        sink_text(sink, "\"");
        text = quote + 1;
    }
    sink_text(sink, text);
    sink_text(sink, "\"");
}

enum status sink_close(struct sink *sink, bool keep, struct error *err)
{
    if (!sink->buffer)
        return STATUS_OK;
    if (keep || !sink->file)
        sink_flush(sink);
    enum status status = STATUS_OK;
    if (sink->error.status != STATUS_OK) {
        if (err)
            *err = sink->error;
        status = sink->error.status;
    } else if (keep && sink->file) {
        status = output_commit(sink->file, err);
    }
    output_close(&sink->file);
    if (sink->opened)
        close(sink->fd);
    free(sink->buffer);
    sink->buffer = NULL;
    return status;
}

enum status sink_end(struct sink *sink, enum status status, struct error *err)
{
    const enum status closed =
        sink_close(sink, status == STATUS_OK, status == STATUS_OK ? err : NULL);
    return status == STATUS_OK ? closed : status;
}
