/* cmd_duplicates.c: clpipe duplicates: groups of copies, which of them to keep, a list of the others. */
#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/path.h"
#include "cli/clean.h"
#include "cli/commands.h"
#include "cli/compute.h"
#include "cli/progress.h"
#include "cli/report_json.h"
#include "cli/signals.h"
#include "cli/summary.h"
#include "duplicates/duplicates.h"
#include "file/locate.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define SHOWN_GROUPS  20u /* to people */
#define SHOWN_MEMBERS 8u
#define DEVICE_IMAGES 100000u /* from so many on, a device takes less time than its start */

struct command_state {
    const struct options *options;
    struct result *result;
    struct duplicates found;
    const char *output; /* NULL: standard output */
    int format;         /* enum export_format; -1: a summary for people */
    bool keeps;         /* --keep, or what --to-list implies */
    struct sink sink;
    struct json json;
    uint64_t by_kind[DUPLICATES_KINDS]; /* groups */
    uint64_t others, other_bytes;       /* that are not kept */
};

/* --- what is asked for ------------------------------------------------------------------------- */

static int format_of(const struct options *options, const char *output)
{
    static const char *const extensions[] = {".csv", ".tsv", ".jsonl"};
    const char *dot = output ? strrchr(output, '.') : NULL;
    if (options_given(options, "format"))
        return options->format;
    for (int i = 0; dot && i <= FORMAT_JSONL; i++)
        if (strcmp(dot, extensions[i]) == 0)
            return i;
    return output || options_given(options, "output") ? FORMAT_CSV : -1;
}

static enum status check_options(const struct command_state *state, struct error *err)
{
    const struct options *options = state->options;
    if (state->format >= 0 && !state->output && json_owns_stdout(options))
        return misuse(err, options->command,
                      "the table and --json - cannot both use standard output: give -o FILE");
    if (options->to_list && state->output && strcmp(options->to_list, state->output) == 0)
        return misuse(err, options->command, "-o and --to-list name the same file");
    const enum status status = options_check_output(options, "-o", state->output, err);
    return status == STATUS_OK
               ? options_check_output(options, "--to-list", options->to_list, err)
               : status;
}

/* --- groups ------------------------------------------------------------------------------------ */

/* The member of a group that is kept. */
static enum status choose_kept(uint64_t *kept, struct command_state *state,
                               const struct duplicates_group *group, struct error *err)
{
    const struct duplicates_member *member = state->found.member + group->first;
    struct result_image image;
    int64_t newest = 0;
    *kept = 0; /* the reference is the best */
    for (uint64_t i = 0; i < group->count && state->options->keep > KEEP_BEST; i++) {
        if (state->options->keep == KEEP_FIRST) {
            *kept = member[i].row < member[*kept].row ? i : *kept;
            continue;
        }
        const enum status status = result_image_at(state->result, member[i].row, &image, err);
        if (status != STATUS_OK)
            return status;
        if (i == 0 || image.mtime_ns > newest ||
            (image.mtime_ns == newest && member[i].row < member[*kept].row)) {
            newest = image.mtime_ns;
            *kept = i;
        }
    }
    return STATUS_OK;
}

static void put_line(struct command_state *state, uint64_t number,
                     const struct duplicates_member *member, const char *path, bool kept)
{
    struct sink *sink = &state->sink;
    const char *kind = duplicates_kind_name(member->kind);
    const char separator = state->format == FORMAT_TSV ? '\t' : ',';
    if (state->format == FORMAT_JSONL) {
        struct json json;
        json_init(&json, true);
        json_open_object(&json, NULL);
        json_uint(&json, "group", number);
        json_uint(&json, "row", member->row);
        json_string(&json, "path", path);
        json_string(&json, "kind", kind);
        json_uint(&json, "distance", member->distance);
        if (state->keeps)
            json_bool(&json, "keep", kept);
        json_close_object(&json);
        const char *text = json_finish(&json);
        sink_text(sink, text ? text : "{}");
        json_clear(&json);
    } else {
        sink_printf(sink, "%" PRIu64 "%c%" PRIu64 "%c", number, separator, member->row, separator);
        sink_field(sink, path, separator);
        sink_printf(sink, "%c%s%c%u", separator, kind, separator, (unsigned)member->distance);
        if (state->keeps)
            sink_printf(sink, "%c%d", separator, kept);
    }
    sink_text(sink, "\n");
}

