/* export_table.h: the tables of `export`: CSV, TSV, JSON lines, .npy; and its tree: a folder for each cluster, in
 * which every image appears as a link or a copy. */
#ifndef CLPIPE_CLI_EXPORT_TABLE_H
#define CLPIPE_CLI_EXPORT_TABLE_H

#include "cli/options.h"
#include "cli/row_table.h"
#include "cli/sink.h"
#include "matrix/matrix.h"
#include "result/locate.h"
#include "result/result.h"

/* Options and state of clpipe export. */
struct export_options {
    struct options common;
    int what, format, link;
    const char *feature, *name, *to, *selection;
    bool absolute_paths, shuffle;
    uint64_t samples, shard_bytes, seed;
};

struct export
{
    const struct options *options;
    const struct export_options *own; /* the same */
    const char *output;               /* of -o; NULL: standard output */
    int format;                       /* enum export_format */
    struct result *result;
    struct sidecar_reader *sidecars; /* images; NULL: the file has none */
    struct matrix_source matrix;     /* features */
    struct result_feature feature;
    const struct result_clusters *clusters; /* labels, centroids, clusters, sweep, tree */
    int32_t *labels;                        /* clusters, tree */
    float *distances;                       /* the same, squared, as stored */
    const float *centroids;                 /* k x dimension, while they are written */
    unsigned threads;
    struct sink sink;
    struct table table; /* into the sink */
    struct locator locator;
    uint64_t rows; /* written */
};

/* Whether the clusters' rows are the images of the file. */
bool export_has_images(const struct export *export);

/* Writes the table of options->what into the open sink. STATUS_USAGE: there is no such table. */
enum status export_table(struct export *export, struct error *err);

struct tree_counts {
    uint64_t made, missing, unlabelled;
    uint64_t archived; /* of those that are missing */
};

/* Creates options->to atomically. STATUS_FAILED: it exists and is neither empty nor an earlier tree
 * without foreign files, or no image is at its path. The clusters must label the images of the file.
 * STATUS_INTERRUPTED: nothing is left behind. */
enum status export_tree(struct tree_counts *counts, struct export *export, struct error *err);

#endif
