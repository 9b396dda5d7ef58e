/* counters.h: lengths of a tile's row lists, counted by kernels. */
#ifndef CLPIPE_KMEANS_COUNTERS_H
#define CLPIPE_KMEANS_COUNTERS_H

#include "ocl/mailbox.h"

enum counter {
    COUNT_ALL,       /* rows to search among all centroids */
    COUNT_MOVED,     /* rows to search among the centroids that moved */
    COUNT_UNDECIDED, /* rows that the float32 filter left undecided */
    COUNT_RETRY,     /* rows that need more than the bound on their own distance */
    COUNT_FLOAT16_UNDECIDED,
    COUNT_LEFT, /* rows for which the float16 filter left too many centroids */
    COUNTERS
};

/* Two sets, so that the next tile's can be zeroed while this tile's commands run. */
struct counters {
    struct lane *lane;
    struct mailbox *mailbox;
    struct mailbox_part sets[2];
    unsigned current;  /* the set of the current tile */
    bool next_is_zero; /* the other set is zeroed */
};

/* lane_release of *held frees it. */
enum status counters_open(struct counters *counters, struct lane_held **held,
                          struct mailbox *mailbox, struct error *err);

/* Starts a tile with zeroed counters. */
enum status counters_begin_tile(struct counters *counters, struct error *err);
/* Enqueues zeroing for the next tile, unless it is done. */
enum status counters_zero_next(struct counters *counters, struct error *err);

/* The current tile's counters: on the device, and on the host as of the mailbox's last read. */
cl_mem counters_buffer(const struct counters *counters);
const cl_uint *counters_host(const struct counters *counters);
enum status counters_read(struct counters *counters, struct error *err);

#endif
