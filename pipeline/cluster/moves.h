/* moves.h: the update where it need not leave the device: resident rows, 64-bit atomics and
 * float64.
 *
 * Sums, counts, centroids and the labels that the sums hold stay on the device; the host gets a few
 * numbers of each cluster. The bits are those of update.c. */
#ifndef CLPIPE_CLUSTER_MOVES_H
#define CLPIPE_CLUSTER_MOVES_H

#include "cluster/prune.h"
#include "cluster/update.h"

struct moves {
    bool used; /* the device can, and the rows are resident */
    struct update *update;
    struct filter *filter;
    cl_program program;
    cl_kernel count, scan, place, sum, centroids;
    cl_mem joins, leaves, cursors; /* k */
    /* k; then entries of the tile, those of all since the last reset, and empty clusters */
    struct report_part counts;
    cl_mem owners;            /* 2 for each row of the largest tile */
    cl_mem units, means;      /* of columns */
    struct report_part facts; /* k x KMEANS_FACTS */
    cl_uint entries;          /* of all, as of the last read */
    bool fresh;               /* no row is in the sums yet */
};

/* Leaves `used` false where it cannot be. */
enum status moves_open(struct moves *moves, struct update *update, struct filter *filter,
                       struct error *err);
void moves_close(struct moves *moves);

/* Forgets all rows; follows update_reset. */
enum status moves_reset(struct moves *moves, struct error *err);

/* Brings the sums up to the labels of one tile. unless: does nothing if that number is not zero
 * when it is about to; NULL: always. */
enum status moves_tile(struct moves *moves, struct tile *tile, const struct report_count *unless,
                       struct error *err);

/* After all tiles: enqueues the move of the device's centroids to the means, unless a cluster is
 * empty (then all stay where they are), and what can be planned of the next pass. */
enum status moves_centroids(struct moves *moves, struct prune *prune,
                            const struct report_count *unless, struct error *err);

/* Once the report was read: how many rows moved, and update->counts. */
void moves_count(uint64_t *moved, struct moves *moves);

/* After a pass that left no cluster empty: k of them. */
const struct centroid_move *moves_centroid_moves(const struct moves *moves);

/* Brings the centroids (k x stride) to the host. */
enum status moves_read_centroids(struct moves *moves, float *centroids, struct error *err);

/* Brings labels (of the rank's rows) and centroids (k x stride; NULL for none) to the host, and takes back
 * counts and labels after the host has moved rows. */
enum status moves_fetch(struct moves *moves, int32_t *labels, float *centroids, struct error *err);
enum status moves_store(struct moves *moves, const int32_t *labels, struct error *err);

#endif
