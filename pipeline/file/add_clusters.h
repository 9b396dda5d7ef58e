/* add_clusters.h: adds a clustering to a copy of a file, which takes its name. */
#ifndef CLPIPE_FILE_ADD_CLUSTERS_H
#define CLPIPE_FILE_ADD_CLUSTERS_H

#include "file/result.h"

/* Writes a copy of `input` (a clpipe file) with the clustering added to `output` (may be the same
 * name), which appears by rename. Without `replace` an existing /clusters/NAME is STATUS_USAGE.
 * input NULL: a new file that holds only /clusters/NAME. */
enum status result_write_clusters(const char *output, const char *input,
                                  const struct result_clustering *clustering, bool replace,
                                  struct error *err);

#endif
