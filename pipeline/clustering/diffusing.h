/* diffusing.h: the neighbours that rows diffuse to (search/diffusion.h) or are expanded by
 * (search/expansion.h): those of the file, if it has enough of these very rows, else they are searched
 * for. */
#ifndef CLPIPE_CLUSTERING_DIFFUSING_H
#define CLPIPE_CLUSTERING_DIFFUSING_H

#include "clustering/matrix_input.h"
#include "search/neighbours.h"

/* rows: those of `input`, or made from them. n: of each, or more; that of `search` is not used. */
enum status diffusing_nearest(struct neighbours *out, const struct matrix_source *rows,
                              struct matrix_input *input, uint32_t n,
                              const struct neighbours_config *search, struct error *err);

#endif
