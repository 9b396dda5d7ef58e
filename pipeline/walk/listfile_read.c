/* listfile_read.c: reading lists of clpipe list, record by record. */
#include "base/path.h"
#include "walk/archives.h"
#include "walk/bytes.h"
#include "walk/filelist.h"
#include "walk/listfile.h"

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

struct reading {
    struct source *source;
    struct source_listing *listing;
    uint64_t record; /* its number, from 1, */
    char *text;      /* and bytes: RECORD_SIZE */
    struct bytes path; /* of the archive last named, with a slash, and a member */
    size_t prefix;     /* its length; 0: none was named */
    uint64_t archive;  /* as archives_register gave it */
    uint64_t archive_bytes;
    int64_t archive_mtime_ns;
    bool whole, any; /* it stays whole; something of it has been listed */
    struct portion_total total;
    bool ended;
};

enum status listfile_open(int *fd, const char *path, struct error *err)
{
    char beginning[sizeof LISTFILE_BEGINNING];
    struct stat st;
    (void)err;
    *fd = -1;
    /* A FIFO is not opened for a look: its writer would lose its reader. */
    if (path_stat_at(AT_FDCWD, path, &st, 0) != 0 || !S_ISREG(st.st_mode))
        return STATUS_OK;
    *fd = path_open_at(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (*fd < 0)
        return STATUS_OK; /* filelist_read says why */
    if (fstat(*fd, &st) == 0 && S_ISREG(st.st_mode) &&
        pread(*fd, beginning, sizeof beginning, 0) == (ssize_t)sizeof beginning &&
        memcmp(beginning, LISTFILE_BEGINNING, sizeof beginning) == 0)
        return STATUS_OK;
    close(*fd);
    *fd = -1;
    return STATUS_OK;
}

static enum status damaged(const struct reading *reading, const char *what, struct error *err)
{
    char shown[256];
    return error_set(err, STATUS_FAILED,
                     "%s is no list that clpipe can read: record %" PRIu64 " %s",
                     path_for_message(shown, sizeof shown, reading->source->name + 1),
                     reading->record, what);
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

/* Seconds with a fraction, in nanoseconds. */
static bool take_time(int64_t *out, const char **at)
{
    char *end;
    int64_t fraction = 0, digit = 100000000;
    const bool negative = **at == '-';
    errno = 0;
    const long long seconds = strtoll(*at, &end, 10);
    if (errno || end == *at || seconds > 9000000000 || seconds < -9000000000)
        return false;
    if (*end == '.')
        for (end++; isdigit((unsigned char)*end); end++, digit /= 10)
            fraction += (*end - '0') * digit;
    if (*end != ' ')
        return false;
    *out = seconds * 1000000000 + (negative ? -fraction : fraction);
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

/* --- records --------------------------------------------------------------------------------- */

static enum status add_item(struct reading *reading, const char *path, size_t length,
                            const struct entry *entry, struct error *err)
{
    struct source_listing *listing = reading->listing;
    listing->found(listing);
    portion_add(&reading->total, path, length, entry);
    return pathglob_takes_alone(listing->globs, path, length)
               ? listing->add(listing, path, length, entry, err)
               : STATUS_OK;
}

/* A member's share of an archive that is not divided. */
static void set_share(struct entry *entry, struct reading *reading)
{
    if (reading->whole)
        entry->share = reading->any ? ENTRY_SHARE_REST : reading->archive_bytes;
    reading->any = true;
}

/* A path by hand may be "./x", as find writes it. */
static size_t normalize(struct reading *reading, const char *path)
{
    char *at = reading->text + (path - reading->text);
    const size_t length = filelist_normalize(at, strlen(at));
    at[length] = 0;
    return length;
}

static enum status read_file(struct reading *reading, const char *at, struct error *err)
{
    struct entry entry = {.bytes = 0};
    if (!take_number(&entry.bytes, &at) || !take_time(&entry.mtime_ns, &at) || !*at)
        return damaged(reading, "is not \"f BYTES TIME PATH\"", err);
    return add_item(reading, at, normalize(reading, at), &entry, err);
}

static enum status read_archive(struct reading *reading, char kind, const char *at,
                                struct error *err)
{
    struct archive_file file = {.directory = reading->source->shared->working_directory};
    if (!take_number(&file.bytes, &at) || !take_time(&file.mtime_ns, &at) || !*at)
        return damaged(reading, "is not \"a BYTES TIME PATH\"", err);
    file.name = file.path = at;
    file.length = normalize(reading, at);
    reading->whole = kind == 'z';
    reading->any = false;
    reading->archive_bytes = file.bytes;
    reading->archive_mtime_ns = file.mtime_ns;
    bytes_cut(&reading->path, 0);
    if (bytes_append(&reading->path, at, file.length, err) != STATUS_OK ||
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
        return damaged(reading, "is a member before any archive", err);
    if (!take_number(&entry.bytes, &at) || !take_number(&place, &at) || !*at)
        return damaged(reading, "is not \"m BYTES OFFSET NAME\"", err);
    entry.where = archives_where(reading->source->shared->archives, reading->archive, place,
                                 kind == 'c');
    if (!entry.where ||
        (kind == 'm' && (place > reading->archive_bytes ||
                         entry.bytes > reading->archive_bytes - place)))
        return damaged(reading, "is a member outside of its archive", err);
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
        return damaged(reading, "is not \"x REASON ERRNO BYTES TIME LENGTH TEXT PATH\"", err);
    if (reading->prefix > 0 && strncmp(at, reading->path.data, reading->prefix) == 0) {
        entry.where = reading->archive;
        set_share(&entry, reading);
    }
    return add_item(reading, at, strlen(at), &entry, err);
}

static enum status read_end(struct reading *reading, const char *at, struct error *err)
{
    uint64_t count;
    char digest[33];
    portion_digest(digest, &reading->total);
    if (!take_number(&count, &at))
        return damaged(reading, "is not \"e COUNT DIGEST\"", err);
    if (count != reading->total.count || strcmp(at, digest) != 0)
        return damaged(reading, "does not agree with the ones before: the list was changed or cut",
                       err);
    reading->ended = true;
    return STATUS_OK;
}

static enum status read_record(struct reading *reading, struct error *err)
{
    const char *record = reading->text, *at = record + 2;
    if (reading->ended)
        return damaged(reading, "follows the end", err);
    if (!record[0] || record[1] != ' ')
        return damaged(reading, "is of no known kind", err);
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
    case 'e':
        return read_end(reading, at, err);
    default:
        return damaged(reading, "is of no known kind", err);
    }
}

/* The bytes of the next record with its NUL, at most RECORD_SIZE; 0: that was the last one. */
static size_t next_record(struct reading *reading, FILE *file)
{
    size_t length = 0;
    for (int c = 1; c != 0 && length < RECORD_SIZE && (c = getc_unlocked(file)) != EOF;)
        reading->text[length++] = (char)c;
    return length;
}

enum status listfile_list(int fd, struct source *source, struct source_listing *listing,
                          struct error *err)
{
    struct reading reading = {.source = source, .listing = listing};
    size_t length;
    enum status status = STATUS_OK;
    FILE *file = fdopen(fd, "r");
    reading.text = malloc(RECORD_SIZE);
    if (!file || !reading.text) {
        if (file)
            fclose(file);
        else
            close(fd);
        free(reading.text);
        return error_memory(err, RECORD_SIZE, "reading a list");
    }
    portion_begin(&reading.total);
    while (status == STATUS_OK && (length = next_record(&reading, file)) > 0) {
        if (reading.record++ == 0)
            continue;
        if (reading.record % STOP_EVERY == 0 &&
            (status = stop_check(listing->stop, "reading a list", err)) != STATUS_OK)
            break;
        if (length == RECORD_SIZE)
            status = damaged(&reading, "is longer than 1 MiB", err);
        else if (reading.text[length - 1] != 0)
            status = damaged(&reading, "is cut off", err);
        else
            status = read_record(&reading, err);
    }
    if (status == STATUS_OK && ferror(file))
        status = error_errno(err, STATUS_FAILED, errno, "read", "cannot read the list %s",
                             source->name + 1);
    fclose(file);
    free(reading.text);
    bytes_clear(&reading.path);
    return status;
}
