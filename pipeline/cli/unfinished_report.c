/* unfinished_report.c: how far an unfinished run is, who works on it, and what resumes it. */
#include "cli/unfinished_report.h"
#include "base/clock.h"
#include "base/parse.h"
#include "cli/quote.h"
#include "cli/report_json.h"
#include "cli/summary.h"
#include "result/parameters.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The directory that the command ran in, if it is another than this one; quoted, free it. */
static char *other_directory(const struct unfinished *unfinished)
{
    char *working = getcwd(NULL, 0), *quoted = NULL;
    const char *directory = unfinished->directory;
    if (directory && (!working || strcmp(working, directory) != 0)) {
        const size_t size = 4 * strlen(directory) + 8;
        quoted = malloc(size);
        if (quoted)
            quote_word(quoted, size, directory);
    }
    free(working);
    return quoted;
}

/* What the process at work noted last. */
static void print_status(struct sink *sink, const char *json)
{
    struct parameters *status = NULL;
    uint64_t done, total, failed;
    double left;
    char some[32], all[32], time[32];
    if (parameters_open(&status, json, NULL) != STATUS_OK)
        return;
    const char *phase = parameters_member(status, "phase");
    const char *written = parameters_member(status, "written");
    if (phase && written && parameters_integer(status, "done", &done) &&
        parameters_integer(status, "total", &total) &&
        parameters_integer(status, "failed", &failed)) {
        sink_printf(sink, "  %-9s ", "");
        sink_clean(sink, phase);
        sink_printf(sink, ": %s", format_count(some, sizeof some, done));
        if (total)
            sink_printf(sink, " of %s", format_count(all, sizeof all, total));
        if (failed)
            sink_printf(sink, ", %s failed", format_count(some, sizeof some, failed));
        if (parameters_real(status, "seconds_left", &left))
            sink_printf(sink, ", about %s left", format_duration(time, sizeof time, left));
        sink_text(sink, ", as of ");
        sink_clean(sink, written);
        sink_text(sink, "\n");
    }
    parameters_close(&status);
}

static void print_unfinished(struct sink *sink, const struct unfinished *unfinished,
                             const char *file)
{
    char text[40], size[32], when[32], ago[32];
    if (!unfinished->exists)
        return;
    if (file) {
        sink_clean(sink, file);
        if (unfinished->ranks > 0)
            sink_printf(sink, "   not there yet: an ingest by %u ranks is unfinished\n",
                        unfinished->ranks);
        else
            sink_text(sink, unfinished->has_log ? "   not there yet: a run is unfinished\n"
                                            : "   not there yet: a command is at work\n");
    }
    if (unfinished->ranks > 0)
        sink_printf(sink, "  %-9s %u of %u have done their part\n", "ranks",
                    unfinished->ranks_done, unfinished->ranks);
    if (unfinished->has_log) {
        const uint64_t skipped = unfinished->by_reason[REASON_NOT_AN_IMAGE];
        sink_printf(sink, "  %-9s ", "partial");
        sink_printf(sink, "%s done: ",
                    format_number_of(text, sizeof text, unfinished->records, "file"));
        sink_printf(sink, "%s, ", format_number_of(text, sizeof text, unfinished->by_reason[REASON_NONE],
                                                   "image"));
        sink_printf(sink, "%s, ",
                    format_number_of(text, sizeof text, failures_counted(unfinished->by_reason),
                                     "failure"));
        sink_printf(sink, "%s skipped\n", format_count(text, sizeof text, skipped));
        clock_iso8601(when, unfinished->written_ns / 1000000000);
        const double seconds = (double)time(NULL) - (double)unfinished->written_ns * 1e-9;
        sink_printf(sink, "  %-9s %s in ", "", format_bytes(size, sizeof size, unfinished->bytes));
        sink_clean(sink, unfinished->path);
        sink_printf(sink, ", last written %s", when);
        if (seconds >= 1)
            sink_printf(sink, " (%s ago)", format_duration(ago, sizeof ago, seconds));
        sink_text(sink, "\n");
    }
    sink_printf(sink, "  %-9s ", "at work");
    if (unfinished->in_use)
        sink_clean(sink, unfinished->holder);
    else if (unfinished->may_be_used) {
        sink_text(sink, "perhaps ");
        sink_clean(sink, unfinished->holder);
    } else {
        sink_text(sink, "no process");
    }
    sink_text(sink, "\n");
    if (unfinished->status)
        print_status(sink, unfinished->status);
    if ((!unfinished->has_log && unfinished->ranks == 0) || unfinished->in_use)
        return;
    sink_printf(sink, "  %-9s ", "resume");
    char *directory = unfinished->command ? other_directory(unfinished) : NULL;
    if (directory) {
        sink_text(sink, "cd ");
        sink_clean(sink, directory);
        sink_text(sink, " && ");
    }
    if (unfinished->command)
        sink_clean(sink, unfinished->command);
    else
        sink_text(sink, "run the same command again");
    if (unfinished->ranks > 0 && !unfinished->command)
        sink_printf(sink, " with %u ranks", unfinished->ranks);
    sink_text(sink, "\n");
    free(directory);
}

