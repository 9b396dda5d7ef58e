/* device_update.h: the update step entirely on the device: for resident rows and mini-batch tiles,
 * on devices with 64-bit atomics and float64.
 *
 * Sums, counts, centroids and the labels included in the sums stay on the device; the host gets a
 * few numbers per cluster. The results are bit-identical to those of update.c. */
#ifndef CLPIPE_KMEANS_DEVICE_UPDATE_H
#define CLPIPE_KMEANS_DEVICE_UPDATE_H

#include "kmeans/prune.h"
#include "kmeans/update.h"

struct device_update {
    bool used; /* the device supports it and the rows are resident */
    struct update *update;
    struct filter *filter;
    char options[40]; /* of the program kmeans_moves */
    cl_kernel count, scan, place, sum, centroids;
    cl_mem totals;                /* k x stride int64: this rank's sums */
    cl_mem joined, left, cursors; /* k: for the rows that changed their cluster */
    /* int64: k counts; entries of the tile, of all tiles since the last reset; empty clusters */
    struct mailbox_part counts;
    struct mailbox_part weights; /* k int64, if rows have weights; else counts again */
    cl_mem entries;              /* moved rows by cluster, up to 2 per row of the largest tile */
    cl_mem entry_clusters;       /* the cluster of each entry */
    cl_mem scales, units, means; /* per column; scales end with that of weights */
    struct mailbox_part moves;   /* k struct centroid_move */
    uint64_t entries_before;     /* of all tiles, as of the last read */
    bool no_rows;                /* the sums contain no row yet */
    /* There are several ranks, all of which can do this: centroids move by the sums of all. */
    bool meets;
    cl_kernel add;
    cl_mem all_sums, all_counts; /* like totals and counts, over all ranks */
    cl_mem arrived;              /* a piece of another rank's sums */
    int64_t *host_counts;
};

/* Leaves `used` false if the device does not support this. lane_release of *held frees it. */
enum status device_update_open(struct device_update *device, struct lane_held **held,
                               struct update *update, struct filter *filter, struct error *err);
/* Call it next, on all ranks: sets `meets` if there are several that can all move centroids. */
enum status device_update_join(struct device_update *device, struct lane_held **held,
                               struct error *err);

/* Copies update->own to the device, for rows that are in no tile's summed_labels. */
enum status device_update_write(struct device_update *device, struct error *err);
/* Copies the sums to update->own. */
enum status device_update_read(struct device_update *device, struct error *err);

/* Forgets all rows; call it after update_reset. */
enum status device_update_reset(struct device_update *device, struct error *err);

/* Updates the sums to the labels of one tile. unless: does nothing if that count is not zero when
 * the command runs; NULL: always. */
enum status device_update_tile(struct device_update *device, struct tile *tile,
                               const struct device_count *unless, struct error *err);

/* After all tiles: enqueues moving the device's centroids to the means, unless a cluster is empty
 * (then all stay; anyway: then only its centroid stays), and as much of the next pass's plan as is
 * possible. */
enum status device_update_centroids(struct device_update *device, struct prune *prune, bool anyway,
                                    const struct device_count *unless, struct error *err);

/* After the host has given rows of resident tiles to empty clusters by their labels alone: updates
 * the sums, moves all centroids but those of clusters that are still empty, plans the next pass
 * (prune NULL: none of that), and reads the mailbox. For one rank. */
enum status device_update_again(struct device_update *device, struct prune *prune,
                                struct error *err);

/* device_update_centroids if ranks meet. Each rank moves all centroids, with the same bits:
 *
 *   device ──read──> pinned memory ──comm_visit──> the other devices write and add what is there
 *
 * If they do not share memory, the host adds and the device gets the result. send enqueues a read
 * of the first piece of the sums into update->own, covered by the next wait for the compute queue.
 * meet, called after it, sets update->all.counts to those of all ranks, overwrites the memory of
 * its values, and returns after the centroids have moved and the mailbox was read. Collective. */
enum status device_update_send(struct device_update *device, struct error *err);
enum status device_update_meet(struct device_update *device, struct prune *prune,
                               struct error *err);

/* After the mailbox is read: the number of moved rows, and update->own's counts and weights. */
void device_update_count(uint64_t *moved, struct device_update *device);

/* Copies the centroids (k x stride) to the host. */
enum status device_update_read_centroids(struct device_update *device, float *centroids,
                                         struct error *err);

/* fetch copies labels (of the rank's rows) and centroids (k x stride; may be NULL) to the host;
 * store copies update->own and labels back after the host has moved rows. */
enum status device_update_fetch(struct device_update *device, int32_t *labels, float *centroids,
                                struct error *err);
enum status device_update_store(struct device_update *device, const int32_t *labels,
                                struct error *err);

#endif
