/* matrix_input.h: INPUT of `cluster` and `assign`: rows of a clpipe file, of a foreign HDF5 file or
 * of a .npy; and where the result goes. */
#ifndef CLPIPE_MATRIX_MATRIX_INPUT_H
#define CLPIPE_MATRIX_MATRIX_INPUT_H

#include "base/hash.h"
#include "file/result.h"
#include "matrix/hdf5_matrix.h"
#include "matrix/matrix.h"
#include "matrix/npy.h"

struct matrix_input {
    struct matrix_source source; /* for cluster_run; its context is this struct */
    /* Of a clpipe file: */
    struct result *result;
    const struct result_feature *feature;
    /* Of something else: */
    struct npy *npy;
    struct hdf5_matrix *hdf5;
    char name[FEATURE_NAME_MAX]; /* the feature's, or the file's or dataset's last part */
    char *path;                  /* of the file, without the dataset */
    /* A digest of the rows grows while they are read in order, so that it costs no pass. */
    bool digests; /* of foreign rows, and where somebody asks for it */
    struct murmur3 digest;
    uint64_t digested; /* rows */
};

/* Opens INPUT. feature: which one of a clpipe file, NULL: `usual`, or the only one where that is
 * NULL, too. STATUS_USAGE: no such file, several features; STATUS_FAILED: not what it must be. */
enum status matrix_input_open(struct matrix_input *out, const char *input, const char *feature,
                              const char *usual, struct error *err);
/* The values of FILE.npy or FILE.h5:/dataset of one axis, or one column; *values is the caller's to
 * free. Errors are those of matrix_input_open. */
enum status matrix_input_vector(float **values, uint64_t *count, const char *text,
                                struct error *err);
/* Identity of the rows: result_feature_identity, or matrix_input_digest. */
enum status matrix_input_identity(struct matrix_input *input, char hex[65], struct error *err);
/* A digest of the shape and the float32 values; no more than that where `digests` was set before
 * they were read in order. */
enum status matrix_input_digest(struct matrix_input *input, char hex[65], struct error *err);
/* The number of different rows, but at most `most`: compared as square roots where asked. */
enum status matrix_input_distinct(struct matrix_input *input, uint32_t *distinct, uint32_t most,
                                  bool roots, struct error *err);
/* Closes the file and frees what was read; after a failed open, too. */
void matrix_input_close(struct matrix_input *input);

/* Decides what is written: the clpipe file itself, or the file `wanted` (not NULL where INPUT is no
 * clpipe file), which may hold clusters of before but nothing else. *base: the clpipe file that a
 * copy of gets the result, or NULL; *holder: that of `wanted` opened, the caller's to close, or
 * NULL.
 */
enum status choose_output(const char **output, const char **base, struct result **holder,
                          const struct matrix_input *input, const char *wanted, struct error *err);

/* The feature of that name, or several joined (NULL: the only one) with the errors of
 * matrix_input_open. */
enum status choose_feature(const struct result_feature **out, struct result *result,
                           const char *name, struct error *err);
/* Likewise a clustering. */
enum status choose_clusters(const struct result_clusters **out, const struct result *result,
                            const char *name, struct error *err);

#endif
