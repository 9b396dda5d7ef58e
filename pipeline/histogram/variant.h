/* variant.h: the variants of the histogram kernels: what each needs and how it is launched.
 *
 * All give the same counters, bit for bit; kernels/histogram_NAME.cl says how each works and what
 * limits its speed.
 */
#ifndef CLPIPE_HISTOGRAM_VARIANT_H
#define CLPIPE_HISTOGRAM_VARIANT_H

#include "features/feature.h"
#include "ocl/ocl.h"

enum histogram_variant {
    HISTOGRAM_AUTO,       /* the fastest for the device and the feature */
    HISTOGRAM_PRIVATE,    /* each work-item has its own tables */
    HISTOGRAM_LOCAL,      /* each work-group has one table in local memory */
    HISTOGRAM_REPLICATED, /* each work-group has interleaved copies of the table */
    HISTOGRAM_PACKED,     /* 32 copies, two counters in a word */
    HISTOGRAM_PARTIAL,    /* copies; a second kernel adds up the tables of the work-groups */
    HISTOGRAM_STAGED,     /* one table; asynchronous copies bring pixels into local memory */
    HISTOGRAM_GLOBAL,     /* no table: global atomics */
    HISTOGRAM_VARIANTS
};

/* "private" for HISTOGRAM_PRIVATE. */
const char *histogram_variant_name(enum histogram_variant variant);
/* False: no variant has that name. */
bool histogram_variant_parse(enum histogram_variant *out, const char *name);

/* The kernel and its file. */
const char *histogram_variant_kernel(enum histogram_variant variant);
/* The second kernel of that file, which adds up the tables of the first one's work-groups; NULL: the
 * first adds to the picture's counters itself. */
const char *histogram_variant_reduce(enum histogram_variant variant);

/* Is it worth measuring on the device? One work-item per tile leaves a GPU idle. */
bool histogram_variant_suits(enum histogram_variant variant, const struct ocl_device *device);

/* Can the device count the feature with the variant? If not, `reason` says why. */
bool histogram_variant_takes(char *reason, size_t size, enum histogram_variant variant,
                             const struct feature *feature, const struct ocl_device *device);

/* The default variant: the fastest known one on the device's platform, or one that works on any. */
enum histogram_variant histogram_variant_usual(const struct feature *feature,
                                               const struct ocl_device *device);

/* Bytes of one table of the feature. */
uint64_t histogram_variant_table(enum histogram_variant variant, const struct feature *feature);

/* The most bytes that the tables of one pass may take together. */
uint64_t histogram_variant_tables_most(enum histogram_variant variant,
                                       const struct ocl_device *device);

/* How a pass is launched. */
struct histogram_shape {
    uint32_t group;       /* work-items in a work-group */
    uint32_t copies;      /* of the table */
    uint32_t tile_pixels; /* the most pixels of a tile, unless a row is longer; a multiple of 16 */
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

/* How a feature is to be counted. */
struct histogram_choice {
    enum histogram_variant variant;
    struct histogram_shape shape; /* group 0: the default */
    bool tuned;                   /* measured on this device */
};

#endif
