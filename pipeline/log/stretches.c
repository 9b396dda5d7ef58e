/* stretches.c: one pass over a log that checks every frame. */
#include "log/stretches.h"
#include <stdlib.h>
#include <unistd.h>

#define SCAN_BUFFER (1u << 20)

enum status stretches_scan(struct stretches *stretches, int fd, const char *path, uint32_t counters,
                           uint64_t start, struct stop *stop, struct error *err)
{
    *stretches = (struct stretches){.end = start};
    struct records_reader reader;
    struct records_entry entry;
    off_t size = lseek(fd, 0, SEEK_END);
    records_reader_init(&reader, fd, path, counters, size > 0 ? (uint64_t)size : 0, SCAN_BUFFER);
    enum status status;
    bool gap = false;
    for (;;) {
        if (stop && stop_requested(stop) != STOP_NONE) {
            status = error_set(err, STATUS_INTERRUPTED,
                               "interrupted while reading the log of an earlier run");
            break;
        }
        status = records_read(&reader, stretches->end, &entry, err);
        if (status == STATUS_END && stretches->end < reader.log_end) {
            uint64_t found;
            status = records_resync(&reader, stretches->end + 1, &found, err);
            if (!status) {
                stretches->damaged += found - stretches->end;
                stretches->end = found;
                gap = true;
                continue;
            }
        }
        if (status)
            break;
        if (entry.start || stretches->count == 0 || gap) {
            size_t bytes = (stretches->count + 1) * sizeof *stretches->stretch;
            struct stretch *more = realloc(stretches->stretch, bytes);
            if (!more) {
                status = error_memory(err, bytes, "the log's runs");
                break;
            }
            stretches->stretch = more;
            more[stretches->count++] =
                (struct stretch){.start = entry.start ? entry.next : stretches->end};
        }
        gap = false;
        struct stretch *last = &stretches->stretch[stretches->count - 1];
        last->end = stretches->end = entry.next;
        last->records += !entry.start;
        stretches->records += !entry.start;
    }
    records_reader_clear(&reader);
    if (status == STATUS_END)
        return STATUS_OK;
    stretches_clear(stretches);
    return status;
}

void stretches_clear(struct stretches *stretches)
{
    free(stretches->stretch);
    *stretches = (struct stretches){0};
}
