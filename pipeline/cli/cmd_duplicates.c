/* cmd_duplicates.c: clpipe duplicates: groups of copies, the one to keep, a list of the others. */
#include "base/array.h"
#include "base/clock.h"
#include "base/compare.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/path.h"
#include "cli/commands.h"
#include "cli/compute.h"
#include "cli/option_rows.h"
#include "cli/report_json.h"
#include "cli/row_table.h"
#include "cli/signals.h"
#include "cli/summary.h"
#include "jobs/removal.h"
#include "sources/filelist.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The options of the command. */
struct duplicates_options {
    struct options common;
    uint64_t near;
    bool no_compare;
    int keep, format;
    const char *to_list, *to_list_members, *check;
};

#define OWN struct duplicates_options

#define SHOWN_GROUPS  20u /* to people */
#define SHOWN_MEMBERS 8u
#define DEVICE_IMAGES                                                                              \
    100000u /* from this number on, a device saves more time than it takes to
                               * start */

struct command_state {
    const struct duplicates_options *own;
    struct result *result;
    struct duplicates found;
    const char *output; /* NULL: standard output */
    int format;         /* enum export_format; -1: a summary to read */
    bool keeps;         /* --keep, or what --to-list implies */
    struct removal removal;
    char **listed; /* of --check: names, ascending */
    uint64_t listed_count;
    struct sink sink;
    struct json *json;                  /* of the call */
    uint64_t by_kind[DUPLICATES_KINDS]; /* groups */
};

/* --- what is asked for ------------------------------------------------------------------------- */

static enum status check_options(const struct command_state *state, struct error *err)
{
    const struct duplicates_options *own = state->own;
    const struct options *options = &own->common;
    if (state->format >= 0 && !state->output && json_owns_stdout(options))
        return misuse(err, "the table and --json - cannot both use standard output: give -o FILE");
    if (state->format >= 0 && !state->output && summary_is_aside(options))
        return misuse(err, "the table and a list cannot both use standard output: give -o FILE");
    if (own->check && (own->keep >= 0 || options->output || options_given(options, "format")))
        return misuse(
            err,
            "--check reports which files of LIST must stay: leave out --keep, -o and --format");
    if (options->force && !options->output && !own->to_list && !own->to_list_members)
        return misuse(err, "--force requires -o, --to-list or --to-list-members FILE");
    const char *files[] = {state->output, own->to_list, own->to_list_members};
    static const char *const names[] = {"-o", "--to-list", "--to-list-members"};
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < i; j++)
            if (files[i] && files[j] && strcmp(files[i], files[j]) == 0)
                return misuse(err, "%s and %s name the same file", names[j], names[i]);
        const enum status status = options_check_output(options, names[i], files[i], err);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

/* --- groups ------------------------------------------------------------------------------------ */

/* Is the file of an entry kept? If not, it can be removed, unless that is unproven (unknown). */
static bool is_kept(const struct removal_entry *entry)
{
    return entry->verdict == REMOVAL_KEPT || entry->verdict == REMOVAL_SAME;
}

static bool is_known(const struct removal_entry *entry)
{
    return is_kept(entry) || entry->verdict == REMOVAL_SAFE;
}

/* Writes a row of the table and an object of the group's array. */
static void put_member(struct table *table, const struct command_state *state, uint64_t number,
                       uint64_t i, const char *path)
{
    const struct duplicates_member *member = &state->found.member[i];
    const struct removal_entry *entry = &state->removal.entry[i];
    table_row(table);
    table_uint(table, number);
    table_uint(table, member->row);
    table_text(table, path);
    table_text(table, duplicates_kind_name(member->kind));
    table_uint(table, member->distance);
    table_bool(table, member->mirrored);
    table_text(table, removal_names[entry->verdict]);
    if (state->keeps && is_known(entry))
        table_bool(table, is_kept(entry));
    else if (state->keeps)
        table_nothing(table);
    table_end_row(table);
}

