/* cmd_run.c: clpipe run: ingest, clustering, and advice on what to do next. */
#include "base/log.h"
#include "base/path.h"
#include "base/text.h"
#include "cli/cluster_options.h"
#include "cli/commands.h"
#include "cli/compute.h"
#include "cli/ingest_options.h"
#include "cli/ingest_step.h"
#include "cli/report_json.h"
#include "cli/report_step.h"
#include "cli/signals.h"
#include "cli/stored_options.h"
#include "cli/summary.h"
#include "cli/sweep_plot.h"
#include "decode/isolate.h"
#include "result/parameters.h"
#include "sources/source.h"
#include <stdlib.h>
#include <string.h>

/* The options of the command. */
struct run_options {
    struct ingest_options ingest;
    struct clustering_given clustering;
    const char *feature;
    bool no_report;
};

#define OWN struct run_options

/* Reports a feature that run does not compute before hours of work. */
static enum status check_cluster_feature(const struct ingest_plan *plan, const char *feature,
                                         struct error *err)
{
    char names[256] = "";
    for (unsigned i = 0; i < plan->features.count; i++)
        text_add_name(names, sizeof names, plan->features.feature[i].name);
    /* Several features may be joined: NAME[:WEIGHT]+NAME[:WEIGHT]. */
    for (const char *at = feature; at && *at;) {
        const size_t length = strcspn(at, ":+");
        bool found = false;
        for (unsigned i = 0; i < plan->features.count && !found; i++)
            found = strlen(plan->features.feature[i].name) == length &&
                    strncmp(plan->features.feature[i].name, at, length) == 0;
        if (!found)
            return misuse(err, "--cluster-feature %.*s: this run computes only %s", (int)length, at,
                          names);
        at += strcspn(at, "+");
        at += *at == '+';
    }
    return STATUS_OK;
}

/* The options of the run, completed by those of the file's clustering of that name; their texts are in
 * `parameters`, which the caller closes. wanted: the feature to cluster by; NULL: that of the file's
 * clustering. */
static void take_stored(struct run_options *own, struct parameters **parameters, const char *wanted)
{
    /* Restarts and tolerance of earlier runs are up to clustering.h. */
    static const char *const names[] = {"seed", "max-iter", "tol", "mini-batch", "method",
                                        "init", "metric",   "pca", "whiten"};
    const size_t count = sizeof names / sizeof *names, of_feature = 3;
    struct options *options = &own->ingest.image.common;
    const bool components = options_given(options, "pca"),
               method = options_given(options, "method");
    struct result *result = NULL;
    char text[64];
    if (result_open(&result, options->output, NULL) != STATUS_OK)
        return;
    const struct result_clusters *old =
        result_clusters_find(result, own->clustering.config.job.name);
    if (!old || parameters_open(parameters, old->parameters, NULL) != STATUS_OK ||
        parameters_member(*parameters, "clusters")) /* labels made by assign */
        goto out;
    const char *feature = parameters_member(*parameters, "feature");
    const bool same_feature = feature && (!wanted || strcmp(wanted, feature) == 0);
    if (same_feature)
        options_take(options, "cluster-feature", feature);
    /* Another feature has its own metric and components. */
    for (size_t i = 0; i < (same_feature ? count : count - of_feature); i++) {
        const char *value = stored_text(text, sizeof text, *parameters, names[i]);
        value = value ? value : "0";
        /* run cannot take initial centroids from a file; a tolerance of 0 comes from an earlier
         * version. */
        if (strncmp(value, "given-", 6) == 0 || (strcmp(names[i], "mini-batch") == 0 && method) ||
            (strcmp(names[i], "tol") == 0 && strcmp(value, "0") == 0))
            continue;
        options_take(options, names[i], value);
    }
    if (same_feature && own->clustering.config.projection.pca == 0 && !components)
        parameters_boolean(*parameters, "center", &own->clustering.config.projection.center);
    /* A k that was a default is chosen again. */
    const char *k = stored_text(text, sizeof text, *parameters, "k");
    const uint64_t rows_then = old->fitted_rows ? old->fitted_rows : old->rows;
    if (k && (strchr(k, ':') || (old->k > 1 && old->k != clustering_usual_k(rows_then))) &&
        options_take(options, "k", k) &&
        (strchr(k, ':') || old->k != clustering_usual_k(old->rows)))
        log_message(LOG_NOTICE, "notice: k is %s, as in %s; -k chooses another", k,
                    PATH_TEXT(options->output));
out:
    result_close(&result);
}

