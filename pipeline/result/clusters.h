/* clusters.h: adds a clustering to a copy of a file, which takes its name. */
#ifndef CLPIPE_RESULT_CLUSTERS_H
#define CLPIPE_RESULT_CLUSTERS_H

#include "result/result.h"

/* Writes a copy of `input` (a clpipe file) with a clustering, or the `count` levels of one from that of rows
 * on, added to `output` (may be the same name), which appears by rename. Without `replace` an existing
 * /clusters/NAME is STATUS_USAGE, as is always one that is a level of another clustering; coarser levels of
 * what is replaced go with it. input NULL: a new file that holds only these. */
enum status result_write_clusters(const char *output, const char *input,
                                  const struct result_clustering *clustering, unsigned count,
                                  bool replace, struct error *err);

#endif
