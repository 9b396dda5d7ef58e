/* pending.h: the directories still to be read, first in, first out, on disk where they are many. */
#ifndef CLPIPE_WALK_PENDING_H
#define CLPIPE_WALK_PENDING_H

#include "base/error.h"
#include "walk/bytes.h"
#include <stddef.h>
#include <stdint.h>

enum pending_flags {
    PENDING_LINK = 1,       /* the last component is a symbolic link that is followed */
    PENDING_BELOW_LINK = 2, /* it or a directory above it is one */
    PENDING_INCLUDED = 4,   /* an include glob takes everything below it */
};

struct pending;

enum status pending_open(struct pending **out, const char *spool_directory, struct error *err);
enum status pending_push(struct pending *pending, const char *path, size_t length, unsigned flags,
                         struct error *err);
/* The oldest, or STATUS_END. */
enum status pending_pop(struct pending *pending, struct bytes *path, unsigned *flags,
                        struct error *err);
/* Accepts NULL and NULLs. */
void pending_close(struct pending **pending);

#endif