static enum status cluster_and_tell(struct clustering_report *out, const struct ingest_plan *plan,
                                    const struct options *options, struct error *err)
{
    const struct run_options *own = (const struct run_options *)options;
    struct clustering_config config;
    struct run_options stored = *own;
    struct parameters *parameters = NULL;
    const char *usual =
        plan->preset && own->ingest.features.count == 0 ? RESULT_PRESET : plan->first;
    const bool named =
        own->ingest.features.count > 0 || (options_given(options, "preset") && plan->redo);
    take_stored(&stored, &parameters, own->feature ? own->feature : named ? usual : NULL);
    options_clustering(&config, &stored.ingest.image.common, &stored.clustering, options->output);
    config.job.feature = stored.feature ? stored.feature : usual;
    config.lower_k = !options_given(options, "k") && config.k.first == config.k.last;
    config.usual_k = !options_given(&stored.ingest.image.common, "k");
    config.usual_pca = !options_given(options, "pca");
    config.restarts = true;
    config.by_run = !options_given(options, "name");
    enum status status = clustering_run(out, &config, err);
    parameters_close(&parameters);
    if (status != STATUS_OK) {
        const size_t used = strlen(err->sentence);
        if (status != STATUS_INTERRUPTED)
            snprintf(err->sentence + used, sizeof err->sentence - used,
                     " (the features are kept in %s)", PATH_TEXT(options->output));
        return status;
    }
    summary_clusters(out, options);
    const char *plot = own->clustering.plot;
    return plot ? sweep_plot_svg(plot, &out->sweep, out->level[0].outcome.k, err) : STATUS_OK;
}

/* The second half: clusters and reports. ingested: the outcome of the first half; directory: the
 * report's, or NULL. */
static enum status finish(const struct options *options, const struct ingest_plan *plan,
                          const struct ingest_report *report, enum status ingested,
                          const char *directory, struct error *err)
{
    const struct run_options *own = (const struct run_options *)options;
    struct progress *progress = &options->call->progress;
    struct json *json = &options->call->json;
    struct clustering_report clusters = {0};
    struct pages_counts pages = {0};
    bool reported = false;
    bool whole = ingested == STATUS_OK && !options->dry_run;
    summary_ingest(report, options, ingested, false);
    progress_init(progress, options);
    progress_stage(progress, "opening");
    if (ingested != STATUS_OK)
        summary_stopped(err, report);
    enum status status = ingested;
    if (whole)
        status = cluster_and_tell(&clusters, plan, options, err);
    const bool clustered = whole && status == STATUS_OK;
    if (clustered && directory) {
        progress_init(progress, options);
        progress_stage(progress, "pages");
        struct pages_config config = {.file = options->output,
                                      .directory = directory,
                                      .name = own->clustering.config.job.name,
                                      .keep_current = true};
        options_machine(&config.machine, options);
        status = pages_write(&pages, &config, err);
        reported = status == STATUS_OK;
        if (reported) {
            summary_wall(options);
            report_open_line(options, directory);
        }
    }
    report_open(options);
    json_open_object(json, "ingest");
    report_ingest(options, report, whole ? options->output : NULL, true);
    json_close_object(json);
    if (clustered) {
        json_open_object(json, "cluster");
        report_cluster(json, &clusters);
        json_close_object(json);
    } else {
        json_null(json, "cluster");
    }
    if (reported) {
        json_open_object(json, "report");
        report_pages(json, &pages, directory);
        json_close_object(json);
    } else {
        json_null(json, "report");
    }
    options->call->tells_errors = status != STATUS_USAGE && status != STATUS_FAILED;
    clustering_report_clear(&clusters);
    return status == STATUS_OK ? ingest_verdict(report, &own->ingest) : status;
}

