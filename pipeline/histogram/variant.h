/* variant.h: the ways to count a histogram, and what each of them needs.
 *
 * All give the same counters, bit for bit; kernels/histogram_NAME.cl says how each works and what
 * limits it.
 */
#ifndef CLPIPE_HISTOGRAM_VARIANT_H
#define CLPIPE_HISTOGRAM_VARIANT_H

#include "features/feature.h"
#include "ocl/ocl.h"

enum histogram_variant {
    HISTOGRAM_AUTO,       /* the fastest for the device and the feature */
    HISTOGRAM_PRIVATE,    /* tables of each work-item */
    HISTOGRAM_LOCAL,      /* one table a work-group in local memory */
    HISTOGRAM_REPLICATED, /* interleaved copies of it */
    HISTOGRAM_PACKED,     /* 32 copies, two values in one word */
    HISTOGRAM_PARTIAL,    /* copies, each work-group's added up by a second kernel */
    HISTOGRAM_STAGED,     /* one table, pixels through local memory by asynchronous copies */
    HISTOGRAM_GLOBAL,     /* straight into global memory */
    HISTOGRAM_VARIANTS
};

/* "private" for HISTOGRAM_PRIVATE. */
const char *histogram_variant_name(enum histogram_variant variant);
/* False: no variant has that name. */
bool histogram_variant_parse(enum histogram_variant *out, const char *name);

/* The kernel and its file. */
const char *histogram_variant_kernel(enum histogram_variant variant);
/* The kernel of the same file that adds up what the work-groups of the first have counted in tables
 * of their own; NULL: there is none, and the first adds to the picture's counters. */
const char *histogram_variant_reduce(enum histogram_variant variant);

/* Is it worth measuring on the device? One work-item a tile leaves a GPU empty. */
bool histogram_variant_suits(enum histogram_variant variant, const struct ocl_device *device);

/* Can the device count the feature with the variant? If not, `reason` says what is in the way. */
bool histogram_variant_takes(char *reason, size_t size, enum histogram_variant variant,
                             const struct feature *feature, const struct ocl_device *device);

/* The variant for a device on which nothing has been measured: what is known to be the fastest on
 * its platform, or what is safe on any. */
enum histogram_variant histogram_variant_usual(const struct feature *feature,
                                               const struct ocl_device *device);

/* Bytes of one table of the feature. */
uint64_t histogram_variant_table(enum histogram_variant variant, const struct feature *feature);

/* What the tables of features that are counted in one pass may take together. */
uint64_t histogram_variant_tables_most(enum histogram_variant variant,
                                       const struct ocl_device *device);

/* How a pass is launched. */
struct histogram_shape {
    uint32_t group;       /* work-items a work-group */
    uint32_t copies;      /* of the table */
    uint32_t tile_pixels; /* a tile has at most, where a row allows it; a multiple of 16 */
};

/* For a pass with `bins` counters a cell and launches of `launch_bytes` of pixels. */
struct histogram_shape histogram_variant_shape(enum histogram_variant variant, uint32_t bins,
                                               uint64_t launch_bytes,
                                               const struct ocl_device *device);

/* What the device's compiler is told for a pass of that shape. */
void histogram_variant_options(char *text, size_t size, enum histogram_variant variant,
                               const struct histogram_shape *shape,
                               const struct ocl_device *device);

/* Is it a shape that the variant's kernel can have for a pass of so many counters? */
bool histogram_shape_fits(const struct histogram_shape *shape, enum histogram_variant variant,
                          uint32_t bins, const struct ocl_device *device);

/* How a feature is to be counted. */
struct histogram_choice {
    enum histogram_variant variant;
    struct histogram_shape shape; /* group 0: the usual one */
    bool tuned;                   /* by measurement on this device */
};

#endif
