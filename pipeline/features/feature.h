/* feature.h: feature specifications and their values, by the formulas of docs/features.md. What a
 * kind of feature is: kind.h.
 *
 * SPEC is [NAME=]KIND[:bins=B|AxBxC][,scale=N][,grid=RxC|levels=A+B+...]
 * [,normalize=none|l1|hellinger][,store=float32|float16|uint8][,blur=3];
 * a kind with descriptors has words=K or fisher=K instead of bins=; a network has
 * model=FILE[,output=NAME][,fit=crop|squash][,crop=C][,normalize=unit|none], of an ONNX file also
 * mean=R/G/B,std=R/G/B[,size=WxH][,layout=nchw|nhwc][,pool=cls|mean][,provider=cpu|cuda].
 * A feature has two rows for each picture. On the device it is `words` uint32: `cell_bins` of them
 * for each cell that is counted, cells row by row over the upright picture; words of parts are added
 * up, modulo 2^32. What is stored is `dimension` 4-byte values: `cell_values` of them for each cell
 * of the grid, or of all levels one after another. Those of a level consist of counted cells, so a
 * pixel is counted once for all levels. */
#ifndef CLPIPE_FEATURES_FEATURE_H
#define CLPIPE_FEATURES_FEATURE_H

#include "base/error.h"
#include "features/stored.h"
#include "net/model.h"
#include "net/runtime.h"
#include "part/part.h"
#include <stdint.h>

struct feature_kind; /* kind.h */

enum feature_normalize {
    NORMALIZE_L1,
    NORMALIZE_NONE,
    NORMALIZE_HELLINGER,
    NORMALIZE_UNIT,   /* of Fisher vectors, which have no other, and of networks */
    NORMALIZE_VALUES, /* "none" of networks: float32 values as they are */
};

#define FEATURE_MAX           16         /* features in one run */
#define FEATURE_NAME_MAX      64         /* with its NUL */
#define FEATURE_DIMENSION_MAX (1u << 22) /* words, and values, of one image, all features together */
#define FEATURE_LEVELS_MAX    4          /* grids of a pyramid */
#define FEATURE_LEVEL_MOST    8          /* rows, and columns, of one */
#define FEATURE_CUTS_MAX      24         /* more than the different i / n of n <= FEATURE_LEVEL_MOST */
#define FEATURE_SCALE_LEAST   16
#define FEATURE_SCALE_MOST    1024
#define FEATURE_SCALED_GRID   64 /* rows, and columns, of a scaled feature: an image is one part */

/* The image that a feature is computed from. Features of equal images share the steps that make it
 * on the device. */
struct feature_image {
    uint64_t scale;  /* what it is scaled to, before all else (part/scale.h); 0: as decoded */
    uint32_t blur;   /* 3: blurred by a 3x3 box; 0: as decoded */
    uint32_t border; /* columns and rows of neighbours that the feature's own kernel reads */
};

/* How many fewer columns, and rows, are counted than the picture, decoded or scaled, has. */
uint32_t feature_image_border(const struct feature_image *image);
bool feature_image_equal(const struct feature_image *a, const struct feature_image *b);

#define CODEBOOK_WORDS_MAX 65536u
#define FEATURE_DIGEST     33 /* hexadecimal digits of a codebook's digest, with a NUL */

enum feature_fit { FEATURE_FIT_MODEL, FEATURE_FIT_SQUASH, FEATURE_FIT_CROP };

/* What a feature of a network is: its model, which output, and how pictures come to its size. */
struct feature_net {
    char digest[65];               /* SHA-256 of the file; "": no network */
    char output[RUNTIME_NAME];     /* name; its values: */
    uint32_t values;
    enum feature_fit fit;          /* FEATURE_FIT_MODEL: not settled */
    uint16_t crop;                 /* in thousandths */
    const struct net_model *model; /* borrowed for the life of the process; NULL: not bound */
    /* Of an ONNX file, whose made_by is set: */
    struct runtime *runtime;       /* borrowed likewise */
    char made_by[48];              /* library, version, provider */
    bool cuda;
    char mean[RUNTIME_NAME], std[RUNTIME_NAME]; /* as given; "": not */
    struct runtime_job job;
};

