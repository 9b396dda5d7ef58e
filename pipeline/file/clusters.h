/* clusters.h: /clusters/NAME in files that are being written. */
#ifndef CLPIPE_FILE_CLUSTERS_H
#define CLPIPE_FILE_CLUSTERS_H

#include "file/result_internal.h"

/* Writes a clustering; the scales of its axes are those of the file's images and features where it
 * has them. */
enum status clusters_write(hid_t file, const struct result_clustering *clustering, const char *path,
                           struct error *err);

/* Copies a clustering of a finished file. */
enum status clusters_copy(hid_t file, const char *path, struct result *from,
                          const struct result_clusters *clusters, struct error *err);

/* Notes in /runs of a file that is written that `run` made the clustering `name` under its usual
 * name; NULL: that it made none. Nothing is noted where there is no /runs. */
enum status clusters_note_run(hid_t file, const char *name, const char *path, struct error *err);

/* Removes one from a copy of the file of `result`: scales that others share forget it, its own go
 * with it. HDF5 trusts what it keeps for scales: check them first (clusters_check_scales, where
 * `old` may be NULL: then only those that a clustering of `feature` will be attached to). */
enum status clusters_check_scales(struct result *result, const char *feature,
                                  const struct result_clusters *old, struct error *err);
enum status clusters_remove(hid_t file, struct result *result,
                            const struct result_clusters *clusters, const char *path,
                            struct error *err);

/* Gives a clustering of an open copy another name, and the scales that are its own. */
enum status clusters_rename(hid_t file, const char *from, const char *to, const char *path,
                            struct error *err);

#endif
