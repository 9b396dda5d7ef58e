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

#define HISTOGRAM_PASSES_MAX FEATURE_MAX
#define HISTOGRAM_EVENTS     2 /* commands per pass, at most */

struct histogram;

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

/* What it was opened with. */
struct ocl_context *histogram_context(const struct histogram *histogram);
const struct feature_set *histogram_features(const struct histogram *histogram);
enum histogram_variant histogram_wanted(const struct histogram *histogram);

/* Makes a running proof of the kernels (prove.h) end soon; they are not needed any more. Any
 * thread. */
void histogram_abandon(struct histogram *histogram);
/* Has histogram_abandon been called? Any thread. */
bool histogram_is_abandoned(const struct histogram *histogram);

/* A pass as planned. */
struct histogram_pass {
    enum histogram_variant variant;
    const char *kernel;      /* of the current variant */
    bool tuned;              /* chosen by measurements on this device */
    const unsigned *feature; /* indices into the set */
    unsigned count;
};
/* The number of passes, and one of them. */
unsigned histogram_passes(const struct histogram *histogram);
struct histogram_pass histogram_pass(const struct histogram *histogram, unsigned pass);

/* Writes the tiles of a part in one pass to `tiles` (NULL: only counts) and returns their number.
 * Any thread. */
uint32_t histogram_tiles(struct histogram_tile *tiles, const struct histogram *histogram,
                         unsigned pass, const struct histogram_part *part);
/* Returns only the number, in O(rows + columns of the grid) instead of O(cells). Any thread. */
uint32_t histogram_tile_count(const struct histogram *histogram, unsigned pass,
                              const struct histogram_part *part);
/* As histogram_tiles, with at most tile_pixels (a multiple of 16) in a tile, unless a row is longer.
 */
uint32_t histogram_tiles_of(struct histogram_tile *tiles, const struct histogram *histogram,
                            unsigned pass, const struct histogram_part *part, uint32_t tile_pixels);

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
