/* cmd_export.c: clpipe export: tables for other programs, and trees. */
#include "base/log.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/text.h"
#include "cli/call.h"
#include "cli/cluster_options.h"
#include "cli/commands.h"
#include "cli/export_table.h"
#include "cli/option_rows.h"
#include "cli/report_json.h"
#include "cli/signals.h"
#include "jobs/shards.h"
#include "result/sidecars.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define OWN struct export_options

#define NAME(name) #name,
#define WORD(name) "|" #name
#define KIND(name) &export_##name,

#define WHAT (&EXPORTS(WORD)[1]) /* "features|labels|..." */

static const struct export_kind *const kinds[] = {EXPORTS(KIND)};
static const char *const kind_names[] = {EXPORTS(NAME)};

static const struct {
    const char *name;
    unsigned takes;
} conditional[] = {{"feature", TAKES_FEATURE},      {"name", TAKES_NAME},
                   {"absolute-paths", TAKES_PATHS}, {"link", TAKES_LINK},
                   {"selection", TAKES_SHARDS},     {"samples", TAKES_SHARDS},
                   {"shard-bytes", TAKES_SHARDS},   {"shuffle", TAKES_SHARDS},
                   {"seed", TAKES_SHARDS},          {"shard", TAKES_SHARDS}};

/* Options without effect on what is written are refused. */
static enum status check_conditional(const struct export *export, struct error *err)
{
    const struct options *options = &export->own->common;
    for (size_t i = 0; i < sizeof conditional / sizeof *conditional; i++) {
        char takers[128] = "";
        if (!options_given(options, conditional[i].name) ||
            export->kind->takes & conditional[i].takes)
            continue;
        for (size_t j = 0; j < sizeof kinds / sizeof *kinds; j++)
            if (kinds[j]->takes & conditional[i].takes)
                text_add(takers, sizeof takers, " or ", "%s", kind_names[j]);
        return misuse(err, "--%s requires --what %s", conditional[i].name, takers);
    }
    if (export->own->absolute_paths && export->table.format == FORMAT_NPY)
        return misuse(err, "--absolute-paths: a .npy file holds no paths");
    if (export->own->absolute_paths && export->kind == &export_tree &&
        export->own->link != LINK_SYMBOLIC)
        return misuse(err, "--absolute-paths requires symbolic links");
    if (options_given(options, "seed") && !export->own->shards.shuffle)
        return misuse(err, "--seed requires --shuffle");
    return STATUS_OK;
}

static enum status check_options(const struct export *export, struct error *err)
{
    const struct export_options *own = export->own;
    const struct options *options = &own->common;
    const struct export_kind *kind = export->kind;
    const bool shards = kind == &export_shards;
    if (!kind)
        return misuse(err, "--what is missing: give one of %s", WHAT);
    const char *what = CHOICE_WORD(options, "what");
    if (kind->directory && !own->to)
        return misuse(err, "--what %s requires --to DIR, the directory to create", what);
    if (kind->directory && (options->output || options_given(options, "format")))
        return misuse(err, "--what %s uses --to, not -o or --format", what);
    if (!kind->directory && own->to)
        return misuse(err, "--to requires --what tree or --what shards");
    if (shards && own->name)
        return misuse(err, "--name is not for shards: --selection names the images to write");
    if (check_conditional(export, err) != STATUS_OK)
        return STATUS_USAGE;
    if (kind->directory && options->force)
        return misuse(err, "--force is for -o; %s",
                      shards ? "shards replace nothing" : "a tree replaces only a tree");
    if (!kind->directory && options->force && !options->output)
        return misuse(err, "--force requires -o FILE");
    if (export->table.format == FORMAT_NPY && !kind->npy)
        return misuse(err,
                      "--format npy is only for features, labels and centroids: choose csv, tsv or "
                      "jsonl");
    if (!kind->directory && !export->output && json_owns_stdout(options))
        return misuse(err, "the table and --json - cannot both use standard output: give -o FILE");
    return STATUS_OK;
}

static enum status make_table(struct export *export, struct error *err)
{
    const struct options *options = &export->own->common;
    enum status status = options_check_output(options, "-o", export->output, err);
    if (status != STATUS_OK)
        return status;
    status = sink_open(&export->sink, export->output, err);
    if (status != STATUS_OK)
        return status;
    /* On a terminal, a live line would get into the table. */
    if (export->output || !isatty(STDOUT_FILENO))
        progress_init(&options->call->progress, options);
    status = export->kind->write(export, err);
    progress_end(&options->call->progress);
    /* A closed pipe is not an error, wherever it was noticed. */
    if (status == STATUS_FAILED && !export->sink.file && err->native == EPIPE) {
        *err = (struct error)ERROR_INIT;
        status = STATUS_OK;
    }
    status = sink_end(&export->sink, status, err);
    if (status == STATUS_OK && export->output)
        log_message(LOG_INFO, "%s in %s", NUMBER_OF(export->rows, "row"),
                    PATH_TEXT(export->output));
    return status;
}

