/* histogram.h: counts histogram features on one device: kernels, passes and tiles.
 *
 * A pass is one launch over a whole slot that counts one or several features of the same grid and
 * image. The planner puts features into one pass as long as their tables fit into the memory that
 * the kernel uses. A tile is a rectangle of one picture inside one grid cell. The host cuts tiles
 * in stored coordinates, so kernels need to know neither orientation nor grids. */
#ifndef CLPIPE_DEVICE_HISTOGRAM_H
#define CLPIPE_DEVICE_HISTOGRAM_H

#include "device/variant.h"
#include "features/feature.h"
#include "histogram_tile.h"
#include "ocl/ocl.h"
#include <stdatomic.h>

#define HISTOGRAM_PASSES_MAX FEATURE_MAX
#define HISTOGRAM_EVENTS     2 /* commands per pass, at most */

/* A pass as planned. */
struct histogram_pass {
    enum histogram_variant planned, variant; /* variant: the planned one or its replacement */
    bool tuned;                              /* chosen by measurements on this device */
    bool own;                                /* counted by the kind's own kernel */
    unsigned feature[FEATURE_MAX];           /* indices into the set */
    unsigned count;
    uint32_t bins; /* counters per cell, all features of the pass */
    uint32_t grid_rows, grid_columns;
    struct histogram_shape shape;
    cl_program program;
    cl_kernel kernel;
    /* For variants with a second kernel: */
    cl_kernel reduce;
    cl_mem buckets;
    uint32_t bucket_count;
};

/* All but `abandoned` is only written by the functions below. */
struct histogram {
    struct ocl_context *context;
    const struct feature_set *features;
    enum histogram_variant wanted;
    uint64_t launch_bytes;
    struct histogram_pass pass[HISTOGRAM_PASSES_MAX];
    unsigned count;
    /* Set it to make a running proof of the kernels (selftest.h) end soon. Any thread. */
    atomic_bool abandoned;
};

/* A picture, or a part of one, in a slot. All coordinates are those of the counted pixels as
 * stored; with a border, the slot has that many more columns and rows. */
struct histogram_part {
    uint32_t width, height; /* of the whole picture */
    uint8_t orientation;
    struct cell_rect rect; /* the part */
    uint32_t offset;       /* byte offset of its first pixel in the slot */
    uint32_t stride;       /* bytes from one row to the next */
    uint32_t counters;     /* index of the part's first counter */
};

struct histogram_config {
    const struct feature_set *features; /* must outlive the plan */
    const struct feature_image *image;  /* only features of this image; NULL: all */
    enum histogram_variant variant;
    const struct histogram_shape
        *shape;            /* for all passes; NULL: the default for variant and device */
    uint64_t launch_bytes; /* bytes of pixels in a launch */
};

/* Plans the passes; builds no kernel yet. context must outlive it. The offset of a feature's
 * counters in an image's row does not depend on which features are planned. STATUS_USAGE: the
 * requested variant cannot count a feature on this device. */
enum status histogram_open(struct histogram **out, struct ocl_context *context,
                           const struct histogram_config *config, struct error *err);
/* Frees the plan and its kernels; *histogram may be NULL. */
void histogram_close(struct histogram **histogram);

/* The name of a pass's kernel. */
const char *histogram_kernel(const struct histogram *histogram, const struct histogram_pass *pass);

/* Writes the tiles of a part in one pass to `tiles` (NULL: only counts) and returns their number.
 * tile_pixels: a multiple of 16, at most in a tile, unless a row is longer; 0: as planned. Any
 * thread. */
uint32_t histogram_tiles(struct histogram_tile *tiles, const struct histogram *histogram,
                         unsigned pass, const struct histogram_part *part, uint32_t tile_pixels);
/* Returns only the number, in O(rows + columns of the grid) instead of O(cells). Any thread. */
uint32_t histogram_tile_count(const struct histogram *histogram, unsigned pass,
                              const struct histogram_part *part);

/* Builds the kernels of all passes, or of one (seconds on a cold cache). */
enum status histogram_build(struct histogram *histogram, struct error *err);
enum status histogram_build_pass(struct histogram *histogram, unsigned pass, struct error *err);
/* The cache key of the pass's program. */
enum status histogram_pass_key(char key[OCL_KEY], const struct histogram *histogram, unsigned pass,
                               struct error *err);
/* Switches the pass to another variant; it must be built again. Features and tiles do not change,
 * so other threads may cut tiles at the same time. False: the variant cannot count all features of
 * the pass together. */
bool histogram_replace(struct histogram *histogram, unsigned pass, enum histogram_variant variant);

/* Enqueues one pass over tiles [first, first + count) of the `tiles` buffer; counters must be
 * zeroed before the first pass. One thread at a time, one queue. events (may be NULL) has
 * HISTOGRAM_EVENTS elements and receives the commands' events, the last command's first, then NULL;
 * the caller releases them. */
enum status histogram_enqueue(struct histogram *histogram, unsigned pass, struct ocl_queue *queue,
                              cl_mem pixels, cl_mem tiles, uint32_t first, uint32_t count,
                              cl_mem counters, struct ocl_waits waits, cl_event *events,
                              struct error *err);

#endif
