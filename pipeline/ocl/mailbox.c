/* mailbox.c: one buffer, its parts, and the host's copy. */
#include "ocl/mailbox.h"
#include <stdlib.h>

enum status mailbox_open(struct mailbox *mailbox, struct lane *lane, size_t bytes, unsigned parts,
                         struct error *err)
{
    const size_t align = lane->device->memory_alignment;
    *mailbox = (struct mailbox){.lane = lane, .align = align > 16 ? align : 16};
    mailbox->capacity = bytes + parts * mailbox->align;
    mailbox->host = calloc(1, mailbox->capacity);
    if (!mailbox->host)
        return error_memory(err, mailbox->capacity, "what the device reports");
    if (ocl_buffer(&mailbox->buffer, lane->ocl, CL_MEM_READ_WRITE, mailbox->capacity, NULL,
                   "what the device reports", err) != STATUS_OK)
        return err->status;
    /* Reads cover the whole buffer, whether or not all of it has been written. */
    return lane_write(lane, "mailbox", mailbox->buffer, 0, mailbox->capacity, mailbox->host, err);
}

void mailbox_close(struct mailbox *mailbox)
{
    ocl_buffer_release(&mailbox->buffer);
    free(mailbox->host);
    *mailbox = (struct mailbox){0};
}

enum status mailbox_part_open(struct mailbox_part *part, struct mailbox *mailbox, size_t bytes,
                              struct error *err)
{
    const size_t offset = (mailbox->used + mailbox->align - 1) / mailbox->align * mailbox->align;
    *part = (struct mailbox_part){.offset = offset, .bytes = bytes, .host = mailbox->host + offset};
    mailbox->used = offset + bytes;
    return ocl_sub_buffer(&part->buffer, mailbox->lane->ocl, mailbox->buffer, offset, bytes,
                          "what the device reports", err);
}

void mailbox_part_close(struct mailbox_part *part)
{
    ocl_buffer_release(&part->buffer);
    *part = (struct mailbox_part){0};
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
