/* records.c: frames in and out of bytes.
 *
 * Values are packed by leaving out runs of zeros: joint histograms are mostly zeros, and the rest
 * does not compress at a price that pays beside decoding. */
#include "log/records.h"
#include "base/avx2.h"
#include "base/hash.h"
#include "base/output.h"
#include "base/path.h"
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAGIC          "CLPIPLOG"
#define VERSION        2u
#define MOST_SIGNATURE (64u << 20)
/* Fewer zeros than this do not end a run of words. */
#define LEAST_ZEROS 3

enum { KIND_START = 1, KIND_RECORD = 2 };

struct header {
    char magic[8];
    uint32_t version, length, crc, zero;
};
_Static_assert(sizeof(struct header) == 24, "header of the log");

struct frame_head {
    uint32_t length, crc;
    uint64_t sequence;
};
_Static_assert(sizeof(struct frame_head) == RECORDS_FRAME_HEAD, "head of a frame");

struct record_head {
    uint8_t kind, reason;
    uint16_t source;
    uint32_t path_length;
    uint64_t bytes;
    int64_t mtime_ns;
};
_Static_assert(sizeof(struct record_head) == 24, "head of a record");

struct image_head {
    uint32_t width, height;
    uint8_t orientation, channels, has_code, zero;
    uint16_t thumbnail_size, zero2;
    char format[8];
    uint64_t digest[2];
    uint32_t packed, thumbnail;
    uint8_t code[RECORD_CODE_BYTES];
};
_Static_assert(sizeof(struct image_head) == 80, "an image's part of a record");

struct failure_head {
    int32_t error_number;
    uint32_t message_length;
};
_Static_assert(sizeof(struct failure_head) == 8, "a failure's part of a record");

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the log is written as memory is");

static uint32_t header_crc(const struct header *header, const char *text)
{
    return crc32c(crc32c(0, header, offsetof(struct header, crc)), text, header->length);
}

enum status records_write_header(int fd, const char *signature, const char *path, struct error *err)
{
    size_t length = strlen(signature);
    if (length > MOST_SIGNATURE)
        return error_set(err, STATUS_USAGE, "the sources and options take more than 64 MiB");
    struct header header = {.version = VERSION, .length = (uint32_t)length};
    memcpy(header.magic, MAGIC, sizeof header.magic);
    header.crc = header_crc(&header, signature);
    if (write_all(fd, &header, sizeof header, path, err) ||
        write_all(fd, signature, length, path, err))
        return STATUS_FAILED;
    return STATUS_OK;
}

enum status records_read_header(char **signature, uint64_t *start, int fd, const char *path,
                                struct error *err)
{
    *signature = NULL;
    enum status status = STATUS_FAILED;
    char shown[256], *text = NULL;
    path_for_message(shown, sizeof shown, path);
    struct header header;
    size_t got;
    if (read_at(fd, &header, sizeof header, 0, &got, path, err))
        goto out;
    if (got < sizeof header) {
        status = STATUS_END;
        goto out;
    }
    if (memcmp(header.magic, MAGIC, sizeof header.magic) != 0) {
        error_set(err, STATUS_FAILED, "%s is not a clpipe log", shown);
        error_remedy(err, REMEDY_START_OVER);
        goto out;
    }
    if (header.version != VERSION) {
        status = error_set(err, STATUS_USAGE,
                           "%s was written by another version of clpipe: finish the run with that "
                           "version",
                           shown);
        error_remedy(err, REMEDY_START_OVER);
        goto out;
    }
    if (header.length <= MOST_SIGNATURE) {
        text = malloc((size_t)header.length + 1);
        if (!text) {
            error_memory(err, header.length, "the log's header");
            goto out;
        }
        if (read_at(fd, text, header.length, sizeof header, &got, path, err))
            goto out;
        text[header.length] = 0;
        if (got < header.length) {
            status = STATUS_END;
            goto out;
        }
    }
    if (!text || header_crc(&header, text) != header.crc) {
        error_set(err, STATUS_FAILED, "%s is damaged", shown);
        error_remedy(err, REMEDY_START_OVER);
        goto out;
    }
    *signature = text;
    *start = sizeof header + header.length;
    text = NULL;
    status = STATUS_OK;
out:
    free(text);
    return status;
}

/* Most bytes that packed words can take. */
static uint64_t packed_bound(uint32_t counters)
{
    return 8 + 4 * (uint64_t)counters + 8 * ((uint64_t)counters / (LEAST_ZEROS + 1) + 1);
}

