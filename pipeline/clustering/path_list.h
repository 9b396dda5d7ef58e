/* path_list.h: the paths that belong to the rows of a matrix, from a file, and where each is in it.
 *
 * As in the lists of ingest: if any NUL byte occurs, NULs separate the paths, else newlines do;
 * paths are bytes, of which a leading "./" is dropped and doubled '/' are made one. Unlike there,
 * path i belongs to row i, so none may be empty or occur twice. A regular file is mapped, and only
 * its offsets are kept: 12 bytes a path, 8 to 16 more for the index. */
#ifndef CLPIPE_CLUSTERING_PATH_LIST_H
#define CLPIPE_CLUSTERING_PATH_LIST_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

#define PATH_LIST_NONE UINT64_MAX

struct path_list {
    const char *name; /* as given, "-" for standard input; the caller's */
    uint64_t count;
    /* Internal: */
    char *bytes;
    size_t size;
    bool mapped;
    uint64_t *start;
    uint32_t *length;
    uint32_t *slot; /* open addressing: number of the path + 1, 0: free */
    size_t slots;   /* a power of two */
};

/* Reads the list and indexes it. STATUS_USAGE: it is not there; STATUS_FAILED: it cannot be read,
 * holds no path, an empty one, or one twice. Close it also after a failure. */
enum status path_list_open(struct path_list *out, const char *file, struct error *err);
void path_list_close(struct path_list *list);

/* A list from memory (malloc), which it takes over, also when it fails: paths that each end in a NUL.
 * name: where they are from, for messages; the caller's. STATUS_FAILED as above. */
enum status path_list_of_memory(struct path_list *out, const char *name, char *bytes, size_t size,
                                struct error *err);

/* Reads the list for `rows` rows of `input`, which has no paths of its own. STATUS_USAGE: it has
 * (own_paths); STATUS_FAILED: the list has another number of paths. */
enum status path_list_open_for(struct path_list *out, const char *file, const char *input,
                               uint64_t rows, bool own_paths, struct error *err);

/* Path i, *length bytes without a NUL behind them; valid until close. */
const char *path_list_at(const struct path_list *list, uint64_t i, size_t *length);

/* The same, for callbacks. */
const char *path_list_path(const void *list, uint64_t i, size_t *length);

/* The number of a path, or PATH_LIST_NONE. */
uint64_t path_list_find(const struct path_list *list, const char *path, size_t length);

/* Path i as text for a message; returns out. */
char *path_list_shown(char *out, size_t size, const struct path_list *list, uint64_t i);

#endif
