/* cmd_assign.c: clpipe assign: label rows by the centroids of a clustering. */
#include "base/path.h"
#include "cli/call.h"
#include "cli/cluster_options.h"
#include "cli/commands.h"
#include "clustering/labelling.h"
#include "file/choose.h"
#include "file/parameters.h"
#include <sys/stat.h>

/* What can be labelled has the same feature: the command that computes it for a directory. */
static enum status directory_needs_ingest(const struct options *options, struct error *err)
{
    struct result *result = NULL;
    const struct result_clusters *clusters;
    struct parameters *parameters = NULL;
    const char *spec = NULL;
    char shown[256];
    if (result_open(&result, options->operand[0], NULL) == STATUS_OK &&
        choose_clusters(&clusters, result, options->name, NULL) == STATUS_OK &&
        parameters_open(&parameters, clusters->parameters, NULL) == STATUS_OK)
        spec = parameters_member(parameters, "spec");
    if (spec)
        error_set(err, STATUS_FAILED,
                  "%s is a directory: compute its features first, with clpipe ingest %s -o F.h5 "
                  "--feature %s=%s",
                  path_for_message(shown, sizeof shown, options->operand[1]), shown,
                  clusters->feature, spec);
    parameters_close(&parameters);
    result_close(&result);
    return err->status;
}

enum status command_assign(const struct options *options, struct error *err)
{
    struct clustering_report report;
    struct labelling_config config = {
        .centroids = options->operand[0],
        .name = options->name,
        .input = options->operand[1],
        .feature = options->feature,
        .output = options->output,
        .paths = options->paths,
        .replace = options->force,
        .verify_input = options->verify_input,
    };
    call_start(options, 0);
    options_machine(&config.machine, options);
    enum status status = labelling_run(&report, &config, err);
    struct stat st;
    if (status == STATUS_OK)
        report_clustering(options, &report);
    else if (status == STATUS_FAILED && stat(options->operand[1], &st) == 0 && S_ISDIR(st.st_mode))
        status = directory_needs_ingest(options, err);
    clustering_report_clear(&report);
    return status;
}
