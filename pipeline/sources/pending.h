/* pending.h: the FIFO queue of directories to read, on disk if they are many. */
#ifndef CLPIPE_SOURCES_PENDING_H
#define CLPIPE_SOURCES_PENDING_H

#include "base/error.h"
#include "sources/bytes.h"
#include <stddef.h>
#include <stdint.h>

enum pending_flags {
    PENDING_LINK = 1,       /* the last component is a followed symbolic link */
    PENDING_BELOW_LINK = 2, /* it or a directory above it is a followed symbolic link */
    PENDING_INCLUDED = 4,   /* an include glob includes everything below it */
};

struct pending;

enum status pending_open(struct pending **out, const char *spool_directory, struct error *err);
enum status pending_push(struct pending *pending, const char *path, size_t length, unsigned flags,
                         struct error *err);
/* Removes the oldest one, or returns STATUS_END. */
enum status pending_pop(struct pending *pending, struct bytes *path, unsigned *flags,
                        struct error *err);
/* Accepts NULL. */
void pending_close(struct pending **pending);

#endif
