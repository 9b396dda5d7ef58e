/* fit.h: centroids, and the labels and sums of the rows that follow them, from first centroids to an
 * outcome.
 *
 * Every rank has one: the same centroids and the same sums of all rows, and labels and distances of
 * its own rows. What a function computes from the former is equal on all ranks. */
#ifndef CLPIPE_CLUSTER_FIT_H
#define CLPIPE_CLUSTER_FIT_H

#include "cluster/fit_state.h"

/* checkpoint: NULL for fit_label only, which does without updates. */
enum status fit_open(struct fit *fit, struct shard *shard, const struct cluster_config *config,
                     struct checkpoint *checkpoint, struct error *err);
/* Frees what it owns; the shard and the checkpoint stay. */
void fit_close(struct fit *fit);

/* Brings what the state consists of to the host, for checkpoint_save. After an error, too: then it
 * fails where that cannot be told. */
enum status fit_read_state(struct fit *fit, struct error *err);

/* What the squared shifts of converged centroids do not exceed: tol times the mean variance of the
 * columns. */
double fit_tolerance(const struct fit *fit);

/* Moves the host's centroids to the means of the host's sums and has them measured; `previous` is
 * where they were, shifts grow by what they moved; *shift is the sum of the squared moves. inertia:
 * fit->move has that about the old ones, too. */
enum status fit_move_centroids(struct fit *fit, double *shift, bool inertia, struct error *err);

/* For methods whose iterations label all rows. fit_assign labels them by the centroids, and the
 * sums follow; move: fit_update comes next, which moves the centroids to the means: *inertia is
 * that about the old ones, *shift the sum of their squared moves; *relocated: a cluster was empty
 * and got a row. fit_forget_labels: no row has a label. */
enum status fit_assign(struct fit *fit, bool move, uint64_t *moved, struct error *err);
enum status fit_update(struct fit *fit, double *inertia, double *shift, bool *relocated,
                       struct error *err);
enum status fit_forget_labels(struct fit *fit, struct error *err);

/* Iterates from fit->centroids, which are those after out->iterations, and fills the outcome (of the
 * rank's rows), whose arrays are there. */
enum status fit_run(struct fit *fit, struct cluster_outcome *out, struct error *err);

/* Fills an outcome that has its centroids, iterations and history only. */
enum status fit_complete(struct fit *fit, struct cluster_outcome *out, struct error *err);

/* Only labels and distances of the rank's rows for fit->centroids. */
enum status fit_label(struct fit *fit, int32_t *labels, float *distances, struct error *err);

/* Makes labels and centroids of the host the newest ones, and sums where they are wanted. */
enum status fit_read_device(struct fit *fit, bool sums, struct error *err);

#endif
