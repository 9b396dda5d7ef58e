/* fit.h: the iterations, from first centroids to an outcome. */
#ifndef CLPIPE_CLUSTER_FIT_H
#define CLPIPE_CLUSTER_FIT_H

#include "cluster/checkpoint.h"
#include "cluster/method.h"
#include "cluster/shards.h"

struct fit {
    const struct cluster_config *config;
    const struct kmeans_method *method;
    struct shards *shards;
    /* The first shard's; mini-batches are worked on there. */
    struct lane *lane;
    struct data *data;
    struct assign *assign;
    struct update *update; /* of all rows */
    struct update totals;  /* what it is where there are several shards */
    struct moves *moves;   /* NULL where sums are brought to the host in each iteration */
    struct checkpoint *checkpoint;
    float *centroids, *previous; /* k x stride */
    int32_t *labels;             /* of all rows; the outcome's */
    double *drifts; /* k: how far the centroids have moved, at most, since rows were assigned */
    double passes, pruned; /* assignments of all rows, and the sum of their pruned shares */
    double pruned_now;     /* of the last one */
    uint32_t run;          /* which restart: of random numbers */
    bool has_labels;       /* tiles hold labels and bounds */
    bool measured;         /* the first shard's filter has measured the host's centroids */
    bool away; /* the newest labels, and with `moves` centroids and sums, are on devices only */
};

/* checkpoint: NULL for fit_label only, which does without updates. */
enum status fit_open(struct fit *fit, struct shards *shards, const struct cluster_config *config,
                     struct checkpoint *checkpoint, struct error *err);
void fit_close(struct fit *fit);

/* Brings what the state consists of to the host, for checkpoint_save. */
enum status fit_gather(struct fit *fit, struct error *err);

/* What the squared moves of converged centroids do not exceed. */
double fit_tolerance(const struct fit *fit);

/* Moves the host's centroids to the means of the host's sums and has them measured; `previous` is
 * where they were, drifts grow by what they moved; returns the sum of the squared moves. */
double fit_move_centroids(struct fit *fit);

/* For methods whose iterations label all rows. fit_assign labels them by the centroids, and the
 * sums follow; move: fit_update comes next, which moves the centroids to the means: *inertia is
 * that about the old ones, *shift the sum of their squared moves; *relocated: a cluster was empty
 * and got a row. fit_forget_labels: no row has a label. */
enum status fit_assign(struct fit *fit, bool move, uint64_t *moved, struct error *err);
enum status fit_update(struct fit *fit, double *inertia, double *shift, bool *relocated,
                       struct error *err);
enum status fit_forget_labels(struct fit *fit, struct error *err);

/* Iterates from fit->centroids, which are those after out->iterations, and fills the outcome,
 * whose arrays are there. */
enum status fit_run(struct fit *fit, struct cluster_outcome *out, struct error *err);

/* Fills an outcome that has its centroids, iterations and history only. */
enum status fit_complete(struct fit *fit, struct cluster_outcome *out, struct error *err);

/* Only labels and distances for fit->centroids, as `assign` wants them; labels are out->labels,
 * distances out->distances. */
enum status fit_label(struct fit *fit, struct cluster_outcome *out, struct error *err);

#endif