/* Sets a byte where LEAST_ZEROS zeros begin. */
ALWAYS_INLINE void find_zeros(uint8_t *begin, const uint32_t *words, uint32_t count)
{
    uint32_t i = 0;
    for (; i + LEAST_ZEROS <= count; i++)
        begin[i] = (words[i] | words[i + 1] | words[i + 2]) == 0;
    for (; i < count; i++)
        begin[i] = 0;
}
_Static_assert(LEAST_ZEROS == 3, "zeros that find_zeros looks at");

AVX2_LOOPS static void find_zeros_avx2(uint8_t *begin, const uint32_t *words, uint32_t count)
{
    find_zeros(begin, words, count);
}

/* Packs words, with a byte for each in `begin`; returns the bytes written. */
static uint32_t pack(uint8_t *out, const uint32_t *words, uint32_t count, uint8_t *begin)
{
    uint8_t *at = out;
    if (cpu_has_avx2())
        find_zeros_avx2(begin, words, count);
    else
        find_zeros(begin, words, count);
    for (uint32_t i = 0; i < count;) {
        uint32_t pair[2], first = i;
        while (i < count && words[i] == 0)
            i++;
        pair[0] = i - first;
        first = i;
        const uint8_t *end = memchr(begin + i, 1, count - i);
        i = end ? (uint32_t)(end - begin) : count;
        pair[1] = i - first;
        memcpy(at, pair, sizeof pair);
        memcpy(at + sizeof pair, words + first, 4 * (size_t)pair[1]);
        at += sizeof pair + 4 * (size_t)pair[1];
    }
    return (uint32_t)(at - out);
}

bool records_unpack(void *values, uint32_t counters, const struct records_entry *entry)
{
    uint8_t *out = values;
    const uint8_t *at = entry->packed;
    uint64_t left = entry->packed_size, room = counters;
    while (left >= 8) {
        uint32_t pair[2];
        memcpy(pair, at, sizeof pair);
        at += sizeof pair;
        left -= sizeof pair;
        if ((uint64_t)pair[0] + pair[1] > room || 4 * (uint64_t)pair[1] > left)
            return false;
        memset(out, 0, 4 * (size_t)pair[0]);
        memcpy(out + 4 * (size_t)pair[0], at, 4 * (size_t)pair[1]);
        out += 4 * ((size_t)pair[0] + pair[1]);
        room -= (uint64_t)pair[0] + pair[1];
        at += 4 * (size_t)pair[1];
        left -= 4 * (uint64_t)pair[1];
    }
    return left == 0 && room == 0;
}

static void seal_frame(struct records_frame *frame, uint64_t sequence)
{
    struct frame_head head = {(uint32_t)(frame->size - sizeof head), 0, sequence};
    uint32_t crc = crc32c(0, &head.length, sizeof head.length);
    crc = crc32c(crc, &head.sequence, sizeof head.sequence);
    head.crc = crc32c(crc, frame->data + sizeof head, head.length);
    memcpy(frame->data, &head, sizeof head);
}

enum status records_encode(struct records_frame *frame, const struct store_record *record,
                           const void *values, uint32_t counters, struct error *err)
{
    bool image = record->failure.reason == REASON_NONE;
    size_t message = strlen(record->failure.message);
    if (record->path_length > RECORDS_MOST_PATH)
        return error_set(err, STATUS_FAILED, "a path is longer than %u bytes", RECORDS_MOST_PATH);
    const uint32_t thumbnail =
        record->thumbnail && record->thumbnail_length <= RECORDS_MOST_THUMBNAIL
            ? record->thumbnail_length
            : 0;
    size_t most = RECORDS_FRAME_HEAD + sizeof(struct record_head) + record->path_length +
                  (image ? sizeof(struct image_head) + packed_bound(counters) + thumbnail
                         : sizeof(struct failure_head) + message);
    uint8_t *data = malloc(most + counters), *at = data;
    if (!data)
        return error_memory(err, most + counters, "a finished record");
    at += RECORDS_FRAME_HEAD;
    struct record_head head = {.kind = KIND_RECORD,
                               .reason = (uint8_t)record->failure.reason,
                               .source = record->source,
                               .path_length = record->path_length,
                               .bytes = record->bytes,
                               .mtime_ns = record->mtime_ns};
    memcpy(at, &head, sizeof head);
    at += sizeof head;
    uint8_t *part = at;
    at += (image ? sizeof(struct image_head) : sizeof(struct failure_head));
    memcpy(at, record->path, record->path_length);
    at += record->path_length;
    if (image) {
        struct image_head body = {.width = record->width,
                                  .height = record->height,
                                  .orientation = record->orientation,
                                  .channels = record->channels,
                                  .has_code = record->has_code,
                                  .thumbnail_size = record->thumbnail_size,
                                  .digest = {record->digest[0], record->digest[1]},
                                  .thumbnail = thumbnail};
        memcpy(body.format, record->format, sizeof body.format);
        if (record->has_code)
            memcpy(body.code, record->code, sizeof body.code);
        body.packed = pack(at, values, counters, data + most);
        at += body.packed;
        if (thumbnail > 0)
            memcpy(at, record->thumbnail, thumbnail);
        at += thumbnail;
        memcpy(part, &body, sizeof body);
    } else {
        struct failure_head body = {record->failure.error_number, (uint32_t)message};
        memcpy(part, &body, sizeof body);
        memcpy(at, record->failure.message, message);
        at += message;
    }
    frame->size = (size_t)(at - data);
    /* It may wait for earlier ones: no byte more than it needs. */
    uint8_t *exact = realloc(data, frame->size);
    frame->data = exact ? exact : data;
    seal_frame(frame, record->sequence);
    return STATUS_OK;
}

