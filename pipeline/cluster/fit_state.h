/* fit_state.h: what a fit is, for those that change a part of it (fit.h has the rest). */
#ifndef CLPIPE_CLUSTER_FIT_STATE_H
#define CLPIPE_CLUSTER_FIT_STATE_H

#include "cluster/checkpoint.h"
#include "cluster/method.h"
#include "cluster/shard.h"

struct fit {
    const struct cluster_config *config;
    const struct kmeans_method *method;
    struct shard *shard;
    struct comm *comm;
    struct lane *lane;
    struct lane_held *held;
    struct data *data;
    struct assign *assign;
    struct update *update;
    struct device_update
        *device_update; /* NULL where sums are brought to the host in each iteration */
    struct checkpoint *checkpoint;
    float *centroids, *previous; /* k x stride; previous: before they last moved */
    float *saved;                /* k x stride: before an update that can fail half-way */
    int32_t *labels;             /* of the rank's rows; the outcome's */
    struct centroid_move *move;  /* k: the last one of each */
    double *shifts; /* k: how far the centroids have moved, at most, since rows were assigned */
    double passes, pruned; /* assignments of all rows, and the sum of their pruned shares */
    double pruned_now;     /* of the last one */
    uint32_t run;          /* which restart: of random numbers */
    bool has_labels;       /* tiles hold labels and bounds */
    bool moving;           /* the device's centroids may be those of the next iteration already */
    bool measured;         /* the filter has the measures of the host's centroids */
    bool host_stale; /* the newest labels, and with device_update centroids and sums, are on the
                            * device only */
};

#endif
