/* bytes.h: a growing byte string, for paths of any length. Empty if zero-initialised; `data` is
 * NUL-terminated after every bytes_cut and bytes_append. */
#ifndef CLPIPE_SOURCES_BYTES_H
#define CLPIPE_SOURCES_BYTES_H

#include "base/error.h"
#include <stddef.h>

struct bytes {
    char *data;
    size_t length, capacity;
};

/* Appends. STATUS_FAILED: no memory. */
enum status bytes_append(struct bytes *bytes, const char *data, size_t length, struct error *err);
/* Replaces the contents. */
enum status bytes_set(struct bytes *bytes, const char *data, size_t length, struct error *err);
/* Truncates to the first `length` bytes. */
void bytes_cut(struct bytes *bytes, size_t length);
void bytes_clear(struct bytes *bytes);

#endif
