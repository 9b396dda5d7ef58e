/* mailbox.h: small results of a device that the host reads together with one command.
 *
 * Each part is a separate sub-buffer for the kernels. When a read returns, all commands enqueued
 * before it on the compute queue have finished. */
#ifndef CLPIPE_OCL_MAILBOX_H
#define CLPIPE_OCL_MAILBOX_H

#include "ocl/lane.h"

struct mailbox {
    struct lane *lane;
    cl_mem buffer;
    unsigned char *host;
    size_t align, used, capacity; /* bytes */
};

struct mailbox_part {
    cl_mem buffer;
    size_t offset, bytes;
    void *host; /* as of the last read; aligned for any type */
};

/* A count on the device. */
struct device_count {
    cl_mem counts; /* uint32 */
    cl_uint index;
};

/* Capacity: `parts` parts with `bytes` in total. lane_release of *held frees it. */
enum status mailbox_open(struct mailbox *mailbox, struct lane_held **held, struct lane *lane,
                         size_t bytes, unsigned parts, struct error *err);
/* Allocates a part, likewise. */
enum status mailbox_part_open(struct mailbox_part *part, struct lane_held **held,
                              struct mailbox *mailbox, size_t bytes, struct error *err);

/* Read one part, or all of them. */
enum status mailbox_read_part(struct mailbox *mailbox, const char *tag,
                              const struct mailbox_part *part, struct error *err);
enum status mailbox_read(struct mailbox *mailbox, struct error *err);

#endif