static void put_person(struct command_state *state, uint64_t number,
                       const struct duplicates_group *group, uint64_t i, const char *path)
{
    static const char *const notes[REMOVAL_VERDICTS] = {[REMOVAL_SAME] = "  (the same file)",
                                                        [REMOVAL_GONE] = "  (gone)",
                                                        [REMOVAL_CHANGED] = "  (changed since)"};
    const struct duplicates_member *member = &state->found.member[group->first + i];
    const enum removal_verdict verdict = state->removal.entry[group->first + i].verdict;
    struct sink *sink = &state->sink;
    if (number >= SHOWN_GROUPS)
        return;
    if (i == 0)
        sink_printf(sink, "\ngroup %" PRIu64 ": %s\n", number, NUMBER_OF(group->count, "image"));
    if (i < SHOWN_MEMBERS)
        sink_line(sink, "  %-4s  %-6s  %3u  %8" PRIu64 "  %s%s%s",
                  verdict == REMOVAL_KEPT && state->keeps ? "keep" : "",
                  duplicates_kind_name(member->kind), (unsigned)member->distance, member->row, path,
                  member->mirrored ? "  (mirrored)" : "", notes[verdict] ? notes[verdict] : "");
    else if (i == SHOWN_MEMBERS)
        sink_line(sink, "  ... %" PRIu64 " more", group->count - i);
}

static enum status put_group(struct command_state *state, struct table *table, uint64_t number,
                             const struct duplicates_group *group, struct error *err)
{
    struct result_image image;
    enum status status = STATUS_OK;
    json_open_object(state->json, NULL);
    json_string(state->json, "kind", duplicates_kind_name(group->kind));
    json_open_array(state->json, "images");
    for (uint64_t i = group->first; i < group->first + group->count && status == STATUS_OK; i++) {
        status = result_image_at(state->result, state->found.member[i].row, &image, err);
        if (status != STATUS_OK)
            break;
        if (state->format < 0)
            put_person(state, number, group, i - group->first, image.path);
        put_member(table, state, number, i, image.path);
    }
    json_close_array(state->json);
    json_close_object(state->json);
    state->by_kind[group->kind]++;
    return status;
}

static enum status put_groups(struct command_state *state, struct error *err)
{
    static const char *const names[] = {"group",    "row",     "path", "kind", "distance",
                                        "mirrored", "verdict", "keep", NULL};
    const struct duplicates *found = &state->found;
    struct table table = {.sink = &state->sink,
                          .format = state->format,
                          .report = state->json,
                          .names = names,
                          .not_in_cells = 1 << 5 | 1 << 6 | !state->keeps << 7,
                          .not_in_report = 1 << 0};
    enum status status = STATUS_OK;
    table_begin(&table, NULL, 0);
    json_open_array(state->json, "groups");
    for (uint64_t g = 0; g < found->groups && status == STATUS_OK; g++)
        status = put_group(state, &table, g, &found->group[g], err);
    json_close_array(state->json);
    if (state->format < 0 && found->groups > SHOWN_GROUPS)
        sink_printf(&state->sink, "\n... %" PRIu64 " more groups; --format csv lists all\n",
                    found->groups - SHOWN_GROUPS);
    return status;
}

/* --- the list of the others -------------------------------------------------------------------- */

static enum status write_list(const struct command_state *state, const char *file, bool members,
                              struct error *err)
{
    struct sink list;
    if (!file)
        return STATUS_OK;
    enum status status = sink_open(&list, file, err);
    for (uint64_t i = 0; i < state->found.members && status == STATUS_OK; i++) {
        const struct removal_entry *entry = &state->removal.entry[i];
        if (entry->verdict == REMOVAL_SAFE && !entry->repeated &&
            (entry->file.member > 0) == members)
            sink_write(&list, entry->file.name, strlen(entry->file.name) + 1);
    }
    return sink_end(&list, status, err);
}

static enum status write_lists(const struct command_state *state, struct error *err)
{
    const enum status status = write_list(state, state->own->to_list, false, err);
    return status == STATUS_OK ? write_list(state, state->own->to_list_members, true, err) : status;
}

/* --- a list that is checked -------------------------------------------------------------------- */

static enum status take_listed(void *context, const char *path, size_t length, struct error *err)
{
    struct command_state *state = context;
    if (array_grow(&state->listed, state->listed_count, sizeof *state->listed, "a list of paths",
                   err))
        return err->status;
    char *name = original_name(path);
    name = name ? name : strdup(path);
    if (!name)
        return error_memory(err, length, "a list of paths");
    state->listed[state->listed_count++] = name;
    return STATUS_OK;
}

static enum status read_listed(struct command_state *state, struct error *err)
{
    const char *list = state->own->check;
    char *source = NULL;
    uint64_t repeated;
    if (strcmp(list, "-") != 0 && access(list, R_OK) != 0)
        return error_errno(err, STATUS_USAGE, errno, "access", "cannot read the list %s",
                           PATH_TEXT(list));
    state->listed = malloc(sizeof *state->listed); /* not NULL even for an empty list */
    if (!state->listed || asprintf(&source, "%s%s", strcmp(list, "-") == 0 ? "" : "@", list) < 0)
        return error_memory(err, strlen(list) + 2, "a file name");
    const enum status status =
        filelist_read(&repeated, source, "/tmp", state->own->common.memory / 4, signals_stop(),
                      take_listed, state, err);
    free(source);
    qsort(state->listed, state->listed_count, sizeof *state->listed, compare_texts);
    return status;
}

