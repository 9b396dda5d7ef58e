/* cmd_evaluate.c: clpipe evaluate: how well features and clusterings agree with classes. */
#include "base/clock.h"
#include "base/parse.h"
#include "base/path.h"
#include "cli/call.h"
#include "cli/cluster_options.h"
#include "cli/commands.h"
#include "cli/option_rows.h"
#include "cli/report_json.h"
#include "cli/summary.h"
#include "jobs/evaluation.h"
#include "matrix/projected.h"
#include <stdio.h>
#include <string.h>

/* The options of the command. */
struct evaluate_options {
    struct options common;
    struct text_list metrics;
    struct evaluation_config config;
};

#define OWN struct evaluate_options

#define METRICS 3

static enum status read_metrics(enum cluster_metric metrics[METRICS], unsigned *count,
                                const struct text_list *names, struct error *err)
{
    *count = 0;
    for (unsigned i = 0; i < names->count; i++) {
        unsigned metric = 0, before = 0;
        while (metric < METRICS && strcmp(names->text[i], metric_names[metric]) != 0)
            metric++;
        if (metric == METRICS)
            return misuse(err, "--metric must be euclidean, cosine or hellinger, not '%s'",
                          names->text[i]);
        while (before < *count && metrics[before] != (enum cluster_metric)metric)
            before++;
        if (before == *count)
            metrics[(*count)++] = (enum cluster_metric)metric;
    }
    return STATUS_OK;
}

/* --- what is printed ----------------------------------------------------------------------------- */

static int widest(int width, const char *text)
{
    const int length = (int)strlen(text);
    return length > width ? length : width;
}

static void tell_features(const struct options *options, const struct evaluation *evaluation)
{
    const struct evaluate_options *own = (const struct evaluate_options *)options;
    struct json *json = &options->call->json;
    int width = 7;
    for (unsigned i = 0; i < evaluation->feature_count; i++)
        width = widest(width, evaluation->features[i].name);
    summary_line(options, "\n%-*s  %6s  %-9s  %6s  %6s  %6s  %6s  %7s", width, "feature", "values",
                 "metric", "mAP", "P@1", "P@5", "P@10", "MMAP@10");
    json_open_array(json, "features");
    for (unsigned i = 0; i < evaluation->feature_count; i++) {
        const struct evaluation_feature *one = &evaluation->features[i];
        const struct ranking *ranking = &one->ranking;
        summary_line(options, "%-*s  %6u  %-9s  %6.4f  %6.4f  %6.4f  %6.4f  %7.4f", width,
                     one->name, one->dimension, metric_names[one->metric], ranking->map,
                     ranking->precision_at_1, ranking->precision_at_5, ranking->precision_at_10,
                     ranking->mmap_at_10);
        json_open_object(json, NULL);
        json_string(json, "feature", one->name);
        json_uint(json, "values", one->dimension);
        if (own->config.projection.pca || own->config.projection.center) {
            json_bool(json, "center", true);
            json_uint(json, "pca", own->config.projection.pca);
            json_double(json, "whiten", own->config.projection.whiten);
        }
        json_string(json, "metric", metric_names[one->metric]);
        if (own->config.expand)
            json_uint(json, "expand", own->config.expand);
        if (own->config.diffuse)
            json_bool(json, "diffuse", true);
        json_uint(json, "queries", ranking->queries);
        json_double(json, "map", ranking->map);
        json_double(json, "precision_at_1", ranking->precision_at_1);
        json_double(json, "precision_at_5", ranking->precision_at_5);
        json_double(json, "precision_at_10", ranking->precision_at_10);
        json_double(json, "mmap_at_10", ranking->mmap_at_10);
        json_double(json, "seconds", ranking->seconds);
        json_close_object(json);
    }
    json_close_array(json);
}

static void tell_clusterings(const struct options *options, const struct evaluation *evaluation)
{
    struct json *json = &options->call->json;
    int name = 10, feature = 7;
    for (unsigned i = 0; i < evaluation->clusters_count; i++) {
        name = widest(name, evaluation->clusters[i].clusters->name);
        feature = widest(feature, evaluation->clusters[i].clusters->feature);
    }
    if (evaluation->clusters_count > 0)
        summary_line(options, "\n%-*s  %-*s  %-9s  %5s  %6s  %6s  %7s", name, "clustering", feature,
                     "feature", "metric", "k", "purity", "NMI", "ARI");
    json_open_array(json, "clusterings");
    for (unsigned i = 0; i < evaluation->clusters_count; i++) {
        const struct result_clusters *clusters = evaluation->clusters[i].clusters;
        const struct cluster_agreement *agreement = &evaluation->clusters[i].agreement;
        summary_line(options, "%-*s  %-*s  %-9s  %5u  %6.4f  %6.4f  %7.4f", name, clusters->name,
                     feature, clusters->feature, clusters->metric, clusters->k, agreement->purity,
                     agreement->nmi, agreement->ari);
        json_open_object(json, NULL);
        json_string(json, "name", clusters->name);
        json_string(json, "feature", clusters->feature);
        json_string(json, "metric", clusters->metric);
        json_uint(json, "k", clusters->k);
        json_uint(json, "images", evaluation->clusters[i].rows);
        report_agreement(json, agreement);
        json_close_object(json);
    }
    json_close_array(json);
}

