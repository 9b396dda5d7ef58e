/* learning.h: the first phase of an ingest: decodes a sample of the images, computes their
 * descriptors with the C reference, and learns codebooks.
 *
 * The sample is the first `pictures` candidates (candidates.h) that can be decoded with the
 * ingest's options, and evenly spaced descriptors of each. So it depends only on the files, not on
 * threads, devices, memory or interruptions. */
#ifndef CLPIPE_INGEST_LEARNING_H
#define CLPIPE_INGEST_LEARNING_H

#include "ingest/ingest_job.h"
#include "result/codebooks.h"
#include "sources/walk.h"

/* Maximum number of images in a sample, and of descriptors per feature. */
#define LEARNING_PICTURES    512u
#define LEARNING_DESCRIPTORS 65536u
/* Per image of larger samples. */
#define LEARNING_OF_PICTURE (LEARNING_DESCRIPTORS / LEARNING_PICTURES)
/* Minimum number per word, if the images have enough. */
#define LEARNING_FOR_WORD 64u

struct learning;

/* Decodes the sample for the features that need a codebook, on the job's threads, and shows
 * progress. Reads the walk and rewinds it. STATUS_INTERRUPTED: stopped. */
enum status learning_sample(struct learning **out, struct ingest_job *job, struct walk *walk,
                            const struct feature_set *features, uint32_t pictures,
                            struct error *err);

/* Number of images in the sample; of files and directories that could not be read for it, of which a notice
 * tells. */
uint32_t learning_pictures(const struct learning *learning);
uint32_t learning_unread(const struct learning *learning);

/* Learns a codebook for each feature that needs one, on the context's device, stores it in `codebooks` and
 * binds it. STATUS_USAGE: no image of the sample has descriptors; else
 * as codebook_train. Frees the sample. */
enum status learning_train(struct learning *learning, struct codebooks *codebooks,
                           struct feature_set *features, struct ocl_context *context,
                           struct error *err);

/* Accepts NULL. */
void learning_close(struct learning **learning);

#endif
