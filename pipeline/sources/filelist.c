/* filelist.c: lists of paths.
 *
 *   list ──> spool (NUL?) ──> paths ──> each once (once.h)
 *
 * The list is copied first: its separator is only known at its end, and standard input cannot be
 * read twice. */
#include "sources/filelist.h"
#include "base/path.h"
#include "sources/bytes.h"
#include "sources/once.h"
#include "sources/spool.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNK   (64 * 1024)
#define POLL_MS 100

struct filelist {
    const char *source;
    struct stop *stop;
    struct spool *text; /* the list, unchanged */
    struct filelist_form form;
    struct once *once;
};

static const char *list_name(char shown[256], const struct filelist *list)
{
    if (strcmp(list->source, "-") == 0)
        return "the list on standard input";
    return path_for_message(shown, 256, list->source);
}

/* --- reading --------------------------------------------------------------------------------- */

static enum status open_list(int *fd, const struct filelist *list, struct error *err)
{
    char shown[256];
    if (strcmp(list->source, "-") == 0) {
        *fd = STDIN_FILENO;
        return STATUS_OK;
    }
    const char *path = list->source + 1;
    if (*path == 0)
        return error_set(err, STATUS_USAGE, "\"@\" names no list: give @FILE");
    /* Without O_NONBLOCK, opening a FIFO would wait for its writer and ignore stops. */
    *fd = path_open_at(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (*fd >= 0)
        return STATUS_OK;
    bool missing = errno == ENOENT || errno == ENOTDIR;
    return error_errno(err, missing ? STATUS_USAGE : STATUS_FAILED, errno, "open",
                       "cannot open the list %s%s", list_name(shown, list),
                       missing ? " (write ./@NAME for a file whose name begins with @)" : "");
}

/* Copies the list to the spool and determines its form. */
static enum status copy_list(struct filelist *list, int fd, char *chunk, struct error *err)
{
    char shown[256];
    for (;;) {
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
        enum status status = stop_check(list->stop, "reading a list of files", err);
        if (status != STATUS_OK)
            return status;
        if (poll(&poll_fd, 1, POLL_MS) != 1)
            continue;
        ssize_t n = read(fd, chunk, CHUNK);
        if (n == 0)
            return filelist_check(&list->form, list_name(shown, list), err);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n < 0)
            return error_errno(err, STATUS_FAILED, errno, "read", "cannot read %s",
                               list_name(shown, list));
        filelist_look(&list->form, chunk, (size_t)n);
        if ((status = spool_write(list->text, chunk, (size_t)n, err)) != STATUS_OK)
            return status;
    }
}

void filelist_look(struct filelist_form *form, const char *bytes, size_t size)
{
    const char *end = bytes + size;
    form->has_nul = form->has_nul || memchr(bytes, 0, size);
    for (size_t i = 0; i < size && form->size + i < sizeof form->first; i++)
        form->first[form->size + i] = (unsigned char)bytes[i];
    for (const char *at = bytes; !form->has_nul && (at = memchr(at, '\n', (size_t)(end - at)));
         at++) {
        form->lines++;
        form->returns += (at > bytes ? at[-1] : form->last) == '\r';
    }
    form->size += size;
    form->last = size > 0 ? (unsigned char)end[-1] : form->last;
}

enum status filelist_check(const struct filelist_form *form, const char *shown, struct error *err)
{
    const unsigned char *first = form->first;
    if ((first[0] == 0xff && first[1] == 0xfe && first[2] != 0 && first[3] == 0) ||
        (first[0] == 0xfe && first[1] == 0xff && first[2] == 0 && first[3] != 0))
        return error_set(err, STATUS_FAILED,
                         "%s is text in UTF-16: save it as UTF-8, or convert it with iconv", shown);
    return STATUS_OK;
}

