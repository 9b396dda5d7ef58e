/* fuzz_readers.c: lists of paths, lists of clpipe list, archives, the log of finished records, .npy. */
#include "fuzz.h"

#include "base/clock.h"
#include "base/hash.h"
#include "file/parameters.h"
#include "file/signature.h"
#include "log/records.h"
#include "log/repair_log.h"
#include "log/stretches.h"
#include "matrix/npy.h"
#include "walk/archives.h"
#include "walk/filelist.h"
#include "walk/listfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* --- lists ------------------------------------------------------------------------------------ */

struct listed {
    char **path;
    size_t *length;
    size_t count, next;
};

static bool holds(const struct listed *listed, const char *path, size_t length)
{
    for (size_t i = 0; i < listed->count; i++) {
        if (listed->length[i] == length && memcmp(listed->path[i], path, length) == 0)
            return true;
    }
    return false;
}

/* Text in UTF-16, which is refused. */
static bool is_utf16(const uint8_t *data, size_t size)
{
    uint8_t first[4] = {0};
    memcpy(first, data, size < 4 ? size : 4);
    return (first[0] == 0xff && first[1] == 0xfe && first[2] && !first[3]) ||
           (first[0] == 0xfe && first[1] == 0xff && !first[2] && first[3]);
}

/* The plain way: cut, tidy, keep what is new. */
static void list_plainly(struct listed *listed, const uint8_t *data, size_t size)
{
    char separator = memchr(data, 0, size) ? 0 : '\n';
    listed->path = calloc(size + 1, sizeof *listed->path);
    listed->length = calloc(size + 1, sizeof *listed->length);
    fuzz_check(listed->path && listed->length);
    size_t lines = 0, returns = 0;
    for (size_t i = 0; i < size; i++)
        if (data[i] == '\n') {
            lines++;
            returns += i > 0 && data[i - 1] == '\r';
        }
    const bool windows = separator && returns > 0 && 2 * returns >= lines;
    for (size_t at = separator && size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; at < size;) {
        const uint8_t *end = memchr(data + at, separator, size - at);
        size_t length = end ? (size_t)(end - data) - at : size - at;
        char *path = malloc(length + 1);
        fuzz_check(path);
        memcpy(path, data + at, length);
        at += length + 1;
        if (windows && length > 0 && path[length - 1] == '\r')
            length--;
        length = filelist_normalize(path, length);
        if (length == 0 || holds(listed, path, length)) {
            free(path);
            continue;
        }
        listed->path[listed->count] = path;
        listed->length[listed->count++] = length;
    }
}

static enum status take_path(void *context, const char *path, size_t length, struct error *err)
{
    struct listed *listed = context;
    (void)err;
    fuzz_check(path[length] == 0 && strlen(path) == length);
    fuzz_check(listed->next < listed->count && listed->length[listed->next] == length);
    fuzz_check(memcmp(listed->path[listed->next], path, length) == 0);
    listed->next++;
    return STATUS_OK;
}

void fuzz_list(const struct fuzz_target *target, const uint8_t *data, size_t size)
{
    (void)target;
    struct listed listed = {0};
    struct error err = ERROR_INIT;
    char source[80];
    uint64_t repeated;
    fuzz_file(data, size);
    snprintf(source, sizeof source, "@%s", fuzz_file_name());
    list_plainly(&listed, data, size);
    enum status status =
        filelist_read(&repeated, source, fuzz_folder(), 1u << 17, NULL, take_path, &listed, &err);
    fuzz_check(is_utf16(data, size) ? status == STATUS_FAILED
                                    : status == STATUS_OK && listed.next == listed.count);
    for (size_t i = 0; i < listed.count; i++)
        free(listed.path[i]);
    free(listed.path);
    free(listed.length);
}

/* --- lists of clpipe list, and their shares ------------------------------------------------------ */

static bool never(const char *path)
{
    (void)path;
    return false;
}

