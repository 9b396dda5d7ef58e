/* cluster_options.h: from options to the clustering jobs. */
#ifndef CLPIPE_CLI_CLUSTER_OPTIONS_H
#define CLPIPE_CLI_CLUSTER_OPTIONS_H

#include "cli/compute.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "clustering/clustering.h"
#include "file/parameters.h"

/* What a job needs of the machine. The options must live as long as the job; options->call->compute is
 * opened when devices are needed, if it is not open by then. */
void options_machine(struct clustering_machine *out, const struct options *options);

/* Everything but input, feature, output and lower_k, which differ between `run` and `cluster`. */
void options_clustering(struct clustering_config *out, const struct options *options);

/* The options of a run, completed by those of the clustering that the file has under the name; their
 * texts are in `parameters`, which the caller closes. wanted: the feature to cluster by; NULL: that of the
 * file. */
struct stored_clustering {
    struct options options;
    struct parameters *parameters;
};
void options_stored_clustering(struct stored_clustering *out, const struct options *options,
                               const char *wanted);

/* What --levels says, count 0 where -k is given instead; STATUS_USAGE unless one of them is, and right. */
enum status options_levels(struct cluster_levels_config *out, const struct options *options,
                           struct error *err);

/* STATUS_USAGE unless --whiten is from 0 to 1 and has --pca. */
enum status options_check_projection(const struct options *options, struct error *err);

/* What `cluster` and `assign` say at their end: the summary, and the JSON. */
void report_clustering(const struct options *options, struct clustering_report *report);

#endif