static void put_person(struct command_state *state, uint64_t number,
                       const struct duplicates_group *group, uint64_t i, const char *path,
                       bool kept)
{
    const struct duplicates_member *member = &state->found.member[group->first + i];
    struct sink *sink = &state->sink;
    char count[40];
    if (number >= SHOWN_GROUPS)
        return;
    if (i == 0)
        sink_printf(sink, "\ngroup %" PRIu64 ": %s\n", number,
                    format_number_of(count, sizeof count, group->count, "image"));
    if (i < SHOWN_MEMBERS) {
        sink_printf(sink, "  %-4s  %-6s  %3u  %8" PRIu64 "  ", kept && state->keeps ? "keep" : "",
                    duplicates_kind_name(member->kind), (unsigned)member->distance, member->row);
        sink_clean(sink, path);
        sink_text(sink, member->mirrored ? "  (mirrored)\n" : "\n");
    } else if (i == SHOWN_MEMBERS) {
        sink_printf(sink, "  ... %" PRIu64 " more\n", group->count - i);
    }
}

static void put_json(struct command_state *state, const struct duplicates_member *member,
                     const char *path, bool kept)
{
    struct json *json = &state->json;
    json_open_object(json, NULL);
    json_uint(json, "row", member->row);
    json_string(json, "path", path);
    json_string(json, "kind", duplicates_kind_name(member->kind));
    json_uint(json, "distance", member->distance);
    json_bool(json, "mirrored", member->mirrored);
    if (state->keeps)
        json_bool(json, "keep", kept);
    json_close_object(json);
}

static enum status put_group(struct command_state *state, uint64_t number,
                             const struct duplicates_group *group, struct error *err)
{
    const struct duplicates_member *member = state->found.member + group->first;
    struct result_image image;
    uint64_t kept;
    enum status status = choose_kept(&kept, state, group, err);
    if (state->options->json) {
        json_open_object(&state->json, NULL);
        json_string(&state->json, "kind", duplicates_kind_name(group->kind));
        json_open_array(&state->json, "images");
    }
    for (uint64_t i = 0; i < group->count && status == STATUS_OK; i++) {
        status = result_image_at(state->result, member[i].row, &image, err);
        if (status != STATUS_OK)
            break;
        if (state->format < 0)
            put_person(state, number, group, i, image.path, i == kept);
        else
            put_line(state, number, &member[i], image.path, i == kept);
        if (state->options->json)
            put_json(state, &member[i], image.path, i == kept);
        state->others += i != kept;
        state->other_bytes += i != kept ? image.bytes : 0;
    }
    if (state->options->json) {
        json_close_array(&state->json);
        json_close_object(&state->json);
    }
    state->by_kind[group->kind]++;
    return status;
}

static enum status put_groups(struct command_state *state, struct error *err)
{
    const struct duplicates *found = &state->found;
    enum status status = STATUS_OK;
    if (state->format == FORMAT_CSV || state->format == FORMAT_TSV)
        sink_printf(&state->sink,
                    state->format == FORMAT_TSV ? "group\trow\tpath\tkind\tdistance%s\n"
                                                : "group,row,path,kind,distance%s\n",
                    !state->keeps                 ? ""
                    : state->format == FORMAT_TSV ? "\tkeep"
                                                  : ",keep");
    if (state->options->json)
        json_open_array(&state->json, "groups");
    for (uint64_t g = 0; g < found->groups && status == STATUS_OK; g++)
        status = put_group(state, g, &found->group[g], err);
    if (state->options->json)
        json_close_array(&state->json);
    if (state->format < 0 && found->groups > SHOWN_GROUPS)
        sink_printf(&state->sink, "\n... %" PRIu64 " more groups; --format csv lists all\n",
                    found->groups - SHOWN_GROUPS);
    return status;
}

