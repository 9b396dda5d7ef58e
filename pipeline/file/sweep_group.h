/* sweep_group.h: what a clustering may have beside its parts: /clusters/NAME/sweep, and attributes
 * on its agreement with folders. */
#ifndef CLPIPE_FILE_SWEEP_GROUP_H
#define CLPIPE_FILE_SWEEP_GROUP_H

#include "file/verify.h"

#define SWEEP_AXIS "sweep"

/* Writes whatever of the two the clustering has into its group. */
enum status sweep_group_write(hid_t file, hid_t group, const struct result_clustering *clustering,
                              const char *path, struct error *err);

/* Reads a clustering's agreement when the file is opened; *there is false where it has none. */
enum status sweep_group_agreement(bool *there, struct result_agreement *agreement,
                                  struct result *result, hid_t group, struct error *err);

/* That the sweep's values make sense beside the clustering. */
enum status sweep_group_verify(struct verify *verify, const struct result_clusters *clusters,
                               const char *where, struct error *err);

#endif
