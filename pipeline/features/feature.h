/* feature.h: feature specifications and their values, with the formulas of docs/features.md. Kinds
 * of features: kind.h.
 *
 * SPEC is [NAME=]KIND[:bins=B|AxBxC][,scale=N][,grid=RxC|levels=A+B+...]
 * [,normalize=none|l1|hellinger][,store=float32|float16|uint8][,blur=3]; a kind with descriptors
 * has words=K or fisher=K instead of bins=; a network has
 * model=FILE[,output=NAME][,fit=crop|squash][,crop=C][,normalize=unit|none], of an ONNX file also
 * mean=R/G/B,std=R/G/B[,size=WxH][,layout=nchw|nhwc][,pool=cls|mean][,provider=cpu|cuda]. A feature
 * has two rows per picture. Devices produce `words` uint32: `cell_bins` per counted cell, cells row
 * by row over the upright picture; words of parts are added up modulo 2^32. Files store `dimension`
 * 4-byte values: `cell_values` per cell of the grid, or of all levels in turn. Cells of a level are
 * unions of counted cells, so each pixel is counted once for all levels. */
#ifndef CLPIPE_FEATURES_FEATURE_H
#define CLPIPE_FEATURES_FEATURE_H

#include "base/error.h"
#include "decode/part.h"
#include "features/stored.h"
#include "net/model.h"
#include "net/runtime.h"
#include <stdint.h>

struct feature_kind; /* kind.h */

enum feature_normalize {
    NORMALIZE_L1,
    NORMALIZE_NONE,
    NORMALIZE_HELLINGER,
    NORMALIZE_UNIT,   /* for networks, and the only one for Fisher vectors */
    NORMALIZE_VALUES, /* normalize=none of networks: float32 values unchanged */
};

#define FEATURE_MAX           16         /* features in one run */
#define FEATURE_NAME_MAX      64         /* with its NUL */
#define FEATURE_DIMENSION_MAX (1u << 22) /* words, and values, per image, all features together */
#define FEATURE_LEVELS_MAX    4          /* grids of a pyramid */
#define FEATURE_LEVEL_MOST    8          /* rows, and columns, per level */
#define FEATURE_CUTS_MAX      24         /* at least the different i / n, n <= FEATURE_LEVEL_MOST */
#define FEATURE_SCALED_GRID   64 /* rows, and columns, of a scaled grid: its image is one part */

/* The image from which a feature is computed. Features with equal images share the steps that make
 * it on the device. */
struct feature_image {
    uint64_t scale;  /* scaling goal (decode/scale.h); 0: as decoded */
    uint64_t blur;   /* 3: blurred by a 3x3 box; 0: as decoded */
    uint32_t border; /* columns and rows of neighbours read by the feature's own kernel */
};

/* Members that a SPEC sets by NAME=N, with the limits of N; 0: not set. The steps of the same names
 * (device/plan.h) change the image, in this order. Only scale is for kinds with descriptors and for those
 * without `count`. */
#define IMAGE_OPTIONS(OPTION) OPTION(scale, 16, 1024) OPTION(blur, 3, 3)

bool feature_image_equal(const struct feature_image *a, const struct feature_image *b);

#define CODEBOOK_WORDS_MAX 65536
#define FEATURE_DIGEST     33 /* hexadecimal digits of a codebook's digest, and NUL */

enum feature_fit { FEATURE_FIT_MODEL, FEATURE_FIT_SQUASH, FEATURE_FIT_CROP };

/* A network feature: its model and output, and how pictures are fitted to its input size. */
struct feature_net {
    char digest[65];           /* SHA-256 of the file; "": no network */
    char output[RUNTIME_NAME]; /* name of the output whose values are used */
    uint32_t values;
    enum feature_fit fit;          /* FEATURE_FIT_MODEL: not set yet */
    uint16_t crop;                 /* in thousandths */
    const struct net_model *model; /* lives until the process ends; NULL: not bound */
    /* For ONNX files, for which made_by is set: */
    struct runtime *runtime; /* lives until the process ends */
    char made_by[48];        /* library, version, provider */
    bool cuda;
    char mean[RUNTIME_NAME], std[RUNTIME_NAME]; /* as given; "": not given */
    struct runtime_job job;
};

