/* lloyd.h: the iterations, from first centroids to an outcome. */
#ifndef CLPIPE_CLUSTER_LLOYD_H
#define CLPIPE_CLUSTER_LLOYD_H

#include "cluster/checkpoint.h"
#include "cluster/shards.h"

struct lloyd {
    const struct cluster_config *config;
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
    double *drifts; /* k: how far the centroids have moved, at most, since rows were assigned */
    double passes, pruned; /* assignments of all rows, and the sum of their pruned shares */
    double pruned_now;     /* of the last one */
    uint32_t run;          /* which restart: of random numbers */
    bool has_labels;       /* tiles hold labels and bounds */
    bool measured;         /* the first shard's filter has measured the host's centroids */
    bool away; /* the newest labels, and with `moves` centroids and sums, are on devices only */
};

/* checkpoint: NULL for lloyd_label only, which does without updates. */
enum status lloyd_open(struct lloyd *lloyd, struct shards *shards,
                       const struct cluster_config *config, struct checkpoint *checkpoint,
                       struct error *err);
void lloyd_close(struct lloyd *lloyd);

/* An iteration is done: keeps the state if it is time. */
void lloyd_iterated(struct lloyd *lloyd);

/* Brings what the state consists of to the host, for checkpoint_save. */
enum status lloyd_gather(struct lloyd *lloyd, struct error *err);

/* What the squared moves of converged centroids do not exceed. */
double lloyd_tolerance(const struct lloyd *lloyd);

/* Moves the host's centroids to the means of the host's sums and has them measured; `previous` is
 * where they were, drifts grow by what they moved; returns the sum of the squared moves. */
double lloyd_move_centroids(struct lloyd *lloyd);

/* Makes room for iteration i's inertia, i counting up from 0. */
enum status lloyd_extend_history(struct cluster_outcome *out, uint32_t i, struct error *err);

/* Iterates from lloyd->centroids, which are those after out->iterations, and fills the outcome,
 * whose arrays are there. */
enum status lloyd_run(struct lloyd *lloyd, struct cluster_outcome *out, struct error *err);

/* Fills an outcome that has its centroids, iterations and history only. */
enum status lloyd_complete(struct lloyd *lloyd, struct cluster_outcome *out, struct error *err);

/* Only labels and distances for lloyd->centroids, as `assign` wants them; labels are out->labels,
 * distances out->distances. */
enum status lloyd_label(struct lloyd *lloyd, struct cluster_outcome *out, struct error *err);

#endif
