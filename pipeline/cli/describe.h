/* describe.h: computes a file's features of pictures that are not in it. */
#ifndef CLPIPE_CLI_DESCRIBE_H
#define CLPIPE_CLI_DESCRIBE_H

#include "cli/compute.h"
#include "result/result.h"

/* values: count x dimension of the feature `name` (as feature_matrix_open takes it) of `result`. The
 * pictures, different files, are ingested into a temporary file with the file's features and all of its
 * options that affect values; devices, threads and memory are those of `options`. failed, one per
 * picture: why it has no values; else unchanged. STATUS_USAGE: the feature was imported. */
enum status describe_pictures(float *values, struct error *failed, uint32_t dimension,
                              const char *const *pictures, unsigned count,
                              const struct result *result, const char *name,
                              const struct options *options, struct error *err);

#endif
