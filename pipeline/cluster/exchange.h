/* exchange.h: the sums of all ranks' clusters on the device of each, so that centroids move there.
 *
 *   device ──read──> pinned memory ──comm_visit──> the other devices write and add what is there
 *
 * Each rank so moves all centroids, to the same bits. Where ranks do not share their memory the host
 * adds up (comm_sum), and the device gets the result. */
#ifndef CLPIPE_CLUSTER_EXCHANGE_H
#define CLPIPE_CLUSTER_EXCHANGE_H

#include "cluster/comm.h"
#include "cluster/device_update.h"

struct exchange {
    bool used; /* on all ranks, or on none */
    struct comm *comm;
    struct device_update *device;
    struct lane_held *held;
    cl_kernel add;
    cl_mem sums;    /* k x stride: of all ranks */
    cl_mem counts;  /* as device->counts, of all ranks */
    cl_mem arrived; /* a piece of another rank's sums */
    int64_t *host_counts;
};

/* All ranks call it. Leaves `used` false where there is one rank, or where a device of any rank cannot
 * move centroids. Otherwise centroids move by the sums of
 * all ranks. */
enum status exchange_open(struct exchange *exchange, struct comm *comm,
                          struct device_update *device, struct error *err);
/* Frees what this rank has; not a collective call. Accepts a zeroed struct and what a failed open
 * left. */
void exchange_close(struct exchange *exchange);

/* Enqueues what the next wait for the compute queue is to cover: the first piece of the sums comes to
 * update->own. */
enum status exchange_begin(struct exchange *exchange, struct error *err);

/* After that wait: makes exchange->sums those of all ranks, once what this enqueues is over, and calls
 * `then`, which enqueues what needs them and waits for it. update->all.counts are those of all ranks;
 * its values hold nothing of use afterwards. All ranks call it. */
enum status exchange_end(struct exchange *exchange,
                         enum status (*then)(void *context, struct error *err), void *context,
                         struct error *err);

#endif
