/* variant.h: the variants of the histogram kernels: requirements and launch shapes.
 *
 * All compute identical counters; kernels/histogram_NAME.cl explains how each works and what limits
 * its speed. */
#ifndef CLPIPE_DEVICE_VARIANT_H
#define CLPIPE_DEVICE_VARIANT_H

#include "features/feature.h"
#include "ocl/ocl.h"

enum histogram_variant {
    HISTOGRAM_AUTO,       /* the fastest for the device and the feature */
    HISTOGRAM_PRIVATE,    /* each work-item has its own tables */
    HISTOGRAM_LOCAL,      /* each work-group has one table in local memory */
    HISTOGRAM_REPLICATED, /* each work-group has interleaved copies of the table */
    HISTOGRAM_PACKED,     /* 32 copies, two counters per word */
    HISTOGRAM_PARTIAL,    /* copies; a second kernel sums the work-groups' tables */
    HISTOGRAM_STAGED,     /* one table; asynchronous copies load pixels into local memory */
    HISTOGRAM_GLOBAL,     /* no table: global atomics */
    HISTOGRAM_VARIANTS
};

/* "private" for HISTOGRAM_PRIVATE. */
const char *histogram_variant_name(enum histogram_variant variant);
/* False: no variant has that name. */
bool histogram_variant_parse(enum histogram_variant *out, const char *name);

/* The names of the kernel and its file. */
const char *histogram_variant_kernel(enum histogram_variant variant);
/* The second kernel of that file, which sums the tables of the work-groups; NULL: the first kernel
 * adds to the picture's counters itself. */
const char *histogram_variant_reduce(enum histogram_variant variant);

/* Is the variant worth measuring on the device? One work-item per tile leaves a GPU idle. */
bool histogram_variant_suits(enum histogram_variant variant, const struct ocl_device *device);

/* Can the device count the feature with the variant? If not, `reason` is set. */
bool histogram_variant_takes(char *reason, size_t size, enum histogram_variant variant,
                             const struct feature *feature, const struct ocl_device *device);

/* The default variant: the fastest known one on the device's platform, or one that runs
 * anywhere. */
enum histogram_variant histogram_variant_usual(const struct feature *feature,
                                               const struct ocl_device *device);

/* Bytes of one table of the feature. */
uint64_t histogram_variant_table(enum histogram_variant variant, const struct feature *feature);

/* Upper bound on the bytes of all tables of one pass. */
uint64_t histogram_variant_tables_most(enum histogram_variant variant,
                                       const struct ocl_device *device);

/* Launch shape of a pass. */
struct histogram_shape {
    uint32_t group;       /* work-items in a work-group */
    uint32_t copies;      /* of the table */
    uint32_t tile_pixels; /* upper bound per tile, unless a row is longer; a multiple of 16 */
};

/* The default for a pass with `bins` counters per cell and launches of `launch_bytes` of pixels. */
struct histogram_shape histogram_variant_shape(enum histogram_variant variant, uint32_t bins,
                                               uint64_t launch_bytes,
                                               const struct ocl_device *device);

/* The compiler options for a pass of that shape. */
void histogram_variant_options(char *text, size_t size, enum histogram_variant variant,
                               const struct histogram_shape *shape,
                               const struct ocl_device *device);

/* Can the variant's kernel be launched in that shape for a pass with `bins` counters per cell? */
bool histogram_shape_fits(const struct histogram_shape *shape, enum histogram_variant variant,
                          uint32_t bins, const struct ocl_device *device);

/* How a feature is counted. */
struct histogram_choice {
    enum histogram_variant variant;
    struct histogram_shape shape; /* group 0: the default */
    bool tuned;                   /* measured on this device */
};

#endif