static enum status run_run(const struct options *options, struct error *err)
{
    const struct run_options *own = (const struct run_options *)options;
    struct ingest_plan plan = {0};
    struct ingest_report report;
    struct isolate *isolate = NULL;
    char *directory = NULL;
    enum status status = carried_check(options, options->output, err);
    if (status == STATUS_OK)
        status = options_check_projection(&own->clustering.config.projection, err);
    if (status == STATUS_OK)
        status = options_check_method(&own->clustering, err);
    if (status == STATUS_OK)
        status = ingest_plan_open(&plan, &own->ingest, err);
    if (status == STATUS_OK)
        status = ingest_isolate(&isolate, &plan.takeover.options.image, err);
    if (status != STATUS_OK)
        goto out;
    call_start(options, signals_time_limit(options));
    status = check_cluster_feature(&plan, own->feature, err);
    if (status != STATUS_OK)
        goto out;
    status = clustering_check_name(own->clustering.config.job.name, err);
    if (status != STATUS_OK)
        goto out;
    status = sweep_plot_check(options, own->clustering.plot, &own->clustering.config.k, err);
    if (status != STATUS_OK)
        goto out;
    if (!own->no_report && !options->dry_run) {
        status = report_directory(&directory, options->output, err);
        if (status == STATUS_OK)
            status = pages_check(directory, err);
        if (status != STATUS_OK) {
            error_remedy(err, REMEDY_NO_REPORT);
            goto out;
        }
    }
    status = compute_open(options, false, err);
    if (status != STATUS_OK)
        goto out;
    plan.thumbnails = !own->no_report;
    plan.remade = own->clustering.config.job.name;
    plan.most_clusters = options_given(options, "k") ? own->clustering.config.k.last : 0;
    status = ingest_step(&report, &plan, isolate, NULL, err);
    isolate_close(&isolate);
    if (status != STATUS_USAGE && status != STATUS_FAILED)
        status = finish(options, &plan, &report, status, directory, err);
out:
    ingest_plan_close(&plan);
    isolate_close(&isolate);
    free(directory);
    return status;
}

static const struct option result_rows[] = {
    OUTPUT_ROW("clpipe.h5", NULL, "HDF5 file to write or update"),
    FLAG("no-report", no_report, "make no thumbnails, and no pages in F-report beside the file"),
    {.name = NULL}};

static const struct option cluster_rows[] = {
    NUMBERS("k", clustering.config.k, "K|A:B",
            "number of clusters; A:B or A:B:STEP tries each k from A to B and keeps the best",
            .letter = 'k', .initial = "10",
            .note = "10; for fewer than 50 images a fifth of their number; for an existing file, "
                    "the number that it has",
            .min = 1, .max = INT32_MAX),
    PLOT_ROW,
    TEXT("cluster-feature", feature, "NAME",
         "feature to cluster by; NAME:WEIGHT+NAME:WEIGHT joins several",
         .note = "the preset's, or the first"),
    NAME_ROW,
    CLUSTERING_ROWS(NULL, "10 if rows x values x k is at most 2^31, else 1"),
    CHECKPOINT_ROW,
    FORCE_ROW("replace a clustering of the same name made with other options"),
    {.name = NULL}};

const struct command command_run = {
    .name = "run",
    .goal = GOAL_JOB,
    .arguments = "SOURCE... [-k K] [-o F.h5] [OPTIONS]",
    .summary = "extract features from a directory of images and cluster them",
    .about = "Decodes every image in the sources, computes its features, clusters the images with "
             "k-means and writes one HDF5 file, which also lists the files that failed and why. "
             "Run the same command again to add new files, or to resume after an interruption. A "
             "new source is added to those of the file; options that are not given are taken "
             "from the file.\n" SOURCES_TEXT,
    .examples = "  clpipe run ~/Pictures\n"
                "  clpipe run photos scans -k 24 -o archive.h5\n"
                "  clpipe run photos --feature hsv:bins=8x4x4,grid=3x3 --exclude '*.png'",
    .operand_name = "SOURCE",
    .operands = {1, 65535},
    .computes = true,
    .group = {{"Result", result_rows},
              {GROUP_INGEST},
              {GROUP_IMAGES},
              {"Clustering", cluster_rows},
              {GROUP_TUNING},
              {GROUP_CARRIED}},
    .size = sizeof(OWN),
    .run = run_run};
