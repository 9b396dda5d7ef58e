/* repair_log.c: reads a log from one end to the other. */
#include "log/repair_log.h"
#include "base/path.h"
#include "base/source_name.h"
#include "log/stretches.h"
#include "log/workdir.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SCAN_BUFFER (1u << 20)

enum status repair_log_open(struct repair_log *log, int directory, const char *directory_path,
                            struct error *err)
{
    char shown[256];
    log->fd = openat(directory, WORKDIR_LOG, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (asprintf(&log->path, "%s/records", directory_path) < 0) {
        log->path = NULL;
        return error_memory(err, strlen(directory_path), "a file name");
    }
    if (log->fd < 0)
        return error_errno(err, STATUS_FAILED, errno, "openat", "cannot read %s",
                           path_for_message(shown, sizeof shown, log->path));
    enum status status = records_read_header(&log->signature, &log->start, log->fd, log->path, err);
    if (status == STATUS_END) {
        /* A run that was killed before it had done anything. */
        close(log->fd);
        log->fd = -1;
        status = STATUS_OK;
    }
    return status;
}

static enum status repair_log_add(struct repair_log *log, const struct store_record *record,
                                  uint64_t offset, struct error *err)
{
    if (log->count == log->room) {
        uint64_t room = log->room ? 2 * log->room : 1024;
        struct repair_log_entry *more = realloc(log->entry, room * sizeof *more);
        if (!more)
            return error_memory(err, room * sizeof *more, "the log's records");
        log->entry = more;
        log->room = room;
    }
    char *path = strndup(record->path, record->path_length);
    if (!path)
        return error_memory(err, record->path_length, "a path");
    log->entry[log->count++] =
        (struct repair_log_entry){.offset = offset,
                                  .sequence = record->sequence,
                                  .source = record->source,
                                  .image = record->failure.reason == REASON_NONE,
                                  .has_code = record->has_code,
                                  .thumbnail_size = record->thumbnail_size,
                                  .thumbnail_length = record->thumbnail_length,
                                  .path = path};
    return STATUS_OK;
}

/* By source and path; of one path the latest first. */
static int by_path(const void *a, const void *b)
{
    const struct repair_log_entry *x = a, *y = b;
    if (x->source != y->source)
        return x->source < y->source ? -1 : 1;
    int order = strcmp(x->path, y->path);
    return order ? order : (x->offset < y->offset) - (x->offset > y->offset);
}

/* By source and the number in the walk: the order of lists. */
static int by_sequence(const void *a, const void *b)
{
    const struct repair_log_entry *x = a, *y = b;
    if (x->source != y->source)
        return x->source < y->source ? -1 : 1;
    return x->sequence != y->sequence ? (x->sequence < y->sequence ? -1 : 1)
                                      : (x->offset > y->offset) - (x->offset < y->offset);
}

/* Members of each archive among entries that are sorted by path. */
static void sort_members(struct repair_log *log, uint64_t first, uint64_t end)
{
    for (uint64_t next; first < end; first = next) {
        const char *path = log->entry[first].path;
        const size_t length = archive_prefix(path);
        for (next = first + 1;
             length > 0 && next < end && strncmp(log->entry[next].path, path, length) == 0; next++)
            ;
        qsort(log->entry + first, next - first, sizeof *log->entry, by_sequence);
    }
}

static void repair_log_sort(struct repair_log *log, const char *const *sources,
                            unsigned source_count)
{
    uint64_t kept = 0;
    if (log->count == 0)
        return;
    qsort(log->entry, log->count, sizeof *log->entry, by_path);
    for (uint64_t i = 0; i < log->count; i++) {
        struct repair_log_entry *last = kept ? &log->entry[kept - 1] : NULL, *now = &log->entry[i];
        if (now->source >= source_count ||
            (last && last->source == now->source && strcmp(last->path, now->path) == 0))
            free(now->path);
        else
            log->entry[kept++] = *now;
    }
    log->count = kept;
    for (uint64_t first = 0, end; first < kept; first = end) {
        const char *source = sources[log->entry[first].source];
        for (end = first; end < kept && log->entry[end].source == log->entry[first].source; end++)
            ;
        if (source_is_list(source))
            qsort(log->entry + first, end - first, sizeof *log->entry, by_sequence);
        else
            sort_members(log, first, end);
    }
}

enum status repair_log_scan(struct repair_log *log, uint32_t counters, const char *const *sources,
                            unsigned source_count, struct error *err)
{
    struct stretches stretches;
    struct records_reader reader;
    struct records_entry entry;
    enum status status =
        stretches_scan(&stretches, log->fd, log->path, counters, log->start, NULL, err);
    if (status)
        return status;
    off_t size = lseek(log->fd, 0, SEEK_END);
    log->end = stretches.end;
    log->damaged =
        stretches.damaged + (size > (off_t)stretches.end ? (uint64_t)size - stretches.end : 0);
    records_reader_init(&reader, log->fd, log->path, counters, log->end, SCAN_BUFFER);
    for (unsigned i = 0; i < stretches.count; i++)
        for (uint64_t at = stretches.stretch[i].start; at < stretches.stretch[i].end;
             at = entry.next) {
            status = records_peek(&reader, at, &entry, err);
            if (status == STATUS_END)
                status = error_set(err, STATUS_FAILED, "the log changed while it was read");
            if (status || (!entry.start && (status = repair_log_add(log, &entry.record, at, err))))
                goto out;
        }
    repair_log_sort(log, sources, source_count);
out:
    records_reader_clear(&reader);
    stretches_clear(&stretches);
    return status;
}

void repair_log_close(struct repair_log *log)
{
    for (uint64_t i = 0; i < log->count; i++)
        free(log->entry[i].path);
    free(log->entry);
    free(log->path);
    free(log->signature);
    if (log->fd >= 0)
        close(log->fd);
    *log = (struct repair_log){.fd = -1};
}
