/* reader.h: the thread that reads rows ahead of the computation. One thread calls it. */
#ifndef CLPIPE_KMEANS_READER_H
#define CLPIPE_KMEANS_READER_H

#include "kmeans/transform.h"

struct reader;

/* A request for rows [first, first + rows) at `to`, which is the reader's until reader_take. */
struct fill {
    uint64_t first;
    uint32_t rows;
    float *to;
};

/* Statistics computed while rows are read. */
struct reader_stats {
    struct column_stats *plain, *weighted;
    const float *weights; /* of the rows starting at `first`, or NULL: no `weighted` */
    uint64_t first;
};

/* Starts the thread. workers: they read, if several threads may read the source, and transform;
 * NULL (only without `stats`): the thread does everything. `stats` may be NULL. At most `depth`
 * requests may be outstanding. */
enum status reader_open(struct reader **out, const struct matrix_source *source,
                        const struct transform *transform, struct workers *workers,
                        const struct reader_stats *stats, unsigned depth, struct error *err);
enum status reader_request(struct reader *reader, const struct fill *fill, struct error *err);
/* Waits for the oldest request. Returns errors of the reading thread. */
enum status reader_take(struct reader *reader, struct fill *fill, struct error *err);
/* True if reader_take would not wait. */
bool reader_ready(struct reader *reader);
/* Stops the thread, even with requests outstanding. Accepts a pointer to NULL; sets it to NULL. */
void reader_close(struct reader **reader);

#endif
