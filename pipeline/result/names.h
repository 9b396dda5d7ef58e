/* names.h: paths for rows of other data, in a file of clusters alone: /images/path, source and
 * sources without the other columns. */
#ifndef CLPIPE_RESULT_NAMES_H
#define CLPIPE_RESULT_NAMES_H

#include "result/result_internal.h"

/* Writes the names of `names->count` rows into a new file. */
enum status names_write(hid_t file, const struct result_names *names, struct error *err);

/* Writes /images/sources and /images/directories; `directories` NULL: unknown. */
enum status sources_write(hid_t file, hid_t images, const char *const *sources,
                          const char *const *directories, unsigned count, struct error *err);

#endif
