/* mailbox.c: one buffer, its parts, and the host's copy. */
#include "ocl/mailbox.h"

enum status mailbox_open(struct mailbox *mailbox, struct lane_held **held, struct lane *lane,
                         size_t bytes, unsigned parts, struct error *err)
{
    const size_t align = lane->device->memory_alignment;
    *mailbox = (struct mailbox){.lane = lane, .align = align > 16 ? align : 16};
    mailbox->capacity = bytes + parts * mailbox->align;
    const struct lane_wanted wanted[] = {HOST(mailbox->host, mailbox->capacity),
                                         BUFFER(mailbox->buffer, mailbox->capacity)};
    if (lane_hold(held, lane, wanted, COUNT_OF(wanted), "what the device reports", err) !=
        STATUS_OK)
        return err->status;
    /* Reads cover the whole buffer, whether or not all of it has been written. */
    return lane_write(lane, "mailbox", mailbox->buffer, 0, mailbox->capacity, mailbox->host, err);
}

enum status mailbox_part_open(struct mailbox_part *part, struct lane_held **held,
                              struct mailbox *mailbox, size_t bytes, struct error *err)
{
    const size_t offset = (mailbox->used + mailbox->align - 1) / mailbox->align * mailbox->align;
    *part = (struct mailbox_part){.offset = offset, .bytes = bytes, .host = mailbox->host + offset};
    mailbox->used = offset + bytes;
    const struct lane_wanted wanted = PART(part->buffer, mailbox->buffer, offset, bytes);
    return lane_hold(held, mailbox->lane, &wanted, 1, "what the device reports", err);
}

enum status mailbox_read_part(struct mailbox *mailbox, const char *tag,
                              const struct mailbox_part *part, struct error *err)
{
    return lane_read(mailbox->lane, tag, mailbox->buffer, part->offset, part->bytes, part->host,
                     err);
}

enum status mailbox_read(struct mailbox *mailbox, struct error *err)
{
    return lane_read(mailbox->lane, "mailbox", mailbox->buffer, 0, mailbox->used, mailbox->host,
                     err);
}
