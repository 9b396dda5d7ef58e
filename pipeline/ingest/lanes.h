/* lanes.h: the plan of features, and staging on the devices, for decode threads. */
#ifndef CLPIPE_INGEST_LANES_H
#define CLPIPE_INGEST_LANES_H

#include "ingest/ingest_config.h"

struct lanes {
    struct plan plan;  /* staging refers to it */
    uint64_t memory;   /* bound on what decodes: config->memory, or memory_streams */
    bool coefficients; /* decoders hand out those of JPEG pictures for staging */
    bool streams;      /* likewise their entropy code */
};

/* Does one of the devices make pixels of JPEG images? */
bool lanes_make_pixels(const struct ingest_config *config, const struct ingest_devices *devices);

/* Plans for features and thumbnails of `plan`, and opens *staging. `lanes` must not be moved, and outlive
 * it. use: of staging's configuration deliver, failed, lost and context. Uses of the configuration: variant,
 * jpeg, isolate, decode, trace, threads, memory, device_memory, slot_bytes, slot_count. */
enum status lanes_open(struct lanes *lanes, struct staging **staging,
                       const struct ingest_config *config, const struct ingest_devices *devices,
                       const struct plan_config *plan, const struct staging_config *use,
                       struct error *err);

#endif
