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
    enum status status = STATUS_FAILED;
    bool gap = false;
    for (;;) {
        if ((status = stop_check(stop, "reading the log of an earlier run", err)))
            goto out;
        status = records_read(&reader, stretches->end, &entry, err);
        if (status == STATUS_END) {
            uint64_t found;
            status = records_resync(&reader, stretches->end + 1, &found, err);
            if (status == STATUS_END) {
                status = STATUS_OK;
                goto out;
            }
            if (status == STATUS_OK) {
                stretches->damaged += found - stretches->end;
                stretches->end = found;
                gap = true;
                continue;
            }
        }
        if (status)
            goto out;
        if (entry.start || stretches->count == 0 || gap) {
            size_t bytes = (stretches->count + 1) * sizeof *stretches->stretch;
            struct stretch *more = realloc(stretches->stretch, bytes);
            if (!more) {
                status = error_memory(err, bytes, "the log's runs");
                goto out;
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
out:
    records_reader_clear(&reader);
    if (status)
        stretches_clear(stretches);
    return status;
}

void stretches_clear(struct stretches *stretches)
{
    free(stretches->stretch);
    *stretches = (struct stretches){0};
}
