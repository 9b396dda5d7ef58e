/* measures.h: silhouettes, Davies-Bouldin and Calinski-Harabasz of outcomes over the same rows. */
#ifndef CLPIPE_CLUSTER_MEASURES_H
#define CLPIPE_CLUSTER_MEASURES_H

#include "cluster/cluster_types.h"
#include "cluster/shard.h"

/* Rows of the sample, at most; fewer where they would hold more than this many values. */
#define MEASURES_SAMPLE        2048
#define MEASURES_SAMPLE_VALUES (1u << 24)

struct measures {
    struct shard *shard;
    const float *weights; /* of the rank's rows, or NULL: 1 each */
    double weight;        /* the sum of all ranks' */
    double count;         /* the same, those between 0 and 1 taken for 1 */
    uint32_t sample;
    bool sampled;          /* the sample is not all rows of weight */
    uint64_t *rows;        /* of the sample, ascending */
    double *sample_weight; /* how often each of them counts */
    double *apart;         /* distance of each two of them: (0, 1), (0, 2), ... (1, 2), ... */
    double *sums;          /* of the rank's blocks */
    uint64_t blocks;
};

/* Draws the sample by config->seed and measures the distances between its rows. config->weights are
 * read until measures_close. All ranks call this and measures_take. */
enum status measures_open(struct measures *measures, struct shard *shard,
                          const struct cluster_config *config, struct error *err);
void measures_close(struct measures *measures);

/* Puts the labels and centroids of an outcome (of the rank's rows) on the device. */
enum status measures_take(struct cluster_measures *out, struct measures *measures,
                          const struct cluster_outcome *outcome, struct error *err);

#endif