/* Why a listed file must stay; NULL: it is not in any group. Free it. */
static const char **find_reasons(const struct command_state *state)
{
    const char **why = calloc(state->listed_count + 1, sizeof *why);
    for (uint64_t i = 0; i < state->found.members && why; i++) {
        const struct removal_entry *entry = &state->removal.entry[i];
        char **at = entry->file.name
                        ? bsearch(&entry->file.name, state->listed, state->listed_count,
                                  sizeof *state->listed, compare_texts)
                        : NULL;
        while (at && at > state->listed && strcmp(at[-1], *at) == 0)
            at--;
        if (at && (!why[at - state->listed] || entry->verdict != REMOVAL_SAFE))
            why[at - state->listed] = removal_texts[entry->verdict];
    }
    return why;
}

static enum status print_check(struct command_state *state, struct error *err)
{
    struct transcript out;
    struct stat st;
    uint64_t safe = 0, paths = 0;
    const char **why = find_reasons(state);
    enum status status =
        why ? write_lists(state, err)
            : error_memory(err, state->listed_count * sizeof *why, "a list of paths");
    if (status == STATUS_OK)
        status = transcript_open(&out, &state->own->common, err);
    if (status != STATUS_OK) {
        free(why);
        return status;
    }
    report_open(&state->own->common);
    report_bytes(out.json, "file", state->own->common.operand[0]);
    report_bytes(out.json, "list", state->own->check);
    json_open_array(out.json, "unsafe");
    for (uint64_t i = 0; i < state->listed_count; i++) {
        const char *name = state->listed[i];
        if (i > 0 && strcmp(state->listed[i - 1], name) == 0)
            continue;
        paths++;
        if (why[i] == removal_texts[REMOVAL_SAFE]) {
            safe++;
            continue;
        }
        if (!why[i])
            why[i] = lstat(name, &st) == 0 ? "not an image of the file that has copies"
                                           : removal_texts[REMOVAL_GONE];
        sink_line(&out.sink, "%s: %s", name, why[i]);
        json_open_object(out.json, NULL);
        report_bytes(out.json, "path", name);
        json_string(out.json, "reason", why[i]);
        json_close_object(out.json);
    }
    free(why);
    json_close_array(out.json);
    json_uint(out.json, "paths", paths);
    json_uint(out.json, "safe", safe);
    status = sink_end(&out.sink, status, err);
    if (status != STATUS_OK)
        return status;
    summary_line(&state->own->common,
                 "%" PRIu64 " of %" PRIu64 " paths in %s can be removed, all of them at once", safe,
                 paths, PATH_TEXT(state->own->check));
    return safe < paths ? STATUS_PARTIAL : STATUS_OK;
}

/* --- the outcome ------------------------------------------------------------------------------- */

static void summarise(const struct command_state *state, double seconds)
{
    const struct duplicates *found = &state->found;
    const struct removal *removal = &state->removal;
    const struct duplicates_options *own = state->own;
    const struct options *options = &own->common;
    if (found->groups == 0)
        summary_line(options, "no duplicates among %s, in %.2f s",
                     NUMBER_OF(result_images(state->result), "image"), seconds);
    else
        summary_line(options,
                     "%s of %s: %" PRIu64 " of the same bytes, %" PRIu64
                     " of the same pixels, %" PRIu64 " with near copies, in %.2f s",
                     NUMBER_OF(found->groups, "group"), NUMBER_OF(found->members, "image"),
                     state->by_kind[DUPLICATES_BYTES], state->by_kind[DUPLICATES_PIXELS],
                     state->by_kind[DUPLICATES_NEAR], seconds);
    if (found->groups > 0)
        summary_line(options, "  with one of each kept, %s (%s) could go",
                     NUMBER_OF(removal->files, "image"), BYTES_TEXT(removal->bytes));
    if (removal->members > 0)
        summary_line(options, "  and %s of archives", NUMBER_OF(removal->members, "member"));
    for (int v = REMOVAL_SAME; v < REMOVAL_VERDICTS; v++)
        if (removal->count[v] > 0)
            summary_line(options, "  left out: %s: %s", NUMBER_OF(removal->count[v], "image"),
                         removal_texts[v]);
    const char *shown = PATH_TEXT(own->to_list ? own->to_list : "");
    if (own->to_list)
        summary_line(
            options,
            "  their paths, each ended by NUL, are in %s; directly before they are removed: "
            "clpipe duplicates --check %s %s",
            shown, shown, PATH_TEXT(options->operand[0]));
}

