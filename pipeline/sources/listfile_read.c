/* listfile_read.c: reads lists of clpipe list record by record. */
#include "base/array.h"
#include "base/parse.h"
#include "base/path.h"
#include "sources/archives.h"
#include "sources/bytes.h"
#include "sources/filelist.h"
#include "sources/listfile.h"
#include "sources/once.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STOP_EVERY  1024 /* records */
#define RECORD_SIZE (FILELIST_PATH_MAX + 1)
#define END_SIZE    256 /* larger than the end record */

/* A record p. */
struct block {
    uint64_t offset, count, weight;
    char digest[33];
};

struct listfile {
    FILE *file;
    char *name;
    char *text;      /* of a record: RECORD_SIZE bytes and NUL */
    uint64_t offset; /* of the current record, and of the next one */
    uint64_t next;
    /* Only if the list has an end record: */
    bool has_end;
    struct block *block; /* plus one more: the end of the last block */
    size_t blocks;       /* without that one */
    char digest[33];
};

struct reading {
    struct listfile *list;
    struct source *source;
    struct source_listing *listing;
    struct once *once; /* for a list without an end record */
    struct bytes path; /* of the last archive, with a slash, and a member */
    size_t prefix;     /* its length; 0: no archive yet */
    uint64_t archive;  /* from archives_register */
    uint64_t archive_bytes;
    int64_t archive_mtime_ns;
    bool whole, any; /* it is not divided; some of it has been listed */
    size_t block;
    struct portion_total total; /* of the block */
    bool enough;                /* no more items are needed */
};

static enum status damaged(const struct listfile *list, const char *what, struct error *err)
{
    return error_set(err, STATUS_FAILED,
                     "%s is not a list that clpipe can read: the record at byte %" PRIu64 " %s",
                     PATH_TEXT(list->name), list->offset, what);
}

/* Reads a record into list->text and returns its bytes including NUL, at most RECORD_SIZE; 0:
 * end. */
static size_t next_record(struct listfile *list)
{
    size_t length = 0;
    for (int c = 1; c != 0 && length < RECORD_SIZE && (c = getc_unlocked(list->file)) != EOF;)
        list->text[length++] = (char)c;
    list->offset = list->next;
    list->next += length;
    return length;
}

static bool go_to(struct listfile *list, uint64_t offset)
{
    list->next = offset;
    return fseeko(list->file, (off_t)offset, SEEK_SET) == 0;
}

/* --- fields ---------------------------------------------------------------------------------- */

static bool take_number(uint64_t *out, const char **at)
{
    char *end;
    if (!isdigit((unsigned char)**at))
        return false;
    errno = 0;
    *out = strtoull(*at, &end, 10);
    if (errno || *end != ' ')
        return false;
    *at = end + 1;
    return true;
}

/* Parses seconds with a fraction to nanoseconds, clamped to their range as in clock_file_time. */
static bool take_time(int64_t *out, const char **at)
{
    char *end;
    int64_t fraction = 0, digit = 100000000;
    const bool negative = **at == '-';
    const long long seconds = strtoll(*at, &end, 10);
    if (end == *at)
        return false;
    if (*end == '.')
        for (end++; isdigit((unsigned char)*end); end++, digit /= 10)
            fraction += (*end - '0') * digit;
    if (*end != ' ')
        return false;
    if (__builtin_mul_overflow((int64_t)seconds, INT64_C(1000000000), out) ||
        __builtin_add_overflow(*out, negative ? -fraction : fraction, out))
        *out = negative ? INT64_MIN : INT64_MAX;
    *at = end + 1;
    return true;
}

static bool take_failure(struct failure *failure, struct entry *entry, const char **at)
{
    char name[REASON_NAME_MAX];
    const size_t length = strcspn(*at, " ");
    uint64_t number, text;
    if (length >= sizeof name || (*at)[length] != ' ')
        return false;
    snprintf(name, sizeof name, "%.*s", (int)length, *at);
    const enum reason reason = reason_from_name(name);
    *at += length + 1;
    if (reason == REASON_NONE || reason == REASON_COUNT || !take_number(&number, at) ||
        number > INT32_MAX || !take_number(&entry->bytes, at) || !take_time(&entry->mtime_ns, at) ||
        !take_number(&text, at) || text >= strlen(*at) || (*at)[text] != ' ')
        return false;
    failure_set(failure, reason, "%.*s",
                (int)(text < sizeof failure->message ? text : sizeof failure->message), *at);
    failure->error_number = (int)number;
    *at += text + 1;
    return true;
}

static bool take_digest(char digest[33], const char **at)
{
    for (int i = 0; i < 32; i++)
        if (!isxdigit((unsigned char)(*at)[i]))
            return false;
    memcpy(digest, *at, 32);
    digest[32] = 0;
    *at += 32 + ((*at)[32] == ' ');
    return true;
}

