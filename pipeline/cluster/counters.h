/* counters.h: how many rows each list of a tile has, counted by kernels. */
#ifndef CLPIPE_CLUSTER_COUNTERS_H
#define CLPIPE_CLUSTER_COUNTERS_H

#include "cluster/mailbox.h"

enum counter {
    COUNT_ALL,       /* rows to be searched among all centroids */
    COUNT_MOVED,     /* rows to be searched among the centroids that have moved */
    COUNT_UNDECIDED, /* rows that the float32 filter has left undecided */
    COUNT_RETRY, /* rows that the bound on the distance to their own centroid was not enough for */
    COUNT_FLOAT16_UNDECIDED,
    COUNT_LEFT, /* rows that the float16 filter has left too many centroids for */
    COUNTERS
};

/* Two sets, so that those of the next tile are zeroed while commands of this one run. */
struct counters {
    struct lane *lane;
    struct mailbox *mailbox;
    struct mailbox_part sets[2];
    unsigned current;  /* of the tile */
    bool next_is_zero; /* the other set */
};

/* To be closed after an error, too, before the mailbox. */
enum status counters_open(struct counters *counters, struct mailbox *mailbox, struct error *err);
void counters_close(struct counters *counters);

/* Begins a tile: all its counters are zero. */
enum status counters_begin_tile(struct counters *counters, struct error *err);
/* Enqueues the zeroing for the next tile, unless that is done. */
enum status counters_zero_next(struct counters *counters, struct error *err);

/* The tile's, on the device; and on the host, as of the last read of the mailbox. */
cl_mem counters_buffer(const struct counters *counters);
const cl_uint *counters_host(const struct counters *counters);
enum status counters_read(struct counters *counters, struct error *err);

#endif