static enum status make_shards(struct export *export, struct error *err)
{
    const struct export_options *own = export->own;
    const struct options *options = &own->common;
    struct shards_config config = own->shards;
    struct shards_report report = {0};
    config.result = export->result;
    config.directory = own->to;
    config.feature = own->feature;
    config.share = options->share;
    progress_init(&options->call->progress, options);
    options_machine(&config.machine, options);
    const enum status status = shards_write(&report, &config, err);
    progress_end(&options->call->progress);
    if (status != STATUS_OK)
        return status;
    export->rows = report.samples;
    const char *shown = PATH_TEXT(own->to);
    if (report.made > 0 || report.there == 0)
        log_message(LOG_INFO, "%s in %s under %s", NUMBER_OF(report.samples, "image"),
                    NUMBER_OF(report.made, "archive"), shown);
    if (report.there > 0)
        log_message(LOG_INFO, "%s there already", NUMBER_OF(report.there, "archive"));
    if (!report.whole)
        log_message(LOG_INFO, "%s is complete when all shares are written", shown);
    if (report.left_out > 0)
        log_message(LOG_NOTICE, "notice: %s gone or changed since: left out",
                    NUMBER_OF(report.left_out, "image"));
    return report.left_out > 0 ? STATUS_PARTIAL : STATUS_OK;
}

const struct export_kind export_shards = {
    .takes = TAKES_FEATURE | TAKES_SHARDS, .directory = true, .write = make_shards};

static enum status run_export(const struct options *options, struct error *err)
{
    const struct export_options *own = (const struct export_options *)options;
    struct export export = {.own = own, .kind = own->what < 0 ? NULL : kinds[own->what]};
    struct json *json = report_open(options);
    options->call->progress.phase = "";
    signals_install(0);
    enum status status =
        options_table(&export.output, &export.table.format, options, FORMAT_CSV, err);
    export.table.sink = &export.sink;
    if (status == STATUS_OK)
        status = check_options(&export, err);
    if (status != STATUS_OK)
        return status;
    status = result_open(&export.result, options->operand[0], err);
    if (status != STATUS_OK)
        return status;
    if (export.kind->open)
        status = export.kind->open(&export, err);
    if (status == STATUS_OK)
        status =
            export.kind->directory ? export.kind->write(&export, err) : make_table(&export, err);
    json_string(json, "what", CHOICE_WORD(options, "what"));
    json_uint(json, "rows", export.rows);
    report_bytes(json, "output", own->to ? own->to : export.output);
    locator_clear(&export.locator);
    matrix_close(&export.matrix);
    sidecar_reader_close(&export.sidecars);
    result_close(&export.result);
    held_free(&export.held);
    return status;
}

static const struct option rows[] = {
    CHOICE("what", what, WHAT,
           "table to write, tree or shards; required. quality: numbers and flags of each image; "
           "centroids, clusters (a line for each) and sweep (the measures of each k of -k A:B) are "
           "of one clustering"),
    CHOICE("format", format, "csv|tsv|jsonl|npy",
           "table format; npy only for features, labels and centroids", .initial = "csv",
           .note = "the extension of -o, else csv"),
    TEXT("feature", feature, "NAME", "feature to export, if the file has several",
         .note = "the only one"),
    TEXT("name", name, "NAME", "clustering or selection to export, if the file has several",
         .note = "the only one"),
    TABLE_ROW,
    FORCE_ROW("replace an existing file"),
    FLAG("absolute-paths", absolute_paths,
         "write the absolute path of each image in the column path, and absolute symbolic links in "
         "a tree"),
    TEXT("to", to, "DIR",
         "tree, shards: directory to create; may exist if it is empty, or holds an earlier tree, "
         "which is replaced, or shards of the same export, which are completed; required"),
    CHOICE("link", link, "symlink|hard|copy",
           "tree: how each image appears in its folder; symbolic links are relative",
           .initial = "symlink"),
    TEXT("selection", shards.selection, "NAME", "shards: images of this selection, in its order",
         .note = "all images"),
    NUMBER("samples", shards.samples, "N", "shards: largest number of images in an archive",
           .initial = "0", .note = "any number"),
    SIZE("shard-bytes", shards.bytes, "SIZE", "shards: largest size of the pictures in an archive",
         .initial = "1G"),
    FLAG("shuffle", shards.shuffle, "shards: images in a random order, see --seed"),
    NUMBER("seed", shards.seed, "N", "shards: seed of --shuffle", .initial = "0"),
    TEXT("shard", common.shard, "I/N|slurm/N|mpi",
         "shards: write share I of N of the archives, from 0; the last one also writes the index",
         .note = "all"),
    SIZE("memory", common.memory, "SIZE", "shards: limit on members of compressed archives",
         .initial = "256M"),
    {.name = NULL}};

const struct command command_export = {
    .name = "export",
    .goal = GOAL_RESULTS,
    .arguments = "F.h5... --what WHAT [OPTIONS]",
    .summary = "write tables, a folder per cluster, or shards to train on",
    .about =
        "Tables are written to standard output or to -o FILE, which is not replaced without "
        "--force. A tree is a directory with one folder per cluster, the largest cluster first; a "
        "folder holds a link to each of its images, or a copy, the nearest to the centre first. "
        "Shards are tar archives to train on (WebDataset): each image unchanged, with its path, "
        "clusters and, with --feature, row. Several files are read as if they were merged.",
    .examples = "  clpipe export photos.h5 --what labels > labels.csv\n"
                "  clpipe export photos.h5 --what features --format npy -o features.npy\n"
                "  clpipe export photos.h5 --what clusters -o clusters.csv\n"
                "  clpipe export photos.h5 --what tree --to sorted\n"
                "  clpipe export photos.h5 --what shards --selection train --shuffle --to shards",
    .operand_name = "F.h5",
    .operands = {1, 65535},
    .joins = 1,
    .threads = true,
    .group = {{"What to write", rows}},
    .size = sizeof(OWN),
    .run = run_export};
