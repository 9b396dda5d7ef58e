/* fuzz_readers.c: lists of paths, lists written by clpipe list, archives, the log of finished
 * records, .npy. */
#include "fuzz.h"

#include "base/clock.h"
#include "base/hash.h"
#include "matrix/npy.h"
#include "result/parameters.h"
#include "result/records.h"
#include "result/signature.h"
#include "sources/archives.h"
#include "sources/filelist.h"
#include "sources/listfile.h"

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

/* Returns whether the text is UTF-16, which is refused. */
static bool is_utf16(const uint8_t *data, size_t size)
{
    uint8_t first[4] = {0};
    memcpy(first, data, size < 4 ? size : 4);
    return (first[0] == 0xff && first[1] == 0xfe && first[2] && !first[3]) ||
           (first[0] == 0xfe && first[1] == 0xff && !first[2] && first[3]);
}

/* A simple reference: splits the text, normalises the paths and keeps each path once. */
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
    for (size_t at = separator && size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
         at < size;) {
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

/* Walks all items of a shard; returns false if the list is damaged. */
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
        const bool member = archives_member(item.entry.where);
        fuzz_check(item.path_length > 0 && strlen(item.path) == item.path_length);
        fuzz_check(!member ||
                   item.path[archives_about(walk_source(walk, item.source)->shared->archives,
                                            item.entry.where)
                                 ->length] == '/');
        fuzz_check(item.entry.failure.reason < REASON_COUNT);
        items++;
        bytes += item.entry.bytes;
    }
    fuzz_check(status == STATUS_END && items == walk_count(walk) && bytes == walk_bytes(walk));
    fuzz_check(count == 0 || items == share->last - share->first);
    fuzz_check(count == 0 || share->list_count == walk_count_of(walk, 0, &(bool){false}));
    walk_close(&walk);
    return true;
}

/* The data follow the first record of a list; without it, the file would be a list of paths. */
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
        /* A share may be intact even if the list is damaged. */
        const bool there = walk_shard(&share, source, i, count);
        if (!whole)
            continue;
        fuzz_check(there);
        fuzz_check(share.first == position && (i + 1 < count || share.last == share.list_count));
        position = share.last;
    }
}

/* --- archives --------------------------------------------------------------------------------- */

#define MOST_MEMBERS 64 /* maximum number of members to open */
#define MOST_READ    (1u << 20)

