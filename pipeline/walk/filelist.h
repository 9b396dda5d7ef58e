/* filelist.h: lists of paths, from a file ("@LIST") or from standard input ("-").
 *
 * If any NUL byte occurs in the list, NULs separate its paths (find -print0), else newlines do.
 * Empty paths are skipped. A path is bytes: nothing is unescaped; only a leading "./" is dropped and
 * doubled '/' are made one, so that one file has one name. Where newlines separate the paths, a
 * byte-order mark at the beginning and, if half of the lines have one, the carriage return at the end of a
 * line are no part of them. */
#ifndef CLPIPE_WALK_FILELIST_H
#define CLPIPE_WALK_FILELIST_H

#include "base/error.h"
#include "base/stop.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest path that a list may hold, in bytes. */
#define FILELIST_PATH_MAX (1024 * 1024)

/* Takes one path, NUL-terminated, valid during the call. STATUS_END ends the reading early. */
typedef enum status (*filelist_fn)(void *context, const char *path, size_t length,
                                   struct error *err);

/* Hands out the paths of the list `source` ("@LIST" or "-") in its order, each once however often
 * the list names it, in bounded memory: `memory` bytes for sorting. *repeated, which is set before the
 * first is handed out: how many were left out. STATUS_USAGE: the list is not there; STATUS_FAILED: it
 * cannot be read or is no list of paths; STATUS_INTERRUPTED. */
enum status filelist_read(uint64_t *repeated, const char *source, const char *spool_directory,
                          uint64_t memory, struct stop *stop, filelist_fn take, void *context,
                          struct error *err);

/* What a list looks like: known once all of it has been looked at, in pieces of any size. */
struct filelist_form {
    uint64_t size, lines, returns; /* bytes; newlines; those behind a carriage return */
    bool has_nul;
    unsigned char first[4], last;
};
void filelist_look(struct filelist_form *form, const char *bytes, size_t size);
/* STATUS_FAILED: `shown`, as messages call it, is text in UTF-16. */
enum status filelist_check(const struct filelist_form *form, const char *shown, struct error *err);
/* Bytes before the first path. */
size_t filelist_mark(const struct filelist_form *form);
/* The length of a line without its carriage return, where the list has Windows line ends. */
size_t filelist_line(const struct filelist_form *form, const char *line, size_t length);

/* Makes a path out of the bytes of a list, in place, as described above; returns its length. */
size_t filelist_normalize(char *path, size_t length);

#endif
