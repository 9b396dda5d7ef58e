/* cmd_cluster.c: clpipe cluster. */
#include "cli/call.h"
#include "cli/cluster_options.h"
#include "cli/commands.h"
#include "cli/option_rows.h"
#include "cli/signals.h"
#include "cli/sweep_plot.h"
#include "ranks/processes.h"

/* The options of the command. */
struct cluster_options {
    struct options common;
    struct clustering_given clustering;
};

#define OWN struct cluster_options

static enum status run_cluster(const struct options *options, struct error *err)
{
    const struct cluster_options *own = (const struct cluster_options *)options;
    struct clustering_report report = {0};
    struct clustering_config config;
    struct cluster_levels_config levels;
    const char *plot = processes_first(options->processes) ? own->clustering.plot : NULL;
    enum status status =
        carried_check(options, options->output ? options->output : options->operand[0], err);
    if (status == STATUS_OK)
        status = options_levels(&levels, options, &own->clustering, err);
    if (status == STATUS_OK)
        status = options_check_method(&own->clustering, err);
    if (status != STATUS_OK)
        return status;
    call_start(options, signals_time_limit(options));
    status = options_check_projection(&own->clustering.config.projection, err);
    if (status == STATUS_OK)
        status = sweep_plot_check(options, plot, &own->clustering.config.k, err);
    if (status != STATUS_OK)
        return status;
    options_clustering(&config, options, &own->clustering, options->operand[0]);
    config.levels = levels;
    if (levels.count > 0)
        config.k.first = config.k.last = levels.k[levels.split > 0];
    status = clustering_run(&report, &config, err);
    if (status == STATUS_OK)
        report_clustering(options, &report);
    if (status == STATUS_OK && plot)
        status = sweep_plot_svg(plot, &report.sweep, report.level[0].outcome.k, err);
    clustering_report_clear(&report);
    return status;
}

static const struct option rows[] = {
    NUMBERS("k", clustering.config.k, "K|A:B",
            "number of clusters; required, or --levels or --split. A:B or A:B:STEP tries each k "
            "from A to "
            "B, keeps the best, and stores the quality measures of all",
            .letter = 'k', .min = 1, .max = INT32_MAX),
    TEXT("levels", clustering.levels, "K1,K2,...",
         "K1 clusters of the rows, K2 clusters of their centroids, and so on; stored as "
         "/clusters/NAME, NAME-2, ..."),
    TEXT("split", clustering.split, "AxB",
         "A clusters of the rows, stored as /clusters/NAME-2, each divided into B: at most A times "
         "B "
         "clusters in /clusters/NAME"),
    TEXT("resample", clustering.resample, "N:R",
         "R times, cluster only the N rows nearest to each centroid, and assign all rows to the "
         "result"),
    PLOT_ROW,
    TEXT("feature", clustering.config.job.feature, "NAME",
         "feature of a clpipe file to cluster by; NAME:WEIGHT+NAME:WEIGHT joins several",
         .note = "the preset's, or the only one"),
    NAME_ROW,
    CLUSTERING_ROWS("1", NULL),
    TEXT("weights", clustering.config.weights, "FILE.npy|FILE.h5:/dataset",
         "weight of each row: one non-negative number per row", .note = "1 each"),
    PATHS_ROW,
    CHECKPOINT_ROW,
    MAX_TIME_ROW,
    OUTPUT_ROW(NULL, "the clpipe file itself",
               "write the result to a separate file; required for .npy and other HDF5 files"),
    VERIFY_INPUT_ROW(clustering.config.job.verify_input),
    FORCE_ROW("replace an existing result of the same name"),
    {.name = NULL}};

const struct command command_cluster = {
    .name = "cluster",
    .goal = GOAL_STEPS,
    .arguments = "INPUT... -k K [OPTIONS]",
    .summary = "cluster rows with k-means",
    .about = "INPUT is a clpipe file, a dataset of any HDF5 file (FILE.h5:/dataset) or FILE.npy. "
             "The clusters are stored in the clpipe file, which is replaced by a new copy and "
             "never changed in place; for the other inputs, -o names the file to write. Several "
             "clpipe files are read as if they were merged; that requires -o, too.",
    .examples = "  clpipe cluster photos.h5 -k 24\n"
                "  clpipe cluster photos.h5 -k 2:40 --plot k.svg\n"
                "  clpipe cluster photos.h5 -k 100 --name fine --n-init 5\n"
                "  clpipe cluster embeddings.npy -k 256 --metric cosine -o groups.h5\n"
                "  clpipe cluster shards/*.h5 -k 1000 -o groups.h5",
    .operand_name = "INPUT",
    .operands = {1, 65535},
    .joins = 1,
    .joins_output = true,
    .computes = true,
    .ranks_share = true,
    .group = {{"Clustering", rows}, {GROUP_CARRIED}},
    .size = sizeof(OWN),
    .run = run_cluster};