enum status records_encode_start(struct records_frame *frame, struct error *err)
{
    frame->size = RECORDS_FRAME_HEAD + 1;
    frame->data = malloc(frame->size);
    if (!frame->data)
        return error_memory(err, frame->size, "the log");
    frame->data[RECORDS_FRAME_HEAD] = KIND_START;
    seal_frame(frame, 0);
    return STATUS_OK;
}

void records_reader_init(struct records_reader *reader, int fd, const char *path, uint32_t counters,
                         uint64_t log_end, size_t buffer_bytes)
{
    *reader = (struct records_reader){.fd = fd,
                                      .path = path,
                                      .counters = counters,
                                      .log_end = log_end,
                                      .capacity = log_end < buffer_bytes ? log_end : buffer_bytes};
}

void records_reader_clear(struct records_reader *reader)
{
    free(reader->buffer);
    *reader = (struct records_reader){.fd = -1};
}

/* The `size` bytes at `offset`, which must lie before log_end; STATUS_END if the file ends. */
static enum status fetch(struct records_reader *reader, uint64_t offset, size_t size,
                         const uint8_t **data, struct error *err)
{
    if (offset < reader->at || offset + size > reader->at + reader->filled) {
        if (size > reader->capacity || !reader->buffer) {
            size_t capacity = size > reader->capacity ? size + size / 2 : reader->capacity;
            uint8_t *more = realloc(reader->buffer, capacity);
            if (!more)
                return error_memory(err, capacity, "the log's buffer");
            reader->buffer = more;
            reader->capacity = capacity;
        }
        uint64_t left = reader->log_end - offset;
        size_t wanted = left < reader->capacity ? (size_t)left : reader->capacity;
        reader->at = offset;
        reader->filled = 0;
        enum status status =
            read_at(reader->fd, reader->buffer, wanted, offset, &reader->filled, reader->path, err);
        if (status)
            return status;
        if (reader->filled < size)
            return STATUS_END;
    }
    *data = reader->buffer + (offset - reader->at);
    return STATUS_OK;
}

/* Takes a record's payload apart; `there` bytes of its `length` are in memory. */
static bool parse(struct records_entry *entry, const uint8_t *payload, uint64_t length,
                  uint64_t there)
{
    struct store_record *record = &entry->record;
    struct record_head head;
    uint64_t at = sizeof head;
    if (there < sizeof head)
        return false;
    memcpy(&head, payload, sizeof head);
    if (head.reason >= REASON_COUNT || head.path_length > RECORDS_MOST_PATH)
        return false;
    record->source = head.source;
    record->path_length = head.path_length;
    record->bytes = head.bytes;
    record->mtime_ns = head.mtime_ns;
    record->failure.reason = head.reason;
    struct image_head image = {.width = 0};
    struct failure_head failure = {.error_number = 0};
    const bool is_image = head.reason == REASON_NONE;
    const size_t size = is_image ? sizeof image : sizeof failure;
    if (there - at < size)
        return false;
    memcpy(is_image ? (void *)&image : (void *)&failure, payload + at, size);
    at += size;
    const uint64_t rest =
        is_image ? (uint64_t)image.packed + image.thumbnail : failure.message_length;
    if (there - at < head.path_length || length - at - head.path_length != rest)
        return false;
    record->path = (const char *)payload + at;
    at += head.path_length;
    if (is_image) {
        record->width = image.width;
        record->height = image.height;
        record->orientation = image.orientation;
        record->channels = image.channels;
        memcpy(record->format, image.format, sizeof record->format);
        memcpy(record->digest, image.digest, sizeof record->digest);
        memcpy(record->code, image.code, sizeof record->code);
        record->has_code = image.has_code != 0;
        record->thumbnail_size = image.thumbnail_size;
        record->thumbnail_length = image.thumbnail;
        entry->packed_size = image.packed;
        if (there == length) {
            entry->packed = payload + at;
            record->thumbnail = image.thumbnail ? payload + at + image.packed : NULL;
        }
        return image.thumbnail <= RECORDS_MOST_THUMBNAIL;
    }
    if (rest >= sizeof record->failure.message || there < length)
        return false;
    record->failure.error_number = failure.error_number;
    memcpy(record->failure.message, payload + at, rest);
    return true;
}

