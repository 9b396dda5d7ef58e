/* fit.h: runs k-means from initial centroids to an outcome: the centroids, and the labels and sums
 * that depend on them.
 *
 * Every rank has one, with the same centroids and the same sums over all rows, and with labels and
 * distances of its own rows. Values computed from the former are equal on all ranks. */
#ifndef CLPIPE_KMEANS_FIT_H
#define CLPIPE_KMEANS_FIT_H

#include "kmeans/fit_state.h"

/* checkpoint: NULL for fit_label only, which needs no updates. Closing the shard frees what it holds. */
enum status fit_open(struct fit *fit, struct shard *shard, const struct cluster_config *config,
                     struct checkpoint *checkpoint, struct error *err);

/* Copies the state to the host for checkpoint_save. After an error, fails if it is unknown. */
enum status fit_read_state(struct fit *fit, struct error *err);

/* Limit of the squared shift of converged centroids: tol times the columns' mean variance. */
double fit_tolerance(const struct fit *fit);

/* Moves the host's centroids to the means of the host's sums and measures them; `previous` gets the
 * old ones, and shifts grow by the moves; *shift is the sum of the squared moves. inertia:
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

#endif
