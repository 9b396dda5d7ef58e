/* matrix_input.h: INPUT of a clustering: a clpipe file, FILE.h5:/dataset of any HDF5 file, or
 * FILE.npy. */
#ifndef CLPIPE_CLUSTERING_MATRIX_INPUT_H
#define CLPIPE_CLUSTERING_MATRIX_INPUT_H

#include "cluster/cluster_types.h"
#include "file/result.h"
#include "matrix/matrix.h"
#include "matrix/row_tree.h"
#include "search/comparable.h"
#include <pthread.h>

/* A file as it was at some time, both in nanoseconds since 1970. */
struct input_state {
    uint64_t bytes;
    int64_t mtime_ns, at_ns;
};
bool input_state_of(struct input_state *out, const char *path);

struct matrix_input {
    struct matrix_source source; /* its context is this struct */
    struct comparable comparable; /* after matrix_input_compare, if rows were left out; else row is NULL */
    struct matrix_source whole;   /* with all rows; those that say nothing begin with NaN */
    struct result *result;       /* the clpipe file whose images the rows are, or NULL */
    struct result_feature about; /* what they are; of foreign rows only a name, for people */
    char *path;                  /* of the file, without the dataset */
    /* The rows are digested as they are read, by the threads that read them, so that the digest costs no
     * pass of its own: those of foreign files, and where this is set before anything is read. */
    bool digests;
    struct input_state opened; /* the file, before it was opened */
    struct matrix_source rows; /* as they are in the file; read past the digest */
    /* Internal: */
    pthread_mutex_t lock;  /* while the digest is opened */
    struct row_tree *tree; /* NULL: nothing was read yet */
};

/* Opens INPUT. feature: which one of a clpipe file, as feature_matrix_open takes it, NULL: `usual`,
 * or the only one where that is NULL, too. STATUS_USAGE: no such file, several features;
 * STATUS_FAILED: not what it must be. */
enum status matrix_input_open(struct matrix_input *out, const char *input, const char *feature,
                              const char *usual, struct error *err);
/* The values of FILE.npy or FILE.h5:/dataset of one dimension, or one column; *values is the
 * caller's to free. Errors are those of matrix_input_open. */
enum status matrix_input_vector(float **values, uint64_t *count, const char *text,
                                struct error *err);
/* What stands for the rows: the identity of features, matrix_input_digest of others. */
enum status matrix_input_identity(struct matrix_input *input, char hex[65], struct error *err);
/* The digest of row_tree.h; reads what has not been digested yet. */
enum status matrix_input_digest(struct matrix_input *input, char hex[65], struct error *err);
/* The digest that reading fills, for processes that read other rows: NULL where nothing is digested. */
enum status matrix_input_reading(struct row_tree **tree, struct matrix_input *input,
                                 struct error *err);
/* matrix_input_identity by the rule that gave `content`, which may be an earlier one. */
enum status matrix_input_digest_as(struct matrix_input *input, const char *content, char hex[65],
                                   struct error *err);
/* Leaves out, with a notice, the rows of a clpipe file that cannot be compared by the metric: `source` has
 * the others. STATUS_FAILED: there are none; unless `missing`, an imported feature has no values for some
 * images. */
enum status matrix_input_compare(struct matrix_input *input, enum cluster_metric metric, bool missing,
                                 struct stop *stop, struct error *err);
/* Rows are taken as rankings take them (search/ranked.h), before any is read. */
enum status matrix_input_rank(struct matrix_input *input, unsigned threads, struct stop *stop,
                              struct error *err);
/* The metric that is taken for rows where none is given: hellinger for l1 histograms, else euclidean. */
enum cluster_metric matrix_input_usual_metric(const struct result_feature *about);
/* Closes the file; after a failed open, too. */
void matrix_input_close(struct matrix_input *input);

#endif
