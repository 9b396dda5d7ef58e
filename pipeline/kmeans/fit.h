/* fit.h: runs k-means from initial centroids to an outcome: the centroids, and the labels and sums
 * that depend on them.
 *
 * Every rank has one, with the same centroids and the same sums over all rows, and with labels and
 * distances of its own rows. Values computed from the former are equal on all ranks. */
#ifndef CLPIPE_KMEANS_FIT_H
#define CLPIPE_KMEANS_FIT_H

#include "kmeans/checkpoint.h"
#include "kmeans/method.h"
#include "kmeans/shard.h"

/* The members are for code that changes parts of it. */
struct fit {
    const struct cluster_config *config;
    const struct kmeans_method *method;
    struct shard *shard;
    struct comm *comm;
    struct lane *lane;
    struct data *data;
    struct assign *assign;
    struct update *update;
    struct device_update *device_update; /* NULL if each iteration copies the sums to the host */
    struct checkpoint *checkpoint;
    float *centroids, *previous; /* k x stride; previous: before the last move */
    float *saved;                /* k x stride: before an update that may fail half-way */
    int32_t *labels;             /* of the rank's rows; belongs to the outcome */
    struct centroid_move *move;  /* k: the last move of each */
    double *shifts;        /* k: upper bounds on the centroids' moves since rows were assigned */
    double passes, pruned; /* assignments of all rows, and the sum of their pruned shares */
    double pruned_now;     /* of the last one */
    uint32_t run;          /* index of the restart, for random numbers */
    bool has_labels;       /* tiles hold labels and bounds */
    bool moving;           /* the device's centroids may already be those of the next iteration */
    bool host_stale;       /* only the device has current labels, or also centroids and sums */
};

/* checkpoint: NULL for fit_label only, which needs no updates. Closing the shard frees what it holds. */
enum status fit_open(struct fit *fit, struct shard *shard, const struct cluster_config *config,
                     struct checkpoint *checkpoint, struct error *err);

/* Copies the state to the host for checkpoint_save. After an error, fails if it is unknown. */
enum status fit_read_state(struct fit *fit, struct error *err);

/* Limit of the squared shift of converged centroids: tol times the columns' mean variance. */
double fit_tolerance(const struct fit *fit);

/* Moves the host's centroids to the means of the host's sums; `previous` gets the old ones, and
 * shifts grow by the moves; *shift is the sum of the squared moves. inertia:
 * fit->move also gets the inertia about the old centroids. */
enum status fit_move_centroids(struct fit *fit, double *shift, bool inertia, struct error *err);

/* For methods whose iterations label all rows. fit_assign labels them by the centroids and updates
 * the sums; move: fit_update follows, which moves the centroids to the means. *inertia is that
 * about the old centroids, *shift the sum of their squared moves; *relocated: a cluster was empty
 * and got a row. fit_forget_labels removes all labels. */
enum status fit_assign(struct fit *fit, bool move, uint64_t *moved, struct error *err);
enum status fit_update(struct fit *fit, double *inertia, double *shift, bool *relocated,
                       struct error *err);
enum status fit_forget_labels(struct fit *fit, struct error *err);

/* Iterates from fit->centroids, which are those after out->iterations, and fills the outcome (for
 * the rank's rows), whose arrays the caller has allocated. */
enum status fit_run(struct fit *fit, struct cluster_outcome *out, struct error *err);

/* Completes an outcome that only has its centroids, iterations and history. */
enum status fit_complete(struct fit *fit, struct cluster_outcome *out, struct error *err);

/* Only computes labels and distances of the rank's rows for fit->centroids. */
enum status fit_label(struct fit *fit, int32_t *labels, float *distances, struct error *err);

/* Rounds the outcome's centroids (cluster_config.whole), and labels its rows by them. */
enum status fit_round(struct fit *fit, struct cluster_outcome *out, struct error *err);

/* --- parts of a fit, in files of their own ----------------------------------------------------- */

/* The number of clusters without rows, by the counts of all ranks. */
uint32_t relocate_count_empty(const struct fit *fit);

/* Gives each empty cluster the row farthest from its centroid (ties: the lowest), skipping
 * duplicates of rows already taken and rows of weight 0; labels and counts are updated, sums only on
 * the host. A row alone in its cluster has distance zero unless the centroid is not yet the mean;
 * taking it would only empty another cluster, so it stays. place: the row becomes the centroid; else
 * the device moves all centroids afterwards. The host's labels must be current, and remain so, and
 * its sums unless fit->host_stale. Collective. STATUS_FAILED: every row lies on its centroid. */
enum status relocate_rows(struct fit *fit, bool place, struct error *err);

/* Completes an outcome of the rank's rows that has its labels, which the tiles have, too: distances,
 * inertia (summed pairwise within blocks of rows, blocks in order), sizes and nearest rows. counts: k,
 * without rows of weight 0. Collective. */
enum status outcome_measure(struct cluster_outcome *out, struct shard *shard,
                            const uint64_t *counts, struct error *err);

#endif
