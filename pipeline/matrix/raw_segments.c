/* raw_segments.c: datasets made of segments, of which few are open at a time.
 *
 * HDF5 1.10 checks all mappings of a virtual dataset on each read, keeps every file open that it
 * has touched, and returns fill values if it cannot open one. */
#include "base/minmax.h"
#include "matrix/h5_driver.h"
#include "matrix/h5_error.h"
#include "matrix/raw_internal.h"
#include <stdlib.h>
#include <string.h>

#define MOST_OPEN 16

struct segment {
    const char *path;
    uint64_t first, rows; /* of all segments */
    hid_t file;           /* not positive: not open */
    hid_t dataset;
    struct raw *raw;
    uint64_t used;
    unsigned users; /* threads reading from it: it stays open */
};

/* Guarded by HDF5's lock. */
struct raw_segments {
    const char *name;
    raw_open_segment *open_one;
    uint64_t clock;
    unsigned count, open;
    struct segment segment[];
};

static void close_segment(struct raw_segments *segments, struct segment *segment)
{
    raw_close(&segment->raw);
    segments->open -= segment->file > 0;
    h5_close(&segment->dataset);
    h5_close(&segment->file);
}

/* If too many are open, closes the least recently used, unless all are being read. */
static void make_room(struct raw_segments *segments)
{
    struct segment *oldest = NULL;
    for (unsigned i = 0; i < segments->count && segments->open >= MOST_OPEN; i++) {
        struct segment *segment = &segments->segment[i];
        if (segment->file > 0 && segment->users == 0 && (!oldest || segment->used < oldest->used))
            oldest = segment;
    }
    if (oldest)
        close_segment(segments, oldest);
}

static enum status open_segment(const struct raw *whole, struct segment *segment, struct error *err)
{
    struct raw_segments *segments = whole->segments;
    if (segment->file > 0)
        return STATUS_OK;
    make_room(segments);
    enum status status =
        segments->open_one(&segment->file, &segment->dataset, segment->path, segments->name, err);
    segments->open += segment->file > 0;
    if (status == STATUS_OK)
        status = raw_open(&segment->raw, segment->dataset, segment->path, err);
    const struct raw *raw = segment->raw;
    if (status == STATUS_OK && (raw->columns != whole->columns || raw->element != whole->element ||
                                raw->rows != segment->rows ||
                                memcmp(&raw->format, &whole->format, sizeof raw->format) != 0))
        status = error_set(err, STATUS_FAILED,
                           "%s is damaged or not a clpipe file: its %s is not what was merged",
                           raw->shown, segments->name);
    if (status != STATUS_OK)
        close_segment(segments, segment);
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
    *segments = (struct raw_segments){.name = name, .open_one = open};
    for (unsigned i = 0; i < count; i++) {
        if (segment[i].rows > 0)
            segments->segment[segments->count++] =
                (struct segment){.path = segment[i].path, .first = rows, .rows = segment[i].rows};
        rows += segment[i].rows;
    }
    raw->layout = RAW_SEGMENTS;
    raw->dataset = H5I_INVALID_HID;
    if (rows == raw->rows)
        return STATUS_OK;
    error_set(err, STATUS_FAILED,
              "%s is damaged or not a clpipe file: %s does not have the rows of its parts",
              raw->shown, name);
    raw_close(out);
    return STATUS_FAILED;
}

void raw_segments_close(struct raw *raw)
{
    struct raw_segments *segments = raw->segments;
    for (unsigned i = 0; segments && i < segments->count; i++)
        close_segment(segments, &segments->segment[i]);
    free(segments);
}

static struct segment *find_segment(struct raw_segments *segments, uint64_t row)
{
    unsigned low = 0, high = segments->count;
    while (high - low > 1) {
        const unsigned middle = low + (high - low) / 2;
        *(segments->segment[middle].first <= row ? &low : &high) = middle;
    }
    return &segments->segment[low];
}

enum status raw_segments_read(const struct raw *raw, uint64_t first, uint64_t count, void *out,
                              bool values, struct error *err)
{
    unsigned char *to = out;
    enum status status = STATUS_OK;
    while (count > 0 && status == STATUS_OK) {
        struct segment *segment = find_segment(raw->segments, first);
        const uint64_t begin = first - segment->first, part = min_u64(count, segment->rows - begin);
        h5_driver_lock();
        status = open_segment(raw, segment, err);
        if (status == STATUS_OK) {
            segment->users++;
            segment->used = ++raw->segments->clock;
        }
        h5_driver_unlock();
        if (status != STATUS_OK)
            break;
        status = raw_read_either(segment->raw, begin, part, to, values, err);
        h5_driver_lock();
        segment->users--;
        h5_driver_unlock();
        to += part * raw_row_size(raw, values);
        first += part;
        count -= part;
    }
    return status;
}
