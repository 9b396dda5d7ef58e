/* clusters.h: /clusters/NAME in files that are being written. */
#ifndef CLPIPE_FILE_CLUSTERS_H
#define CLPIPE_FILE_CLUSTERS_H

#include "file/result_internal.h"

/* Creates /clusters/NAME with its attributes and its datasets (not yet written), whose scales are
 * those of the file's images and features where it has them. */
enum status clusters_create(hid_t part[PART_COUNT], hid_t file,
                            const struct result_clustering *clustering, const char *path,
                            struct error *err);

/* Copies a clustering of a finished file to one that is being written. */
enum status clusters_copy(hid_t file, const char *path, struct result *from,
                          const struct result_clusters *clusters, struct error *err);

#endif
