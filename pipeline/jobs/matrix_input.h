/* matrix_input.h: INPUT of a clustering: a clpipe file, FILE.h5:/dataset (HDF5), or FILE.npy. */
#ifndef CLPIPE_JOBS_MATRIX_INPUT_H
#define CLPIPE_JOBS_MATRIX_INPUT_H

#include "jobs/machine.h"
#include "matrix/row_tree.h"
#include "neighbours/comparable.h"
#include "result/result.h"
#include <pthread.h>

/* The state of a file at some time; times in nanoseconds since 1970. */
struct input_state {
    uint64_t bytes;
    int64_t mtime_ns, at_ns;
};
/* False: there is no such file; at_ns is set nevertheless. */
bool input_state_of(struct input_state *out, const char *path);

struct matrix_input {
    struct matrix_source source;  /* its context is this struct */
    struct comparable comparable; /* if matrix_input_compare left out rows; else row is NULL */
    struct matrix_source whole;   /* all rows; those without information begin with NaN */
    struct result *result;        /* the clpipe file whose images the rows are, or NULL */
    struct result_feature about;  /* their feature; for foreign rows only a name to show */
    char *path;                   /* of the file, without the dataset */
    /* The reading threads digest the rows, so that the digest takes no extra pass: always for
     * foreign files, or if set before anything is read. */
    bool digests;
    struct input_state opened; /* the file's state before it was opened */
    struct matrix_source rows; /* as in the file; reading them bypasses the digest */
    /* Internal: */
    pthread_mutex_t lock;  /* guards opening the digest */
    struct row_tree *tree; /* NULL: nothing was read yet */
};

/* Opens INPUT. feature: of a clpipe file, as for feature_matrix_open; NULL: `usual` or, if that is
 * NULL, the only one. STATUS_USAGE: no such file, several features; STATUS_FAILED: invalid
 * contents. */
enum status matrix_input_open(struct matrix_input *out, const char *input, const char *feature,
                              const char *usual, struct error *err);
/* The values of FILE.npy or FILE.h5:/dataset with one dimension, one column or one row; the caller
 * frees *values. Errors are those of matrix_input_open. */
enum status matrix_input_vector(float **values, uint64_t *count, const char *text,
                                struct error *err);
/* Identifies the rows: the identity of a feature, or matrix_input_digest for others. */
enum status matrix_input_identity(struct matrix_input *input, char hex[65], struct error *err);
/* The digest of row_tree.h; reads the rows not digested yet. */
enum status matrix_input_digest(struct matrix_input *input, char hex[65], struct error *err);
/* The digest that reading updates, for processes that read other rows; NULL: none. */
enum status matrix_input_reading(struct row_tree **tree, struct matrix_input *input,
                                 struct error *err);
/* matrix_input_identity by the rule of `content`, which may be an older one. */
enum status matrix_input_digest_as(struct matrix_input *input, const char *content, char hex[65],
                                   struct error *err);
/* Leaves out, with a notice, the rows of a clpipe file that the metric cannot compare, which the
 * machine's threads find: `source` has the others. STATUS_FAILED: none remain or, unless `missing`,
 * an imported feature lacks values for some images. */
enum status matrix_input_compare(struct matrix_input *input, enum cluster_metric metric,
                                 bool missing, const struct clustering_machine *machine,
                                 struct error *err);
/* Prepares rows for ranking (neighbours/ranked.h); call it before any is read. */
enum status matrix_input_rank(struct matrix_input *input, const struct clustering_machine *machine,
                              struct error *err);
/* The default metric: hellinger for l1 histograms, else euclidean. */
enum cluster_metric matrix_input_usual_metric(const struct result_feature *about);
/* Closes the file, even after a failed open. */
void matrix_input_close(struct matrix_input *input);

#endif