static void notices(const struct command_state *state, uint32_t near)
{
    const struct duplicates *found = &state->found;
    if (found->pixels_unknown > 0)
        log_message(
            LOG_NOTICE,
            "notice: whether %s %s the same pixels as another is not known: the files are gone, "
            "have changed or cannot be decoded",
            NUMBER_OF(found->pixels_unknown, "image"), found->pixels_unknown == 1 ? "has" : "have");
    if (found->near_unknown > 0)
        log_message(LOG_NOTICE,
                    "notice: %s of similar codes %s not compared, because files are gone, have "
                    "changed or cannot be decoded; --no-compare decides by the codes alone",
                    NUMBER_OF(found->near_unknown, "pair"),
                    found->near_unknown == 1 ? "was" : "were");
    if (found->limit < near)
        log_message(LOG_NOTICE,
                    "notice: codes up to %u bits apart were compared instead of %u: there are too "
                    "many pairs of less similar ones",
                    (unsigned)found->limit, (unsigned)near);
}

static enum status print_all(struct command_state *state, uint32_t near, struct error *err)
{
    const struct duplicates *found = &state->found;
    enum status status = write_lists(state, err);
    if (status != STATUS_OK)
        return status;
    if (state->format < 0 && (summary_is_aside(&state->own->common) || state->own->common.quiet))
        state->sink.closed = true; /* everything is dropped */
    else
        status = sink_open(&state->sink, state->output, err);
    if (status != STATUS_OK)
        return status;
    report_open(&state->own->common);
    report_bytes(state->json, "file", state->own->common.operand[0]);
    json_uint(state->json, "images", result_images(state->result));
    json_uint(state->json, "near", near);
    json_uint(state->json, "near_compared", found->limit);
    status = put_groups(state, err);
    const double seconds = (double)(clock_now() - clock_process_start()) * 1e-9;
    for (int k = 0; k < DUPLICATES_KINDS; k++) {
        char key[24] = "groups_";
        json_uint(state->json, strcat(key, duplicates_kind_name((enum duplicates_kind)k)),
                  state->by_kind[k]);
    }
    json_uint(state->json, "others", state->removal.files);
    json_uint(state->json, "others_bytes", state->removal.bytes);
    json_uint(state->json, "others_in_archives", state->removal.members);
    json_open_object(state->json, "left_out");
    for (int v = REMOVAL_SAME; v < REMOVAL_VERDICTS; v++)
        json_uint(state->json, removal_names[v], state->removal.count[v]);
    json_close_object(state->json);
    json_uint(state->json, "pixels_unknown", found->pixels_unknown);
    json_uint(state->json, "near_unknown", found->near_unknown);
    json_double(state->json, "seconds", seconds);
    status = sink_end(&state->sink, status, err);
    if (status == STATUS_OK && (state->format < 0 || state->output))
        summarise(state, seconds);
    if (status == STATUS_OK)
        notices(state, near);
    return status;
}

/* A GPU compares codes if there are many images; a device given with --device always does. */
static enum status open_device(struct ocl_context **out, const struct command_state *state,
                               uint32_t near, struct error *err)
{
    const struct compute *compute = &state->own->common.call->compute;
    struct error none = ERROR_INIT;
    const bool asked = state->own->common.device != NULL;
    if (near == 0 || (!asked && result_images(state->result) < DEVICE_IMAGES))
        return STATUS_OK;
    enum status status = compute_open(&state->own->common, true, asked ? err : &none);
    if (status != STATUS_OK)
        return asked ? status : STATUS_OK; /* no device: the host does it */
    if (!asked && compute->devices.device[compute->chosen[0]].type == CL_DEVICE_TYPE_CPU)
        return STATUS_OK;
    status = compute_context(out, compute, asked ? err : &none);
    return asked ? status : STATUS_OK;
}

