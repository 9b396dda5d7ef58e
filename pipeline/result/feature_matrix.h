/* feature_matrix.h: features of a clpipe file as a matrix: one of them, or several joined,
 * "NAME[:WEIGHT]+NAME[:WEIGHT]...". */
#ifndef CLPIPE_RESULT_FEATURE_MATRIX_H
#define CLPIPE_RESULT_FEATURE_MATRIX_H

#include "matrix/joined.h"
#include "result/result.h"

/* The features that rows are made of, and how. */
struct feature_join {
    const struct result_feature *feature[JOINED_MOST];
    struct join join;
    bool joined; /* false: one feature, as it is */
};

/* Those of a name, with the errors of feature_matrix_open, and what the rows are. */
enum status feature_matrix_find(struct feature_join *of, struct result_feature *about,
                                const struct result *result, const char *name, struct error *err);

/* Opens the feature of that name (NULL: those of the file's preset, joined as it says, which are called
 * RESULT_PRESET, or else the only one), or several joined; the result must outlive
 * the matrix. *about is what the rows are: the feature itself, or for joined ones a feature of kind
 * "joined", whose name is the same however the weights were written. STATUS_USAGE: no such feature,
 * several of them and no name, one is named twice, a weight is invalid. */
enum status feature_matrix_open(struct matrix_source *out, struct result_feature *about,
                                struct result *result, const char *name, struct error *err);

/* Opens the features that a preset (the JSON of result_preset, of this file or another) names, joined as
 * it says; *about is called RESULT_PRESET. STATUS_FAILED: the JSON is not understood; other errors are
 * those above. */
enum status feature_matrix_open_preset(struct matrix_source *out, struct result_feature *about,
                                       struct result *result, const char *json, struct error *err);

#endif
