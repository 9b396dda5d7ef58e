/* codebook_job.c: walk, sample and codebooks, without a store and steps. */
#include "ingest/codebook_job.h"

#include "base/process.h"
#include "ingest/bounds.h"
#include "ingest/learning.h"

#include <stdlib.h>

static enum status open_walk(struct walk **out, struct ingest_job *job, struct error *err)
{
    const struct walk_config walk = {
        .options = job->config->walk,
        .spool_directory = process_temporary_directory(),
        .memory = bounds_sorting(job->config->memory),
        .promises_image = format_promised,
        .again = "a sample is chosen once all of its images are known",
        .watch = {job->stop, ingest_job_walked, job},
    };
    return walk_open(out, &walk, err);
}

enum status codebook_job_run(struct codebooks *codebooks, struct feature_set *features,
                             uint32_t *found, uint32_t *unread, const struct ingest_config *config,
                             uint32_t pictures, struct error *err)
{
    struct ingest_job job;
    struct ocl_selection devices;
    struct ocl_context *context = NULL;
    struct walk *walk = NULL;
    struct learning *learning = NULL;
    *codebooks = (struct codebooks){.stored = NULL};
    *features = config->features;
    *found = *unread = 0;
    ingest_job_init(&job, config, NULL, NULL);
    enum status status = config->find_devices(config->find_devices_context, &devices, err);
    if (status == STATUS_OK)
        status = open_walk(&walk, &job, err);
    if (status == STATUS_OK)
        status = learning_sample(&learning, &job, walk, features, pictures, err);
    if (status == STATUS_OK) {
        *found = learning_pictures(learning);
        *unread = learning_unread(learning);
        if (*found > 0)
            status = ocl_context_open(&context, &devices.devices->device[devices.chosen[0]],
                                      config->trace, err);
    }
    if (status == STATUS_OK)
        status = learning_train(learning, codebooks, features, context, err);
    ocl_context_close(&context);
    learning_close(&learning);
    walk_close(&walk);
    ingest_job_clear(&job);
    return status;
}