struct feature {
    char name[FEATURE_NAME_MAX]; /* dataset name: [A-Za-z0-9_.-]+ */
    char spec[640];              /* canonical: "rgb:bins=256,grid=1x1,normalize=l1" */
    const struct feature_kind *kind;
    enum feature_normalize normalize;
    enum feature_store store;         /* type of the stored values; counts stay uint32 */
    uint32_t bins[3];                 /* unused axes are 0 */
    uint32_t grid_rows, grid_columns; /* counted cells */
    /* For pyramids: level i has level[i] x level[i] cells; cut[i][0] / cut[i][1] are the boundaries
     * of the counted rows, and columns, as fractions of the picture, including its end. levels 0: a
     * grid. */
    uint32_t levels, level[FEATURE_LEVELS_MAX];
    uint8_t cut[FEATURE_CUTS_MAX][2];
    struct feature_image image;
    uint32_t cells;       /* stored cells */
    uint32_t cell_bins;   /* words per cell */
    uint32_t cell_values; /* values per cell; equal to cell_bins unless the kind changes it */
    uint32_t words;       /* grid_rows * grid_columns * cell_bins */
    uint32_t dimension;   /* cells * cell_values */
    uint32_t offset;      /* index of this feature's first word in an image's row on the device */
    uint32_t place;       /* offset of its values in an image's stored row, in words of 4 bytes */
    /* Only for kinds with descriptors: */
    uint32_t codebook_words;                 /* words=K, fisher=K; else 0 */
    bool fisher;                             /* fisher=K: sums around the words instead of counts */
    char codebook_digest[FEATURE_DIGEST];    /* ""; set by the spec or by feature_bind_codebook */
    const struct feature_codebook *codebook; /* borrowed; NULL: none, or not bound yet */
    struct feature_net net;
};

struct feature_set {
    struct feature feature[FEATURE_MAX];
    unsigned count;
    uint32_t counters;        /* words per image, all features */
    uint32_t values;          /* size of an image's stored row, in words of 4 bytes */
    uint32_t blur;            /* default for specs without blur= */
    enum feature_store store; /* default for specs without store=, */
    bool store_all;           /* or for all */
};

/* Parses one SPEC and appends the feature, with offsets. default_normalize is --normalize.
 * STATUS_USAGE with a sentence that names the spec and says what is wrong with it, duplicate names
 * included. */
enum status feature_set_add(struct feature_set *set, const char *spec,
                            enum feature_normalize default_normalize, struct error *err);

/* Does the feature need a codebook that is not bound yet? */
bool feature_lacks_codebook(const struct feature *feature);
/* Does any feature of the set? */
bool feature_set_lacks_codebooks(const struct feature_set *set);

/* Binds the model of a network feature, found by the digest in its spec. STATUS_USAGE with a
 * sentence: not found. No effect on other kinds and on features that are bound already. */
enum status feature_bind_model(struct feature *feature, struct error *err);

/* Writes the canonical spec. */
void feature_write_spec(struct feature *feature);

/* Is a row of zeros of a kind meaningless (kind.h)? By name and normalisation as stored. */
bool feature_zeros_say_nothing(const char *kind, const char *normalize);
const char *feature_normalize_name(enum feature_normalize normalize);
bool feature_normalize_parse(enum feature_normalize *out, const char *text);
/* "256" or "8x8x8"; for kinds with descriptors the number of words. */
char *feature_bins_text(char *buffer, size_t size, const struct feature *feature);
/* "3x2", or "1+2+3". */
char *feature_grid_text(char *buffer, size_t size, const struct feature *feature);
bool feature_grid_equal(const struct feature *a, const struct feature *b);

/* The stored rectangle of grid cell (row, column) of the upright picture, for width x height stored
 * pixels with this EXIF orientation. May be empty (x0 == x1 or y0 == y1). */
struct cell_rect feature_cell_rect(const struct feature *feature, uint32_t row, uint32_t column,
                                   uint32_t width, uint32_t height, uint8_t orientation);

/* The stored rows, and columns, of grid `index`: the grid (index 0), or a level. False: no such
 * grid. */
bool feature_grid(uint32_t *rows, uint32_t *columns, const struct feature *feature, unsigned index);

/* Bytes of a feature's stored row, and the number of 4-byte words that hold them. */
size_t feature_row_bytes(const struct feature *feature);
uint32_t feature_row_words(const struct feature *feature);

/* Converts one image's words of `feature` to its stored row: uint32 words unchanged
 * (NORMALIZE_NONE), float32, or a converted type (stored.h). dst has feature_row_words() words of 4
 * bytes; unused bytes at the end are 0. By default each word is divided by the sum of its
 * histogram. False: no memory. */
bool feature_store_values(void *dst, const struct feature *feature, const uint32_t *words);

/* Histograms per cell; 0: the words are not histograms. */
uint32_t feature_histograms(const struct feature *feature);

/* The plain C reference, with which kernels are compared: adds the words of `feature` for a whole
 * picture to `counters`. pixels: RGB rows of `stride` bytes. If the kind has a border, width and
 * height are those of the counted pixels. */
void feature_count_reference(uint32_t *counters, const struct feature *feature,
                             const uint8_t *pixels, size_t stride, uint32_t width, uint32_t height,
                             uint8_t orientation);

#endif
