/* trace.c: spans as Chrome trace events, streamed into one JSON file.
 *
 * Viewers draw complete events ("ph":"X") incorrectly if they overlap on one track, as those of
 * device queues do, so every track has lanes: a span goes to the first lane that is free at its
 * start. Lanes after the first appear when needed, as "NAME (2)". */
#include "base/trace.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/output.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LANES       8
#define FLUSH_BYTES (64 * 1024)

struct track {
    char *group, *name;
    unsigned process;         /* the group's number */
    unsigned lanes[LANES];    /* thread numbers in the file; 0: not yet used */
    int64_t busy_till[LANES]; /* end of the last span on the lane */
};

struct trace {
    char *path;
    struct output *output;
    pthread_mutex_t lock;
    /* Under the lock: */
    struct json json; /* the text since the last flush; its depth and commas are those of the
                       * whole file */
    struct track *tracks;
    unsigned track_count, process_count, thread_count;
    struct error failure; /* the first error; nothing is written after it */
};

/* Writes the text so far to the file. */
static void flush(struct trace *trace)
{
    if (trace->failure.status)
        return;
    if (trace->json.failed)
        error_memory(&trace->failure, FLUSH_BYTES, "the trace");
    else
        write_all(output_descriptor(trace->output), trace->json.text, trace->json.length,
                  trace->path, &trace->failure);
    trace->json.length = 0;
}

enum status trace_open(struct trace **out, const char *path, struct error *err)
{
    *out = NULL;
    struct trace *trace = calloc(1, sizeof *trace);
    if (!trace)
        return error_memory(err, sizeof *trace, "the trace");
    json_init(&trace->json, true);
    trace->path = strdup(path);
    if (!trace->path) {
        free(trace);
        return error_memory(err, strlen(path) + 1, "the trace");
    }
    enum status status = output_open(&trace->output, path, err);
    if (status) {
        output_close(&trace->output);
        free(trace->path);
        free(trace);
        return status;
    }
    pthread_mutex_init(&trace->lock, NULL);
    json_open_object(&trace->json, NULL);
    json_string(&trace->json, "displayTimeUnit", "ns");
    json_open_array(&trace->json, "traceEvents");
    *out = trace;
    return STATUS_OK;
}

/* Writes a metadata event: the name or sort index of a process (thread 0) or thread. */
static void metadata(struct trace *trace, const char *what, unsigned process, unsigned thread,
                     const char *name)
{
    struct json *json = &trace->json;
    json_open_object(json, NULL);
    json_string(json, "ph", "M");
    json_string(json, "name", what);
    json_uint(json, "pid", process);
    if (thread)
        json_uint(json, "tid", thread);
    json_open_object(json, "args");
    if (name)
        json_string(json, "name", name);
    else
        json_uint(json, "sort_index", thread ? thread : process);
    json_close_object(json);
    json_close_object(json);
}

static void add_lane(struct trace *trace, struct track *track, unsigned lane)
{
    char numbered[128];
    const char *name = track->name;
    if (lane > 0) {
        snprintf(numbered, sizeof numbered, "%.100s (%u)", track->name, lane + 1);
        name = numbered;
    }
    track->lanes[lane] = ++trace->thread_count;
    track->busy_till[lane] = INT64_MIN;
    metadata(trace, "thread_name", track->process, track->lanes[lane], name);
    metadata(trace, "thread_sort_index", track->process, track->lanes[lane], NULL);
}

static unsigned find_or_add(struct trace *trace, const char *group, const char *name)
{
    unsigned process = 0;
    for (unsigned i = 0; i < trace->track_count; i++) {
        if (strcmp(trace->tracks[i].group, group) != 0)
            continue;
        process = trace->tracks[i].process;
        if (strcmp(trace->tracks[i].name, name) == 0)
            return i + 1;
    }
    struct track *grown =
        realloc(trace->tracks, ((size_t)trace->track_count + 1) * sizeof *trace->tracks);
    if (grown)
        trace->tracks = grown;
    char *group_copy = strdup(group), *name_copy = strdup(name);
    if (!grown || !group_copy || !name_copy) {
        free(group_copy);
        free(name_copy);
        if (!trace->failure.status)
            error_memory(&trace->failure, sizeof *trace->tracks, "the trace");
        return 0;
    }
    if (!process) {
        process = ++trace->process_count;
        metadata(trace, "process_name", process, 0, group);
        metadata(trace, "process_sort_index", process, 0, NULL);
    }
    struct track *track = &trace->tracks[trace->track_count++];
    *track = (struct track){.group = group_copy, .name = name_copy, .process = process};
    add_lane(trace, track, 0);
    return trace->track_count;
}

