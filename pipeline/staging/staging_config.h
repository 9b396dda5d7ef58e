/* staging_config.h: what staging is given, and what it gives back. */
#ifndef CLPIPE_STAGING_STAGING_CONFIG_H
#define CLPIPE_STAGING_STAGING_CONFIG_H

#include "ocl/ocl.h"
#include "staging/step.h"

/* What a device has made of one part. */
struct part_result {
    bool
        proven; /* false: it cannot tell, and the host decodes the picture; the values mean nothing */
    /* The plan's `words`, to be added to those of the picture's other parts. Values that are placed
     * rather than counted are 0 in all parts but one. */
    const uint32_t *values;
};

struct staging_config {
    const struct ocl_devices *devices;
    const unsigned *chosen; /* indices into devices */
    unsigned chosen_count;
    const struct step_plan *plan; /* what every device does; must outlive staging */
    struct trace *trace;          /* may be NULL */
    uint64_t host_memory;         /* for the slots of all lanes, bytes */
    uint64_t device_memory;       /* of each device, 0: what it has */
    uint64_t slot_bytes;          /* 0: chosen for the device */
    unsigned slot_count;          /* 0: chosen */

    /* One submitted part is done. On a lane thread; several lanes may call at a time. */
    void (*deliver)(void *context, void *picture, const struct part_result *result);
    /* A device has failed for good; `alive` others go on. On its lane thread, once. */
    void (*failed)(void *context, const struct error *err, unsigned alive);
    /* One submitted part of the picture will not be delivered: its device has failed. After
     * `failed`, on a lane thread. */
    void (*lost)(void *context, void *picture);
    void *context;
};

/* Bytes of a slot of the device where nothing but host_memory is told. */
uint64_t staging_slot_bytes(const struct ocl_device *device, uint64_t host_memory);

#endif
