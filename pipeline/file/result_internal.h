/* result_internal.h: an open result, for the files of this folder that look deeper into it. */
#ifndef CLPIPE_FILE_RESULT_INTERNAL_H
#define CLPIPE_FILE_RESULT_INTERNAL_H

#include "file/result.h"
#include "file/rows.h"

/* More are taken for damage. */
#define RESULT_MOST_FEATURES 4096
#define RESULT_MOST_CLUSTERS 65536
#define RESULT_MOST_RUNS     65536

struct result_cluster_entry {
    struct result_clusters clusters; /* .parameters points to the next */
    char *parameters;
    hid_t part[PART_COUNT];
};

struct result {
    char *path;
    hid_t file;
    struct vlen *vlen;
    char *version, *created, *parameters;
    bool has_images; /* false: a file of clusters alone */
    struct rows *images, *failures;
    hid_t sources_dataset;
    char **sources;
    unsigned source_count;
    struct result_feature *features;
    hid_t *feature_dataset;
    unsigned feature_count;
    struct result_cluster_entry *clusters;
    unsigned clusters_count;
    uint64_t *runs; /* their numbers, ascending */
    unsigned run_count;
    char *run_text[5]; /* of the run last asked for */
};

static inline hid_t result_feature_dataset(const struct result *result,
                                           const struct result_feature *feature)
{
    return result->feature_dataset[feature - result->features];
}

/* Rows of a feature as they are stored: float32 or uint32, 4 bytes a value. */
enum status result_feature_read_raw(struct result *result, const struct result_feature *feature,
                                    uint64_t first, uint64_t count, void *rows, struct error *err);

/* STATUS_FAILED "PATH is damaged or not clpipe's: WHAT". */
enum status result_damaged(const struct result *result, struct error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
