/* train.h: learns codebooks from a sample of descriptors.
 *
 *   bytes ──> covariance (exact integers) ──> its eigenvectors (float64) ──> projection, made integer
 *         ──> projected values ──> k-means (kmeans/) ──> words, made integer ──> statistics
 *
 * Everything uses integers, float64 in a fixed order, or k-means, whose result is the same on all
 * devices: the codebook depends only on the sample. */
#ifndef CLPIPE_FEATURES_TRAIN_H
#define CLPIPE_FEATURES_TRAIN_H

#include "features/codebook.h"
#include "features/descriptor.h"
#include "kmeans/cluster.h"

struct codebook_training {
    const uint8_t *sample; /* rows x columns of the descriptor, row-major */
    uint64_t rows;
    const struct cluster_devices *devices;
    uint64_t memory; /* host bytes for k-means, not counting one byte per projected value */
    unsigned threads;
    struct watch watch; /* shows iterations; k-means may end early */
};

/* Fills the codebook, which the caller must clear. If the sample has too few distinct descriptors,
 * the remaining words repeat the first one, and so are never the nearest. STATUS_USAGE: empty
 * sample; STATUS_FAILED: memory, devices; STATUS_INTERRUPTED. The codebook is then empty. */
enum status codebook_train(struct feature_codebook *codebook, const struct descriptor *descriptor,
                           uint32_t words, const struct codebook_training *training,
                           struct error *err);

#endif
