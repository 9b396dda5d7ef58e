/* staging_config.h: the configuration of staging, and its results. */
#ifndef CLPIPE_STAGING_STAGING_CONFIG_H
#define CLPIPE_STAGING_STAGING_CONFIG_H

#include "ocl/ocl.h"
#include "staging/step.h"

/* The result of a device for one part. */
struct part_result {
    /* false: the device cannot decide, and the host decodes the picture; the values are undefined. */
    bool proven;
    /* The plan's `words`, to be added to those of the picture's other parts. Values that are placed
     * rather than counted are 0 in all parts but one. */
    const uint32_t *values;
};

struct staging_config {
    const struct ocl_devices *devices;
    const unsigned *chosen; /* indices into devices */
    unsigned chosen_count;
    const struct step_plan *plan; /* the steps of every device; must outlive staging */
    struct trace *trace;          /* may be NULL */
    uint64_t host_memory;         /* for the slots of all lanes, bytes */
    uint64_t device_memory;       /* of each device; 0: all */
    uint64_t slot_bytes;          /* 0: chosen for the device */
    unsigned slot_count;          /* 0: chosen */
    unsigned threads;             /* that fill slots */

    /* One submitted part is done. Called on a lane thread; several lanes may call at the same
     * time. */
    void (*deliver)(void *context, void *picture, const struct part_result *result);
    /* A device has failed permanently; `alive` others continue. Called once, on its lane thread. */
    void (*failed)(void *context, const struct error *err, unsigned alive);
    /* One submitted part of the picture will not be delivered because its device has failed. Called
     * after `failed`, on a lane thread. */
    void (*lost)(void *context, void *picture);
    void *context;
};

/* The default slot size for the device with that host_memory. */
uint64_t staging_slot_bytes(const struct ocl_device *device, uint64_t host_memory);

#endif
