/* cmd_cluster.c: clpipe cluster. */
#include "base/clock.h"
#include "cli/cluster_step.h"
#include "cli/commands.h"
#include "cli/report_json.h"
#include "cli/signals.h"
#include "cli/summary.h"
#include "cli/sweep_plot.h"

static enum status tell(const struct options *options, const struct cluster_plan *plan,
                        struct cluster_result *result, struct error *err)
{
    struct json json;
    result->seconds = (double)(clock_now() - clock_process_start()) * 1e-9;
    summary_clusters(result, plan->input.result, plan->output == plan->input.path);
    if (options->plot) {
        enum status status = sweep_plot_svg(options->plot, &result->sweep, result->k, err);
        if (status != STATUS_OK)
            return status;
    }
    json_init(&json, false);
    report_cluster(&json, NULL, result);
    return report_write(options, &json, err);
}

enum status command_cluster(const struct options *options, struct error *err)
{
    struct cluster_plan plan;
    struct compute compute = {0};
    struct cluster_result result = {0};
    struct progress progress;
    if (!options_given(options, "k"))
        return misuse(err, options->command, "the number of clusters is missing: give -k K");
    signals_install(options->max_time);
    enum status status = sweep_plot_check(options, err);
    if (status != STATUS_OK)
        return status;
    status = cluster_plan_open(&plan, options->operand[0], options->feature, options, false, err);
    if (status != STATUS_OK)
        return status;
    if (!plan.found)
        status = compute_open(&compute, options, true, err);
    progress_init(&progress, options);
    if (status == STATUS_OK)
        status = cluster_step(&result, &plan, &compute, &progress, err);
    if (status == STATUS_OK)
        status = tell(options, &plan, &result, err);
    cluster_result_clear(&result);
    status = compute_close(&compute, status, err);
    cluster_plan_close(&plan);
    return status;
}