void tell_checkpoints(struct sink *sink, struct json *json, const char *file)
{
    static const char end[] = ".checkpoint";
    char *target = realpath(file, NULL), *slash = target ? strrchr(target, '/') : NULL;
    struct dirent **entries = NULL;
    const char *base = slash ? slash + 1 : "";
    const size_t head = strlen(base), tail = strlen(end);
    int count = 0;
    if (slash) {
        *slash = 0;
        count = scandir(slash == target ? "/" : target, &entries, NULL, alphasort);
    }
    json_open_array(json, "unfinished_clusters");
    for (int i = 0; i < count; i++) {
        char *name = entries[i]->d_name, path[4096], when[32];
        const size_t length = strlen(name);
        struct stat st;
        snprintf(path, sizeof path, "%s/%s", target, name);
        /* FILE.NAME.checkpoint */
        if (length > head + 1 + tail && strncmp(name, base, head) == 0 && name[head] == '.' &&
            strcmp(name + length - tail, end) == 0 && stat(path, &st) == 0) {
            name[length - tail] = 0;
            clock_iso8601(when, st.st_mtim.tv_sec);
            sink_printf(sink, "  %-9s clusters ", "partial");
            sink_clean(sink, name + head + 1);
            sink_printf(sink, ", state of %s: the same clpipe cluster command goes on from it\n",
                        when);
            json_open_object(json, NULL);
            report_bytes(json, "name", name + head + 1);
            json_string(json, "last_written", when);
            json_close_object(json);
        }
        free(entries[i]);
    }
    json_close_array(json);
    free(entries);
    free(target);
}

static void json_unfinished(struct json *json, const struct unfinished *unfinished)
{
    char when[32];
    if (!unfinished->exists) {
        report_bytes(json, "unfinished", NULL);
        return;
    }
    json_open_object(json, "unfinished");
    report_bytes(json, "directory", unfinished->path);
    json_bool(json, "in_use", unfinished->in_use);
    json_bool(json, "may_be_in_use", unfinished->may_be_used);
    report_bytes(json, "process", unfinished->holder[0] ? unfinished->holder : NULL);
    if (unfinished->ranks > 0) {
        json_uint(json, "ranks", unfinished->ranks);
        json_uint(json, "ranks_done", unfinished->ranks_done);
    }
    if (unfinished->status && parameters_length(unfinished->status) == strlen(unfinished->status))
        json_raw(json, "status", unfinished->status);
    else
        json_null(json, "status");
    if (unfinished->has_log) {
        json_uint(json, "files", unfinished->records);
        json_uint(json, "images", unfinished->by_reason[REASON_NONE]);
        json_uint(json, "failed", failures_counted(unfinished->by_reason));
        json_uint(json, "files_not_images", unfinished->by_reason[REASON_NOT_AN_IMAGE]);
        json_uint(json, "runs", unfinished->runs);
        json_uint(json, "log_bytes", unfinished->bytes);
        clock_iso8601(when, unfinished->written_ns / 1000000000);
        json_string(json, "last_written", when);
        report_bytes(json, "command", unfinished->command);
        report_bytes(json, "working_directory", unfinished->directory);
    }
    json_close_object(json);
}

void tell_unfinished(struct sink *sink, struct json *json, const struct unfinished *unfinished,
                     const char *file)
{
    print_unfinished(sink, unfinished, file);
    json_unfinished(json, unfinished);
}
