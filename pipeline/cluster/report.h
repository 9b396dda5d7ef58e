/* report.h: small results of a device that the host reads together, by one command.
 *
 * Each part is a sub-buffer of its own for the kernels. What was enqueued before on the compute
 * queue is over when a read returns. */
#ifndef CLPIPE_CLUSTER_REPORT_H
#define CLPIPE_CLUSTER_REPORT_H

#include "cluster/lane.h"

struct report {
    struct lane *lane;
    cl_mem buffer;
    unsigned char *host;
    size_t align, used, capacity; /* bytes */
};

struct report_part {
    cl_mem buffer;
    size_t offset, bytes;
    void *host; /* as of the last read; aligned for any type */
};

/* A number on the device. */
struct report_count {
    cl_mem counts; /* uint32 */
    cl_uint index;
};

/* For `parts` parts of `bytes` together. */
enum status report_open(struct report *report, struct lane *lane, size_t bytes, unsigned parts,
                        struct error *err);
void report_close(struct report *report);

/* Takes a part of what is left; it is closed before the report. */
enum status report_part_open(struct report_part *part, struct report *report, size_t bytes,
                             struct error *err);
void report_part_close(struct report_part *part);

/* Reads one part, or all of them. */
enum status report_read_part(struct report *report, const char *tag, const struct report_part *part,
                             struct error *err);
enum status report_read(struct report *report, struct error *err);

#endif
