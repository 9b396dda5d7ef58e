/* cmd_assign.c: clpipe assign: label rows by the centroids of a clustering. */
#include "base/path.h"
#include "cli/call.h"
#include "cli/cluster_options.h"
#include "cli/commands.h"
#include "cli/option_rows.h"
#include "result/choose.h"
#include "result/parameters.h"
#include <sys/stat.h>

/* The options of the command. */
struct assign_options {
    struct options common;
    struct cluster_job_config config;
};

#define OWN struct assign_options

/* Only rows of the same feature can be labelled: suggests how to compute it for a directory. */
static enum status directory_needs_ingest(const struct options *options, struct error *err)
{
    const struct assign_options *own = (const struct assign_options *)options;
    struct result *result = NULL;
    const struct result_clusters *clusters;
    struct parameters *parameters = NULL;
    const char *spec = NULL;
    if (result_open(&result, options->operand[0], NULL) == STATUS_OK &&
        choose_clusters(&clusters, result, own->config.name, NULL) == STATUS_OK &&
        parameters_open(&parameters, clusters->parameters, NULL) == STATUS_OK)
        spec = parameters_member(parameters, "spec");
    if (spec)
        error_set(err, STATUS_FAILED,
                  "%s is a directory: compute its features first, with clpipe ingest %s -o F.h5 "
                  "--feature %s=%s",
                  PATH_TEXT(options->operand[1]), PATH_TEXT(options->operand[1]), clusters->feature,
                  spec);
    parameters_close(&parameters);
    result_close(&result);
    return err->status;
}

static enum status run_assign(const struct options *options, struct error *err)
{
    const struct assign_options *own = (const struct assign_options *)options;
    struct clustering_report report;
    struct cluster_job_config config = own->config;
    enum status status =
        carried_check(options, options->output ? options->output : options->operand[1], err);
    if (status != STATUS_OK)
        return status;
    call_start(options, 0);
    options_cluster_job(&config, options, options->operand[1]);
    status = labelling_run(&report, options->operand[0], &config, err);
    struct stat st;
    if (status == STATUS_OK)
        report_clustering(options, &report);
    else if (status == STATUS_FAILED && stat(options->operand[1], &st) == 0 && S_ISDIR(st.st_mode))
        status = directory_needs_ingest(options, err);
    clustering_report_clear(&report);
    return status;
}

static const struct option rows[] = {
    TEXT("name", config.name, "NAME", "clustering in C.h5; the labels get the same name",
         .note = "the only one in C.h5"),
    TEXT("feature", config.feature, "NAME", "feature of INPUT, if it is a clpipe file",
         .note = "the one that was clustered"),
    PATHS_ROW,
    OUTPUT_ROW(NULL, "INPUT itself, if it is a clpipe file",
               "write the labels to a separate file; required for .npy and other HDF5 files"),
    VERIFY_INPUT_ROW(config.verify_input),
    FORCE_ROW("replace an existing result of the same name"),
    {.name = NULL}};

const struct command command_assign = {
    .name = "assign",
    .goal = GOAL_STEPS,
    .arguments = "C.h5 INPUT... [OPTIONS]",
    .summary = "label rows with the centroids of an earlier clustering",
    .about =
        "Labels each row of INPUT with its nearest centroid in C.h5. INPUT is a clpipe file with "
        "the same feature, a dataset of any HDF5 file (FILE.h5:/dataset) or FILE.npy. The labels "
        "are stored in the clpipe file; for the other inputs, and several clpipe files as one, "
        "-o names the file to write.",
    .examples = "  clpipe ingest new-photos -o new.h5\n"
                "  clpipe assign photos.h5 new.h5\n"
                "  clpipe assign groups.h5 new.npy -o labels.h5",
    .operand_name = "C.h5 or INPUT",
    .operands = {2, 65535},
    .joins = 2,
    .joins_output = true,
    .computes = true,
    .ranks_share = true,
    .group = {{"Labels", rows}, {GROUP_CARRIED}},
    .size = sizeof(OWN),
    .run = run_assign};