struct feature {
    char name[FEATURE_NAME_MAX]; /* dataset name: [A-Za-z0-9_.-]+ */
    char spec[640];              /* canonical: "rgb:bins=256,grid=1x1,normalize=l1" */
    const struct feature_kind *kind;
    enum feature_normalize normalize;
    enum feature_store store; /* of the values in the file; counts stay uint32 */
    uint32_t bins[3]; /* unused axes are 0 */
    uint32_t grid_rows, grid_columns; /* that are counted */
    /* Of a pyramid: level[i] x level[i] cells each; where the counted rows, and columns, begin, as
     * parts cut[i][0] / cut[i][1] of the picture, with its end. levels 0: a grid. */
    uint32_t levels, level[FEATURE_LEVELS_MAX];
    uint8_t cut[FEATURE_CUTS_MAX][2];
    struct feature_image image;
    uint32_t cells;       /* that are stored */
    uint32_t cell_bins;   /* words of one cell */
    uint32_t cell_values; /* values of one; the same unless the kind settles it */
    uint32_t words;       /* grid_rows * grid_columns * cell_bins */
    uint32_t dimension;   /* cells * cell_values */
    uint32_t offset;      /* of this feature's first word in an image's row on the device */
    uint32_t place;       /* of its values in an image's stored row, in words of 4 bytes */
    /* Only of kinds with descriptors: */
    uint32_t codebook_words;                 /* words=K, fisher=K; else 0 */
    bool fisher;                             /* fisher=K: sums around the words, not their counts */
    char codebook_digest[FEATURE_DIGEST];    /* ""; set by the spec or by feature_bind_codebook */
    const struct feature_codebook *codebook; /* borrowed; NULL: none, or not there yet (codebook.h) */
    struct feature_net net;
};

struct feature_set {
    struct feature feature[FEATURE_MAX];
    unsigned count;
    uint32_t counters; /* of one image: the sum of the words */
    uint32_t values;   /* of one image's stored row, in words of 4 bytes */
    uint32_t blur;     /* default for specs without blur= */
    enum feature_store store; /* default for specs without store= */
};

/* Parses one SPEC and appends it (offsets are set). default_normalize is --normalize.
 * STATUS_USAGE with a sentence that says what is wrong with which spec, also for a name
 * twice. */
enum status feature_set_add(struct feature_set *set, const char *spec,
                            enum feature_normalize default_normalize, struct error *err);

/* Whether its kind needs a codebook and it has none yet. */
bool feature_lacks_codebook(const struct feature *feature);
/* Whether that is so of one of them. */
bool feature_set_lacks_codebooks(const struct feature_set *set);

/* Finds the model of a network that the spec names by its digest. STATUS_USAGE with a sentence: it is not
 * there. Other features, and those that have theirs, are left as they are. */
enum status feature_bind_model(struct feature *feature, struct error *err);

/* Sets the canonical spec from everything else. */
void feature_write_spec(struct feature *feature);

/* Whether a row of zeros of a kind says nothing (kind.h), by its name and normalisation as stored. */
bool feature_zeros_say_nothing(const char *kind, const char *normalize);
const char *feature_normalize_name(enum feature_normalize normalize);
bool feature_normalize_parse(enum feature_normalize *out, const char *text);
/* "256" or "8x8x8"; the words of a kind with descriptors. */
char *feature_bins_text(char *buffer, size_t size, const struct feature *feature);
/* "3x2", or "1+2+3". */
char *feature_grid_text(char *buffer, size_t size, const struct feature *feature);
/* Are the counted cells the same? */
bool feature_grid_equal(const struct feature *a, const struct feature *b);

/* The stored rectangle that grid cell (row, column) of the upright picture covers, for a picture of
 * width x height stored pixels with this EXIF orientation. May be empty (x0 == x1 or y0 == y1). */
struct cell_rect feature_cell_rect(const struct feature *feature, uint32_t row, uint32_t column,
                                   uint32_t width, uint32_t height, uint8_t orientation);

/* The stored rows, and columns, of grid `index`: of the grid (index 0), or of a level. False: there is
 * no such one. */
bool feature_grid(uint32_t *rows, uint32_t *columns, const struct feature *feature, unsigned index);

/* Bytes of a feature's stored row, and the words of 4 bytes that hold them. */
size_t feature_row_bytes(const struct feature *feature);
uint32_t feature_row_words(const struct feature *feature);

/* Turns one image's words of `feature` into what is stored: uint32 words as they are
 * (NORMALIZE_NONE) or float32, or what float32 is stored as (stored.h); dst has room for
 * feature_row_words() words of 4 bytes, whose last bytes may be left over and are 0. A word becomes its
 * share of the sum of its histogram. False: no memory. */
bool feature_store_values(void *dst, const struct feature *feature, const uint32_t *words);

/* The number of histograms in a cell; 0: the words are no histograms. */
uint32_t feature_histograms(const struct feature *feature);

/* The plain C reference: adds the words of `feature` for a whole picture to `counters`. pixels: RGB
 * rows of `stride` bytes. If the kind has a border, width and height are those of the counted
 * pixels. Kernels are compared with it. */
void feature_count_reference(uint32_t *counters, const struct feature *feature,
                             const uint8_t *pixels, size_t stride, uint32_t width, uint32_t height,
                             uint8_t orientation);

#endif
