/* device_side.h: what decode threads need of the devices: the plan of features, and staging. */
#ifndef CLPIPE_INGEST_DEVICE_SIDE_H
#define CLPIPE_INGEST_DEVICE_SIDE_H

#include "ingest/ingest_job.h"

struct device_side {
    struct plan plan;  /* used by staging */
    uint64_t memory;   /* limit for decoding: config->memory, or memory_streams */
    bool coefficients; /* decoders deliver JPEG coefficients to staging */
    bool streams;      /* likewise streams */
};

/* Does any device compute pixels of JPEG images? */
bool device_side_makes_pixels(const struct ingest_config *config,
                              const struct ocl_selection *devices);

/* Makes the plan for features and thumbnails, and opens the job's staging and budget. The struct must
 * not be moved, and must outlive them. If the last device fails, so does the job. Uses these fields
 * of the job's configuration: variant, jpeg, isolate, decode, trace, threads, memory,
 * memory_streams, device_memory, slot_bytes, slot_count. Takes over devices->context, unless no
 * plan can be made. */
enum status device_side_open(struct device_side *device_side, struct ingest_job *job,
                             struct ocl_selection *devices, const struct plan_config *plan,
                             struct error *err);

#endif
