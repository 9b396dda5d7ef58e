/* filelist.h: lists of paths, from a file ("@LIST") or from standard input ("-").
 *
 * If the list has a NUL byte, NULs separate its paths (find -print0), else newlines. Empty paths
 * are skipped. Paths are bytes without escapes; only a leading "./" is dropped and repeated '/' are
 * merged, so that a file has one name. With newlines, a leading byte-order mark is dropped, and
 * carriage returns at ends of lines if half of the lines have one. */
#ifndef CLPIPE_SOURCES_FILELIST_H
#define CLPIPE_SOURCES_FILELIST_H

#include "base/error.h"
#include "base/stop.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest path of a list, in bytes. */
#define FILELIST_PATH_MAX (1024 * 1024)

/* Receives one path, NUL-terminated, valid during the call. STATUS_END ends reading early. */
typedef enum status (*filelist_fn)(void *context, const char *path, size_t length,
                                   struct error *err);

/* Passes the paths of the list `source` ("@LIST" or "-") to `found` in order, each once, in bounded
 * memory: `memory` bytes for sorting. *repeated: the number of duplicates left out, set before the
 * first call. STATUS_USAGE: no such list; STATUS_FAILED: not readable, or not a list of paths;
 * STATUS_INTERRUPTED. */
enum status filelist_read(uint64_t *repeated, const char *source, const char *spool_directory,
                          uint64_t memory, struct stop *stop, filelist_fn take, void *context,
                          struct error *err);

/* The form of a list, known once all of it is scanned, in chunks of any size. */
struct filelist_form {
    uint64_t size, lines, returns; /* bytes; newlines; carriage returns before newlines */
    bool has_nul;
    unsigned char first[4], last;
};
void filelist_look(struct filelist_form *form, const char *bytes, size_t size);
/* STATUS_FAILED: the list, named `shown` in messages, is UTF-16 text. */
enum status filelist_check(const struct filelist_form *form, const char *shown, struct error *err);
/* Bytes before the first path. */
size_t filelist_mark(const struct filelist_form *form);
/* The length of a line, without its carriage return if the list has Windows line ends. */
size_t filelist_line(const struct filelist_form *form, const char *line, size_t length);

/* Normalises a path of a list in place, as described above; returns its length. */
size_t filelist_normalize(char *path, size_t length);

#endif
