/* report.c: one buffer, its parts, and the host's copy of it. */
#include "cluster/report.h"
#include <stdlib.h>

enum status report_open(struct report *report, struct lane *lane, size_t bytes, unsigned parts,
                        struct error *err)
{
    const size_t align = lane->device->memory_alignment;
    *report = (struct report){.lane = lane, .align = align > 16 ? align : 16};
    report->capacity = bytes + parts * report->align;
    report->host = calloc(1, report->capacity);
    if (!report->host)
        return error_memory(err, report->capacity, "what the device reports");
    enum status status = ocl_buffer(&report->buffer, lane->ocl, CL_MEM_READ_WRITE, report->capacity,
                                    NULL, "what the device reports", err);
    /* All of it is read, whatever of it has been written by then. */
    if (status == STATUS_OK)
        status = lane_write(lane, "report", report->buffer, 0, report->capacity, report->host, err);
    return status;
}

void report_close(struct report *report)
{
    ocl_buffer_release(&report->buffer);
    free(report->host);
    *report = (struct report){0};
}

enum status report_part_open(struct report_part *part, struct report *report, size_t bytes,
                             struct error *err)
{
    const size_t offset = (report->used + report->align - 1) / report->align * report->align;
    *part = (struct report_part){.offset = offset, .bytes = bytes, .host = report->host + offset};
    report->used = offset + bytes;
    return ocl_sub_buffer(&part->buffer, report->lane->ocl, report->buffer, offset, bytes,
                          "what the device reports", err);
}

void report_part_close(struct report_part *part)
{
    ocl_buffer_release(&part->buffer);
    *part = (struct report_part){0};
}

enum status report_read_part(struct report *report, const char *tag, const struct report_part *part,
                             struct error *err)
{
    return lane_read(report->lane, tag, report->buffer, part->offset, part->bytes, part->host, err);
}

enum status report_read(struct report *report, struct error *err)
{
    return lane_read(report->lane, "report", report->buffer, 0, report->used, report->host, err);
}
