/* verify_clusters.h: one clustering, its sweep, and that it was made from the rows of its feature. */
#ifndef CLPIPE_FILE_VERIFY_CLUSTERS_H
#define CLPIPE_FILE_VERIFY_CLUSTERS_H

#include "file/verify_report.h"

enum status verify_clustering(struct verify *verify, const struct result_cluster_entry *entry,
                              struct error *err);

#endif
