/* diffusing.h: the neighbours for diffusion (neighbours/diffusion.h) or expansion (neighbours/expansion.h)
 * of rows: those in the file, if it has enough for exactly these rows, else computed. */
#ifndef CLPIPE_JOBS_DIFFUSING_H
#define CLPIPE_JOBS_DIFFUSING_H

#include "jobs/matrix_input.h"
#include "neighbours/neighbours.h"

/* rows: those of `input`, or made from them. n: at least this many each; overrides that of
 * `search`. Errors are those of neighbours_of_all. */
enum status diffusing_nearest(struct neighbours *out, const struct matrix_source *rows,
                              struct matrix_input *input, uint32_t n,
                              const struct neighbours_config *search, struct error *err);

#endif