/* All that a shard hands out; false: the list is damaged. */
static bool walk_shard(struct list_share *share, const char *source, uint64_t index, uint64_t count)
{
    const struct walk_config config = {.options = {.sources = &source,
                                                   .source_count = 1,
                                                   .shard_index = index,
                                                   .shard_count = count},
                                       .spool_directory = fuzz_folder(),
                                       .promises_image = never};
    struct error err = ERROR_INIT;
    struct walk *walk = NULL;
    struct walk_item item;
    enum status status = walk_open(&walk, &config, &err);
    fuzz_check(status == STATUS_OK || (status == STATUS_FAILED && !walk));
    if (status != STATUS_OK)
        return false;
    *share = *walk_share(walk);
    uint64_t items = 0, bytes = 0;
    while ((status = walk_next(walk, &item, &err)) == STATUS_OK) {
        const bool member = archives_member(item.where);
        struct archive_file archive = {.length = 0};
        if (member)
            archives_about(&archive, walk_archives(walk), item.where);
        fuzz_check(item.path_length > 0 && strlen(item.path) == item.path_length);
        fuzz_check(!member || item.path[archive.length] == '/');
        fuzz_check(item.failure.reason < REASON_COUNT);
        items++;
        bytes += item.bytes;
    }
    fuzz_check(status == STATUS_END && items == walk_count(walk) && bytes == walk_bytes(walk));
    fuzz_check(count == 0 || items == share->last - share->first);
    fuzz_check(count == 0 || share->list_count == walk_count_of(walk, 0, &(bool){false}));
    walk_close(&walk);
    return true;
}

/* The bytes behind the beginning of a list: without it, it would be a list of paths. */
void fuzz_listfile(const struct fuzz_target *target, const uint8_t *data, size_t size)
{
    (void)target;
    static const char beginning[] = LISTFILE_BEGINNING_BY_HAND;
    struct list_share share;
    struct fuzz_choice choice = fuzz_choice(data, size);
    const uint64_t count = 1 + fuzz_choose(&choice, 5);
    char source[80];
    uint8_t *list = malloc(sizeof beginning + size);
    fuzz_check(list);
    memcpy(list, beginning, sizeof beginning);
    if (size > 0)
        memcpy(list + sizeof beginning, data, size);
    fuzz_file(list, sizeof beginning + size);
    free(list);
    snprintf(source, sizeof source, "@%s", fuzz_file_name());
    const bool whole = walk_shard(&share, source, 0, 0);
    for (uint64_t i = 0, position = 0; i < count; i++) {
        /* A share may be whole where the list is not. */
        const bool there = walk_shard(&share, source, i, count);
        if (!whole)
            continue;
        fuzz_check(there);
        fuzz_check(share.first == position && (i + 1 < count || share.last == share.list_count));
        position = share.last;
    }
}

/* --- archives --------------------------------------------------------------------------------- */

#define MOST_MEMBERS 64 /* that are opened */
#define MOST_READ    (1u << 20)

struct members {
    struct source_listing listing; /* first: `add` is given it */
    struct archives *archives;
    struct entry entry[MOST_MEMBERS];
    char *path[MOST_MEMBERS];
    uint32_t digest[MOST_MEMBERS];
    bool whole[MOST_MEMBERS]; /* could be read */
    unsigned count;
    uint64_t found;
};

static void count_member(struct source_listing *listing)
{
    ((struct members *)listing)->found++;
}

static enum status take_member(struct source_listing *listing, const char *path, size_t length,
                               const struct entry *entry, struct error *err)
{
    struct members *members = (struct members *)listing;
    (void)err;
    fuzz_check(path[length] == 0 && strlen(path) == length && length >= 2);
    fuzz_check(memcmp(path, "a/", 2) == 0);
    const bool readable = entry->failure.reason == REASON_NONE;
    fuzz_check(!readable || archives_member(entry->where));
    fuzz_check(!readable || (path[2] != '/' && path[length - 1] != '/'));
    if (!readable)
        return STATUS_OK;
    if (members->count == MOST_MEMBERS)
        return STATUS_END;
    members->entry[members->count] = *entry;
    members->path[members->count] = strdup(path);
    fuzz_check(members->path[members->count++]);
    return STATUS_OK;
}

