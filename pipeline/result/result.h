/* result.h: the reader of finished files.
 *
 *   result_open ─> h5 (the file) ─> rows (/images, /failures)
 *                               ─> features, clusters, runs: what there is, checked for shape
 *
 * Other headers build on it: rows of one or several features (feature_matrix.h), identities
 * (identity.h), further clusterings (clusters.h).
 *
 * One thread per open result; HDF5 itself is not used from two threads. A result is untrusted
 * input: types, shapes and ranges are checked when it is opened, sizes before anything is
 * allocated. */
#ifndef CLPIPE_RESULT_RESULT_H
#define CLPIPE_RESULT_RESULT_H

#include "base/error.h"
#include "base/failure.h"
#include "base/labelled.h"
#include "matrix/projected.h"
#include "result/content.h"

/* An open file. The first part is read-only and valid until result_close; the rest is private to
 * this folder. */
struct result {
    char *path;
    int64_t file;                         /* of HDF5 */
    char *version, *created, *parameters; /* parameters: JSON */
    char *preset;                         /* JSON (preset.h), or NULL */
#define RESULT_PRESET "preset"            /* the name of its features, joined */
#define RESULT_PRESET_TAKEN                                                                        \
    "'preset' stands for all features of a preset: choose another name for a feature"
    struct list_share share; /* the share of a list that its rows are; count 0: not a shard */
    bool has_images;         /* false: a file of clusters alone, where */
    bool
        named; /* only the paths of the images may be known: other members of struct result_image are 0 */
    char **sources;      /* texts, */
    char **source_names; /* the bytes of the sources, */
    char **directories;  /* and the directories to which they are relative, as texts; "": unknown */
    struct result_feature *features;
    struct result_clusters *clusters;
    unsigned source_count, feature_count, clusters_count, run_count;
    uint32_t thumbnail_size; /* longest side of thumbnails in pixels; 0: none */

    uint64_t failed_calls; /* of HDF5, before it was opened */
    struct axes *axes;
    struct rows *images, *failures;
    struct blob_reader *thumbnails; /* NULL: there are none */
    uint64_t *runs;                 /* their numbers, ascending */
    char *run_clusters;   /* the clustering last made by `run` under its usual name; or NULL */
    struct store_run run; /* last one requested */
};

/* Opens a clpipe file read-only. STATUS_USAGE: there is no such file; STATUS_FAILED: not HDF5, not
 * clpipe's, damaged. */
enum status result_open(struct result **out, const char *path, struct error *err);
void result_close(struct result **result);

/* STATUS_FAILED: the name now belongs to another file. */
enum status result_check_current(const struct result *result, struct error *err);

uint64_t result_images(const struct result *result);
/* The number of merged files whose rows it shows; 0: it has its own rows. Clusterings, imported
 * features and neighbours can be added to a merged file, but no rows. */
unsigned result_parts(const struct result *result);
uint64_t result_failures(const struct result *result);

struct result_feature {
    char name[FEATURE_NAME_MAX];
    char spec[1024], kind[16], bins[32], grid[24], normalize[16]; /* spec: of all joined features */
    uint64_t rows;
    uint32_t dimension;
    bool is_float;            /* else uint32 */
    enum feature_store store; /* of the stored values, if is_float */
    bool is_signed;           /* normalize=unit */
    bool blank;               /* a row of zeros carries no information (features/kind.h) */
    uint32_t decode_scale;
    char imported_from[256]; /* of an imported feature; else "" */
    int64_t dataset;         /* of HDF5; private to this folder */
};
/* The kind and the spec of features whose rows were not computed by clpipe (imported.h). */
#define FEATURE_IMPORTED "imported"
bool result_feature_imported(const struct result_feature *feature);
/* Whether its rows describe each image (the kind quality) and are not meant for comparing images; such a
 * feature is used only by name. */
bool result_feature_describes(const struct result_feature *feature);
/* The stored type: "float32", "float16", "uint8" or "uint32". */
const char *result_feature_type_name(const struct result_feature *feature);
/* The feature of that name, or NULL. */
const struct result_feature *result_feature_find(const struct result *result, const char *name);

/* Reads rows [first, first + count) of a feature with stored uint32 counts, which float32
 * (feature_matrix.h) represents exactly only up to 2^24. */
enum status result_feature_read_counts(const struct result_feature *feature, uint64_t first,
                                       uint64_t count, uint32_t *rows, struct error *err);

/* Strings are valid until the next call. */
enum status result_image_at(struct result *result, uint64_t row, struct result_image *image,
                            struct error *err);

/* Whether every image has a perceptual code, and those of rows [first, first + count), 32 bytes each
 * (bit i of a code is byte i / 8, bit 7 - i % 8). Only if there are codes. */
bool result_has_codes(const struct result *result);
enum status result_codes_read(struct result *result, uint64_t first, uint64_t count, uint8_t *codes,
                              struct error *err);

/* Whether features are compressed in the file (--compress); the stored size of a feature's values in
 * bytes (0 if in other files); the uncompressed size of a row. */
bool result_compressed(const struct result *result);
uint64_t result_feature_stored_bytes(const struct result_feature *feature);
size_t result_feature_row_bytes(const struct result_feature *feature);

/* The thumbnail of one image, a JPEG file; *length 0: none. Valid until the next call. */
enum status result_thumbnail_read(struct result *result, uint64_t row, const uint8_t **jpeg,
                                  uint64_t *length, struct error *err);

