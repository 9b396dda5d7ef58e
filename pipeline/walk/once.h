/* once.h: each path once, in the order in which they come, in bounded memory.
 *
 *   once_add ──> sort by path ──> first of equals ──> sort by order ──> once_next
 *
 * One thread. */
#ifndef CLPIPE_WALK_ONCE_H
#define CLPIPE_WALK_ONCE_H

#include "base/error.h"
#include "base/stop.h"
#include <stddef.h>
#include <stdint.h>

struct once;

/* `memory` bytes for sorting; what does not fit goes to files without names in `directory`. stop may be
 * NULL. */
enum status once_open(struct once **out, const char *directory, uint64_t memory, struct stop *stop,
                      struct error *err);
/* A path without NUL, and what is to be had with it again. STATUS_FAILED: memory or disk;
 * STATUS_INTERRUPTED. */
enum status once_add(struct once *once, const char *path, size_t length, const void *payload,
                     uint32_t payload_length, struct error *err);
/* Ends the adding. */
enum status once_finish(struct once *once, struct error *err);
/* How many paths had been there before; they are not handed out. After once_finish. */
uint64_t once_repeated(const struct once *once);

/* A path, NUL-terminated, and its payload, not aligned. Valid until the next call. */
struct once_path {
    const char *path, *payload;
    size_t length;
    uint32_t payload_length;
};
/* The next one, or STATUS_END. */
enum status once_next(struct once *once, struct once_path *out, struct error *err);

/* Accepts NULL and NULLs. */
void once_close(struct once **once);

#endif
