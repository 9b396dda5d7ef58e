/* clusters.h: /clusters/NAME in files that are being written. */
#ifndef CLPIPE_RESULT_CLUSTERS_H
#define CLPIPE_RESULT_CLUSTERS_H

#include "result/result_internal.h"

/* Writes a clustering; its axes use the scales of the file's images and features if they exist. */
enum status clusters_write(hid_t file, const struct result_clustering *clustering, const char *path,
                           struct error *err);

/* Gives a clustering of an open copy another name, and the scales that are its own. */
enum status clusters_rename(hid_t file, const char *from, const char *to, const char *path,
                            struct error *err);

#endif
