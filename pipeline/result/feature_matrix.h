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
    bool joined; /* false: a single feature, unchanged */
};

/* Finds the features of a name; *about describes their rows. Errors as for feature_matrix_open. */
enum status feature_matrix_find(struct feature_join *of, struct result_feature *about,
                                const struct result *result, const char *name, struct error *err);

/* Opens the feature of that name, or several joined; NULL: the features of the file's preset, joined
 * accordingly and called RESULT_PRESET, else the only one. The result must outlive the matrix. *about
 * describes the rows: the feature itself, or for joined ones a feature of kind "joined", with a
 * canonical name. STATUS_USAGE: no such feature, several and no name, one is named twice, or a weight
 * is invalid. */
enum status feature_matrix_open(struct matrix_source *out, struct result_feature *about,
                                struct result *result, const char *name, struct error *err);

/* Opens the features named by a preset (the JSON of struct result.preset, of this file or another), joined
 * accordingly; *about is called RESULT_PRESET. STATUS_FAILED: the JSON is invalid; other errors as
 * above. */
enum status feature_matrix_open_preset(struct matrix_source *out, struct result_feature *about,
                                       struct result *result, const char *json, struct error *err);

#endif
