/* measures.h: silhouettes, Davies-Bouldin and Calinski-Harabasz indices over the same rows. */
#ifndef CLPIPE_KMEANS_MEASURES_H
#define CLPIPE_KMEANS_MEASURES_H

#include "base/held.h"
#include "kmeans/cluster_types.h"
#include "kmeans/shard.h"

/* Maximum number of rows in the sample, and of values in them. */
#define MEASURES_SAMPLE        2048
#define MEASURES_SAMPLE_VALUES (1u << 24)

struct measures {
    struct shard *shard;
    const float *weights; /* of the rank's rows, or NULL: all 1 */
    double weight;        /* their sum over all ranks */
    double count;         /* the same with weights between 0 and 1 counted as 1 */
    uint32_t sample;
    bool sampled;          /* the sample leaves out rows with weight */
    uint64_t *rows;        /* the sample's rows, ascending */
    double *sample_weight; /* the weight of each in the sample */
    double *apart;         /* distances between them: (0, 1), (0, 2), ... (1, 2), ... */
    double *sums;          /* of the rank's blocks */
    uint64_t blocks;
    struct held held; /* the arrays above */
    /* Of the outcome that is measured: */
    const struct cluster_outcome *outcome;
    double *cluster_weight; /* k */
    float *centroids;       /* k x stride */
};

/* Draws the sample by config->seed and computes the distances between its rows. Reads
 * config->weights until measures_close. This and measures_take are collective. */
enum status measures_open(struct measures *measures, struct shard *shard,
                          const struct cluster_config *config, struct error *err);
void measures_close(struct measures *measures);

/* Measures an outcome of the rank's rows; writes its labels and centroids to the device. */
enum status measures_take(struct cluster_measures *out, struct measures *measures,
                          const struct cluster_outcome *outcome, struct error *err);

#endif