static enum status read_frame(struct records_reader *reader, uint64_t offset,
                              struct records_entry *entry, bool whole, struct error *err)
{
    const uint8_t *data;
    struct frame_head head;
    memset(entry, 0, sizeof *entry);
    if (offset > reader->log_end || reader->log_end - offset < sizeof head + 1)
        return STATUS_END;
    enum status status = fetch(reader, offset, sizeof head + 1, &data, err);
    if (status)
        return status;
    memcpy(&head, data, sizeof head);
    const uint64_t most =
        1024 + RECORDS_MOST_PATH + packed_bound(reader->counters) + RECORDS_MOST_THUMBNAIL;
    if (head.length < 1 || head.length > most || /* longer ones are not ours */
        head.length > reader->log_end - offset - sizeof head)
        return STATUS_END;
    entry->next = offset + sizeof head + head.length;
    entry->record.sequence = head.sequence;
    uint64_t wanted = head.length;
    if (!whole && data[sizeof head] == KIND_RECORD) {
        /* The values come last: what lies before them is enough. */
        struct record_head record;
        status = head.length < sizeof record
                     ? STATUS_END
                     : fetch(reader, offset, sizeof head + sizeof record, &data, err);
        if (status)
            return status;
        memcpy(&record, data + sizeof head, sizeof record);
        uint64_t before = sizeof record + sizeof(struct image_head) + record.path_length;
        if (record.reason == REASON_NONE && before < wanted)
            wanted = before;
    }
    status = fetch(reader, offset, sizeof head + wanted, &data, err);
    if (status)
        return status;
    const uint8_t *payload = data + sizeof head;
    if (whole) {
        uint32_t crc = crc32c(0, &head.length, sizeof head.length);
        crc = crc32c(crc, &head.sequence, sizeof head.sequence);
        if (crc32c(crc, payload, head.length) != head.crc)
            return STATUS_END;
    }
    entry->start = payload[0] == KIND_START;
    if (entry->start)
        return head.length == 1 ? STATUS_OK : STATUS_END;
    return payload[0] == KIND_RECORD && parse(entry, payload, head.length, wanted) ? STATUS_OK
                                                                                   : STATUS_END;
}

enum status records_resync(struct records_reader *reader, uint64_t offset, uint64_t *found,
                           struct error *err)
{
    struct records_entry entry;
    struct frame_head head;
    const uint8_t *data;
    enum status status = STATUS_OK;
    for (; offset + sizeof head < reader->log_end; offset++) {
        status = fetch(reader, offset, sizeof head + 1, &data, err);
        if (status)
            return status;
        memcpy(&head, data, sizeof head);
        uint8_t kind = data[sizeof head];
        /* Most places are no frame at a glance. */
        if (!(kind == KIND_START && head.length == 1) &&
            !(kind == KIND_RECORD && head.length > sizeof(struct record_head)))
            continue;
        status = read_frame(reader, offset, &entry, true, err);
        *found = offset;
        if (status != STATUS_END)
            return status;
    }
    return STATUS_END;
}

enum status records_read(struct records_reader *reader, uint64_t offset,
                         struct records_entry *entry, struct error *err)
{
    return read_frame(reader, offset, entry, true, err);
}

enum status records_peek(struct records_reader *reader, uint64_t offset,
                         struct records_entry *entry, struct error *err)
{
    return read_frame(reader, offset, entry, false, err);
}