struct members {
    struct source_listing listing; /* must be first: `add` receives a pointer to it */
    struct archives *archives;
    struct entry entry[MOST_MEMBERS];
    char *path[MOST_MEMBERS];
    uint32_t digest[MOST_MEMBERS];
    bool whole[MOST_MEMBERS]; /* whether it could be read */
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

/* Reads a member; returns the CRC of its bytes, or of the reason why it cannot be read. */
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
    errno = ENOMEM; /* an earlier error must have no effect */
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

/* Checks that all readable members of one archive are in the other, with the same content. */
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

/* Wraps the bytes in gzip without compression. */
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

/* Returns whether reading by offset and reading as a stream must give the same members. Streams are
 * not searched for zip files; and only a stream reveals if GNU headers are wrong about holes and
 * the real size. */
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
    /* Reads members again: first the last one, whose stream has ended, then any. */
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

/* Corrects the checksums of blocks that look like tar headers. */
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

#define LOG_HEADER 32u
#define LOG_HEAD   32u

/* Checks that reading a row alone, with others, and by column gives the same values. */
static void check_row(struct records_cursor cursor[2], enum records_table table, uint64_t row)
{
    const struct log_row *found, *other;
    struct error err = ERROR_INIT;
    uint64_t sequence = 0, end = 0;
    uint8_t *path = NULL;
    size_t room = 0;
    const bool image = table == RECORDS_IMAGES;
    const struct records *records = cursor[0].records;
    if (records_at(&cursor[0], table, row, &found, &err) != STATUS_OK)
        return;
    const size_t length = strlen(found->image.path);
    uint32_t sum = crc32c(0, found->image.path, length);
    if (!image)
        sum = crc32c(sum, found->failure.message, strlen(found->failure.message));
    for (unsigned i = 0; image && i < records->features; i++) {
        uint8_t *values = malloc(records->width[i] + 1);
        if (values && records_read(records, LOG_FEATURE + i, 0, records->width[i], row, 1, values,
                                   &err) == STATUS_OK)
            sum = crc32c(sum, values, records->width[i]);
        free(values);
    }
    if (records_at(&cursor[1], table, row, &other, &err) == STATUS_OK)
        fuzz_check(other->sequence == found->sequence &&
                   strcmp(other->image.path, found->image.path) == 0);
    if (records_read(records, table, offsetof(struct log_row, sequence), sizeof sequence, row, 1,
                     &sequence, &err) == STATUS_OK)
        fuzz_check(sequence == found->sequence);
    if (records_read_texts(records, image ? LOG_IMAGE_PATH : LOG_FAILURE_PATH, row, 1, &end, &path,
                           &room, &err) == STATUS_OK)
        fuzz_check(end >= length && memcmp(path, found->image.path, length) == 0);
    free(path);
    fuzz_check(sum != 1); /* uses all bytes, so that a sanitizer checks them */
}

static void read_log(int directory, const uint32_t *widths, unsigned features)
{
    struct records records;
    struct error err = ERROR_INIT;
    if (records_open(&records, directory, fuzz_folder(), false, &err) == STATUS_OK &&
        records_scan(&records, widths, features, NULL, &err) == STATUS_OK) {
        fuzz_check(records.logs <= 1 && records.damaged + records.torn <= records.bytes);
        struct records_cursor cursor[2] = {{.records = &records, .window = 100},
                                           {.records = &records, .window = 3}};
        for (int table = 0; widths && table < 2; table++)
            for (uint64_t row = 0; row < records.rows[table]; row++)
                check_row(cursor, table, row);
        for (int i = 0; i < 2; i++)
            records_cursor_clear(&cursor[i]);
    }
    records_clear(&records);
}

void fuzz_log(const struct fuzz_target *target, const uint8_t *data, size_t size)
{
    (void)target;
    fuzz_file(data, size);
    int directory = open(fuzz_folder(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    fuzz_check(directory >= 0);
    struct error err = ERROR_INIT;
    struct records records;
    struct signature_parts parts;
    uint32_t widths[FEATURE_MAX] = {12, 6, 3};
    unsigned features = 1;
    memset(&parts, 0, sizeof parts);
    if (records_open(&records, directory, fuzz_folder(), false, &err) == STATUS_OK &&
        records.signature) {
        if (signature_parse(&parts, records.signature, &err) == STATUS_OK)
            for (features = 0; features < parts.features.count; features++)
                widths[features] = (uint32_t)feature_row_bytes(&parts.features.feature[features]);
        char difference[256];
        parameters_difference(difference, sizeof difference, records.signature, "{\"format\":1}",
                              "it");
        parameters_difference(difference, sizeof difference, "{\"sources\":[\"a\"]}",
                              records.signature, "it");
    }
    signature_parts_clear(&parts);
    records_clear(&records);
    read_log(directory, NULL, 0);
    read_log(directory, widths, features);
    close(directory);
}

/* Corrects the CRC of the header and of all blocks; see result/records.h. */
void fuzz_seal_log(uint8_t *data, size_t size)
{
    uint32_t length, crc, columns;
    if (size < LOG_HEADER)
        return;
    memcpy(&length, data + 12, sizeof length);
    if (length > size - LOG_HEADER)
        return;
    crc = crc32c(crc32c(crc32c(0, data, 16), data + 20, 12), data + LOG_HEADER, length);
    memcpy(data + 16, &crc, sizeof crc);
    const size_t first =
        (LOG_HEADER + (size_t)length + RECORDS_ALIGN - 1) / RECORDS_ALIGN * RECORDS_ALIGN;
    for (size_t at = first; at < size && size - at > LOG_HEAD; at += RECORDS_ALIGN) {
        memcpy(&columns, data + at + 4, sizeof columns);
        size_t head = LOG_HEAD + 8 * (size_t)columns, next = head;
        if (columns > RECORDS_MOST_COLUMNS || head > size - at)
            continue;
        memcpy(data + at + 8, data + 24, 8);
        for (uint32_t c = 0; c < columns; c++) {
            memcpy(&length, data + at + LOG_HEAD + 8 * c, sizeof length);
            if (length > size - at - next)
                break;
            crc = crc32c(0, data + at + next, length);
            memcpy(data + at + LOG_HEAD + 8 * c + 4, &crc, sizeof crc);
            next += length;
        }
        crc = crc32c(0, data + at + 4, head - 4);
        memcpy(data + at, &crc, sizeof crc);
    }
}

/* --- .npy ------------------------------------------------------------------------------------- */

void fuzz_npy(const struct fuzz_target *target, const uint8_t *data, size_t size)
{
    (void)target;
    struct matrix_source npy = {0};
    struct error err = ERROR_INIT;
    fuzz_file(data, size);
    if (npy_open(&npy, fuzz_file_name(), false, &err) != STATUS_OK) {
        fuzz_check(!npy.context && err.status != STATUS_OK);
        return;
    }
    uint64_t rows = npy.rows, columns = npy.dimension;
    if (columns == 0) { /* such a file may claim any number of rows; callers refuse it */
        matrix_close(&npy);
        return;
    }
    /* The smallest element is one byte. */
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
