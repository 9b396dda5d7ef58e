/* path_list.h: the paths of a matrix's rows, from a file, with an index.
 *
 * As in the lists of ingest, if the file contains a NUL byte, NULs separate the paths, else
 * newlines do; paths are bytes, a leading "./" is dropped, and repeated '/' become one. Unlike in
 * those, no path may be empty, nor repeated if path i belongs to row i. A regular file is mapped,
 * and only offsets are stored: 12 bytes per path, and 8 to 16 for the index. */
#ifndef CLPIPE_JOBS_PATH_LIST_H
#define CLPIPE_JOBS_PATH_LIST_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

#define PATH_LIST_NONE UINT64_MAX

struct path_list {
    const char *name; /* as given, "-" for standard input; the caller's */
    uint64_t count;
    bool repeats; /* repeated paths are allowed, and count once */
    /* Internal: */
    char *bytes;
    size_t size;
    bool mapped;
    uint64_t *start;
    uint32_t *length;
    uint32_t *slot; /* open addressing: index of the path + 1; 0: free */
    size_t slots;   /* a power of two */
};

/* Reads and indexes the list. STATUS_USAGE: no such file; STATUS_FAILED: unreadable, without paths,
 * or with an empty or, unless `repeats`, repeated one. Close it even after a failure. */
enum status path_list_open(struct path_list *out, const char *file, bool repeats,
                           struct error *err);
void path_list_close(struct path_list *list);

/* Takes ownership, even on failure, of a list in memory (malloc): paths that each end in a NUL.
 * name: their origin, for messages; the caller's. STATUS_FAILED as above. */
enum status path_list_of_memory(struct path_list *out, const char *name, char *bytes, size_t size,
                                struct error *err);

/* Reads the list for `rows` rows of `input`. STATUS_USAGE: the input has paths of its own
 * (own_paths); STATUS_FAILED: the list has a different number of paths. */
enum status path_list_open_for(struct path_list *out, const char *file, const char *input,
                               uint64_t rows, bool own_paths, struct error *err);

/* Path i, *length bytes without a terminating NUL; valid until close. */
const char *path_list_at(const struct path_list *list, uint64_t i, size_t *length);

/* The same, for callbacks. */
const char *path_list_path(const void *list, uint64_t i, size_t *length);

/* The index of a path, or PATH_LIST_NONE. */
uint64_t path_list_find(const struct path_list *list, const char *path, size_t length);

/* Path i as text for a message; returns out. */
char *path_list_shown(char *out, size_t size, const struct path_list *list, uint64_t i);

#endif
