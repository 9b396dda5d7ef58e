/* device_update.h: the update step where it need not leave the device: resident rows and tiles of
 * batches, 64-bit atomics and float64.
 *
 * Sums, counts, centroids and the labels that the sums hold stay on the device; the host gets a few
 * numbers of each cluster. The bits are those of update.c. */
#ifndef CLPIPE_CLUSTER_DEVICE_UPDATE_H
#define CLPIPE_CLUSTER_DEVICE_UPDATE_H

#include "cluster/prune.h"
#include "cluster/update.h"

struct device_update {
    bool used; /* the device can, and the rows are resident */
    struct update *update;
    struct filter *filter;
    struct lane_held *held;
    cl_program program;
    cl_kernel count, scan, place, sum, centroids;
    cl_mem totals;                /* k x stride int64: the rank's sums */
    cl_mem joined, left, cursors; /* k: of the rows that changed their cluster */
    /* int64: k; then entries of the tile, those of all since the last reset, and empty clusters */
    struct mailbox_part counts;
    struct mailbox_part weights; /* k int64, where rows have weights; else counts again */
    cl_mem entries;        /* rows of a tile in order of clusters, 2 for each of the largest */
    cl_mem entry_clusters; /* of each entry */
    cl_mem scales, units, means; /* of columns; the scales end with that of weights */
    struct mailbox_part moves;   /* k struct centroid_move */
    uint64_t entries_before;     /* of all, as of the last read */
    bool no_rows;                /* no row is in the sums yet */
    /* Where there are other ranks, on all of them or on none: centroids move by the sums of all. */
    bool meets;
    cl_kernel add;
    cl_mem all_sums, all_counts; /* as totals and counts, of all ranks */
    cl_mem arrived;              /* a piece of another rank's sums */
    int64_t *host_counts;
};

/* Leaves `used` false where the device cannot. */
enum status device_update_open(struct device_update *device, struct update *update,
                               struct filter *filter, struct error *err);
/* After that, on all ranks: `meets` tells whether there are several, whose devices can all move
 * centroids. */
enum status device_update_join(struct device_update *device, struct error *err);
/* Frees buffers, kernels and program; accepts a zeroed struct and what a failed open left. */
void device_update_close(struct device_update *device);

/* Brings update->own to the device, of rows that no tile's summed_labels tell of. */
enum status device_update_write(struct device_update *device, struct error *err);
/* Brings the sums to update->own. */
enum status device_update_read(struct device_update *device, struct error *err);

/* Forgets all rows; follows update_reset. */
enum status device_update_reset(struct device_update *device, struct error *err);

/* Brings the sums up to the labels of one tile. unless: does nothing if that number is not zero
 * when it is about to; NULL: always. */
enum status device_update_tile(struct device_update *device, struct tile *tile,
                               const struct device_count *unless, struct error *err);

/* After all tiles: enqueues the move of the device's centroids to the means, unless a cluster is
 * empty (then all stay where they are), and what can be planned of the next pass. */
enum status device_update_centroids(struct device_update *device, struct prune *prune,
                                    const struct device_count *unless, struct error *err);

/* The same where ranks meet. Each moves all centroids, to the same bits:
 *
 *   device ──read──> pinned memory ──comm_visit──> the other devices write and add what is there
 *
 * Where they do not share their memory the host adds up, and the device gets the result. send enqueues
 * what the next wait for the compute queue is to cover: the first piece of the sums comes to update->own.
 * meet, after it, takes update->all.counts for those of all ranks, uses up the memory of its values, and
 * ends once centroids have moved and the mailbox was read. All ranks call it. */
enum status device_update_send(struct device_update *device, struct error *err);
enum status device_update_meet(struct device_update *device, struct prune *prune,
                               struct error *err);

/* Once the mailbox was read: how many rows moved, and counts and weights of update->own. */
void device_update_count(uint64_t *moved, struct device_update *device);

/* Brings the centroids (k x stride) to the host. */
enum status device_update_read_centroids(struct device_update *device, float *centroids,
                                         struct error *err);

/* Brings labels (of the rank's rows) and centroids (k x stride; NULL for none) to the host, and takes back
 * update->own and labels after the host has moved rows. */
enum status device_update_fetch(struct device_update *device, int32_t *labels, float *centroids,
                                struct error *err);
enum status device_update_store(struct device_update *device, const int32_t *labels,
                                struct error *err);

#endif
