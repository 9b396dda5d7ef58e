/* fit_state.h: the members of a fit, for code that changes parts of it (see fit.h). */
#ifndef CLPIPE_KMEANS_FIT_STATE_H
#define CLPIPE_KMEANS_FIT_STATE_H

#include "kmeans/checkpoint.h"
#include "kmeans/method.h"
#include "kmeans/shard.h"

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
    bool measured;         /* the filter has measured the host's centroids */
    bool host_stale;       /* only the device has current labels, or also centroids and sums */
};

#endif