/* Reads a member; the CRC of its bytes, or of why it cannot be read. */
static uint32_t read_member(bool *whole, const struct members *members, unsigned i)
{
    static uint8_t buffer[1 << 16];
    const struct entry *entry = &members->entry[i];
    const struct source_member member = {members->path[i], entry->where, entry->bytes,
                                         entry->mtime_ns};
    struct blob blob = BLOB_NOTHING;
    struct failure failure = {.reason = REASON_NONE};
    uint32_t crc = 0;
    *whole = archives_open_member(&blob, members->archives, &member, &failure) == REASON_NONE;
    if (!*whole) {
        fuzz_check(failure.reason != REASON_NONE && !blob_is_open(&blob));
        return (uint32_t)failure.reason;
    }
    fuzz_check(blob_is_open(&blob) && blob.bytes == entry->bytes);
    for (uint64_t at = 0; at < blob.bytes && at < MOST_READ;) {
        const ssize_t got = blob_read(&blob, buffer, sizeof buffer, at);
        fuzz_check(got > 0 && (uint64_t)got <= blob.bytes - at);
        crc = crc32c(crc, buffer, (size_t)got);
        at += (uint64_t)got;
    }
    blob_close(&blob);
    return crc;
}

static void list_and_read(struct members *members, const uint8_t *data, size_t size)
{
    static const struct walk_options options = {.archives = true, .hidden = true};
    static struct pathglob *globs;
    struct error err = ERROR_INIT;
    struct stat st;
    if (!globs)
        fuzz_check(pathglob_open(&globs, NULL, 0, NULL, 0, &err) == STATUS_OK);
    *members = (struct members){.listing = {.options = &options,
                                            .globs = globs,
                                            .promises_image = never,
                                            .found = count_member,
                                            .add = take_member}};
    fuzz_check(fstat(fuzz_file(data, size), &st) == 0);
    const struct archive_file file = {.directory = AT_FDCWD,
                                      .name = fuzz_file_name(),
                                      .path = "a",
                                      .length = 1,
                                      .bytes = size,
                                      .mtime_ns = clock_file_time(&st.st_mtim)};
    fuzz_check(archives_open(&members->archives, &err) == STATUS_OK);
    errno = ENOMEM; /* what failed before is over */
    const enum status status = archives_list(members->archives, &members->listing, &file, &err);
    fuzz_check(status == STATUS_OK || (status == STATUS_END && members->count == MOST_MEMBERS));
    fuzz_check(members->found >= members->count);
    for (unsigned i = 0; i < members->count; i++)
        members->digest[i] = read_member(&members->whole[i], members, i);
}

static void forget_members(struct members *members)
{
    for (unsigned i = 0; i < members->count; i++)
        free(members->path[i]);
    archives_close(&members->archives);
}

/* All members of one that can be read are in the other, with the same content. */
static void check_same_members(const struct members *members, const struct members *others)
{
    for (unsigned i = 0; i < members->count; i++) {
        unsigned other = 0;
        if (!members->whole[i])
            continue;
        while (other < others->count && strcmp(members->path[i], others->path[other]) != 0)
            other++;
        fuzz_check(other < others->count && others->whole[other]);
        fuzz_check(members->digest[i] == others->digest[other]);
    }
}

/* The bytes as a .gz without compression. */
static size_t wrap_in_gzip(uint8_t **out, const uint8_t *data, size_t size)
{
    z_stream stream = {.next_in = (uint8_t *)(uintptr_t)data, .avail_in = (uInt)size};
    fuzz_check(deflateInit2(&stream, 0, Z_DEFLATED, 15 + 16, 1, Z_DEFAULT_STRATEGY) == Z_OK);
    const size_t room = deflateBound(&stream, (uLong)size);
    *out = malloc(room);
    fuzz_check(*out);
    stream.next_out = *out;
    stream.avail_out = (uInt)room;
    fuzz_check(deflate(&stream, Z_FINISH) == Z_STREAM_END);
    deflateEnd(&stream);
    return room - stream.avail_out;
}

/* Are members read at their offsets those of a stream? Zip files are not looked for in streams, and what
 * GNU's headers say of holes and of the real size may be a lie that only a stream shows. */
static bool may_be_in_a_stream(const uint8_t *data, size_t size)
{
    for (size_t at = 0; at + 512 <= size; at += 512)
        if (memcmp(data + at + 257, "ustar  ", 7) == 0 && (data[at + 386] || data[at + 483]))
            return false;
    return !memmem(data, size, "PK\5\6", 4) && !memmem(data, size, "realsize", 8);
}

