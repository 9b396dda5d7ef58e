/* cmd_list.c: clpipe list: walks once, so that later commands need not. */
#include "base/parse.h"
#include "base/path.h"
#include "base/process.h"
#include "cli/call.h"
#include "cli/commands.h"
#include "cli/ingest_step.h"
#include "cli/option_rows.h"
#include "cli/report_json.h"
#include "cli/summary.h"
#include "decode/decode.h"
#include "ingest/bounds.h"
#include "sources/listfile.h"

#include <stdio.h>

/* The options of the command. */
struct list_options {
    struct options common;
    struct walk_given walk;
};

#define OWN struct list_options

static void report(const struct listfile_summary *list, const struct options *options)
{
    struct json *json = report_open(options);
    char archives[64] = "", failed[80] = "";
    if (list->archives > 0) {
        snprintf(archives, sizeof archives, " (with members of %s)",
                 NUMBER_OF(list->archives, "archive"));
    }
    if (list->failed > 0)
        snprintf(failed, sizeof failed, "; %llu cannot be read", (unsigned long long)list->failed);
    summary_line(options, "%s%s, %s%s, in %s; digest %s", NUMBER_OF(list->count, "file"), archives,
                 BYTES_TEXT(list->bytes), failed, PATH_TEXT(options->output), list->digest);
    json_uint(json, "files", list->count);
    json_uint(json, "failed", list->failed);
    json_uint(json, "archives", list->archives);
    json_uint(json, "bytes", list->bytes);
    json_string(json, "list_digest", list->digest);
    report_bytes(json, "output", options->output);
}

static enum status run_list(const struct options *options, struct error *err)
{
    const struct list_options *own = (const struct list_options *)options;
    struct listfile_summary list;
    struct walk *walk = NULL;
    const char *temporary = process_temporary_directory();
    if (!options->output)
        return misuse(err, "the output is missing: give -o LIST");
    const struct walk_config config = {
        .options = ingest_walk_options(options, &own->walk),
        .spool_directory = temporary,
        .memory = bounds_sorting(options->memory),
        .skip_paths = &options->output,
        .skip_count = 1,
        .promises_image = format_promised,
        .again = "a list can only name files that can be read again later",
        .watch = options_watch(options),
    };
    enum status status = ingest_look_for_sources(options, err);
    if (status == STATUS_OK)
        status = options_check_output(options, "-o", options->output, err);
    if (status != STATUS_OK)
        return status;
    call_start(options, 0);
    progress_stage(&options->call->progress, "walking");
    status = walk_open(&walk, &config, err);
    progress_stage(&options->call->progress, "writing");
    if (status == STATUS_OK)
        status = listfile_write(&list, options->output, walk, temporary, config.memory,
                                config.watch.stop, err);
    if (status == STATUS_OK) {
        struct walk_passed passed = walk_passed(walk);
        passed.repeated += list.repeated;
        ingest_tell_passed(passed);
    }
    walk_close(&walk);
    if (status == STATUS_OK)
        report(&list, options);
    return status;
}

static const struct option rows[] = {
    OUTPUT("output", common.output, "FILE", "file to write; required", .letter = 'o'),
    WALK_ROWS,
    SIZE("memory", common.memory, "SIZE", "limit on clpipe's own host buffers", .initial = "256M"),
    FORCE_ROW("replace an existing file"),
    {.name = NULL}};

const struct command command_list = {
    .name = "list",
    .goal = GOAL_STEPS,
    .arguments = "SOURCE... -o LIST [OPTIONS]",
    .summary = "list the files of sources once, for many ingests",
    .about = "Walks the sources, looks into archives, and writes the paths, sizes and times of all "
             "files, and the places of members, to LIST. A command that is given @LIST walks no "
             "directories, so that each of many shards starts at once. Paths are relative to the "
             "directory in which list runs; use LIST there. A file that has changed since then "
             "counts as a failure.",
    .examples = "  clpipe list photos 'shard-{0000..0999}.tar' -o all.list\n"
                "  clpipe ingest @all.list -o 'part-{shard}.h5' --shard slurm/64",
    .operand_name = "SOURCE",
    .operands = {1, 65535},
    .group = {{"What to list", rows}},
    .size = sizeof(OWN),
    .run = run_list};
