/* schema.h: the members of /images and /failures, defined once for writer, reader and checks;
 * described in docs/file-format.md. */
#ifndef CLPIPE_RESULT_SCHEMA_H
#define CLPIPE_RESULT_SCHEMA_H

#include "base/failure.h"
#include "result/content.h"
#include "result/h5.h"
#include <stddef.h>

/* The value of the attribute clpipe_format that this program reads and writes. */
#define SCHEMA_FORMAT 3

/* The reason of a row of /failures; false: missing or unknown. */
bool failure_row_reason(enum reason *reason, const struct failure_row *row);

struct column {
    const char *name;
    enum value_type type;
    unsigned width;   /* values in a row */
    size_t offset;    /* offset in the struct of a row */
    const char *axis; /* the dimension scale of a row's values, if there are several */
    bool optional;    /* the dataset may be missing: then the rows have zeros */
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

/* name_table: the columns for rows of other data whose paths are given. */
extern const struct table image_table, name_table, failure_table;

/* A row of sidecar texts (sidecars.h) except blobs: with the class as a text or as a number. */
struct sidecar_row {
    const char *key, *cls;
    int64_t number;
};
extern const struct table sidecar_text_table, sidecar_number_table;

/* Columns of image_table that are used by number. */
enum { IMAGE_BYTES = 6, IMAGE_DIGEST = 10, IMAGE_CODE = 12 };

#define SOURCE_AXIS "source"
#define DIGEST_AXIS "digest_word"
#define RANK_AXIS   "rank"
#define CODE_AXIS   "code_byte"

#define DIRECTORIES "directories" /* of /images, beside "sources" */

#define THUMBNAIL_GROUP "thumbnails"
#define THUMBNAIL_AXIS  "thumbnail_byte"

/* The attribute of /runs with the name of the clustering that `run` may replace. */
#define RUN_CLUSTERS "run_clusters"

/* Room for "dimension_" and a name. */
#define AXIS_NAME_MAX (FEATURE_NAME_MAX + 16)

/* The name of the axis of a feature's values, of a clustering's clusters and iterations and, if not
 * shared with the file, of its rows and values: "feature_NAME", "cluster_NAME", "iteration_NAME",
 * "row_NAME", "dimension_NAME". No two can be equal. Returns buffer. */
char *axis_name(char buffer[AXIS_NAME_MAX], const char *prefix, const char *name);

/* Writes the attributes of a file's root, except its parameters. */
enum status schema_put_root(hid_t file, struct error *err);

/* Writes /images/sources and /images/directories; `directories` NULL: unknown. */
enum status schema_put_sources(hid_t file, hid_t images, const char *const *sources,
                               const char *const *directories, unsigned count, struct error *err);

/* Whether a name is valid for a dataset: [A-Za-z0-9_.-]+, shorter than FEATURE_NAME_MAX, not "." or
 * "..". */
bool schema_name_valid(const char *name);
/* STATUS_USAGE unless it is; what: what it names. */
enum status schema_check_name(const char *name, const char *what, struct error *err);

#endif
