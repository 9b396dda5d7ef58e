/* codebook_job.h: the first phase of an ingest alone: learns codebooks from a sample of the
 * sources. */
#ifndef CLPIPE_INGEST_CODEBOOK_JOB_H
#define CLPIPE_INGEST_CODEBOOK_JOB_H

#include "ingest/ingest_config.h"
#include "result/codebooks.h"

/* Learns the codebooks of config->features from at most `pictures` images. *features receives these
 * features, bound to codebooks owned by `codebooks` (codebooks_clear, even after a failure);
 * *found: number of images in the sample; *unread: see learning_unread. With LEARNING_PICTURES they are the codebooks that an
 * ingest of the same sources learns. Uses these fields of the configuration: walk, decode, isolate,
 * features, find_devices, trace, threads, memory, stop, progress. */
enum status codebook_job_run(struct codebooks *codebooks, struct feature_set *features,
                             uint32_t *found, uint32_t *unread, const struct ingest_config *config,
                             uint32_t pictures, struct error *err);

#endif
