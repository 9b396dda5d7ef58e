/* filelist.h: lists of paths, from a file ("@LIST") or from standard input ("-").
 *
 * If any NUL byte occurs in the list, NULs separate its paths (find -print0), else newlines do.
 * Empty paths are skipped. A path is bytes: nothing is trimmed or unescaped; only a leading "./" is
 * dropped and doubled '/' are made one, so that one file has one name. */
#ifndef CLPIPE_WALK_FILELIST_H
#define CLPIPE_WALK_FILELIST_H

#include "base/error.h"
#include "base/stop.h"
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

/* Makes a path out of the bytes of a list, in place, as described above; returns its length. */
size_t filelist_normalize(char *path, size_t length);

#endif
