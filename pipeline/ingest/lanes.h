/* lanes.h: for decode threads: the plan of features, and staging on the devices. */
#ifndef CLPIPE_INGEST_LANES_H
#define CLPIPE_INGEST_LANES_H

#include "ingest/ingest_config.h"

struct lanes {
    struct plan plan;  /* used by staging */
    uint64_t memory;   /* limit for decoding: config->memory, or memory_streams */
    bool coefficients; /* decoders return coefficients of JPEG pictures for staging */
    bool streams;      /* likewise streams */
};

/* Does any device compute pixels of JPEG images? */
bool lanes_make_pixels(const struct ingest_config *config, const struct ingest_devices *devices);

/* Makes the plan for features and thumbnails, and opens *staging. `lanes` must not be moved, and
 * must outlive it. use: deliver, failed, lost and context of staging's configuration. Uses these
 * fields of the configuration: variant, jpeg, isolate, decode, trace, threads, memory,
 * device_memory, slot_bytes, slot_count. */
enum status lanes_open(struct lanes *lanes, struct staging **staging,
                       const struct ingest_config *config, const struct ingest_devices *devices,
                       const struct plan_config *plan, const struct staging_config *use,
                       struct error *err);

#endif
