/* once.h: removes duplicate paths, keeping their order, in bounded memory.
 *
 *   once_add ──> sort by path ──> first of equals ──> sort by order ──> once_next
 *
 * One thread. */
#ifndef CLPIPE_SOURCES_ONCE_H
#define CLPIPE_SOURCES_ONCE_H

#include "base/error.h"
#include "base/stop.h"
#include <stddef.h>
#include <stdint.h>

struct once;

/* `memory` bytes for sorting; the rest goes to unlinked files in `directory`. stop may be NULL. */
enum status once_open(struct once **out, const char *directory, uint64_t memory, struct stop *stop,
                      struct error *err);
/* Adds a path without NUL, and a payload returned with it. STATUS_FAILED: memory or disk;
 * STATUS_INTERRUPTED. */
enum status once_add(struct once *once, const char *path, size_t length, const void *payload,
                     uint32_t payload_length, struct error *err);
/* Ends adding. */
enum status once_finish(struct once *once, struct error *err);
/* The number of duplicates, which are left out. After once_finish. */
uint64_t once_repeated(const struct once *once);

/* A path, NUL-terminated, and its payload, unaligned. Valid until the next call. */
struct once_path {
    const char *path, *payload;
    size_t length;
    uint32_t payload_length;
};
/* The next one, or STATUS_END. */
enum status once_next(struct once *once, struct once_path *out, struct error *err);

/* Accepts NULL. */
void once_close(struct once **once);

#endif
