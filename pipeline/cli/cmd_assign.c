/* cmd_assign.c: clpipe assign: label rows by the centroids of a clustering. */
#include "base/clock.h"
#include "cli/cluster_options.h"
#include "cli/commands.h"
#include "cli/report_json.h"
#include "cli/signals.h"
#include "cli/summary.h"
#include "clustering/labelling.h"

enum status command_assign(const struct options *options, struct error *err)
{
    struct compute compute = {0};
    struct compute_search search = {&compute, options};
    struct clustering_report report;
    struct progress progress;
    struct labelling_config config = {
        .centroids = options->operand[0],
        .name = options->name,
        .input = options->operand[1],
        .feature = options->feature,
        .output = options->output,
        .paths = options->paths,
        .replace = options->force,
    };
    signals_install(0);
    progress_init(&progress, options);
    options_machine(&config.machine, &search, &progress);
    enum status status = labelling_run(&report, &config, err);
    progress_end(&progress);
    if (status == STATUS_OK)
        status = report_clustering(options, &report, err);
    clustering_report_clear(&report);
    return compute_close(&compute, status, err);
}
