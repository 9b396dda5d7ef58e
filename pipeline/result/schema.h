/* schema.h: what /images, /failures and /clusters/NAME consist of, said once for writer, reader and
 * checks. docs/file-format.md is the prose of it. */
#ifndef CLPIPE_RESULT_SCHEMA_H
#define CLPIPE_RESULT_SCHEMA_H

#include "base/failure.h"
#include "result/content.h"
#include "result/h5.h"
#include <stddef.h>

/* The attribute clpipe_format of files that this program reads and writes. */
#define SCHEMA_FORMAT 3

/* A row of /failures in memory; one of /images is a struct result_image without its path_raw. */
struct failure_row {
    const char *path;
    char reason[16];
    const char *message;
    uint64_t bytes;
    int32_t error_number;
    uint16_t source;
    int64_t mtime_ns;
    uint64_t inode; /* 0: unknown */
    int64_t ctime_ns;
};

/* The reason of a row of /failures; false: it has none, or one that does not exist. */
bool failure_row_reason(enum reason *reason, const struct failure_row *row);

struct column {
    const char *name;
    enum value_type type;
    unsigned width;   /* values in a row */
    size_t offset;    /* in the struct of a row */
    const char *axis; /* the dimension scale of a row's values, where there are several */
    bool optional;    /* there may be no such dataset: then the rows have zeros */
};

/* Bytes of the widest column. */
#define COLUMN_BYTES_MAX 32

#define TABLE_COLUMNS_MAX 16

struct table {
    const char *group;
    const char *axis; /* the dimension scale of its rows */
    size_t row_size;
    unsigned count;
    struct column column[TABLE_COLUMNS_MAX];
};

/* name_table: what is known of rows of other data, whose paths were given. */
extern const struct table image_table, name_table, failure_table;

/* A row of what lies beside pictures (sidecars.h) but for blobs: with the class as a text, or as a
 * number. */
struct sidecar_row {
    const char *key, *cls;
    int64_t number;
};
extern const struct table sidecar_text_table, sidecar_number_table;

/* The column of image_table that is optional. */
#define IMAGE_CODE 12

/* Columns of texts (VALUE_TEXT) of a table at most; the path comes first. */
#define TABLE_TEXTS_MOST 2

#define SOURCE_AXIS "source"
#define DIGEST_AXIS "digest_word"
#define RANK_AXIS   "rank"
#define CODE_AXIS   "code_byte"

#define DIRECTORIES "directories" /* of /images, beside "sources" */

#define THUMBNAIL_GROUP "thumbnails"
#define THUMBNAIL_AXIS  "thumbnail_byte"

/* The attribute of /runs that names the clustering which `run` may replace. */
#define RUN_CLUSTERS "run_clusters"

/* Room for "dimension_" and a name. */
#define AXIS_NAME_MAX (FEATURE_NAME_MAX + 16)

/* The axis of a feature's values, of a clustering's clusters, iterations, and (where it has none of
 * its file) rows and values: "feature_NAME", "cluster_NAME", "iteration_NAME", "row_NAME",
 * "dimension_NAME". No two can be equal. Returns buffer. */
char *axis_name(char buffer[AXIS_NAME_MAX], const char *prefix, const char *name);

/* The parts of a clustering. */
enum cluster_part {
    PART_CENTROIDS,
    PART_LABELS,
    PART_DISTANCES,
    PART_SIZES,
    PART_NEAREST,
    PART_HISTORY,
    PART_WEIGHTS,    /* only where rows had weights */
    PART_MEAN,       /* only where rows were projected, */
    PART_COMPONENTS, /* and this only onto fewer axes than they had */
    PART_PARENTS,    /* only where there is a coarser level */
    PART_COUNT
};
#define NEAREST_COUNT 3

struct cluster_shape {
    uint32_t k, dimension, iterations;
    uint64_t rows;
    bool weighted;
    uint32_t columns; /* of rows before they were projected; 0: they were not */
    bool components, parents;
};

extern const struct cluster_part_kind {
    const char *name;
    enum value_type type;
    int rank;
} cluster_part_kind[PART_COUNT];

/* Whether the part has a value for each row. */
bool cluster_part_of_rows(enum cluster_part part);
/* False: the clustering has no such part. */
bool cluster_part_dimensions(hsize_t dimensions[2], enum cluster_part part,
                             const struct cluster_shape *shape);

/* Writes the attributes of a file's root, but for its parameters. */
enum status schema_put_root(hid_t file, const char *path, struct error *err);

/* A name that can be a dataset's: [A-Za-z0-9_.-]+, shorter than FEATURE_NAME_MAX, not "." or "..".
 */
bool schema_name_valid(const char *name);

#endif