unsigned trace_track(struct trace *trace, const char *group, const char *name)
{
    if (!trace)
        return 0;
    pthread_mutex_lock(&trace->lock);
    unsigned track = find_or_add(trace, group, name);
    pthread_mutex_unlock(&trace->lock);
    return track;
}

/* The lane that is free at `start`; if all are busy, the one that becomes free first. */
static unsigned choose_lane(struct trace *trace, struct track *track, int64_t start)
{
    unsigned best = 0;
    for (unsigned lane = 0; lane < LANES; lane++) {
        if (!track->lanes[lane])
            add_lane(trace, track, lane);
        if (track->busy_till[lane] <= start)
            return lane;
        if (track->busy_till[lane] < track->busy_till[best])
            best = lane;
    }
    return best;
}

/* Nanoseconds as microseconds with decimals. */
static void write_time(struct json *json, const char *key, int64_t nanoseconds)
{
    char text[32];
    uint64_t n = nanoseconds < 0 ? 0 - (uint64_t)nanoseconds : (uint64_t)nanoseconds;
    snprintf(text, sizeof text, "%s%llu.%03u", nanoseconds < 0 ? "-" : "",
             (unsigned long long)(n / 1000), (unsigned)(n % 1000));
    json_raw(json, key, text);
}

/* Writes the event of a span on its lane. detail may be NULL; times: queued and submitted, or
 * NULL. */
static void write_span(struct trace *trace, unsigned track, const char *name, int64_t start,
                       int64_t end, const char *detail, const int64_t *times)
{
    if (!trace || track == 0)
        return;
    struct json *json = &trace->json;
    end = end < start ? start : end;
    pthread_mutex_lock(&trace->lock);
    if (!trace->failure.status && track <= trace->track_count) {
        struct track *t = &trace->tracks[track - 1];
        unsigned lane = choose_lane(trace, t, start);
        if (end > t->busy_till[lane])
            t->busy_till[lane] = end;
        json_open_object(json, NULL);
        json_string(json, "ph", "X");
        json_string(json, "name", name);
        json_uint(json, "pid", t->process);
        json_uint(json, "tid", t->lanes[lane]);
        write_time(json, "ts", start - clock_process_start());
        write_time(json, "dur", end - start);
        if (detail || times)
            json_open_object(json, "args");
        if (detail)
            json_string(json, "detail", detail);
        for (unsigned i = 0; times && i < 2; i++)
            write_time(json, i ? "submitted" : "queued", times[i] - clock_process_start());
        if (detail || times)
            json_close_object(json);
        json_close_object(json);
        if (json->length >= FLUSH_BYTES || json->failed)
            flush(trace);
    }
    pthread_mutex_unlock(&trace->lock);
}

void trace_span(struct trace *trace, unsigned track, const char *name, int64_t start, int64_t end,
                const char *detail)
{
    write_span(trace, track, name, start, end, detail, NULL);
}

void trace_command(struct trace *trace, unsigned track, const char *name, int64_t queued,
                   int64_t submitted, int64_t start, int64_t end)
{
    write_span(trace, track, name, start, end, NULL, (const int64_t[]){queued, submitted});
}

enum status trace_close(struct trace **trace, struct error *err)
{
    if (!trace || !*trace)
        return STATUS_OK;
    struct trace *t = *trace;
    *trace = NULL;
    json_close_array(&t->json);
    json_close_object(&t->json);
    flush(t);
    enum status status = t->failure.status;
    if (status) {
        if (err)
            *err = t->failure;
    } else {
        status = output_commit(t->output, err);
    }
    output_close(&t->output);
    for (unsigned i = 0; i < t->track_count; i++) {
        free(t->tracks[i].group);
        free(t->tracks[i].name);
    }
    free(t->tracks);
    json_clear(&t->json);
    pthread_mutex_destroy(&t->lock);
    free(t->path);
    free(t);
    return status;
}
