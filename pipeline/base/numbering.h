/* numbering.h: numbers paths in the order in which they are first met, by 96 bits of a digest. */
#ifndef CLPIPE_BASE_NUMBERING_H
#define CLPIPE_BASE_NUMBERING_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

/* Initially zeroed. The owner frees `slot`. */
struct numbering {
    struct numbered *slot; /* by digest: open addressing, at most half full */
    size_t slots;          /* a power of two */
    uint32_t count;        /* numbers given */
};

/* The number of a path in a source; a new one is `count` before the call. `what`: as in
 * error_memory. */
enum status numbering_look(uint32_t *number, struct numbering *numbering, uint16_t source,
                           const char *path, size_t length, const char *what, struct error *err);

#endif