/* One row of /failures; valid until the next call. */
struct result_failure {
    const struct failure_row *row;
    const char *path_raw; /* the bytes of its path */
    enum reason reason;
};
enum status result_failure_at(struct result *result, uint64_t row, struct result_failure *failure,
                              struct error *err);

/* Evidence that rows outside clpipe files are unchanged (docs/file-format.md). */
struct result_origin {
    uint64_t bytes;   /* of the file; 0: unknown */
    int64_t mtime_ns; /* of the file */
    char sample[65];  /* 64 hexadecimal digits */
};

/* The datasets of a clustering. */
enum cluster_part {
    PART_CENTROIDS,
    PART_LABELS,
    PART_DISTANCES,
    PART_SIZES,
    PART_NEAREST,
    PART_HISTORY,
    PART_WEIGHTS,    /* only if rows have weights */
    PART_MEAN,       /* only if rows were projected, */
    PART_COMPONENTS, /* and this only if to fewer axes */
    PART_PARENTS,    /* only if there is a coarser level */
    PART_COUNT
};
#define NEAREST_COUNT 3

struct result_clusters {
    char name[FEATURE_NAME_MAX], feature[FEATURE_NAME_MAX], metric[16], init[64];
    uint64_t rows;
    uint64_t
        fitted_rows; /* number of rows of the fit, if rows were added or removed since; 0: all */
    uint32_t k, dimension, iterations;
    bool converged;
    int64_t seed;
    double inertia;
    const char *parameters; /* JSON; valid until result_close */
    char content[65];       /* result_feature_identity of its rows, or "" */
    struct result_origin origin;
    bool weighted; /* the weights of its rows are stored */
    /* If rows were projected (matrix/projected.h), centroids and metric are those of the projected
     * rows; these describe the original rows. */
    uint32_t columns; /* 0: not projected */
    bool components;
    char space[16];
    uint32_t folders; /* of the images, with which the clusters have this agreement; 0: unknown */
    struct cluster_agreement agreement;
    /* For levels: the number of this one, from 1 (of rows), and the next coarser one. Else 0, "" and
     * false. */
    uint32_t level;
    char parent[FEATURE_NAME_MAX];
    bool parents;
    int64_t part[PART_COUNT]; /* of HDF5; private to this folder */
};
const struct result_clusters *result_clusters_find(const struct result *result, const char *name);
/* Whether `run` made it under its usual name and it has not been replaced since. */
bool result_clusters_by_run(const struct result *result, const struct result_clusters *clusters);
/* Reads a whole part that the clustering has: centroids k x dimension float32 row by row, labels rows int32,
 * distances rows float32, sizes k uint64, nearest k x 3 int64 (rows of images; -1 if there are fewer). */
enum status result_part_read(void *to, const struct result_clusters *clusters,
                             enum cluster_part part, struct error *err);
/* Reads labels and squared distances of `count` rows from `first` on; either may be NULL. */
enum status result_clusters_read_rows(const struct result_clusters *clusters, uint64_t first,
                                      uint64_t count, int32_t *labels, float *distances,
                                      struct error *err);

/* For each of a level's k clusters, its parent in the next coarser level, *above; the caller frees the
 * array. STATUS_END: it is the coarsest level. */
enum status result_parents_read(int32_t **parents, const struct result_clusters **above,
                                struct result *result, const struct result_clusters *clusters,
                                struct error *err);
/* The next finer level; NULL: there is none. */
const struct result_clusters *result_clusters_below(const struct result *result,
                                                    const struct result_clusters *clusters);

/* Reads the projection of a clustering's rows, if columns > 0. Call projection_clear even after a
 * failure. */
enum status result_projection_read(struct projection *out, struct result *result,
                                   const struct result_clusters *clusters, struct error *err);

/* Reads the sweep from which the clustering was chosen; values NULL: there was none. */
enum status result_sweep_read(struct cluster_sweep *out, struct result *result,
                              const struct result_clusters *clusters, struct error *err);

/* Counts images with the same bytes as an earlier one. */
enum status result_duplicates(struct result *result, uint64_t *copies, struct error *err);

/* One /runs/N; strings are valid until the next call. */
enum status result_run_at(struct result *result, uint64_t i, struct store_run *run,
                          struct error *err);

/* Checks every invariant of a file (verify.c) and calls `broken` with a line for each violation; *count
 * is the number of calls. */
enum status result_verify(struct result *result, void (*broken)(const char *line, void *context),
                          void *context, uint64_t *count, struct error *err);

/* The paths of rows outside clpipe files. */
struct result_names {
    const char *source; /* their list, as a SOURCE: "@LIST", or "-" */
    uint64_t count;
    /* Path i, *length bytes. */
    const char *(*path)(const void *context, uint64_t i, size_t *length);
    const void *context;
};

/* A clustering to write to /clusters/NAME: its description (`value` decides which parts there are), and
 * the values of its parts; shapes as in result_part_read. Labels assigned by given centroids have 0
 * iterations. */
struct result_clustering {
    struct result_clusters clusters;
    const void *value[PART_COUNT];     /* NULL: it has no such part */
    bool by_run;                       /* `run` made it under its usual name, and may replace it */
    const struct cluster_sweep *sweep; /* or NULL */
    const struct result_names *names;  /* of the rows, for a new file; or NULL */
};

#endif
