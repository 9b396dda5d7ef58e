/* stretches.h: the whole frames of a log, as stretches that were each written by one run. */
#ifndef CLPIPE_LOG_STRETCHES_H
#define CLPIPE_LOG_STRETCHES_H

#include "base/stop.h"
#include "log/records.h"

/* The stretches of a log, each written by one run, or a part of it. */
struct stretch {
    uint64_t start, end, records;
};
struct stretches {
    struct stretch *stretch;
    unsigned count;
    uint64_t end;     /* of the last whole frame */
    uint64_t records; /* of all */
    uint64_t damaged; /* bytes between whole frames that are none */
};
/* Reads a whole log from `start`, checking every frame. Where one is damaged a new stretch begins
 * with the next whole one. STATUS_INTERRUPTED: `stop`, which may be NULL, says so. */
enum status stretches_scan(struct stretches *stretches, int fd, const char *path, uint32_t counters,
                           uint64_t start, struct stop *stop, struct error *err);
void stretches_clear(struct stretches *stretches);

#endif
