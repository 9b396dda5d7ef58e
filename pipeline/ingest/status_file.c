/* status_file.c: writes the text to a temporary name and renames it. */
#include "ingest/status_file.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/output.h"
#include "result/workdir.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_NS INT64_C(10000000000)

/* Estimated from bytes, a better measure than the number of files; -1: unknown. */
static double seconds_left(const struct status_file *file, const struct ingest_progress *progress)
{
    const double seconds = progress->seconds - file->phase_seconds;
    const bool bytes = progress->bytes_total > 0;
    const uint64_t done =
        bytes ? progress->bytes_done - file->phase_bytes : progress->done - file->phase_done;
    const uint64_t left =
        bytes ? progress->bytes_total - progress->bytes_done : progress->total - progress->done;
    return progress->total && done > 0 && seconds > 0 ? seconds / (double)done * (double)left : -1;
}

static void write_json(struct json *json, const struct status_file *file,
                       const struct ingest_progress *progress)
{
    char when[32];
    const double left = seconds_left(file, progress);
    clock_iso8601(when, time(NULL));
    json_open_object(json, NULL);
    json_string(json, "phase", progress->phase);
    json_uint(json, "done", progress->done);
    json_uint(json, "total", progress->total);
    json_uint(json, "images", progress->images);
    json_uint(json, "failed", progress->failed);
    json_uint(json, "bytes_done", progress->bytes_done);
    json_uint(json, "bytes_total", progress->bytes_total);
    json_double(json, "seconds", clock_seconds_since(clock_process_start()));
    if (left >= 0)
        json_double(json, "seconds_left", left);
    else
        json_null(json, "seconds_left");
    json_string(json, "written", when);
    json_close_object(json);
}

static void replace(int directory, const char *text)
{
    const int fd = openat(directory, WORKDIR_STATUS_NEW,
                          O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0)
        return;
    const bool whole =
        write_all(fd, text, strlen(text), WORKDIR_STATUS, NULL) == STATUS_OK && close(fd) == 0;
    if (!whole || renameat(directory, WORKDIR_STATUS_NEW, directory, WORKDIR_STATUS) != 0)
        unlinkat(directory, WORKDIR_STATUS_NEW, 0);
}

void status_file_note(struct status_file *file, const struct ingest_progress *progress)
{
    const bool begins = !file->phase || strcmp(file->phase, progress->phase) != 0;
    if (begins) {
        file->phase = progress->phase;
        file->phase_seconds = progress->seconds;
        file->phase_done = progress->done;
        file->phase_bytes = progress->bytes_done;
    }
    if (!file->directory || (!begins && clock_now() - file->written < PAUSE_NS))
        return;
    file->written = clock_now();
    const int directory = open(file->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return;
    struct json json;
    json_init(&json, false);
    write_json(&json, file, progress);
    const char *text = json_finish(&json);
    if (text)
        replace(directory, text);
    json_clear(&json);
    close(directory);
}
