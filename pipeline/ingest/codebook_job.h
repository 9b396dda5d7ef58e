/* codebook_job.h: the first phase of an ingest alone: codebooks learned from a sample of the sources. */
#ifndef CLPIPE_INGEST_CODEBOOK_JOB_H
#define CLPIPE_INGEST_CODEBOOK_JOB_H

#include "file/codebooks.h"
#include "ingest/ingest_config.h"

/* Learns the codebooks of config->features from at most `pictures` images: *features are these, bound to
 * what `codebooks` has then (codebooks_clear, also after a failure); *found: images of the sample. The
 * codebooks are those that an ingest of the same sources would learn if `pictures` is
 * LEARNING_PICTURES. Uses of the configuration: walk, decode, isolate, features, find_devices, trace,
 * threads, memory, stop, progress. */
enum status codebook_job_run(struct codebooks *codebooks, struct feature_set *features,
                             uint32_t *found, const struct ingest_config *config, uint32_t pictures,
                             struct error *err);

#endif