static void tell(const struct options *options, const struct evaluation *evaluation)
{
    const struct evaluate_options *own = (const struct evaluate_options *)options;
    const double seconds = clock_seconds_since(clock_process_start());
    const struct classes *classes = &evaluation->classes;
    const uint64_t out = result_images(evaluation->result) - classes->rows;
    struct json *json = report_open(options);
    char left_out[80] = "", of[300] = "folders";
    if (own->config.classes)
        snprintf(of, sizeof of, "classes of %s", PATH_TEXT(own->config.classes));
    if (out > 0)
        snprintf(left_out, sizeof left_out, "; %llu without a class left out",
                 (unsigned long long)out);
    summary_line(options, "%s: %s in %u %s%s, in %.2f s", PATH_TEXT(options->operand[0]),
                 NUMBER_OF(classes->rows, "image"), classes->count, of, left_out, seconds);
    report_bytes(json, "file", options->operand[0]);
    report_bytes(json, "classes_of", own->config.classes ? own->config.classes : "folders");
    json_uint(json, "classes", classes->count);
    json_uint(json, "images", classes->rows);
    json_uint(json, "images_left_out", out);
    tell_features(options, evaluation);
    tell_clusterings(options, evaluation);
    json_double(json, "seconds", seconds);
}

static enum status run_evaluate(const struct options *options, struct error *err)
{
    const struct evaluate_options *own = (const struct evaluate_options *)options;
    enum cluster_metric metrics[METRICS];
    struct evaluation evaluation = {0};
    unsigned metric_count;
    enum status status = options_check_projection(&own->config.projection, err);
    if (status == STATUS_OK && own->config.diffuse && own->config.expand)
        status = misuse(err, "--diffuse or --expand, not both");
    if (status == STATUS_OK)
        status = read_metrics(metrics, &metric_count, &own->metrics, err);
    if (status != STATUS_OK)
        return status;
    struct evaluation_config config = own->config;
    config.file = options->operand[0];
    config.metrics = metrics;
    config.metric_count = metric_count;
    call_start(options, 0);
    options_machine(&config.machine, options);
    status = evaluation_run(&evaluation, &config, err);
    if (status == STATUS_OK)
        tell(options, &evaluation);
    evaluation_clear(&evaluation);
    return status;
}

static const struct option rows[] = {
    LIST("feature", config.features, "NAME[:W]+...",
         "feature to measure, or several joined with weights; repeatable",
         .note = "each feature of the file, and its preset"),
    LIST("metric", metrics, "euclidean|cosine|hellinger", "distance; repeatable",
         .note = "hellinger for l1 histograms, else euclidean"),
    LIST("name", config.names, "NAME", "clustering to measure; repeatable",
         .note = "all clusterings of the file"),
    TEXT("classes", config.classes, "FILE.csv|cls",
         "cls: what ingest --sidecar has stored; else a table of classes: columns path and class; "
         "images that are not listed are left out",
         .note = "the folders"),
    NUMBER("pca", config.projection.pca, "N",
           "rank by the first N principal components of the rows, as cluster --pca does",
           .initial = "0", .max = 256),
    REAL("whiten", config.projection.whiten, "X",
         "divide components by their variance to the power of X/2, X from 0 to 1; with --pca",
         .initial = "0"),
    FLAG("center", config.projection.center,
         "subtract the mean of the rows and divide them by their length; --pca does so"),
    FLAG("diffuse", config.diffuse,
         "rank by diffusion on the graph of the 15 nearest neighbours, as similar --diffuse does"),
    NUMBER("expand", config.expand, "N",
           "rank by the mean of each row and its N nearest, as similar --expand does",
           .initial = "0", .max = 1000),
    SIZE("memory", common.memory, "SIZE", "limit on clpipe's own host buffers", .initial = "256M"),
    {.name = NULL}};

const struct command command_evaluate = {
    .name = "evaluate",
    .goal = GOAL_RESULTS,
    .arguments = "F.h5 [OPTIONS]",
    .summary = "measure how well features and clusters agree with classes",
    .about = "The classes are the folders of the images, or those of a table. Retrieval: every "
             "image is a query, and all others are ranked by their distance from it; mAP (mean "
             "average precision) is that of the whole ranking, P@1, P@5 and P@10 are the shares of "
             "the query's class among the first 1, 5 and 10, MMAP@10 is the average precision of "
             "the first 10, "
             "as in published tables of image retrieval. Clusters: purity, NMI (normalised mutual "
             "information) and ARI (adjusted Rand index) of stored clusterings. Every measure is "
             "exact; the device plays no part.",
    .examples = "  clpipe evaluate photos.h5\n"
                "  clpipe evaluate photos.h5 --feature hsv_8x4x4 --feature hsv_8x4x4+gray_100:0.5\n"
                "  clpipe evaluate photos.h5 --classes classes.csv --metric cosine --json -",
    .operand_name = "F.h5",
    .operands = {1, 1},
    .threads = true,
    .group = {{"What to measure", rows}},
    .size = sizeof(OWN),
    .run = run_evaluate};