/* --- the list of the others -------------------------------------------------------------------- */

static enum status write_list(struct command_state *state, struct error *err)
{
    const struct duplicates *found = &state->found;
    struct locator locator = {0};
    struct result_image image;
    struct sink list;
    const char *path;
    enum status status = sink_open(&list, state->options->to_list, err);
    if (status != STATUS_OK)
        return status;
    for (uint64_t g = 0; g < found->groups && status == STATUS_OK; g++) {
        const struct duplicates_group *group = &found->group[g];
        uint64_t kept;
        status = choose_kept(&kept, state, group, err);
        for (uint64_t i = 0; i < group->count && status == STATUS_OK; i++) {
            if (i == kept)
                continue;
            status =
                result_image_at(state->result, found->member[group->first + i].row, &image, err);
            if (status == STATUS_OK)
                status =
                    locate_image(&locator, &path, state->result, image.source, image.path_raw, err);
            if (status == STATUS_OK)
                sink_write(&list, path, strlen(path) + 1);
        }
    }
    locator_clear(&locator);
    const enum status closed =
        sink_close(&list, status == STATUS_OK, status == STATUS_OK ? err : NULL);
    return status == STATUS_OK ? closed : status;
}

/* --- the outcome ------------------------------------------------------------------------------- */

static void summarise(const struct command_state *state, double seconds)
{
    const struct duplicates *found = &state->found;
    const struct options *options = state->options;
    char images[40], groups[40], others[40], bytes[32], shown[256];
    if (found->groups == 0)
        summary_line(options, "no duplicates among %s, in %.2f s",
                     format_number_of(images, sizeof images, result_images(state->result), "image"),
                     seconds);
    else
        summary_line(options,
                     "%s of %s: %" PRIu64 " of the same bytes, %" PRIu64
                     " of the same pixels, %" PRIu64 " with near copies, in %.2f s",
                     format_number_of(groups, sizeof groups, found->groups, "group"),
                     format_number_of(images, sizeof images, found->members, "image"),
                     state->by_kind[DUPLICATES_BYTES], state->by_kind[DUPLICATES_PIXELS],
                     state->by_kind[DUPLICATES_NEAR], seconds);
    if (found->groups > 0)
        summary_line(options, "  one of each kept, %s (%s) would be left over",
                     format_number_of(others, sizeof others, state->others, "image"),
                     format_bytes(bytes, sizeof bytes, state->other_bytes));
    if (options->to_list)
        summary_line(options, "  their paths, each ended by NUL, are in %s",
                     path_for_message(shown, sizeof shown, options->to_list));
}

static void notices(const struct command_state *state, uint32_t near)
{
    const struct duplicates *found = &state->found;
    char count[64];
    if (found->pixels_unknown > 0)
        log_message(
            LOG_NOTICE,
            "notice: whether %s the same pixels as another is not known: the files are gone, "
            "have changed or cannot be decoded",
            found->pixels_unknown == 1
                ? "1 image has"
                : (format_number_of(count, sizeof count, found->pixels_unknown, "image"),
                   strcat(count, " have")));
    if (found->near_unknown > 0)
        log_message(LOG_NOTICE,
                    "notice: %s not compared, because files are gone, have changed or cannot be "
                    "decoded; --no-compare decides by the codes alone",
                    found->near_unknown == 1
                        ? "1 pair of similar codes was"
                        : (format_number_of(count, sizeof count, found->near_unknown, "pair"),
                           strcat(count, " of similar codes were")));
    if (found->limit < near)
        log_message(LOG_NOTICE,
                    "notice: codes up to %u bits apart were compared instead of %u: there are too "
                    "many pairs of less similar ones",
                    (unsigned)found->limit, (unsigned)near);
}