/* --- the end record -------------------------------------------------------------------------- */

static bool take_end(struct listfile *list, struct block *end, const char *at)
{
    return take_number(&end->count, &at) && take_digest(list->digest, &at) &&
           take_number(&end->weight, &at) && parse_u64(&end->offset, at, 0, UINT64_MAX);
}

/* Is `block` where it can be after `last`, NULL: the first one? */
static bool follows(const struct block *block, const struct block *last)
{
    return last ? block->offset > last->offset && block->count > last->count &&
                      block->weight >= last->weight
                : block->offset == sizeof LISTFILE_BEGINNING && !block->count && !block->weight;
}

/* Reads the records p up to the end record. */
static enum status read_blocks(struct listfile *list, const struct block *end, uint64_t end_offset,
                               struct error *err)
{
    if (end->offset > end_offset || !go_to(list, end->offset))
        return damaged(list, "does not say where the blocks are", err);
    for (;;) {
        if (array_grow(&list->block, list->blocks, sizeof *list->block, "a list", err))
            return STATUS_FAILED;
        struct block *block = &list->block[list->blocks];
        *block = *end;
        if (list->next >= end_offset)
            break;
        const char *at = list->text + 2;
        if (next_record(list) < 3 || list->text[0] != 'p' || !take_number(&block->offset, &at) ||
            !take_number(&block->count, &at) || !take_number(&block->weight, &at) ||
            !take_digest(block->digest, &at) || *at)
            return damaged(list, "is not \"p OFFSET COUNT WEIGHT DIGEST\"", err);
        if (!follows(block, list->blocks > 0 ? block - 1 : NULL))
            return damaged(list, "does not follow the previous one", err);
        list->blocks++;
    }
    if (!follows(end, list->blocks > 0 ? &list->block[list->blocks - 1] : NULL))
        return damaged(list, "does not agree with those before it", err);
    list->has_end = true;
    return STATUS_OK;
}

/* Reads the record e, if there is one. */
static enum status find_end(struct listfile *list, uint64_t size, struct error *err)
{
    char tail[END_SIZE + 1];
    struct block end = {.offset = 0};
    const size_t length = size < END_SIZE ? (size_t)size : END_SIZE;
    if (pread(fileno(list->file), tail, length, (off_t)(size - length)) != (ssize_t)length ||
        tail[length - 1] != 0)
        return STATUS_OK;
    const char *before = memrchr(tail, 0, length - 1);
    if (!before || before[1] != 'e' || before[2] != ' ')
        return STATUS_OK;
    list->offset = size - length + (uint64_t)(before + 1 - tail);
    if (!take_end(list, &end, before + 3))
        return damaged(list,
                       "is not \"e COUNT DIGEST WEIGHT OFFSET\": if an earlier version of clpipe "
                       "wrote the list, make it again with clpipe list",
                       err);
    return read_blocks(list, &end, list->offset, err);
}

enum status listfile_open(struct listfile **out, const char *path, struct error *err)
{
    char beginning[sizeof LISTFILE_BEGINNING];
    struct stat st;
    *out = NULL;
    /* Do not open a FIFO to test it: its writer would lose its reader. */
    if (path_stat_at(AT_FDCWD, path, &st, 0) != 0 || !S_ISREG(st.st_mode))
        return STATUS_OK;
    const int fd = path_open_at(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return STATUS_OK; /* filelist_read says why */
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) ||
        pread(fd, beginning, sizeof beginning, 0) != (ssize_t)sizeof beginning ||
        (memcmp(beginning, LISTFILE_BEGINNING, sizeof beginning) != 0 &&
         memcmp(beginning, LISTFILE_BEGINNING_BY_HAND, sizeof beginning) != 0)) {
        close(fd);
        return STATUS_OK;
    }
    struct listfile *list = calloc(1, sizeof *list);
    FILE *file = list ? fdopen(fd, "r") : NULL;
    if (!file) {
        close(fd);
        free(list);
        return error_memory(err, sizeof *list, "a list");
    }
    list->file = file;
    list->name = strdup(path);
    list->text = calloc(1, RECORD_SIZE + 1);
    enum status status = list->name && list->text ? find_end(list, (uint64_t)st.st_size, err)
                                                  : error_memory(err, RECORD_SIZE, "a list");
    if (status == STATUS_OK && !list->has_end && strcmp(beginning, LISTFILE_BEGINNING) == 0)
        status = error_set(err, STATUS_FAILED,
                           "the list %s is cut off: its end is missing; copy it again, or make it "
                           "again with clpipe list",
                           PATH_TEXT(path));
    *out = list;
    if (status != STATUS_OK)
        listfile_close(out);
    return status;
}

