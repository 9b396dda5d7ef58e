/* records.h: the format of the log of finished records.
 *
 *   file    header, then frames
 *   header  "CLPIPLOG", version (uint32), length of the text (uint32), CRC-32C of the text and of
 *           the 16 bytes before it (uint32), 4 bytes 0; then the text: the signature of the command
 *   frame   length of the payload (uint32), CRC-32C (uint32) of the other 12 bytes of the frame's
 *           head and of the payload, sequence (uint64); then the payload
 *   payload its kind (uint8: 1 a run begins, 2 a record); of a record follow
 *           reason (uint8), source (uint16), length of the path (uint32), bytes (uint64),
 *           mtime_ns (int64); then for an image
 *             width, height (uint32), orientation, channels, whether there is a code (uint8), 1
 *             byte 0, the size that the thumbnail was made for (uint16), 2 bytes 0, format (8 bytes),
 *             digest (2 x uint64), lengths of the packed values and of the thumbnail (uint32), code (32
 *             bytes); the path; the packed values; the thumbnail
 *           and for a failure
 *             errno (int32), length of the message (uint32); the path; the message
 *   packed  pairs of uint32 - a number of zeros, a number of words - each followed by that many
 *           words; in all, the values of the image's features as the finished file holds them
 *
 * Numbers are little-endian (that is: the machine's; no other order is supported). A frame that is
 * cut off or whose checksum is wrong at the end is what a kill or a power failure leaves; one in
 * the middle, what a bad disk does. The frames behind it are found by looking for the next place
 * where everything about a frame is right.
 */
#ifndef CLPIPE_LOG_RECORDS_H
#define CLPIPE_LOG_RECORDS_H

#include "base/error.h"
#include "log/record.h"

#define RECORDS_FRAME_HEAD 16
/* The longest path that a record takes; the kernel's limit is 4096, but a tree can be deeper. */
#define RECORDS_MOST_PATH (8u << 20)
/* The longest thumbnail. */
#define RECORDS_MOST_THUMBNAIL (16u << 20)

/* Writes the header of a new log. */
enum status records_write_header(int fd, const char *signature, const char *path,
                                 struct error *err);

/* Reads the header of an existing one: *signature (free it) and where the frames begin. STATUS_END:
 * the file ends inside its header, as a kill at the start leaves it. */
enum status records_read_header(char **signature, uint64_t *start, int fd, const char *path,
                                struct error *err);

/* A frame as bytes, ready to be appended; free it. */
struct records_frame {
    uint8_t *data;
    size_t size;
};
/* That of a record: `values` are the image's, `counters` words of 4 bytes. A thumbnail that is longer
 * than RECORDS_MOST_THUMBNAIL is left out. */
enum status records_encode(struct records_frame *frame, const struct store_record *record,
                           const void *values, uint32_t counters, struct error *err);
/* That of the mark where a run begins. */
enum status records_encode_start(struct records_frame *frame, struct error *err);

/* Reads frames at any offset; fastest in ascending order. One thread. */
struct records_reader {
    int fd;
    const char *path;
    uint32_t counters;
    uint64_t at,
        end; /* the bytes of the file in the buffer; nothing is read from `end` of the log */
    uint64_t log_end;
    uint8_t *buffer;
    size_t filled, capacity;
};
void records_reader_init(struct records_reader *reader, int fd, const char *path, uint32_t counters,
                         uint64_t log_end, size_t buffer_bytes);
void records_reader_clear(struct records_reader *reader);

/* A frame in the reader's buffer. */
struct records_entry {
    bool start;                 /* a run begins; no record */
    struct store_record record; /* path and thumbnail lie in the buffer; counters is NULL */
    const uint8_t *packed;      /* the image's values, see records_unpack */
    uint32_t packed_size;
    uint64_t next; /* offset of the frame after it */
};

/* Reads the frame at `offset` and checks it. STATUS_END: no complete frame follows. The entry is
 * valid until the next call. */
enum status records_read(struct records_reader *reader, uint64_t offset,
                         struct records_entry *entry, struct error *err);

/* The start of the first complete frame at or after `offset`, where the log continues after a
 * damaged frame. STATUS_END: there is none. */
enum status records_resync(struct records_reader *reader, uint64_t offset, uint64_t *found,
                           struct error *err);

/* The same without the values, the thumbnail and the checksum, for a frame that was checked before:
 * packed and record.thumbnail are NULL. */
enum status records_peek(struct records_reader *reader, uint64_t offset,
                         struct records_entry *entry, struct error *err);

/* Writes the `counters` words of an entry to `values`; false if they are not that many. */
bool records_unpack(void *values, uint32_t counters, const struct records_entry *entry);

#endif
