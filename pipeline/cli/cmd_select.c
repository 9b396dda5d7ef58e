/* cmd_select.c: clpipe select: chooses images from a file. */
#include "base/clock.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/source_name.h"
#include "cli/call.h"
#include "cli/cluster_options.h"
#include "cli/commands.h"
#include "cli/option_rows.h"
#include "cli/report_json.h"
#include "cli/sink.h"
#include "cli/summary.h"
#include "jobs/selection.h"
#include "result/flags.h"
#include "result/locate.h"
#include "result/schema.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The options of the command. */
struct select_options {
    struct options common;
    struct select_config config;
    const char *without, *to_list;
};

#define OWN struct select_options

/* Checks the options, and completes the configuration by what they do not give directly. */
static enum status check_options(struct select_config *config, const struct options *options,
                                 struct error *err)
{
    const struct select_options *own = (const struct select_options *)options;
    const char *number = options->operand_count > 1 ? options->operand[1] : NULL;
    const bool alike = options_given(options, "semantic"),
               by_values = select_methods[config->method].by_values;
    if (number && !parse_u64(&config->count, number, 1, UINT64_MAX))
        return misuse(err, "N must be a number of images, at least 1, not '%s'",
                      PATH_TEXT_IN(128, number));
    if (alike && config->alike > 1)
        return misuse(err, "--semantic must be a cosine from 0 to 1");
    if (!alike)
        config->alike = NAN;
    if (!number && !alike && config->per_cluster == 0)
        return misuse(err, "say how many images: N, --per-cluster M or --semantic X");
    if (schema_check_name(config->name, "selection", err) != STATUS_OK)
        return error_remedy(err, REMEDY_OTHER_NAME);
    if (options_given(options, "prefer") && !alike)
        return misuse(err, "--prefer requires --semantic");
    if (config->feature && !alike && !by_values)
        return misuse(err, "--feature requires --semantic or --method diverse");
    if (config->metric >= 0 && !by_values)
        return misuse(err, "--metric requires --method diverse");
    if (options_given(options, "seed") && by_values)
        return misuse(err, "--method diverse chooses nothing at random: leave out --seed");
    const enum status status = options_check_output(options, "--to-list", own->to_list, err);
    return status == STATUS_OK && own->without ? flags_parse(&config->without, own->without, err)
                                               : status;
}

static void summarise(const struct selection *selection, const struct options *options,
                      double seconds)
{
    const struct select_config *config = selection->config;
    char radius[60] = "";
    if (!isnan(selection->radius))
        snprintf(radius, sizeof radius, ", covering radius %.6g", selection->radius);
    summary_line(options, "%s of %s chosen (%s%s%s%s), in %.2f s", COUNT_TEXT(selection->chosen),
                 NUMBER_OF(selection->candidates + selection->omitted_count, "image"),
                 select_methods[config->method].name, selection->clusters ? " by clusters " : "",
                 selection->clusters ? selection->clusters->name : "", radius, seconds);
    if (config->without)
        summary_line(options, "  %s left out by flags", NUMBER_OF(selection->flagged, "image"));
    if (selection->unlabelled > 0)
        summary_line(options, "  %s left out: without a cluster",
                     NUMBER_OF(selection->unlabelled, "image"));
    if (selection->incomparable > 0)
        summary_line(options, "  %s left out: without values that can be compared",
                     NUMBER_OF(selection->incomparable, "image"));
    if (!isnan(config->alike))
        summary_line(options,
                     "  %s left out: their cosine with a kept image of the cluster is at least %g",
                     NUMBER_OF(selection->omitted_count, "image"), config->alike);
    if (selection->hidden_known && selection->hidden > 0)
        summary_line(options, "  %s kept, although as similar to one in another cluster",
                     NUMBER_OF(selection->hidden, "image"));
    if (config->count > selection->chosen)
        summary_line(options, "  fewer than %llu: %s", (unsigned long long)config->count,
                     config->per_cluster > 0 ? "--per-cluster leaves no more"
                                             : "there are no more to choose from");
    if (selection->stored)
        summary_line(options, "  selections/%s already exists: nothing to do", config->name);
    else if (!options->dry_run)
        summary_line(options, "  stored as selections/%s", config->name);
}

static void write_json(const struct selection *selection, const struct options *options,
                       double seconds)
{
    struct json *json = report_open(options);
    const struct select_config *config = selection->config;
    report_bytes(json, "file", config->file);
    json_string(json, "name", config->name);
    json_string(json, "method", select_methods[config->method].name);
    if (selection->clusters)
        json_string(json, "clusters", selection->clusters->name);
    json_uint(json, "images", result_images(selection->result));
    json_uint(json, "candidates", selection->candidates + selection->omitted_count);
    json_uint(json, "chosen", selection->chosen);
    if (config->count > 0)
        json_uint(json, "asked", config->count);
    if (config->without)
        json_uint(json, "flagged", selection->flagged);
    if (selection->clusters)
        json_uint(json, "unlabelled", selection->unlabelled);
    if (select_methods[config->method].by_values)
        json_uint(json, "incomparable", selection->incomparable);
    if (!isnan(config->alike)) {
        json_double(json, "semantic", config->alike);
        json_uint(json, "left_out", selection->omitted_count);
        if (selection->hidden_known)
            json_uint(json, "hidden", selection->hidden);
        else
            json_null(json, "hidden");
    }
    if (!isnan(selection->radius))
        json_double(json, "radius", selection->radius);
    json_uint(json, "seed", config->seed);
    json_bool(json, "stored", !options->dry_run);
    json_double(json, "seconds", seconds);
}