void listfile_close(struct listfile **list)
{
    if (!list || !*list)
        return;
    fclose((*list)->file);
    free((*list)->block);
    free((*list)->name);
    free((*list)->text);
    free(*list);
    *list = NULL;
}

enum status listfile_begin_share(struct source_start *out, const struct listfile *list,
                                 uint64_t index, uint64_t count)
{
    if (!list->has_end)
        return STATUS_END;
    const struct block *end = &list->block[list->blocks];
    size_t low = 0, high = list->blocks;
    /* Finds the last block that has nothing of the share before it: earlier pieces have their
     * middle before the share's start. */
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        *(portion_shard(list->block[middle].weight, 0, end->weight, count) < index ? &low : &high) =
            middle;
    }
    *out = (struct source_start){.place = low,
                                 .count = list->block[low].count,
                                 .weight = list->block[low].weight,
                                 .list_count = end->count,
                                 .list_weight = end->weight};
    memcpy(out->list_digest, list->digest, sizeof out->list_digest);
    return STATUS_OK;
}

/* --- records --------------------------------------------------------------------------------- */

static enum status add_item(struct reading *reading, const char *path, size_t length,
                            const struct entry *entry, struct error *err)
{
    struct source_listing *listing = reading->listing;
    if (reading->once)
        return once_add(reading->once, path, length, entry, entry_size(entry), err);
    portion_add(&reading->total, path, length, entry);
    if (reading->enough)
        return STATUS_OK;
    listing->found(listing);
    if (!pathglob_takes_alone(listing->globs, path, length))
        return STATUS_OK;
    const enum status status = listing->add(listing, path, length, entry, err);
    reading->enough = status == STATUS_END;
    return reading->enough ? STATUS_OK : status;
}

/* Sets the weight of a member of an archive that is not divided. */
static void set_share(struct entry *entry, struct reading *reading)
{
    if (reading->whole)
        entry->share = reading->any ? ENTRY_SHARE_REST : reading->archive_bytes;
    reading->any = true;
}

/* Paths written by hand may be "./x", as from find. */
static size_t normalize(struct reading *reading, const char *path)
{
    char *at = reading->list->text + (path - reading->list->text);
    const size_t length = filelist_normalize(at, strlen(at));
    at[length] = 0;
    return length;
}

static enum status read_file(struct reading *reading, const char *at, struct error *err)
{
    struct entry entry = {.bytes = 0};
    if (!take_number(&entry.bytes, &at) || !take_time(&entry.mtime_ns, &at) || !*at)
        return damaged(reading->list, "is not \"f BYTES TIME PATH\"", err);
    return add_item(reading, at, normalize(reading, at), &entry, err);
}

static enum status read_archive(struct reading *reading, char kind, const char *at,
                                struct error *err)
{
    const struct source *source = reading->source;
    struct archive_file file = {.directory = source->fd >= 0 ? source->fd
                                                             : source->shared->working_directory};
    if (!take_number(&file.bytes, &at) || !take_time(&file.mtime_ns, &at) || !*at)
        return damaged(reading->list, "is not \"a BYTES TIME PATH\"", err);
    file.name = file.path = at;
    file.length = normalize(reading, at);
    reading->whole = kind == 'z';
    reading->any = false;
    reading->archive_bytes = file.bytes;
    reading->archive_mtime_ns = file.mtime_ns;
    if (bytes_set(&reading->path, at, file.length, err) != STATUS_OK ||
        bytes_append(&reading->path, "/", 1, err) != STATUS_OK)
        return STATUS_FAILED;
    reading->prefix = reading->path.length;
    return archives_register(&reading->archive, reading->source->shared->archives, &file, err);
}

static enum status read_member(struct reading *reading, char kind, const char *at,
                               struct error *err)
{
    struct entry entry = {.mtime_ns = reading->archive_mtime_ns};
    uint64_t place;
    if (reading->prefix == 0)
        return damaged(reading->list, "is a member before any archive", err);
    if (!take_number(&entry.bytes, &at) || !take_number(&place, &at) || !*at)
        return damaged(reading->list, "is not \"m BYTES OFFSET NAME\"", err);
    entry.where =
        archives_where(reading->source->shared->archives, reading->archive, place, kind == 'c');
    if (!entry.where || (kind == 'm' && (place > reading->archive_bytes ||
                                         entry.bytes > reading->archive_bytes - place)))
        return damaged(reading->list, "is a member outside of its archive", err);
    set_share(&entry, reading);
    bytes_cut(&reading->path, reading->prefix);
    enum status status = bytes_append(&reading->path, at, strlen(at), err);
    return status == STATUS_OK
               ? add_item(reading, reading->path.data, reading->path.length, &entry, err)
               : status;
}

