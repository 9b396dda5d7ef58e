/* clusters.h: adds a clustering to a copy of a file, which replaces the file. */
#ifndef CLPIPE_RESULT_CLUSTERS_H
#define CLPIPE_RESULT_CLUSTERS_H

#include "result/result.h"

/* Copies `input` (a clpipe file) to `output` (may be the same name; which appears by rename) and
 * adds a clustering, or its `count` levels, finest first. STATUS_USAGE: /clusters/NAME exists and
 * `replace` is not set, or it is a level of another clustering. Coarser levels of a replaced
 * clustering are removed, too. input NULL: a new file that holds only these. */
enum status result_write_clusters(const char *output, const char *input,
                                  const struct result_clustering *clustering, unsigned count,
                                  bool replace, struct error *err);

#endif
