/* prior.h: earlier work on the items of a walk, found as the walk goes on.
 *
 * Earlier work is a finished file (its images and its failures) and a log (one stretch for each run
 * that wrote to it). Each of these streams is in walk order. Where the order is that of the paths'
 * bytes (directories) a cursor in each stream moves along with the walk: one sequential pass, no
 * memory. A list's order is its own: a cursor finds what comes in the same order as before; at the
 * first item that does not, an index of the list's records is built in a file. One thread. */
#ifndef CLPIPE_STORE_PRIOR_H
#define CLPIPE_STORE_PRIOR_H

#include "store/records.h"
#include "store/result.h"

/* Where a record lies: an offset in the log, or a row of the finished file. Never 0. */
enum location_kind { LOCATION_LOG, LOCATION_IMAGE, LOCATION_FAILURE };

static inline uint64_t location_of(enum location_kind kind, uint64_t position)
{
    return (uint64_t)kind << 62 | position;
}
static inline enum location_kind location_kind(uint64_t location)
{
    return (enum location_kind)(location >> 62);
}
static inline uint64_t location_position(uint64_t location)
{
    return location & (UINT64_MAX >> 2);
}

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

struct prior;

struct prior_config {
    const char *const *sources;
    unsigned source_count;
    bool retry_failed;
    struct result *finished; /* NULL: none */
    int log;
    const char *log_path;
    uint32_t counters;
    const struct stretches *stretches; /* as they were before this run */
    int directory;                     /* for the index */
};

enum status prior_open(struct prior **out, const struct prior_config *config, struct error *err);
void prior_close(struct prior **prior);

/* As store_prior; record->origin is where it lies. */
bool prior_find(struct prior *prior, uint16_t source, const char *path, uint32_t path_length,
                uint64_t bytes, int64_t mtime_ns, struct store_record *record);

#endif
