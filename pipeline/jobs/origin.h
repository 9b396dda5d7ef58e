/* origin.h: evidence that rows outside clpipe files are unchanged, without reading them all: size
 * and modification time of their file, and a digest of some rows. */
#ifndef CLPIPE_JOBS_ORIGIN_H
#define CLPIPE_JOBS_ORIGIN_H

#include "jobs/matrix_input.h"

/* The current state of INPUT. bytes 0: not trustworthy: the rows are a clpipe file's, or the file
 * has changed since it was opened, or less than two seconds before. STATUS_FAILED: unreadable
 * rows. */
enum status origin_of(struct result_origin *out, struct matrix_input *input, struct error *err);

/* Whether both are known and the same. */
bool origin_same(const struct result_origin *a, const struct result_origin *b);

#endif
