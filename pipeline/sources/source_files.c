/* source_files.c: directories, files, and lists of files.
 *
 *   directory ── tree_walk ──> extsort by path ──> listing
 *   list ─────── filelist_read ──> stat ─────────> listing
 *                listfile_list ──────────────────> listing     lists of clpipe list
 *   file ─────── stat ───────────────────────────> listing
 *   stream ───── a member at a time ─────────────> listing
 *
 * An archive is replaced by its members. */
#include "sources/source.h"

#include "base/log.h"
#include "base/path.h"
#include "base/process.h"
#include "base/source_name.h"
#include "sources/archives.h"
#include "sources/bytes.h"
#include "sources/extsort.h"
#include "sources/filelist.h"
#include "sources/listfile.h"
#include "sources/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Number of source directories kept open; others are opened by name each time. A shell pattern can
 * name more of them than a process may have descriptors. */
#define KEPT_OPEN 64

/* --- opening --------------------------------------------------------------------------------- */

/* O_NONBLOCK: does not block on a FIFO that replaced the file. */
static int open_for_reading(int directory, const char *path)
{
    const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY;
    int fd = path_open_at(directory, path, flags | O_NOATIME);
    if (fd < 0 && errno == EPERM) /* O_NOATIME is only allowed for the file's owner */
        fd = path_open_at(directory, path, flags);
    return process_keeps_descriptor(fd, DESCRIPTORS_OF_DRIVERS) ? fd : -1;
}

/* The directory to which the names of the source's files are relative. */
static int directory_of(const struct source *source)
{
    return source->fd >= 0 ? source->fd : source->shared->working_directory;
}

/* The name of a file in a source directory that is not kept open. */
static enum status path_below(struct bytes *whole, const struct source *source, const char *path,
                              struct error *err)
{
    enum status status = bytes_set(whole, source->name, strlen(source->name), err);
    if (status == STATUS_OK)
        status = bytes_append(whole, "/", 1, err);
    return status == STATUS_OK ? bytes_append(whole, path, strlen(path), err) : status;
}

static int open_below(const struct source *source, const char *path)
{
    struct bytes whole = {0};
    int fd = -1;
    if (path_below(&whole, source, path, NULL) == STATUS_OK)
        fd = open_for_reading(source->shared->working_directory, whole.data);
    else
        errno = ENOMEM;
    const int number = errno;
    bytes_clear(&whole);
    errno = number;
    return fd;
}

static enum reason open_file(struct blob *out, const struct source *source,
                             const struct source_member *member, struct failure *failure)
{
    const char *name = source->kind == &source_file ? source->name : member->path;
    const int fd = source->kind == &source_directory && source->fd < 0
                       ? open_below(source, name)
                       : open_for_reading(directory_of(source), name);
    const int code = errno;
    if (fd < 0)
        return failure_errno(
            failure, code == ENOENT || code == ENOTDIR ? REASON_VANISHED : REASON_UNREADABLE, code,
            "cannot open");
    *out = blob_of_file(fd, member->bytes, member->mtime_ns);
    return REASON_NONE;
}

/* --- directories ----------------------------------------------------------------------------- */

static bool is_directory(const char *name, const struct stat *st)
{
    (void)name;
    return st && S_ISDIR(st->st_mode);
}

static enum status open_source_directory(int *fd, const char *name, struct error *err)
{
    *fd = path_open_at(AT_FDCWD, name, O_RDONLY | O_DIRECTORY);
    if (*fd >= 0)
        return STATUS_OK;
    return error_errno(err, STATUS_FAILED, errno, "open", "cannot read the source directory %s",
                       PATH_TEXT(name));
}

static enum status keep_directory(struct source *source, struct error *err)
{
    if (source->shared->kept_open++ >= KEPT_OPEN)
        return STATUS_OK;
    return open_source_directory(&source->fd, source->name, err);
}

struct sorting {
    struct bytes key;
    struct source *source;
    struct source_listing *listing;
    struct extsort *sort;
};

static enum status sort_entry(void *context, const char *path, size_t length,
                              const struct entry *entry, struct error *err)
{
    struct sorting *sorting = context;
    sorting->listing->found(sorting->listing);
    /* An archive to be opened is sorted at the position of its members. */
    if (sorting->listing->options->archives && entry->failure.reason == REASON_NONE &&
        archive_promised(path, length)) {
        enum status status = bytes_set(&sorting->key, path, length, err);
        if (status || (status = bytes_append(&sorting->key, "/", 1, err)))
            return status;
        path = sorting->key.data;
        length++;
    }
    struct extsort_record record = {.key = path,
                                    .payload = (const char *)entry,
                                    .key_length = (uint32_t)length,
                                    .payload_length = entry_size(entry)};
    return extsort_add(sorting->sort, &record, err);
}