void fuzz_archive(const struct fuzz_target *target, const uint8_t *data, size_t size)
{
    (void)target;
    static struct members members, wrapped;
    struct fuzz_choice choice = fuzz_choice(data, size);
    list_and_read(&members, data, size);
    /* Again: the last, whose stream has ended, then any. */
    for (unsigned times = 0; members.count > 0 && times < 3; times++) {
        const unsigned i = times == 0 ? members.count - 1 : fuzz_choose(&choice, members.count);
        bool whole;
        if (!fuzz_thorough && fuzz_choose(&choice, 4) > 0)
            continue;
        fuzz_check(read_member(&whole, &members, i) == members.digest[i]);
        fuzz_check(whole == members.whole[i]);
    }
    if (size > 0 && (fuzz_thorough || fuzz_choose(&choice, 4) == 0) &&
        members.count < MOST_MEMBERS && may_be_in_a_stream(data, size)) {
        uint8_t *gzip;
        const size_t length = wrap_in_gzip(&gzip, data, size);
        list_and_read(&wrapped, gzip, length);
        check_same_members(&members, &wrapped);
        check_same_members(&wrapped, &members);
        forget_members(&wrapped);
        free(gzip);
    }
    forget_members(&members);
}

/* The sums of what looks like headers of tar. */
void fuzz_seal_archive(uint8_t *data, size_t size)
{
    for (size_t at = 0; at + 512 <= size; at += 512) {
        uint8_t *header = data + at;
        unsigned sum = 8 * ' ';
        char digits[8];
        if (memcmp(header + 257, "ustar", 5) != 0)
            continue;
        for (unsigned i = 0; i < 512; i++)
            sum += i < 148 || i >= 156 ? header[i] : 0;
        snprintf(digits, sizeof digits, "%06o", sum);
        memcpy(header + 148, digits, 7);
        header[155] = ' ';
    }
}

/* --- the log ---------------------------------------------------------------------------------- */

static void check_same(const struct store_record *a, const struct store_record *b)
{
    fuzz_check(a->sequence == b->sequence && a->source == b->source &&
               a->path_length == b->path_length && a->bytes == b->bytes &&
               a->mtime_ns == b->mtime_ns && a->failure.reason == b->failure.reason &&
               a->width == b->width && a->height == b->height);
}

/* The content of a complete frame, which gives the same frame when written again. */
static void check_entry(struct records_reader *reader, uint64_t offset,
                        const struct records_entry *entry)
{
    struct error err = ERROR_INIT;
    fuzz_check(entry->next > offset && entry->next <= reader->log_end);
    if (entry->start)
        return;
    const struct store_record *record = &entry->record;
    fuzz_check(record->failure.reason < REASON_COUNT);
    fuzz_check(memchr(record->failure.message, 0, sizeof record->failure.message));
    uint32_t *values = malloc(reader->counters * sizeof *values + 1);
    fuzz_check(values);
    if (record->failure.reason == REASON_NONE && records_unpack(values, reader->counters, entry)) {
        struct records_frame frame;
        fuzz_check(records_encode(&frame, record, values, reader->counters, &err) == STATUS_OK);
        fuzz_check(frame.size > RECORDS_FRAME_HEAD);
        free(frame.data);
    }
    free(values);
    /* A peek sees the same, in a separate reader since an entry lies in its reader's buffer. */
    struct records_reader other;
    struct records_entry peeked;
    records_reader_init(&other, reader->fd, "log", reader->counters, reader->log_end, 64);
    fuzz_check(records_peek(&other, offset, &peeked, &err) == STATUS_OK);
    check_same(record, &peeked.record);
    records_reader_clear(&other);
}

static void read_all(int fd, uint64_t start, uint64_t end, uint32_t counters)
{
    struct records_reader reader;
    struct records_entry entry;
    struct error err = ERROR_INIT;
    enum status status = STATUS_OK;
    records_reader_init(&reader, fd, "log", counters, end, 256);
    for (uint64_t at = start; at < end && status == STATUS_OK;) {
        status = records_read(&reader, at, &entry, &err);
        if (status == STATUS_OK) {
            check_entry(&reader, at, &entry);
            at = entry.next;
        } else if (status == STATUS_END) {
            uint64_t found = at;
            status = records_resync(&reader, at + 1, &found, &err);
            fuzz_check(status != STATUS_OK || found > at);
            at = found;
        }
    }
    fuzz_check(status == STATUS_OK || status == STATUS_END);
    records_reader_clear(&reader);
    struct stretches stretches = {0};
    fuzz_check(stretches_scan(&stretches, fd, "log", counters, start, NULL, &err) == STATUS_OK);
    fuzz_check(stretches.end <= end && stretches.damaged <= end);
    stretches_clear(&stretches);
}