size_t filelist_mark(const struct filelist_form *form)
{
    return !form->has_nul && form->size >= 3 && memcmp(form->first, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

size_t filelist_line(const struct filelist_form *form, const char *line, size_t length)
{
    const bool windows = !form->has_nul && form->returns > 0 && 2 * form->returns >= form->lines;
    return windows && length > 0 && line[length - 1] == '\r' ? length - 1 : length;
}

size_t filelist_normalize(char *path, size_t length)
{
    size_t out = 0;
    for (size_t i = 0; i < length; i++)
        if (path[i] != '/' || out == 0 || path[out - 1] != '/')
            path[out++] = path[i];
    size_t start = 0;
    while (out - start > 2 && path[start] == '.' && path[start + 1] == '/')
        start += 2;
    memmove(path, path + start, out - start);
    return out - start;
}

/* --- unique paths ---------------------------------------------------------------------------- */

static enum status add_path(struct filelist *list, struct bytes *path, struct error *err)
{
    bytes_cut(path, filelist_line(&list->form, path->data, path->length));
    bytes_cut(path, filelist_normalize(path->data, path->length));
    return path->length == 0 ? STATUS_OK
                             : once_add(list->once, path->data, path->length, "", 0, err);
}

/* Splits the text into paths. */
static enum status split_list(struct filelist *list, char *chunk, struct error *err)
{
    char separator = list->form.has_nul ? 0 : '\n', shown[256];
    struct bytes path = {0};
    uint64_t size = spool_size(list->text);
    enum status status = STATUS_OK;
    for (uint64_t offset = filelist_mark(&list->form); offset < size && status == STATUS_OK;) {
        size_t filled = size - offset < CHUNK ? (size_t)(size - offset) : CHUNK;
        status = spool_read(list->text, chunk, filled, offset, err);
        offset += filled;
        for (size_t at = 0; at < filled && status == STATUS_OK;) {
            const char *end = memchr(chunk + at, separator, filled - at);
            size_t length = end ? (size_t)(end - chunk) - at : filled - at;
            if (path.length + length > FILELIST_PATH_MAX)
                status = error_set(err, STATUS_FAILED,
                                   "%s has a path longer than 1 MiB: it is not a list of paths, "
                                   "one per line or NUL-separated",
                                   list_name(shown, list));
            else
                status = bytes_append(&path, chunk + at, length, err);
            at += length + (end != NULL);
            if (status == STATUS_OK && end) {
                status = add_path(list, &path, err);
                bytes_cut(&path, 0);
            }
        }
    }
    if (status == STATUS_OK && path.length > 0)
        status = add_path(list, &path, err);
    bytes_clear(&path);
    return status;
}

static enum status read_and_sort(struct filelist *list, const char *spool_directory,
                                 uint64_t memory, struct error *err)
{
    int fd = -1;
    char *chunk = malloc(CHUNK);
    if (!chunk)
        return error_memory(err, CHUNK, "reading a list of files");
    enum status status = open_list(&fd, list, err);
    if (status || (status = spool_open(&list->text, spool_directory, err)) ||
        (status = copy_list(list, fd, chunk, err)) ||
        (status = once_open(&list->once, spool_directory, memory, list->stop, err)) ||
        (status = split_list(list, chunk, err)))
        goto out;
    spool_close(&list->text);
    status = once_finish(list->once, err);
out:
    if (fd >= 0 && fd != STDIN_FILENO)
        close(fd);
    free(chunk);
    return status;
}

enum status filelist_read(uint64_t *repeated, const char *source, const char *spool_directory,
                          uint64_t memory, struct stop *stop, filelist_fn take, void *context,
                          struct error *err)
{
    struct filelist list = {.source = source, .stop = stop};
    struct once_path path;
    enum status status = read_and_sort(&list, spool_directory, memory, err);
    if (status == STATUS_OK)
        *repeated = once_repeated(list.once);
    while (status == STATUS_OK && (status = once_next(list.once, &path, err)) == STATUS_OK)
        status = take(context, path.path, path.length, err);
    once_close(&list.once);
    spool_close(&list.text);
    return status == STATUS_END ? STATUS_OK : status;
}
