/* result_internal.h: an open result, for the files of this folder that look deeper into it. */
#ifndef CLPIPE_RESULT_RESULT_INTERNAL_H
#define CLPIPE_RESULT_RESULT_INTERNAL_H

#include "result/axes.h"
#include "result/blobs.h"
#include "result/result.h"
#include "result/rows.h"

/* More are taken for damage. */
#define RESULT_MOST_LEVELS 64

struct result_feature_entry {
    struct result_feature feature; /* first: the entry of a feature is found by its address */
    hid_t dataset;
};

struct result_cluster_entry {
    struct result_clusters clusters; /* first, likewise */
    hid_t part[PART_COUNT];
};

_Static_assert(sizeof(hid_t) == sizeof(int64_t),
               "result.h keeps identifiers without HDF5's header");

/* What is in a file that is being written: its images and features are complete, and everything else that
 * it has by now. `path` is for messages. Close it before the file. */
enum status result_open_unfinished(struct result **out, hid_t file, const char *path,
                                   struct error *err);

static inline hid_t result_feature_dataset(const struct result_feature *feature)
{
    return ((const struct result_feature_entry *)feature)->dataset;
}

static inline const struct result_cluster_entry *
result_cluster_entry(const struct result_clusters *clusters)
{
    return (const struct result_cluster_entry *)clusters;
}

/* The attributes of a feature: its texts, then decode_scale. */
#define RESULT_FEATURE_TEXTS 5
extern const struct attribute result_feature_attribute[RESULT_FEATURE_TEXTS + 1];

/* Those of a clustering on its agreement with folders and its origin, and of a sweep. */
#define RESULT_AGREEMENT_ATTRIBUTES 4
#define RESULT_ORIGIN_ATTRIBUTES    3
#define RESULT_SWEEP_ATTRIBUTES     3
extern const struct attribute result_agreement_attribute[RESULT_AGREEMENT_ATTRIBUTES],
    result_origin_attribute[RESULT_ORIGIN_ATTRIBUTES],
    result_sweep_attribute[RESULT_SWEEP_ATTRIBUTES];

/* The columns of /clusters/NAME/sweep, with offsets in struct result_sweep_value; the first always
 * exist, the rest only if the images' folders are classes. */
#define SWEEP_AXIS          "sweep"
#define SWEEP_COLUMNS       11
#define SWEEP_COLUMNS_PLAIN 8
extern const struct column sweep_column[SWEEP_COLUMNS];

/* A feature as the attributes of its dataset tell it; without rows. */
void result_feature_describe(struct result_feature *out, const struct feature *feature,
                             uint32_t decode_scale);

/* Writes the attributes that tell it. */
enum status result_feature_put_attributes(hid_t dataset, const struct result_feature *feature,
                                          const char *path, struct error *err);

/* The type that the values of a feature are stored in. */
enum value_type result_feature_type(const struct result_feature *feature);

#endif
