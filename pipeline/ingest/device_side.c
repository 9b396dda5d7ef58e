/* device_side.c: the part of an ingest that runs on devices. */
#include "ingest/device_side.h"

#include "base/log.h"
#include "ingest/bounds.h"
#include "ingest/picture.h"

/* How much of the JPEG decoding devices may do. */
static enum plan_jpeg jpeg_of(const struct ingest_config *config)
{
    return config->isolate || config->decode.scale != 1 ? PLAN_JPEG_HOST : config->jpeg;
}

bool device_side_makes_pixels(const struct ingest_config *config,
                              const struct ocl_selection *devices)
{
    bool any = false;
    for (unsigned i = 0; i < devices->count; i++)
        any = any ||
              plan_makes_pixels(jpeg_of(config), &devices->devices->device[devices->chosen[i]]);
    return any;
}

/* Will any device decode JPEG streams? */
static bool plans_streams(const struct plan *plan, const struct ocl_selection *devices)
{
    bool any = false;
    for (unsigned i = 0; i < devices->count; i++)
        any = any || staging_would_take(&plan->steps, &devices->devices->device[devices->chosen[i]],
                                        PAYLOAD_STREAM);
    return any && decode_coefficients_agree();
}

static void device_failed(void *job, const struct error *err, unsigned alive)
{
    if (alive == 0)
        ingest_job_fail(job, err);
    else
        log_message(LOG_NOTICE, "notice: %s; continuing without it", ERROR_LINE(err));
}

enum status device_side_open(struct device_side *device_side, struct ingest_job *job,
                             struct ocl_selection *devices, const struct plan_config *plan,
                             struct error *err)
{
    const struct ingest_config *config = job->config;
    struct plan_config wanted = *plan;
    struct staging *staging = NULL;
    wanted.variant = config->variant;
    wanted.jpeg = jpeg_of(config);
    enum status status = plan_make(&device_side->plan, &wanted, err);
    if (status != STATUS_OK)
        return status;
    device_side->memory =
        plans_streams(&device_side->plan, devices) ? config->memory_streams : config->memory;
    const struct staging_config open = {
        .selection = *devices,
        .plan = &device_side->plan.steps,
        .host_memory = bounds_slots(device_side->memory),
        .device_memory = config->device_memory,
        .slot_bytes = config->slot_bytes,
        .slot_count = config->slot_count,
        .threads = config->threads,
        .deliver = picture_deliver,
        .failed = device_failed,
        .lost = picture_lost,
        .context = job,
    };
    devices->context = NULL;
    status = staging_open(&staging, &open, err);
    if (status != STATUS_OK)
        return status;
    pthread_mutex_lock(&job->lock);
    job->staging = staging;
    status = budget_open(&job->budget, bounds_codecs(device_side->memory), err);
    pthread_mutex_unlock(&job->lock);
    const bool taken = staging_takes(staging, PAYLOAD_DCT);
    device_side->coefficients = taken && decode_coefficients_agree();
    device_side->streams = device_side->coefficients && staging_takes(staging, PAYLOAD_STREAM);
    if (taken && !device_side->coefficients)
        log_message(
            LOG_DEBUG,
            "this JPEG library computes pixels differently: JPEG files are decoded on the host");
    return status;
}
