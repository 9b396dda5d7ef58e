/* diffusing.h: the neighbours for diffusion (neighbours/diffusion.h) or expansion
 * (neighbours/expansion.h) of rows: the stored ones, if the file has enough for exactly these rows,
 * else computed ones. */
#ifndef CLPIPE_JOBS_DIFFUSING_H
#define CLPIPE_JOBS_DIFFUSING_H

#include "jobs/matrix_input.h"

/* Reads the stored neighbours of exactly these rows of a feature, at least n each. STATUS_END: there are
 * none. Clear *out in any case. */
enum status stored_neighbours(struct neighbours *out, const struct matrix_source *rows,
                              enum cluster_metric metric, uint32_t n, struct result *result,
                              const char *feature, struct error *err);

/* rows: those of `input`, or derived from them. n: at least this many each; overrides that of
 * `search`. Errors are those of neighbours_find. */
enum status diffusing_nearest(struct neighbours *out, const struct matrix_source *rows,
                              struct matrix_input *input, uint32_t n,
                              const struct neighbours_config *search, struct error *err);

#endif