static enum status print_all(struct command_state *state, uint32_t near, struct error *err)
{
    const struct duplicates *found = &state->found;
    enum status status = STATUS_OK;
    if (state->format < 0 && (json_owns_stdout(state->options) || state->options->quiet))
        state->sink.closed = true; /* everything is dropped */
    else
        status = sink_open(&state->sink, state->output, err);
    if (status != STATUS_OK)
        return status;
    json_init(&state->json, false);
    json_open_object(&state->json, NULL);
    report_bytes(&state->json, "file", state->options->operand[0]);
    json_uint(&state->json, "images", result_images(state->result));
    json_uint(&state->json, "near", near);
    json_uint(&state->json, "near_compared", found->limit);
    status = put_groups(state, err);
    const double seconds = (double)(clock_now() - clock_process_start()) * 1e-9;
    for (int k = 0; k < DUPLICATES_KINDS; k++) {
        char key[24] = "groups_";
        json_uint(&state->json, strcat(key, duplicates_kind_name((enum duplicates_kind)k)),
                  state->by_kind[k]);
    }
    json_uint(&state->json, "others", state->others);
    json_uint(&state->json, "others_bytes", state->other_bytes);
    json_uint(&state->json, "pixels_unknown", found->pixels_unknown);
    json_uint(&state->json, "near_unknown", found->near_unknown);
    json_double(&state->json, "seconds", seconds);
    json_close_object(&state->json);
    if (status == STATUS_OK && state->options->to_list)
        status = write_list(state, err);
    status = report_end(state->options, &state->json, &state->sink, status, err);
    if (status == STATUS_OK && (state->format < 0 || state->output))
        summarise(state, seconds);
    if (status == STATUS_OK)
        notices(state, near);
    return status;
}

/* Codes of many images are compared by a GPU; --device chooses any device for any number. */
static enum status open_device(struct ocl_context **out, struct compute *compute,
                               const struct command_state *state, uint32_t near, struct error *err)
{
    struct error none = ERROR_INIT;
    const bool asked = state->options->device != NULL;
    if (near == 0 || (!asked && result_images(state->result) < DEVICE_IMAGES))
        return STATUS_OK;
    enum status status = compute_open(compute, state->options, true, asked ? err : &none);
    if (status != STATUS_OK)
        return asked ? status : STATUS_OK; /* no device: the host does it */
    if (!asked && compute->devices.device[compute->chosen[0]].type == CL_DEVICE_TYPE_CPU)
        return STATUS_OK;
    status = compute_context(out, compute, asked ? err : &none);
    return asked ? status : STATUS_OK;
}

enum status command_duplicates(const struct options *options, struct error *err)
{
    struct command_state state = {.options = options,
                                  .keeps = options->keep >= 0 || options->to_list != NULL};
    struct compute compute = {0};
    struct progress progress;
    if (options->output && !sink_is_stdout(options->output))
        state.output = options->output;
    state.format = format_of(options, state.output);
    enum status status = check_options(&state, err);
    if (status != STATUS_OK)
        return status;
    signals_install(0);
    progress_init(&progress, options);
    struct duplicates_config config = {
        .near = options_given(options, "near") ? (uint32_t)options->near
                : options->no_compare          ? DUPLICATES_BLIND
                                               : DUPLICATES_LIMIT,
        .compare = !options->no_compare,
        .threads = compute_threads(options),
        .memory = options->memory,
        .stop = signals_stop(),
        .progress = progress_phase,
        .progress_context = &progress,
    };
    status = result_open(&state.result, options->operand[0], err);
    if (status == STATUS_OK)
        status = open_device(&config.context, &compute, &state, config.near, err);
    if (status == STATUS_OK)
        status = duplicates_find(&state.found, state.result, &config, err);
    progress_end(&progress);
    if (status == STATUS_OK)
        status = print_all(&state, config.near, err);
    duplicates_clear(&state.found);
    result_close(&state.result);
    ocl_context_close(&config.context);
    return compute_close(&compute, status, err);
}
