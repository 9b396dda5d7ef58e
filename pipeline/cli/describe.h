/* describe.h: features of pictures that are not in a file, computed as its own were. */
#ifndef CLPIPE_CLI_DESCRIBE_H
#define CLPIPE_CLI_DESCRIBE_H

#include "cli/compute.h"
#include "result/result.h"

/* values: count x dimension of the feature `name` (as feature_matrix_open takes it) of `result`. The
 * pictures, different files, go through an ingest of their own, into a temporary file, with the features
 * and all options that shape values as the file has them; devices, threads and memory are those of
 * `options`. failed, as many: why a picture has no values; else they stay. STATUS_USAGE: the feature was
 * imported. */
enum status describe_pictures(float *values, struct error *failed, uint32_t dimension,
                              const char *const *pictures, unsigned count,
                              const struct result *result, const char *name,
                              const struct options *options, struct error *err);

#endif
