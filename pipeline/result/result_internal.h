/* result_internal.h: the internals of an open result, for the files of this folder. */
#ifndef CLPIPE_RESULT_RESULT_INTERNAL_H
#define CLPIPE_RESULT_RESULT_INTERNAL_H

#include "result/axes.h"
#include "result/blobs.h"
#include "result/result.h"
#include "result/rows.h"

/* More count as damage. */
#define RESULT_MOST_LEVELS 64

_Static_assert(sizeof(hid_t) == sizeof(int64_t),
               "result.h keeps identifiers without HDF5's header");

/* Opens a file that is still being written, with everything that it has so far; its images and features are
 * complete. Close the result before the file. */
enum status result_open_unfinished(struct result **out, hid_t file, struct error *err);

extern const struct cluster_part_kind {
    const char *name;
    enum value_type type;
    int rank;
} cluster_part_kind[PART_COUNT];

/* Whether the part has a value for each row. */
bool cluster_part_of_rows(enum cluster_part part);
/* Its size, from k, rows, dimension, iterations, columns and what else the clustering has; false: it has no
 * such part. */
bool cluster_part_size(hsize_t size[2], enum cluster_part part,
                       const struct result_clusters *clusters);

/* The attributes of a feature: its texts, then decode_scale. */
#define RESULT_FEATURE_TEXTS 5
extern const struct attribute result_feature_attribute[RESULT_FEATURE_TEXTS + 1];

/* Those of a clustering: first those that every one has. */
#define RESULT_CLUSTERS_REQUIRED   10
#define RESULT_CLUSTERS_ATTRIBUTES 14
extern const struct attribute result_clusters_attribute[RESULT_CLUSTERS_ATTRIBUTES];

/* Those of a clustering's agreement with folders and of its origin, and of a sweep. */
#define RESULT_AGREEMENT_ATTRIBUTES 4
#define RESULT_ORIGIN_ATTRIBUTES    3
#define RESULT_SWEEP_ATTRIBUTES     3
extern const struct attribute result_agreement_attribute[RESULT_AGREEMENT_ATTRIBUTES],
    result_origin_attribute[RESULT_ORIGIN_ATTRIBUTES],
    result_sweep_attribute[RESULT_SWEEP_ATTRIBUTES];

/* Those of the root of a shard, and of a run: its texts, then its seconds. */
#define RESULT_SHARE_ATTRIBUTES 6
#define RESULT_RUN_TEXTS        5
extern const struct attribute result_share_attribute[RESULT_SHARE_ATTRIBUTES],
    result_run_attribute[RESULT_RUN_TEXTS + 1];

/* The columns of /clusters/NAME/sweep, with offsets in struct cluster_sweep_value; the first always
 * exist, the rest only if the images' folders are classes. */
#define SWEEP_AXIS          "sweep"
#define SWEEP_COLUMNS       11
#define SWEEP_COLUMNS_PLAIN 8
extern const struct column sweep_column[SWEEP_COLUMNS];

/* Reads a feature's description from the attributes of its dataset. */
void result_feature_describe(struct result_feature *out, const struct feature *feature,
                             uint32_t decode_scale);

/* Writes these attributes. */
enum status result_feature_put_attributes(hid_t dataset, const struct result_feature *feature,
                                          struct error *err);

/* The stored type of a feature's values. */
enum value_type result_feature_type(const struct result_feature *feature);

#endif
