/* export_table.h: what `export` writes: tables (CSV, TSV, JSON lines, .npy), a tree of folders, shards. */
#ifndef CLPIPE_CLI_EXPORT_TABLE_H
#define CLPIPE_CLI_EXPORT_TABLE_H

#include "base/held.h"
#include "cli/options.h"
#include "cli/row_table.h"
#include "cli/sink.h"
#include "jobs/shards.h"
#include "matrix/matrix.h"
#include "result/locate.h"
#include "result/result.h"

/* Options and state of clpipe export. */
struct export_options {
    struct options common;
    int what, format, link;
    const char *feature, *name, *to;
    bool absolute_paths;
    struct shards_config shards;
};

struct export;

/* Options that only some kinds take. */
enum {
    TAKES_FEATURE = 1, /* --feature */
    TAKES_NAME = 2,    /* --name */
    TAKES_PATHS = 4,   /* --absolute-paths */
    TAKES_LINK = 8,    /* --link */
    TAKES_SHARDS = 16, /* --selection, --samples and others of shards */
};

/* A word of --what. */
struct export_kind {
    unsigned takes; /* TAKES_... */
    bool npy;       /* may be a numpy array */
    bool directory; /* is written to --to; else a table, to -o or standard output */
    /* Reads what it needs before anything is written; NULL: nothing. */
    enum status (*open)(struct export *export, struct error *err);
    enum status (*write)(struct export *export,
                         struct error *err); /* a table: into the open sink */
};

/* All kinds, in the order of the help: export_NAME is a struct export_kind. */
/* clang-format off */
#define EXPORTS(EXPORT)                                                                            \
    EXPORT(features) EXPORT(labels) EXPORT(failures) EXPORT(images) EXPORT(centroids)              \
    EXPORT(clusters) EXPORT(sweep) EXPORT(tree) EXPORT(selection) EXPORT(shards) EXPORT(quality)
/* clang-format on */

#define DECLARE_EXPORT(name) extern const struct export_kind export_##name;
EXPORTS(DECLARE_EXPORT)
#undef DECLARE_EXPORT

struct export
{
    const struct export_options *own;
    const struct export_kind *kind;
    const char *output; /* of -o; NULL: standard output */
    struct result *result;
    struct sidecar_reader *sidecars; /* images; NULL: the file has none */
    struct matrix_source matrix;     /* features */
    struct result_feature feature;
    const struct result_clusters *clusters; /* labels, centroids, clusters, sweep, tree */
    int32_t *labels;                        /* clusters, tree */
    float *distances;                       /* the same, squared, as stored */
    struct held held;                       /* these two, and others of a kind */
    const float *centroids;                 /* k x dimension; while they are written */
    struct sink sink;
    struct table table; /* into the sink */
    struct locator locator;
    uint64_t rows; /* written */
};

/* Whether the clusters' rows are the images of the file. */
bool export_has_images(const struct export *export);

/* `open` of kinds that need the clustering of --name, or the only one, with the labels and distances of its
 * rows. */
enum status export_open_labels(struct export *export, struct error *err);

#endif