static enum status run_duplicates(const struct options *options, struct error *err)
{
    const struct duplicates_options *own = (const struct duplicates_options *)options;
    struct command_state state = {.own = own,
                                  .json = &options->call->json,
                                  .keeps = own->keep >= 0 || own->to_list || own->to_list_members};
    enum status status = options_table(&state.output, &state.format, options,
                                       options_given(options, "output") ? FORMAT_CSV : -1, err);
    if (status == STATUS_OK)
        status = check_options(&state, err);
    if (status != STATUS_OK)
        return status;
    call_start(options, 0);
    struct duplicates_config config = {
        .near = options_given(options, "near") ? (uint32_t)own->near
                : own->no_compare              ? DUPLICATES_BLIND
                                               : DUPLICATES_LIMIT,
        .compare = !own->no_compare,
        .threads = compute_threads(options),
        .memory = options->memory,
        .watch = options_watch(options),
    };
    status = own->check ? read_listed(&state, err) : STATUS_OK;
    if (status == STATUS_OK)
        status = result_open(&state.result, options->operand[0], err);
    if (status == STATUS_OK)
        status = open_device(&config.context, &state, config.near, err);
    if (status == STATUS_OK)
        status = duplicates_find(&state.found, state.result, &config, err);
    const struct removal_config removal = {.keep = own->keep > 0 ? (enum removal_keep)own->keep
                                                                 : REMOVAL_BEST,
                                           .prove = state.keeps || own->check,
                                           .listed = state.listed,
                                           .listed_count = state.listed_count};
    if (status == STATUS_OK)
        status = removal_find(&state.removal, state.result, &state.found, &removal, &config, err);
    progress_end(&options->call->progress);
    if (status == STATUS_OK)
        status = own->check ? print_check(&state, err) : print_all(&state, config.near, err);
    for (uint64_t i = 0; i < state.listed_count; i++)
        free(state.listed[i]);
    free(state.listed);
    removal_clear(&state.removal, &state.found);
    duplicates_clear(&state.found);
    result_close(&state.result);
    ocl_context_close(&config.context);
    return status;
}

static const struct option rows[] = {
    NUMBER("near", near, "X",
           "largest number of bits, of 256, in which the codes of near pictures may differ; 0: "
           "only the same bytes and the same pixels",
           .note = "104, or 40 with --no-compare", .max = DUPLICATES_MOST),
    FLAG("no-compare", no_compare,
         "decode no pictures: find near copies by their codes alone, and none by pixels; lists "
         "then have only copies of the same bytes"),
    CHOICE("keep", keep, "best|first|newest",
           "mark the image of each group to keep: the one with the most pixels (then the most "
           "bytes, then the first), the first, or the last modified; the others are checked "
           "against the files as they are now: 0 can go, empty is not proven"),
    OUTPUT(
        "to-list", to_list, "FILE",
        "write to FILE the absolute path of every other image that is proven to be a copy of the "
        "kept one, in a separate file; paths end in NUL (for xargs -0); --keep chooses the kept "
        "one, by default the best"),
    OUTPUT("to-list-members", to_list_members, "FILE",
           "the same for members of archives, which are never in the list of files"),
    TEXT("check", check, "LIST",
         "prove again that everything in LIST can be removed at once: print the files that must "
         "stay and why, and exit with 1 if there are any; --to-list writes those that can still be "
         "removed"),
    CHOICE("format", format, "csv|tsv|jsonl", "table of all groups: group,row,path,kind,distance",
           .initial = "csv", .note = "the extension of -o, else csv; a summary on a terminal"),
    TABLE_ROW,
    FORCE_ROW("replace existing files"),
    {.name = NULL}};

const struct command command_duplicates = {
    .name = "duplicates",
    .goal = GOAL_RESULTS,
    .arguments = "F.h5 [OPTIONS]",
    .summary = "find images with the same bytes or pixels, and near copies",
    .about =
        "Prints groups of images: with the same bytes; with the same pixels; and near copies: "
        "re-encoded, scaled, cropped, brightened, mirrored, slightly rotated or captioned. Near "
        "copies are found by the perceptual codes in F.h5; unless the codes almost agree, the "
        "pictures are decoded again and compared. Each image of a group is a copy of its first. "
        "Columns of the table are group, row, path, kind (bytes, pixels or near) and distance "
        "(bits of 256 in which the codes differ from that of the first), with --keep also keep (1; "
        "0: can go; empty: not proven). Lists and keep reflect the files as they are now: only a "
        "separate file that is a proven copy of a kept one can go. Nothing is ever deleted.",
    .examples = "  clpipe duplicates photos.h5 --keep best --to-list others\n"
                "  clpipe duplicates --check others photos.h5 &&\n"
                "      xargs -0r mv --backup=t -t elsewhere < others\n"
                "  clpipe duplicates photos.h5\n"
                "  clpipe duplicates photos.h5 --near 0 -o exact.csv",
    .operand_name = "F.h5",
    .operands = {1, 1},
    .computes = true,
    .group = {{"Duplicates", rows}},
    .size = sizeof(OWN),
    .run = run_duplicates};
