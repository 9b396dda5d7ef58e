/* raw_segments.c: the files of segments, of which few are open at a time, and their datasets.
 *
 * HDF5 1.10 looks at all mappings of a virtual dataset for each read, keeps every file open that it has
 * touched, and gives fill values where it cannot open one. */
#include "base/minmax.h"
#include "matrix/h5_driver.h"
#include "matrix/raw_internal.h"
#include <stdlib.h>
#include <string.h>

#define MOST_OPEN 16

struct segment {
    const char *path;
    uint64_t start, bytes; /* of the values of all */
    struct source *source; /* NULL: it is not open */
    hid_t dataset;
    struct raw *raw;
    struct segment *next; /* of the same source */
};

struct raw_segments {
    const char *name;
    raw_open_segment *open;
    unsigned count;
    struct segment segment[];
};

/* Files that are open, of all datasets; under HDF5's lock. */
static struct source {
    hid_t file;
    uint64_t used;
    unsigned users; /* threads that read from it: it stays open */
    struct segment *segments;
    struct source *next;
    char path[];
} *sources;
static uint64_t clock_ticks;

static void close_segment(struct segment *segment)
{
    raw_close(&segment->raw);
    H5Dclose(segment->dataset);
    segment->source = NULL;
}

static void close_source(struct source *closed)
{
    struct source **at = &sources;
    while (*at != closed)
        at = &(*at)->next;
    *at = closed->next;
    for (struct segment *segment = closed->segments; segment; segment = segment->next)
        close_segment(segment);
    if (closed->file > 0)
        H5Fclose(closed->file);
    free(closed);
}

/* An entry for the file; where there are too many, the one that was not used for the longest time goes,
 * unless all are read from. */
static struct source *find_source(const char *path)
{
    struct source *oldest = NULL, *source;
    unsigned open = 0;
    for (source = sources; source; source = source->next, open++) {
        if (strcmp(source->path, path) == 0)
            return source;
        if (source->users == 0 && (!oldest || source->used < oldest->used))
            oldest = source;
    }
    if (open >= MOST_OPEN && oldest)
        close_source(oldest);
    source = calloc(1, sizeof *source + strlen(path) + 1);
    if (!source)
        return NULL;
    strcpy(source->path, path);
    source->next = sources;
    return sources = source;
}

static enum status open_segment(const struct raw *whole, struct segment *segment, struct error *err)
{
    if (segment->source)
        return STATUS_OK;
    struct source *source = find_source(segment->path);
    if (!source)
        return error_memory(err, sizeof *source, "the parts");
    enum status status = whole->segments->open(&source->file, &segment->dataset, segment->path,
                                               whole->segments->name, err);
    if (status == STATUS_OK && (status = raw_open(&segment->raw, segment->dataset, segment->path, err)))
        H5Dclose(segment->dataset);
    if (status == STATUS_OK) {
        const struct raw *raw = segment->raw;
        if (raw->layout != RAW_VIRTUAL && raw->columns == whole->columns &&
            raw->element == whole->element && raw->rows * raw->row_bytes == segment->bytes &&
            memcmp(&raw->format, &whole->format, sizeof raw->format) == 0) {
            segment->source = source;
            segment->next = source->segments;
            source->segments = segment;
            return STATUS_OK;
        }
        status = error_set(err, STATUS_FAILED,
                           "%s is damaged or not a clpipe file: its %s is not what was merged",
                           raw->shown, whole->segments->name);
        close_segment(segment);
    }
    if (!source->segments)
        close_source(source);
    return status;
}

enum status raw_open_segments(struct raw **out, hid_t like, const char *name,
                              const struct raw_segment *segment, unsigned count,
                              raw_open_segment *open, const char *path, struct error *err)
{
    const size_t size = sizeof(struct raw_segments) + count * sizeof(struct segment);
    const enum status status = raw_open(out, like, path, err);
    if (status != STATUS_OK)
        return status;
    struct raw *raw = *out;
    struct raw_segments *segments = raw->segments = calloc(1, size);
    if (!segments) {
        raw_close(out);
        return error_memory(err, size, "the parts");
    }
    uint64_t rows = 0;
    *segments = (struct raw_segments){.name = name, .open = open};
    for (unsigned i = 0; i < count; i++) {
        if (segment[i].rows > 0)
            segments->segment[segments->count++] =
                (struct segment){.path = segment[i].path,
                                 .start = rows * raw->row_bytes,
                                 .bytes = segment[i].rows * raw->row_bytes};
        rows += segment[i].rows;
    }
    raw->layout = RAW_SEGMENTS;
    raw->dataset = H5I_INVALID_HID;
    if (rows == raw->rows)
        return STATUS_OK;
    error_set(err, STATUS_FAILED, "%s is damaged or not a clpipe file: %s has other rows than its parts",
              raw->shown, name);
    raw_close(out);
    return STATUS_FAILED;
}

void raw_segments_close(struct raw *raw)
{
    struct raw_segments *segments = raw->segments;
    for (unsigned i = 0; segments && i < segments->count; i++) {
        struct segment *segment = &segments->segment[i], **at;
        struct source *source = segment->source;
        if (!source)
            continue;
        for (at = &source->segments; *at != segment; at = &(*at)->next)
            ;
        *at = segment->next;
        close_segment(segment);
        if (!source->segments)
            close_source(source);
    }
    free(segments);
}

/* The last one that begins at `at` or before. */
static struct segment *find_segment(struct raw_segments *segments, uint64_t at)
{
    unsigned low = 0, high = segments->count;
    while (high - low > 1) {
        const unsigned middle = low + (high - low) / 2;
        *(segments->segment[middle].start <= at ? &low : &high) = middle;
    }
    return &segments->segment[low];
}

enum status raw_segments_read(const struct raw *raw, uint64_t at, uint64_t size, void *out, bool values,
                              struct error *err)
{
    unsigned char *to = out;
    enum status status = STATUS_OK;
    while (size > 0 && status == STATUS_OK) {
        struct segment *segment = find_segment(raw->segments, at);
        const uint64_t begin = at - segment->start, part = min_u64(size, segment->bytes - begin);
        h5_driver_lock();
        status = open_segment(raw, segment, err);
        struct source *source = segment->source;
        if (status == STATUS_OK) {
            source->users++;
            source->used = ++clock_ticks;
        }
        h5_driver_unlock();
        if (status != STATUS_OK)
            break;
        status = raw_read_either(segment->raw, begin, part, to, values, err);
        h5_driver_lock();
        source->users--;
        h5_driver_unlock();
        to += values ? part / raw->element * sizeof(float) : part;
        at += part;
        size -= part;
    }
    return status;
}
