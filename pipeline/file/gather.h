/* gather.h: the rows of the file to be in batches, by several threads.
 *
 *   order of the rows ─> batch: read from the log, checked, unpacked ─> values: straight to their
 *                        (any thread, several at once)                  place in the file (pwrite),
 *                                                                       or to the caller, in order
 *                                                                    └─> items: to the caller, in
 *                                                                        order, for the tables
 *
 * Threads work past HDF5, which only the caller's thread uses: it reads the rows that lie in a
 * finished file itself, when their turn comes. */
#ifndef CLPIPE_FILE_GATHER_H
#define CLPIPE_FILE_GATHER_H

#include "file/feed.h"

struct gather_config {
    const struct feed_config *feed;
    unsigned threads; /* at most; where none can be started the caller's thread does it all */
    size_t thumbnail_bytes; /* of a row, on average */
    /* Takes the next `count` rows of images: of each feature an array, end to end. Called in order, by the
     * thread that calls gather_next. NULL: they are written to the file below, past HDF5. */
    enum status (*take)(void *context, uint8_t *const values[FEATURE_MAX], uint64_t count,
                        struct error *err);
    void *context;
    int fd;           /* of the file to be */
    const char *path; /* its name, for messages */
    /* Where the rows of each feature begin in it, end to end: their space must be allocated. */
    uint64_t start[FEATURE_MAX];
};

struct gather;
enum status gather_open(struct gather **out, const struct gather_config *config, struct error *err);
/* Ends the threads, whatever they do. Accepts NULL and NULLs. */
void gather_close(struct gather **gather);

/* The next row, in order; what it points to is valid until the next call, and `values` is NULL.
 * STATUS_END: that was the last one, and all values are written. STATUS_INTERRUPTED as in feed.h. */
enum status gather_next(struct gather *gather, const struct feed_item **item, struct error *err);

#endif