/* Adds the members of the archive `path`, to be opened as `name` in the source's directory. */
static enum status add_members(const struct source *source, struct source_listing *listing,
                               const char *name, const char *path, size_t length,
                               const struct entry *entry, struct error *err)
{
    const struct archive_file file = {.directory = directory_of(source),
                                      .name = name,
                                      .path = path,
                                      .length = length,
                                      .bytes = entry->bytes,
                                      .mtime_ns = entry->mtime_ns,
                                      .inode = entry->inode,
                                      .ctime_ns = entry->ctime_ns};
    return archives_list(source->shared->archives, listing, &file, err);
}

/* Adds the members of the archive at `path` in a source directory. */
static enum status add_archive(const struct source *source, struct source_listing *listing,
                               const struct bytes *path, const struct entry *entry,
                               struct error *err)
{
    struct bytes whole = {0};
    enum status status = STATUS_OK;
    if (source->fd < 0)
        status = path_below(&whole, source, path->data, err);
    if (status == STATUS_OK)
        status = add_members(source, listing, source->fd < 0 ? whole.data : path->data, path->data,
                             path->length, entry, err);
    bytes_clear(&whole);
    return status;
}

static enum status add_sorted(struct sorting *sorting, struct error *err)
{
    struct source_listing *listing = sorting->listing;
    struct extsort_record record;
    struct entry entry;
    struct bytes last = {0}, own = {0}; /* the last path; the last directory written by clpipe */
    uint64_t owned = 0;
    char first[256], name[256];
    enum status status;
    while ((status = extsort_next(sorting->sort, &record, err)) == STATUS_OK) {
        /* A directory that changes while it is read may return a name twice. */
        if (last.length == record.key_length && record.key_length > 0 &&
            memcmp(last.data, record.key, record.key_length) == 0)
            continue;
        status = bytes_set(&last, record.key, record.key_length, err);
        if (status != STATUS_OK)
            break;
        memcpy(&entry, record.payload, record.payload_length);
        if (own.length > 0 && strncmp(last.data, own.data, own.length) == 0)
            continue;
        if (entry.where == ENTRY_OWN) {
            if (owned++ == 0)
                path_for_message(first, sizeof first, last.data);
            if ((status = bytes_set(&own, last.data, last.length, err)) != STATUS_OK)
                break;
            continue;
        }
        if (entry.failure.reason == REASON_NONE && last.data[last.length - 1] == '/') {
            bytes_cut(&last, last.length - 1);
            status = add_archive(sorting->source, listing, &last, &entry, err);
        } else {
            listing->passed.archives +=
                entry.failure.reason == REASON_NONE && archive_promised(last.data, last.length);
            status = listing->add(listing, last.data, last.length, &entry, err);
        }
        if (status != STATUS_OK)
            break;
    }
    if (owned > 0)
        log_message(LOG_NOTICE,
                    "notice: %llu director%s that clpipe wrote in %s left out (%s): name one as a "
                    "source to read it",
                    (unsigned long long)owned, owned == 1 ? "y" : "ies",
                    path_for_message(name, sizeof name, sorting->source->name), first);
    bytes_clear(&last);
    bytes_clear(&own);
    return status;
}

static enum status list_directory(struct source *source, struct source_listing *listing,
                                  struct error *err)
{
    struct sorting sorting = {.source = source, .listing = listing};
    int fd = source->fd;
    enum status status = STATUS_OK;
    if (fd < 0 && (status = open_source_directory(&fd, source->name, err)) != STATUS_OK)
        return status;
    status =
        extsort_open(&sorting.sort, listing->spool_directory, listing->memory, listing->stop, err);
    if (!status)
        status = tree_walk(listing, fd, sort_entry, &sorting, err);
    if (fd != source->fd)
        close(fd);
    if (status || (status = extsort_finish(sorting.sort, err)))
        goto out;
    status = add_sorted(&sorting, err);
out:
    extsort_close(&sorting.sort);
    bytes_clear(&sorting.key);
    return status;
}

/* --- files and lists ------------------------------------------------------------------------- */

struct named {
    const struct source *source;
    struct source_listing *listing;
};

/* Adds a file named as a source or in a list: a failure if it is missing, whatever its name. */
static enum status add_named(struct named *named, const char *open_path, const char *path,
                             size_t length, struct error *err)
{
    struct source_listing *listing = named->listing;
    const int directory = directory_of(named->source);
    struct stat st;
    struct entry entry;
    const bool archive = archive_promised(path, length);
    listing->found(listing);
    /* Globs apply to an archive's members. */
    if (!archive && !pathglob_takes_alone(listing->globs, path, length))
        return STATUS_OK;
    if (path_stat_at(directory, open_path, &st, 0) == 0) {
        if (skip_identity(listing->skip, &st))
            return STATUS_OK;
        entry_from_stat(&entry, &st, &listing->trust, directory, open_path);
        if (entry.failure.reason == REASON_NONE && archive)
            return add_members(named->source, listing, open_path, path, length, &entry, err);
    } else {
        int number = errno;
        if (path_stat_at(directory, open_path, &st, AT_SYMLINK_NOFOLLOW) == 0)
            entry_broken_link(&entry, number, true);
        else if (number == ENOENT && path[length - 1] == '\r')
            entry_unreadable(&entry, number,
                             "the name ends in a carriage return: the list has Windows line ends");
        else
            entry_unreadable(&entry, number, "cannot examine the file");
    }
    return listing->add(listing, path, length, &entry, err);
}

