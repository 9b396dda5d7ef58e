/* staging_config.h: configuration and results of staging. */
#ifndef CLPIPE_DEVICE_STAGING_CONFIG_H
#define CLPIPE_DEVICE_STAGING_CONFIG_H

#include "device/step.h"
#include "ocl/ocl.h"

/* The result of a part. */
struct part_result {
    /* false: the device refused, and the host must decode the picture; the values are undefined. */
    bool proven;
    /* The plan's `words` of values, to be added to those of the picture's other parts. Values that
     * are placed, not counted, are 0 in all parts but one. */
    const uint32_t *values;
};

struct staging_config {
    struct ocl_selection selection; /* staging takes over its context */
    const struct step_plan *plan;   /* steps for every device; must outlive staging */
    uint64_t host_memory;           /* bytes, for the slots of all rings */
    uint64_t device_memory;         /* bytes per device; 0: all */
    uint64_t slot_bytes;            /* 0: chosen for the device */
    unsigned slot_count;            /* 0: chosen */
    unsigned threads;               /* number of threads that fill slots */

    /* A submitted part is done. Called on ring threads, possibly several at a time. */
    void (*deliver)(void *context, void *picture, const struct part_result *result);
    /* A device has failed permanently; `alive` others continue. Called once, on its ring thread. */
    void (*failed)(void *context, const struct error *err, unsigned alive);
    /* A submitted part of the picture is lost because its device has failed. Called after `failed`,
     * on a ring thread. */
    void (*lost)(void *context, void *picture);
    void *context;
};

/* The default slot size for the device if host_memory is that much. */
uint64_t staging_slot_bytes(const struct ocl_device *device, uint64_t host_memory);

#endif
