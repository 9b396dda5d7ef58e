/* labelling.h: the job that assigns rows to the centroids of a clustering. */
#ifndef CLPIPE_JOBS_LABELLING_H
#define CLPIPE_JOBS_LABELLING_H

#include "jobs/clustering_report.h"
#include "jobs/machine.h"

/* Labels the rows by the clusters config->name (NULL: the only ones) of the clpipe file `centroids`,
 * or finds the labels in the file; errors and report as for clustering_run, but without seconds.
 * config->feature NULL: the clustered one. STATUS_FAILED: the rows are not of the clustered feature. */
enum status labelling_run(struct clustering_report *report, const char *centroids,
                          const struct cluster_job_config *config, struct error *err);

#endif