/* Any existing file; also a broken link with an image extension, as from a shell pattern. */
static bool is_file(const char *name, const struct stat *st)
{
    (void)name;
    return st != NULL;
}

static enum status list_file(struct source *source, struct source_listing *listing,
                             struct error *err)
{
    struct named named = {source, listing};
    const char *slash = strrchr(source->name, '/'), *name = slash ? slash + 1 : source->name;
    return add_named(&named, source->name, name, strlen(name), err);
}

static bool is_list(const char *name, const struct stat *st)
{
    (void)st;
    return source_is_list(name);
}

/* Opens the directory in which the list was first given, if it is a different one. */
static enum status open_directory_of_list(struct source *source, struct error *err)
{
    char shown[256], list[256];
    if (!source->directory || !source->directory[0])
        return STATUS_OK;
    char *here = path_working_directory(), *name = strdup(source->directory);
    const bool other = here && name && strcmp(here, name) != 0;
    if (other) {
        path_from_utf8(name);
        source->fd = path_open_at(AT_FDCWD, name, O_PATH | O_DIRECTORY);
    }
    const int number = errno;
    free(here);
    free(name);
    return other && source->fd < 0
               ? error_errno(
                     err, STATUS_USAGE, number, "open",
                     "the paths of %s are relative to %s; if that has moved, add --relocate %s",
                     path_for_message(list, sizeof list, source->name),
                     path_for_message(shown, sizeof shown, source->directory), list)
               : STATUS_OK;
}

static enum status take_standard_input(struct source *source, struct error *err)
{
    if (source->shared->standard_input)
        return error_set(err, STATUS_USAGE,
                         "standard input (-) is given as a SOURCE more than once");
    source->shared->standard_input = true;
    return STATUS_OK;
}

static enum status prepare_list(struct source *source, struct error *err)
{
    const enum status status = open_directory_of_list(source, err);
    return status != STATUS_OK || strcmp(source->name, "-") != 0 ? status
                                                                 : take_standard_input(source, err);
}

static enum status add_listed(void *context, const char *path, size_t length, struct error *err)
{
    return add_named(context, path, path, length, err);
}

/* Keeps a list of clpipe list open until it is read. */
static enum status open_list_file(struct source *source, struct error *err)
{
    struct listfile *list = source->state;
    if (list || source->name[0] != '@')
        return STATUS_OK;
    const enum status status = listfile_open(&list, source->name + 1, err);
    source->state = list;
    return status;
}

static void close_list_file(struct source *source)
{
    struct listfile *list = source->state;
    listfile_close(&list);
    source->state = NULL;
}

static enum status begin_share_of_list(struct source_start *out, struct source *source,
                                       uint64_t index, uint64_t count, struct error *err)
{
    const enum status status = open_list_file(source, err);
    if (status != STATUS_OK)
        return status;
    return source->state ? listfile_begin_share(out, source->state, index, count) : STATUS_END;
}

static enum status list_list(struct source *source, struct source_listing *listing,
                             struct error *err)
{
    struct named named = {source, listing};
    uint64_t repeated = 0;
    enum status status = open_list_file(source, err);
    if (status != STATUS_OK)
        return status;
    if (source->state)
        status = listfile_list(source->state, source, listing, err);
    else
        status = filelist_read(&repeated, source->name, listing->spool_directory, listing->memory,
                               listing->stop, add_listed, &named, err);
    listing->passed.repeated += repeated;
    close_list_file(source);
    return status;
}

/* --- streams --------------------------------------------------------------------------------- */

static bool is_stream(const char *name, const struct stat *st)
{
    (void)st;
    return source_is_stream(name);
}

static enum status next_of_stream(struct source *source, struct source_listing *listing,
                                  struct error *err)
{
    struct archive_stream *stream = source->state;
    const enum status status = archive_stream_next(&stream, listing, err);
    source->state = stream;
    return status;
}

static enum reason open_in_stream(struct blob *out, const struct source *source,
                                  const struct source_member *member, struct failure *failure)
{
    return archive_stream_open(out, source->state, member, failure);
}

static void close_stream(struct source *source)
{
    struct archive_stream *stream = source->state;
    archive_stream_close(&stream);
    source->state = NULL;
}

const struct source_kind source_stream = {
    .recognise = is_stream,
    .prepare = take_standard_input,
    .next = next_of_stream,
    .open = open_in_stream,
    .close = close_stream,
};

const struct source_kind source_directory = {
    .recognise = is_directory,
    .prepare = keep_directory,
    .list = list_directory,
    .open = open_file,
};

const struct source_kind source_file = {
    .recognise = is_file,
    .list = list_file,
    .open = open_file,
};

const struct source_kind source_list = {
    .recognise = is_list,
    .prepare = prepare_list,
    .begin_share = begin_share_of_list,
    .list = list_list,
    .open = open_file,
    .close = close_list_file,
};
