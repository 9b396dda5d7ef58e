/* cmd_cluster.c: clpipe cluster. */
#include "base/log.h"
#include "base/path.h"
#include "cli/call.h"
#include "cli/cluster_options.h"
#include "cli/commands.h"
#include "cli/signals.h"
#include "cli/sweep_plot.h"
#include "file/result.h"
#include <stdlib.h>
#include <string.h>

/* FILE.h5:/features/X of a clpipe file is taken as the numbers of any HDF5 file. */
static void tell_of_features(const char *input)
{
    const char *dataset = strstr(input, ":/features/");
    char shown[256];
    struct result *result = NULL;
    char *file = dataset ? strndup(input, (size_t)(dataset - input)) : NULL;
    if (file && result_open(&result, file, NULL) == STATUS_OK &&
        result_feature_find(result, dataset + strlen(":/features/")))
        log_message(LOG_NOTICE,
                    "notice: this clusters plain numbers; for the images and the metric of the "
                    "feature: clpipe cluster %s --feature %s",
                    path_for_message(shown, sizeof shown, file), dataset + strlen(":/features/"));
    result_close(&result);
    free(file);
}

enum status run_cluster(const struct options *options, struct error *err)
{
    struct clustering_report report = {0};
    struct clustering_config config;
    struct cluster_levels_config levels;
    enum status status = options_levels(&levels, options, err);
    if (status != STATUS_OK)
        return status;
    call_start(options, signals_time_limit(options));
    status = options_check_projection(options, err);
    if (status == STATUS_OK)
        status = sweep_plot_check(options, err);
    if (status != STATUS_OK)
        return status;
    tell_of_features(options->operand[0]);
    options_clustering(&config, options);
    config.input = options->operand[0];
    config.feature = options->feature;
    config.output = options->output;
    config.paths = options->paths;
    config.levels = levels;
    if (levels.count > 0)
        config.k = (struct number_range){levels.k[0], levels.k[0], 1};
    status = clustering_run(&report, &config, err);
    if (status == STATUS_OK)
        report_clustering(options, &report);
    if (status == STATUS_OK && options->plot)
        status = sweep_plot_svg(options->plot, &report.sweep, report.k, err);
    clustering_report_clear(&report);
    return status;
}
