/* update.h: exact sums of the clusters' rows, kept up to date from iteration to iteration.
 *
 * Column j is summed in units of 2^-scale_j, chosen before the first iteration so that no sum of
 * any of the rows exceeds 62 bits; order and partition do not matter. */
#ifndef CLPIPE_KMEANS_UPDATE_H
#define CLPIPE_KMEANS_UPDATE_H

#include "kmeans/data.h"

struct sums {
    int64_t *values;  /* k x stride, in units */
    int64_t *tallies; /* UPDATE_TALLIES values that ranks sum with the counts, which follow */
    uint64_t *counts; /* k: rows, except those of weight 0 */
    int64_t *weights; /* k: sum of their weights, in units; NULL without weights */
};

#define UPDATE_TALLIES 2

struct update {
    struct lane *lane;
    struct data *data;
    uint32_t k;
    int *scales;     /* stride */
    double *units;   /* 2^-scale, stride */
    double *inverse; /* 2^scale, stride */
    bool small;      /* no value of a row has more than 51 bits */
    struct sums own; /* this rank's rows; with device_update.h: as of its last read */
    struct sums all; /* all ranks' rows, as of the latest update_add_*; own if there is one rank */
    uint32_t *moved; /* for the largest tile: rows that changed their cluster */
};

/* Rows count by their weights. A sum may hold every row once, or `samples` rows if more.
 * lane_release of *held frees it. */
enum status update_open(struct update *update, struct lane_held **held, struct data *data,
                        uint32_t k, uint64_t samples, struct error *err);

/* Whether kernels can use float64 and keep subnormal float32 values. */
bool update_keeps_subnormals(const struct ocl_device *device);

/* Forgets all rows; values: also their sums, which are not used where a device has them. */
void update_reset(struct update *update, bool values);

/* Moves the rows of an acquired tile from their old labels (-1: none yet) to the new ones, on the
 * host's threads; *moved is their number, except rows of weight 0. */
enum status update_tile(uint64_t *moved, struct update *update, struct tile *tile,
                        const int32_t *old_labels, const int32_t *new_labels, struct error *err);

/* update->all becomes the sum over ranks: of tallies, counts and weights; of sums. Collective. */
enum status update_add_counts(struct update *update, struct error *err);
enum status update_add_sums(struct update *update, struct error *err);

/* Moves one row (its `stride` values and its weight); own: it belongs to this rank. */
void update_move_row(struct update *update, const float *row, float weight, uint32_t from,
                     uint32_t to, bool own);

/* Makes a cluster's centroid the mean of its rows; under cosine, scaled to length 1 (Dhillon and
 * Modha 2001). The centroid of an empty cluster stays, as does one whose mean is zero under cosine.
 * Thread-safe. */
void update_centroid(const struct update *update, float *centroids, uint64_t cluster);

/* The inertia of the summed rows about their centroids is the scatter of all rows about the
 * columns' means plus, in order, the part of each cluster; in the unit of the weights. Exact except
 * for float64 rounding relative to the whole scatter. Thread-safe. */
double update_scatter(const struct update *update);
double update_inertia_part(const struct update *update, const float *centroids, uint64_t cluster);

#endif