static enum status read_failed(struct reading *reading, const char *at, struct error *err)
{
    struct entry entry = {.bytes = 0};
    if (!take_failure(&entry.failure, &entry, &at) || !*at)
        return damaged(reading->list, "is not \"x REASON ERRNO BYTES TIME LENGTH TEXT PATH\"", err);
    if (reading->prefix > 0 && strncmp(at, reading->path.data, reading->prefix) == 0) {
        entry.where = reading->archive;
        set_share(&entry, reading);
    }
    return add_item(reading, at, strlen(at), &entry, err);
}

static enum status read_record(struct reading *reading, struct error *err)
{
    const char *record = reading->list->text, *at = record + 2;
    if (!record[0] || record[1] != ' ')
        return damaged(reading->list, "is of no known kind", err);
    switch (record[0]) {
    case 'f':
        return read_file(reading, at, err);
    case 'a':
    case 'z':
        return read_archive(reading, record[0], at, err);
    case 'm':
    case 'c':
        return read_member(reading, record[0], at, err);
    case 'x':
        return read_failed(reading, at, err);
    default:
        return damaged(reading->list, "is of no known kind", err);
    }
}

/* At the end of a block: does it match its record? */
static enum status end_block(struct reading *reading, struct error *err)
{
    const struct block *block = &reading->list->block[reading->block++];
    char digest[33];
    portion_digest(digest, &reading->total);
    if (reading->total.count != block[1].count - block->count ||
        reading->total.weight != block[1].weight - block->weight ||
        strcmp(digest, block->digest) != 0)
        return damaged(reading->list, "ends a block that has been changed: make the list again",
                       err);
    portion_begin(&reading->total);
    reading->prefix = 0;
    return STATUS_OK;
}

/* Reads to the end, or to the end of the block with the last needed item. */
static enum status read_records(struct reading *reading, struct error *err)
{
    struct listfile *list = reading->list;
    for (uint64_t record = 0;; record++) {
        enum status status = STATUS_OK;
        if (list->has_end && list->next == list->block[reading->block + 1].offset) {
            status = end_block(reading, err);
            if (status != STATUS_OK || reading->enough || reading->block == list->blocks)
                return status;
        }
        const size_t length = next_record(list);
        if (length == 0 && ferror(list->file))
            return error_errno(err, STATUS_FAILED, errno, "read", "cannot read the list %s",
                               list->name);
        if (length == 0 && !list->has_end)
            return STATUS_OK;
        if (length == RECORD_SIZE)
            return damaged(list, "is longer than 1 MiB", err);
        if (length == 0 || list->text[length - 1] != 0)
            return damaged(list, "is cut off", err);
        if (record % STOP_EVERY == 0)
            status = stop_check(reading->listing->stop, "reading a list", err);
        if (status == STATUS_OK)
            status = read_record(reading, err);
        if (status != STATUS_OK)
            return status;
    }
}

/* Passes on each path once. */
static enum status add_each_once(struct reading *reading, struct error *err)
{
    struct source_listing *listing = reading->listing;
    struct once_path path;
    struct entry entry;
    enum status status = once_finish(reading->once, err);
    if (status == STATUS_OK)
        listing->passed.repeated += once_repeated(reading->once);
    while (status == STATUS_OK && (status = once_next(reading->once, &path, err)) == STATUS_OK) {
        memcpy(&entry, path.payload, path.payload_length);
        listing->found(listing);
        if (pathglob_takes_alone(listing->globs, path.path, path.length))
            status = listing->add(listing, path.path, path.length, &entry, err);
    }
    return status == STATUS_END ? STATUS_OK : status;
}

enum status listfile_list(struct listfile *list, struct source *source,
                          struct source_listing *listing, struct error *err)
{
    struct reading reading = {.list = list, .source = source, .listing = listing};
    enum status status = STATUS_OK;
    uint64_t start = sizeof LISTFILE_BEGINNING;
    portion_begin(&reading.total);
    if (list->has_end && list->blocks == 0)
        return STATUS_OK;
    if (list->has_end && listing->start) {
        reading.block = (size_t)listing->start->place;
        start = list->block[reading.block].offset;
    } else if (!list->has_end) {
        status =
            once_open(&reading.once, listing->spool_directory, listing->memory, listing->stop, err);
    }
    if (status == STATUS_OK && !go_to(list, start))
        status =
            error_errno(err, STATUS_FAILED, errno, "fseeko", "cannot read the list %s", list->name);
    if (status == STATUS_OK)
        status = read_records(&reading, err);
    if (status == STATUS_OK && reading.once)
        status = add_each_once(&reading, err);
    once_close(&reading.once);
    bytes_clear(&reading.path);
    return status;
}
