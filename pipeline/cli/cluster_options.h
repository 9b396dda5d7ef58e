/* cluster_options.h: from options to the clustering jobs. */
#ifndef CLPIPE_CLI_CLUSTER_OPTIONS_H
#define CLPIPE_CLI_CLUSTER_OPTIONS_H

#include "cli/option_rows.h"
#include "jobs/clustering.h"
#include "kmeans/method.h"

/* Options of a clustering: the member `clustering` of the structs of cluster and run. */
struct clustering_given {
    struct clustering_config config;
    const char *plot, *levels, *split, *resample;
    int method; /* row of kmeans_methods; -1: not given */
};

/* clang-format off */
#define NAME_ROW                                                                                   \
    TEXT("name", clustering.config.job.name, "NAME", "store the result as /clusters/NAME", .initial = "kmeans")
#define PLOT_ROW                                                                                   \
    OUTPUT("plot", clustering.plot, "FILE.svg", "plot the quality measures of each k in A:B")
#define CHECKPOINT_ROW                                                                             \
    EVERY("checkpoint", clustering.config.checkpoint_seconds, "SECONDS",                                          \
          "save the state beside the result at this interval, so that a killed clustering can "    \
          "resume; 0: never", .initial = "60")
#define METHOD_WORD(name, word) "|" word
#define CLUSTERING_ROWS(restarts, restarts_note)                                                   \
    TEXT("init", clustering.config.init, "kmeans++|kmeans-parallel|random|FILE.npy",                      \
         "initial centroids; kmeans++ is the greedy variant", .initial = "kmeans++"),              \
    NUMBER("seed", clustering.config.seed, "N",                                                           \
           "seed of the random choices; the same seed gives the same result",                      \
           .initial = "0", .max = INT64_MAX),                                                      \
    NUMBER("n-init", clustering.config.n_init, "N",                                                       \
           "number of runs from different initial centroids; the best is kept",                    \
           .initial = restarts, .note = restarts_note, .min = 1, .max = UINT32_MAX),               \
    NUMBER("max-iter", clustering.config.max_iter, "N",                                                   \
           "maximum number of iterations; 0: label by the initial centroids",                      \
           .initial = "100", .max = UINT32_MAX),                                                   \
    REAL("tol", clustering.config.tol, "X",                                                               \
         "stop when the squared centroid shift is at most X times the mean variance of the "       \
         "columns; 0: when no label changes, the default of --mini-batch", .initial = "1e-4"),     \
    CHOICE("metric", clustering.config.metric, "euclidean|cosine|hellinger", "distance measure",          \
           .note = "hellinger for clpipe's l1 histograms, else euclidean"),                        \
    NUMBER("pca", clustering.config.projection.pca, "N",                                                  \
           "cluster by the first N principal components of the rows, divided by their length; "    \
           "0: by the rows", .note = "as the preset says, else 0", .max = 256),                    \
    REAL("whiten", clustering.config.projection.whiten, "X",                                              \
         "divide components by their variance to the power of X/2, X from 0 to 1; with --pca",     \
         .note = "as the preset says, else 0"),                                                    \
    FLAG("center", clustering.config.projection.center,                                                   \
         "subtract the mean of the rows and divide them by their length; --pca does so"),          \
    CHOICE("method", clustering.method, &KMEANS_METHODS(METHOD_WORD)[1],                           \
           "how to iterate; mini-batch takes the rows of --mini-batch",                            \
           .note = "lloyd; with --mini-batch mini-batch"),                                         \
    NUMBER("mini-batch", clustering.config.mini_batch, "N",                                               \
           "approximate k-means: each iteration uses N random rows",                               \
           .note = "off", .min = 1, .max = UINT32_MAX)
/* clang-format on */

/* The machine for a job. The options must outlive the job; options->call->compute is opened when
 * devices are first needed. */
void options_machine(struct clustering_machine *out, const struct options *options);

/* What assign, cluster and run tell a job about its rows and its result; the caller sets the rest. */
void options_cluster_job(struct cluster_job_config *out, const struct options *options,
                         const char *input);

/* The part common to `run` and `cluster`. */
void options_clustering(struct clustering_config *out, const struct options *options,
                        const struct clustering_given *given, const char *input);

/* Parses --levels, --split and --resample; count 0: only -k is given. STATUS_USAGE: neither they
 * nor -k is given, or one is invalid. */
enum status options_levels(struct cluster_levels_config *out, const struct options *options,
                           const struct clustering_given *given, struct error *err);

/* STATUS_USAGE if --method and --mini-batch contradict each other. */
enum status options_check_method(const struct clustering_given *given, struct error *err);

/* STATUS_USAGE unless --whiten is from 0 to 1, and above 0 only with --pca. */
enum status options_check_projection(const struct clustering_projection *given, struct error *err);

/* The final output of `cluster` and `assign`: the summary and the JSON. */
void report_clustering(const struct options *options, struct clustering_report *report);

#endif
