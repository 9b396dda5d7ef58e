/* origin.h: what vouches for rows that are in no clpipe file without all of them being read: size and
 * modification time of their file, and a digest of some of them. */
#ifndef CLPIPE_CLUSTERING_ORIGIN_H
#define CLPIPE_CLUSTERING_ORIGIN_H

#include "clustering/matrix_input.h"

/* What INPUT is now. bytes 0: nothing is to be trusted: its rows are a clpipe file's, the file has
 * changed since it was opened, or had changed less than two seconds before. STATUS_FAILED: rows cannot be
 * read. */
enum status origin_of(struct result_origin *out, struct matrix_input *input, struct error *err);

/* Whether both are known and the same. */
bool origin_same(const struct result_origin *a, const struct result_origin *b);

#endif
