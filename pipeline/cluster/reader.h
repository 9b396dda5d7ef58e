/* reader.h: the thread that reads rows ahead of the computation. */
#ifndef CLPIPE_CLUSTER_READER_H
#define CLPIPE_CLUSTER_READER_H

#include "cluster/transform.h"

struct reader;

/* Rows [first, first + rows) are wanted at `to`, which belongs to the reader until reader_take. */
struct fill {
    uint64_t first;
    uint32_t rows;
    float *to;
};

/* What is worked out of the rows as they are read. */
struct reader_stats {
    struct column_stats *plain, *weighted;
    const float *weights; /* of the rows from `first` on, or NULL: there is no `weighted` */
    uint64_t first;
};

/* Starts the thread. workers: they read, where the source may be read by several threads, and transform;
 * NULL, only without `stats`: the thread does it alone. `stats` may be NULL. At most `depth` requests may
 * be outstanding. */
enum status reader_open(struct reader **out, const struct matrix_source *source,
                        const struct transform *transform, struct workers *workers,
                        const struct reader_stats *stats, unsigned depth, struct error *err);
enum status reader_request(struct reader *reader, const struct fill *fill, struct error *err);
/* Waits for the oldest request. An error of the reading thread comes out here. */
enum status reader_take(struct reader *reader, struct fill *fill, struct error *err);
/* True if reader_take would not wait. */
bool reader_ready(struct reader *reader);
/* Ends the thread, whatever is outstanding. Accepts NULL and NULLs. */
void reader_close(struct reader **reader);

#endif
