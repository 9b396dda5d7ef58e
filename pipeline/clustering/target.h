/* target.h: the file that gets the clusters. */
#ifndef CLPIPE_CLUSTERING_TARGET_H
#define CLPIPE_CLUSTERING_TARGET_H

#include "clustering/matrix_input.h"

/* Decides what is written: the clpipe file itself, or the file `wanted` (not NULL where INPUT is no
 * clpipe file), which may hold earlier clusters but nothing else. *base: the clpipe file that a
 * copy of gets the result, or NULL; *holder: that of `wanted` opened, the caller's to close, or
 * NULL. */
enum status choose_output(const char **output, const char **base, struct result **holder,
                          const struct matrix_input *input, const char *wanted, struct error *err);

#endif