/* Absolute paths, each ended by NUL; of pictures that came by tar:-, their names there. */
static enum status write_list(const struct selection *selection, const char *file,
                              struct error *err)
{
    struct locator locator = {0};
    struct result_image image;
    struct sink list;
    const char *path = NULL;
    enum status status = sink_open(&list, file, err);
    for (uint64_t i = 0; i < selection->chosen && status == STATUS_OK; i++) {
        status = result_image_at(selection->result, selection->candidate[i].row, &image, err);
        path = image.path_raw;
        if (status == STATUS_OK && !source_is_stream(selection->result->sources[image.source]))
            status = locate_image(&locator, &path, selection->result, image.source, path, err);
        if (status == STATUS_OK)
            sink_write(&list, path, strlen(path) + 1);
    }
    locator_clear(&locator);
    return sink_end(&list, status, err);
}

static enum status run_select(const struct options *options, struct error *err)
{
    const struct select_options *own = (const struct select_options *)options;
    struct select_config config = own->config;
    struct selection selection = {0};
    config.file = options->operand[0];
    enum status status = carried_check(options, config.file, err);
    if (status == STATUS_OK)
        status = check_options(&config, options, err);
    if (status != STATUS_OK)
        return status;
    call_start(options, 0);
    options_machine(&config.machine, options);
    const int64_t start = clock_now();
    status = selection_make(&selection, &config, err);
    if (status == STATUS_OK && !options->dry_run)
        status = selection_store(&selection, options->force, err);
    if (status == STATUS_OK && own->to_list)
        status = write_list(&selection, own->to_list, err);
    if (status == STATUS_OK) {
        const double seconds = clock_seconds_since(start);
        summarise(&selection, options, seconds);
        write_json(&selection, options, seconds);
    }
    selection_close(&selection);
    return status;
}

static const struct option rows[] = {
    CHOICE("method", config.method, "balanced|nearest|diverse|random", "how to choose",
           .initial = "balanced"),
    TEXT("name", config.name, "NAME", "name of the selection", .initial = "selection"),
    TEXT("clusters", config.clusters, "NAME", "clustering to choose by", .note = "the only one"),
    NUMBER("per-cluster", config.per_cluster, "M", "take at most M images of a cluster",
           .initial = "0", .note = "any number"),
    REAL("semantic", config.alike, "X",
         "leave out an image if its cosine with a kept image of its cluster is at least X",
         .note = "none are left out"),
    CHOICE("prefer", config.preference, "nearest|best",
           "which image is kept: nearest to the centre, or best picture (most pixels, then most "
           "bytes); with --semantic",
           .initial = "nearest"),
    TEXT("within", config.within, "LIST",
         "choose from these: a file of paths, one per line or separated by NUL",
         .note = "all images"),
    TEXT("without", without, "FLAG,...",
         "leave out images with one of these flags: dark, light, low-contrast, low-information, "
         "blurry, grey, bordered (of files made with --quality), odd-aspect, odd-size, outlier "
         "(of files with the neighbours of similar --all)"),
    TEXT("feature", config.feature, "NAME", "feature whose rows diverse and --semantic compare",
         .note = "that of the clustering"),
    CHOICE("metric", config.metric, "euclidean|cosine|hellinger", "distance of diverse",
           .note = "hellinger for l1 histograms, else euclidean"),
    NUMBER("seed", config.seed, "N", "seed of the random choices", .initial = "0"),
    TEXT("to-list", to_list, "FILE", "also write the absolute path of each image, ended by NUL"),
    DRY_RUN_ROW("store nothing"),
    FORCE_ROW("replace a selection of the same name, and an existing list"),
    SIZE("memory", common.memory, "SIZE", "limit on rows that are compared", .initial = "1G"),
    {.name = NULL}};

const struct command command_select = {
    .name = "select",
    .goal = GOAL_RESULTS,
    .arguments = "F.h5 [N] [OPTIONS]",
    .summary = "choose images: balanced, diverse, or without similar ones",
    .about = "Chooses N images and stores the choice in the file as selections/NAME, with the "
             "reason for each. balanced takes the same number from each cluster, at random within "
             "it, and more from the others if some are too small; if clusters have levels, at each "
             "level. nearest takes those nearest to the centres, from all clusters in turn. "
             "diverse takes, one by one, the image that is farthest from those already chosen. "
             "random takes images at random. The choice depends only on the file, the options and "
             "--seed; with "
             "balanced, nearest and random, a smaller N gives the beginning of the same choice.",
    .examples = "  clpipe select photos.h5 1000\n"
                "  clpipe select photos.h5 500 --method diverse --name varied\n"
                "  clpipe select photos.h5 --semantic 0.95 --name unlike --to-list unlike.list\n"
                "  clpipe export photos.h5 --what selection --name varied",
    .operand_name = "F.h5 or N",
    .operands = {1, 2},
    .threads = true,
    .group = {{"What to choose", rows}, {GROUP_CARRIED}},
    .size = sizeof(OWN),
    .run = run_select};
