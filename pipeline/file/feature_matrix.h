/* feature_matrix.h: features of a clpipe file as a matrix: one of them, or several joined,
 * "NAME[:WEIGHT]+NAME[:WEIGHT]...". */
#ifndef CLPIPE_FILE_FEATURE_MATRIX_H
#define CLPIPE_FILE_FEATURE_MATRIX_H

#include "file/result.h"
#include "matrix/matrix.h"

/* Opens the feature of that name (NULL: the only one), or several joined; the result must outlive
 * the matrix. *about is what the rows are: the feature itself, or for joined ones a feature of kind
 * "joined", whose name is the same however the weights were written. STATUS_USAGE: no such feature,
 * several of them and no name, one is named twice, a weight is invalid. */
enum status feature_matrix_open(struct matrix_source *out, struct result_feature *about,
                                struct result *result, const char *name, struct error *err);

#endif
