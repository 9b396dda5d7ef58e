/* cmd_import.c: clpipe import: stores rows computed elsewhere as a feature. */
#include "base/log.h"
#include "base/parse.h"
#include "base/path.h"
#include "cli/call.h"
#include "cli/commands.h"
#include "cli/option_rows.h"
#include "cli/quote.h"
#include "cli/report_json.h"
#include "cli/summary.h"
#include "jobs/importing.h"
#include <stdlib.h>
#include <string.h>

/* The options of the command. */
struct import_options {
    struct options common;
    bool allow_missing;
};

#define OWN struct import_options

static void tell(const struct importing_report *report, const char *name,
                 const struct options *options)
{
    struct json *json = report_open(options);
    const char *file = PATH_TEXT(options->operand[0]);
    if (report->match.missing > 0)
        log_message(LOG_NOTICE, "notice: %s %s no row and %s NaN: %s",
                    NUMBER_OF(report->match.missing, "image"),
                    report->match.missing == 1 ? "has" : "have",
                    report->match.missing == 1 ? "is" : "are", report->match.first_missing);
    if (report->match.unused > 0)
        log_message(LOG_NOTICE, "notice: %s %s to no image of %s and %s left out: %s",
                    NUMBER_OF(report->match.unused, "row"),
                    report->match.unused == 1 ? "belongs" : "belong", file,
                    report->match.unused == 1 ? "was" : "were", report->match.first_unused);
    if (report->clusterings_removed > 0)
        log_message(LOG_NOTICE, "notice: %s of the earlier '%s' %s removed",
                    NUMBER_OF(report->clusterings_removed, "clustering"), name,
                    report->clusterings_removed == 1 ? "was" : "were");
    summary_line(options, "%s: feature %s, %u values for each of %s", file, name, report->dimension,
                 NUMBER_OF(report->images, "image"));
    summary_line(options, "  %-11s %s, %s of %s%s%s", "from", report->from,
                 NUMBER_OF(report->rows, "row"), report->type,
                 strcmp(report->type, "float32") == 0 ? "" : ", stored as float32",
                 options->paths ? ", matched by path" : "");
    if (report->found)
        summary_line(options, "  %-11s the file already holds these rows", "up to date");
    summary_wall(options);
    summary_line(options, "  %-11s clpipe cluster %s --feature %s -k K", "next",
                 QUOTED(options->operand[0]), name);
    summary_line(options,
                 "  %-11s (--metric cosine suits CLIP and most other embeddings; the "
                 "default is euclidean)",
                 "");
    json_string(json, "feature", name);
    json_uint(json, "images", report->images);
    json_uint(json, "dimension", report->dimension);
    json_uint(json, "rows", report->rows);
    json_uint(json, "images_without_row", report->match.missing);
    json_uint(json, "rows_without_image", report->match.unused);
    json_string(json, "type", report->type);
    report_bytes(json, "from", report->from);
    json_string(json, "digest", report->digest);
    json_uint(json, "clusterings_removed", report->clusterings_removed);
    json_double(json, "seconds", report->seconds);
    report_bytes(json, "output", options->operand[0]);
}

static enum status run_import(const struct options *options, struct error *err)
{
    const struct import_options *own = (const struct import_options *)options;
    struct importing_report report;
    const char *equals = strchr(options->operand[1], '=');
    if (carried_check(options, options->operand[0], err) != STATUS_OK)
        return err->status;
    if (!equals || equals == options->operand[1] || !equals[1])
        return misuse(err, "expected NAME=MATRIX after F.h5, as in clip=clip.npy");
    if (own->allow_missing && !options->paths)
        return misuse(err, "--allow-missing requires --paths LIST");
    char *name = strndup(options->operand[1], (size_t)(equals - options->operand[1]));
    if (!name)
        return error_memory(err, strlen(options->operand[1]), "a name");
    call_start(options, 0);
    const struct importing_config config = {.file = options->operand[0],
                                            .name = name,
                                            .input = equals + 1,
                                            .paths = options->paths,
                                            .allow_missing = own->allow_missing,
                                            .replace = options->force,
                                            .memory = options->memory,
                                            .watch = options_watch(options)};
    enum status status = importing_run(&report, &config, err);
    if (status == STATUS_OK)
        tell(&report, name, options);
    path_match_clear(&report.match);
    free(name);
    return status;
}

static const struct option rows[] = {
    TEXT("paths", common.paths, "LIST",
         "match rows to images by path: a file with the path of each row, one per line or "
         "separated by NUL; - is standard input",
         .note = "row i is image i"),
    FLAG("allow-missing", allow_missing,
         "accept images whose path is not in LIST; their rows are NaN"),
    FORCE_ROW(
        "replace an imported feature of the same name; clusterings and neighbours made from it "
        "are removed"),
    {.name = NULL}};

const struct command command_import = {
    .name = "import",
    .goal = GOAL_STEPS,
    .arguments = "F.h5 NAME=MATRIX [OPTIONS]",
    .summary = "add rows that were computed elsewhere as a feature",
    .about =
        "Stores the rows of MATRIX (FILE.npy, or FILE.h5:/dataset of any HDF5 file) as the feature "
        "NAME of the clpipe file, so that other commands use them like its own features. Row i "
        "belongs to image i, or with --paths to the image of path i: relative to its source, with "
        "the source in front, or absolute. Values are stored as float32.",
    .examples = "  clpipe import photos.h5 clip=clip.npy\n"
                "  clpipe import photos.h5 clip=clip.npy --paths clip.txt --allow-missing\n"
                "  clpipe import photos.h5 dino=embeddings.h5:/dino/vectors\n"
                "  clpipe cluster photos.h5 --feature clip -k 24 --metric cosine",
    .operand_name = "F.h5 or NAME=MATRIX",
    .operands = {2, 2},
    .computes = true,
    .group = {{"Rows", rows}, {GROUP_CARRIED}},
    .size = sizeof(OWN),
    .run = run_import};
