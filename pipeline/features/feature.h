/* feature.h: feature specifications and their values, by the contract's formulas.
 *
 * SPEC is [NAME=]KIND[:bins=B|AxB x C][,grid=RxC][,normalize=none|l1|hellinger][,blur=3].
 * A feature of `cells` grid cells with `cell_bins` counters each is a vector of dimension
 * D = cells * cell_bins, cells row by row over the upright picture, each cell's whole histogram
 * together. Counts are uint32 and exact. */
#ifndef CLPIPE_FEATURES_FEATURE_H
#define CLPIPE_FEATURES_FEATURE_H

#include "base/error.h"
#include "part/part.h"
#include <stdint.h>

enum feature_kind {
    FEATURE_RGB,       /* three histograms: bins[0] each, cell_bins = 3 * bins[0] */
    FEATURE_RGB_JOINT, /* bins[0] x bins[1] x bins[2] */
    FEATURE_GRAY,      /* bins[0] */
    FEATURE_HSV,       /* bins[0] x bins[1] x bins[2] */
};

enum feature_normalize { NORMALIZE_L1, NORMALIZE_NONE, NORMALIZE_HELLINGER };

#define FEATURE_MAX           16         /* features in one run */
#define FEATURE_NAME_MAX      64         /* with its NUL */
#define FEATURE_DIMENSION_MAX (1u << 22) /* counters of one image, all features together */

struct feature {
    char name[FEATURE_NAME_MAX]; /* dataset name: [A-Za-z0-9_.-]+ */
    char spec[128];              /* canonical: "rgb:bins=256,grid=1x1,normalize=l1" */
    enum feature_kind kind;
    enum feature_normalize normalize;
    uint32_t bins[3]; /* unused axes are 0 */
    uint32_t grid_rows, grid_columns;
    uint32_t blur;      /* 3: of the blurred picture (blur.h), else 0; the same in a whole set */
    uint32_t cell_bins; /* counters of one cell */
    uint32_t dimension; /* grid_rows * grid_columns * cell_bins */
    uint32_t offset;    /* of this feature's first counter in an image's row of counters */
};

struct feature_set {
    struct feature feature[FEATURE_MAX];
    unsigned count;
    uint32_t counters; /* of one image: the sum of the dimensions */
    uint32_t blur;     /* of features whose specs say nothing of it: --blur */
};

/* Parses one SPEC and appends it (offsets are set). default_normalize is --normalize.
 * STATUS_USAGE with a sentence that says what is wrong with which spec, also for a name twice and
 * for one that is blurred among others that are not. */
enum status feature_set_add(struct feature_set *set, const char *spec,
                            enum feature_normalize default_normalize, struct error *err);

const char *feature_kind_name(enum feature_kind kind); /* "rgb" for both rgb kinds */
const char *feature_normalize_name(enum feature_normalize normalize);
bool feature_normalize_parse(enum feature_normalize *out, const char *text);
/* True if the set's features are those of blurred pictures. */
bool feature_set_blurred(const struct feature_set *set);
/* "256" or "8x8x8". */
char *feature_bins_text(char *buffer, size_t size, const struct feature *feature);

/* The stored rectangle that grid cell (row, column) of the upright picture covers, for a picture of
 * width x height stored pixels with this EXIF orientation. May be empty (x0 == x1 or y0 == y1). */
struct cell_rect feature_cell_rect(const struct feature *feature, uint32_t row, uint32_t column,
                                   uint32_t width, uint32_t height, uint8_t orientation);

/* Turns one image's counters of `feature` (feature->dimension of them) into what is stored: uint32
 * counts (NORMALIZE_NONE) or float32; dst has room for `dimension` 4-byte values. The pixels of a
 * cell are the sum of its counters (a third of it for FEATURE_RGB). */
void feature_store_values(void *dst, const struct feature *feature, const uint32_t *counters);

/* The plain C reference: adds the counts of `feature` for a whole stored picture to `counters`.
 * pixels: RGB rows of `stride` bytes. Slow and obvious; kernels are compared with it. */
void feature_count_reference(uint32_t *counters, const struct feature *feature,
                             const uint8_t *pixels, size_t stride, uint32_t width, uint32_t height,
                             uint8_t orientation);

#endif
