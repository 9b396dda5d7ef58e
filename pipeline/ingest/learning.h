/* learning.h: the phase of an ingest before its first image: a sample of the images is decoded, their
 * descriptors are computed by the C reference, and codebooks are learned from them.
 *
 * The sample is the first `pictures` of the candidates (candidates.h) that can be decoded, with the
 * options of the ingest, whatever becomes of the others; of each, descriptors at equal distances. So
 * it depends on the files alone: not on threads, devices, memory or kills. */
#ifndef CLPIPE_INGEST_LEARNING_H
#define CLPIPE_INGEST_LEARNING_H

#include "file/codebooks.h"
#include "ingest/ingest_job.h"
#include "walk/walk.h"

/* Images of a sample, and descriptors of each feature from all of them, at most. */
#define LEARNING_PICTURES    512u
#define LEARNING_DESCRIPTORS 65536u
/* Of a larger sample's images. */
#define LEARNING_OF_PICTURE (LEARNING_DESCRIPTORS / LEARNING_PICTURES)
/* For each word there are at least so many, if the images have them. */
#define LEARNING_FOR_WORD 64u

struct learning;

/* Decodes the sample for the features that need a codebook, on the threads of the job's
 * configuration, and shows the progress. Reads the walk and rewinds it. STATUS_INTERRUPTED: a stop
 * was requested. */
enum status learning_sample(struct learning **out, struct ingest_job *job, struct walk *walk,
                            const struct feature_set *features, uint32_t pictures,
                            struct error *err);

/* Images of the sample. */
uint32_t learning_pictures(const struct learning *learning);

/* Learns a codebook for each feature that needs one, on the devices, and binds it: `codebooks` has
 * them then. STATUS_USAGE: the images have too few different descriptors. Empties the sample. */
enum status learning_train(struct learning *learning, struct codebooks *codebooks,
                           struct feature_set *features, const struct ingest_devices *devices,
                           struct error *err);

/* Accepts NULLs. */
void learning_close(struct learning **learning);

#endif
