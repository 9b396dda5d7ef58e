/* counters.c: two sets of counters used in turn. */
#include "kmeans/counters.h"

enum status counters_open(struct counters *counters, struct lane_held **held,
                          struct mailbox *mailbox, struct error *err)
{
    *counters = (struct counters){.lane = mailbox->lane, .mailbox = mailbox};
    for (int i = 0; i < 2; i++)
        if (mailbox_part_open(&counters->sets[i], held, mailbox, COUNTERS * sizeof(cl_uint), err) !=
            STATUS_OK)
            return err->status;
    return STATUS_OK;
}

enum status counters_zero_next(struct counters *counters, struct error *err)
{
    if (counters->next_is_zero)
        return STATUS_OK;
    const struct mailbox_part *next = &counters->sets[1 - counters->current];
    enum status status =
        lane_fill(counters->lane, "zero counts", next->buffer, 0, 0, next->bytes, err);
    counters->next_is_zero = status == STATUS_OK;
    return status;
}

enum status counters_begin_tile(struct counters *counters, struct error *err)
{
    enum status status = counters_zero_next(counters, err);
    counters->current = 1 - counters->current;
    counters->next_is_zero = false;
    return status;
}

cl_mem counters_buffer(const struct counters *counters)
{
    return counters->sets[counters->current].buffer;
}

const cl_uint *counters_host(const struct counters *counters)
{
    return counters->sets[counters->current].host;
}

enum status counters_read(struct counters *counters, struct error *err)
{
    return mailbox_read_part(counters->mailbox, "counts", &counters->sets[counters->current], err);
}