/* Reads it as repair does. */
static void repair_log(int directory)
{
    struct repair_log log = {.fd = -1};
    struct signature_parts parts;
    struct error err = ERROR_INIT;
    memset(&parts, 0, sizeof parts);
    if (repair_log_open(&log, directory, fuzz_folder(), &err) == STATUS_OK && log.fd >= 0) {
        if (signature_parse(&parts, log.signature, &err) == STATUS_OK)
            repair_log_scan(&log, parts.features.counters, parts.content.sources,
                            parts.content.source_count, &err);
        signature_parts_clear(&parts);
        char difference[256];
        parameters_difference(difference, sizeof difference, log.signature, "{\"format\":1}", "it");
        parameters_difference(difference, sizeof difference, "{\"sources\":[\"a\"]}", log.signature,
                              "it");
    }
    repair_log_close(&log);
}

void fuzz_log(const struct fuzz_target *target, const uint8_t *data, size_t size)
{
    (void)target;
    int fd = fuzz_file(data, size);
    int directory = open(fuzz_folder(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    fuzz_check(directory >= 0);
    char *signature = NULL;
    uint64_t start = 0;
    struct error err = ERROR_INIT;
    struct fuzz_choice choice = fuzz_choice(data, size);
    if (records_read_header(&signature, &start, fd, "log", &err) == STATUS_OK) {
        fuzz_check(signature && start <= size);
        /* As many values as the seeds have, or any number. */
        read_all(fd, start, size, fuzz_choose(&choice, 2) ? 6 : 1 + fuzz_choose(&choice, 40));
    }
    free(signature);
    repair_log(directory);
    close(directory);
}

/* Corrects the CRC of the header and of all complete frames; see log/records.h. */
void fuzz_seal_log(uint8_t *data, size_t size)
{
    uint32_t length, crc;
    if (size < 24)
        return;
    memcpy(&length, data + 12, sizeof length);
    if (length > size - 24)
        return;
    crc = crc32c(crc32c(0, data, 16), data + 24, length);
    memcpy(data + 16, &crc, sizeof crc);
    for (size_t at = 24 + (size_t)length; size - at > RECORDS_FRAME_HEAD;) {
        memcpy(&length, data + at, sizeof length);
        if (length > size - at - RECORDS_FRAME_HEAD)
            return;
        crc = crc32c(crc32c(0, data + at, 4), data + at + 8, 8);
        crc = crc32c(crc, data + at + RECORDS_FRAME_HEAD, length);
        memcpy(data + at + 4, &crc, sizeof crc);
        at += RECORDS_FRAME_HEAD + (size_t)length;
    }
}

/* --- .npy ------------------------------------------------------------------------------------- */

void fuzz_npy(const struct fuzz_target *target, const uint8_t *data, size_t size)
{
    (void)target;
    struct matrix_source npy = {0};
    struct error err = ERROR_INIT;
    fuzz_file(data, size);
    if (npy_open(&npy, fuzz_file_name(), &err) != STATUS_OK) {
        fuzz_check(!npy.context && err.status != STATUS_OK);
        return;
    }
    uint64_t rows = npy.rows, columns = npy.dimension;
    if (columns == 0) { /* any number of rows: the caller refuses it */
        matrix_close(&npy);
        return;
    }
    /* One byte is the smallest element. */
    fuzz_check(rows <= size / columns);
    float *whole = malloc(rows * columns * sizeof *whole + 1);
    float *part = malloc(rows * columns * sizeof *part + 1);
    fuzz_check(whole && part);
    fuzz_check(matrix_read(&npy, 0, rows, whole, &err) == STATUS_OK);
    struct fuzz_choice choice = fuzz_choice(data, size);
    for (uint64_t at = 0; at < rows;) {
        uint64_t count = 1 + fuzz_choose(&choice, (uint32_t)(rows - at));
        fuzz_check(matrix_read(&npy, at, count, part, &err) == STATUS_OK);
        fuzz_check(memcmp(part, whole + at * columns, count * columns * sizeof *part) == 0);
        at += count;
    }
    free(whole);
    free(part);
    matrix_close(&npy);
}
