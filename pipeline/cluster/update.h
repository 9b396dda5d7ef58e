/* update.h: exact sums of the clusters' rows, kept from iteration to iteration.
 *
 * Column j is summed in units of 2^-scale_j, chosen before the first iteration so that no sum of
 * any of the rows can leave 62 bits; order and partition do not matter. */
#ifndef CLPIPE_CLUSTER_UPDATE_H
#define CLPIPE_CLUSTER_UPDATE_H

#include "cluster/data.h"

struct update {
    struct lane *lane;
    struct data *data;
    uint32_t k;
    struct lane_held *held;
    uint32_t vectors; /* of columns that a work-item takes */
    cl_kernel sum, add;
    cl_int *scales;      /* stride */
    double *units;       /* 2^-scale, stride */
    cl_long *sums;       /* k x stride, the host's copy as of update_read */
    cl_mem pinned;       /* what that lies in where each iteration reads it; or NULL */
    uint64_t *counts;    /* rows of each cluster, without those of weight 0 */
    int64_t *weights;    /* k: the sum of their weights, in units; NULL without weights */
    cl_mem scale_buffer; /* stride */
    cl_mem totals;       /* k x stride; NULL: on the host only */
    cl_mem entries, segments, begins, clusters, partial;
    uint32_t segments_max; /* that fit in `partial` */
    /* Of one tile, sorted by cluster: */
    cl_uint *host_entries, *host_segments, *host_begins, *host_clusters;
    uint32_t *cluster_end; /* k */
};

/* Rows count as often as their weights say. A sum may hold every row once, or up to `samples` rows
 * if those are more. */
enum status update_open(struct update *update, struct data *data, uint32_t k, uint64_t samples,
                        struct error *err);
/* For the sums of all ranks' rows, of which `part` has its own: on the host only. */
enum status update_open_totals(struct update *totals, const struct update *part, uint64_t samples,
                               struct error *err);
void update_close(struct update *update);

/* Whether kernels can have float64 with every float32 value taken for what it is. */
bool update_keeps_subnormals(const struct ocl_device *device);

/* Forgets all rows, on the host; there and on the device. */
void update_clear(struct update *update);
enum status update_reset(struct update *update, struct error *err);

/* Writes the host's sums to the device. */
enum status update_write(struct update *update, struct error *err);

/* Moves the rows of an acquired tile from their old labels (-1: none yet) to the new ones; *moved
 * is their number, those of weight 0 included. */
enum status update_tile(uint64_t *moved, struct update *update, struct tile *tile,
                        const int32_t *old_labels, const int32_t *new_labels, struct error *err);

/* Waits until the tiles given so far have been summed; the host's sums stay as they are. */
enum status update_wait(struct update *update, struct error *err);

/* Brings the sums to the host. */
enum status update_read(struct update *update, struct error *err);

/* totals gets the counts and weights of all ranks, of which `part` has its own, and the host's sums;
 * all ranks call it. values: `count` others are added up, too. */
enum status update_add_counts(struct update *totals, const struct update *part, int64_t *values,
                              size_t count, struct error *err);
enum status update_add_sums(struct update *totals, const struct update *part, struct error *err);

/* Moves one row (its `stride` values and its weight) after update_read; the host's sums follow. */
enum status update_move_row(struct update *update, const float *row, float weight, uint32_t from,
                            uint32_t to, struct error *err);

/* Of one cluster, for any thread: makes its centroid the mean of its rows, under cosine scaled to
 * length 1 (Dhillon and Modha 2001). One without rows stays, and so does one whose mean is zero
 * under cosine. */
void update_centroid(const struct update *update, float *centroids, uint64_t cluster);

/* The inertia of the summed rows about their centroids is the scatter of all rows about the columns'
 * means and, added in order, the part of each cluster; then in the unit of the weights. Exact but
 * for the rounding of float64 relative to the whole scatter. For any thread. */
double update_scatter(const struct update *update);
double update_inertia_part(const struct update *update, const float *centroids, uint64_t cluster);

#endif
