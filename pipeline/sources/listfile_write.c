/* listfile_write.c: writes the items of a walk as a list. */
#include "base/output.h"
#include "base/path.h"
#include "base/sample_name.h"
#include "sources/archives.h"
#include "sources/bytes.h"
#include "sources/filelist.h"
#include "sources/listfile.h"
#include "sources/once.h"
#include "sources/source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STOP_EVERY 1024 /* items */
#define BLOCK      4096 /* plus the rest of its last piece */

/* An item while it passes through `once`. */
struct item {
    uint32_t in_archive; /* bytes of the path from the slash after the archive on; 0: a file */
    struct entry entry;  /* only entry_size() bytes are stored */
};

struct writing {
    FILE *file;
    const struct archives *archives; /* of the walk */
    struct listfile_summary *out;
    struct portion_total total, block;
    struct bytes path;   /* of an item of the walk, relative to the working directory */
    struct bytes blocks; /* text of the records p */
    uint64_t archive;    /* of the last members, from archives_of */
    bool begun;          /* the block already names `archive` */
    uint64_t offset;     /* of the block */
    struct bytes last;   /* the last path */
};

/* The path of an item relative to the working directory. Does not change its last `behind` bytes,
 * those after the archive's path. */
static enum status make_path(struct bytes *path, const struct source *source,
                             const struct walk_item *item, size_t behind, struct error *err)
{
    const char *slash = strrchr(source->name, '/');
    size_t prefix = 0;
    enum status status = STATUS_OK;
    bytes_cut(path, 0);
    if (source->kind == &source_directory)
        prefix = strlen(source->name);
    else if (source->kind == &source_file && slash)
        prefix = (size_t)(slash - source->name);
    else if (source->kind != &source_list && source->kind != &source_file)
        return error_set(err, STATUS_USAGE, "the source %s has no files that a list could name",
                         source->name);
    const bool below = source->kind == &source_directory || (source->kind == &source_file && slash);
    if (below && ((status = bytes_append(path, source->name, prefix, err)) ||
                  (status = bytes_append(path, "/", 1, err))))
        return status;
    const size_t before = item->path_length - behind;
    status = bytes_append(path, item->path, before, err);
    if (status == STATUS_OK && below)
        bytes_cut(path, filelist_normalize(path->data, path->length));
    return status == STATUS_OK ? bytes_append(path, item->path + before, behind, err) : status;
}

static void put_time(FILE *file, int64_t ns)
{
    const uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    fprintf(file, "%s%" PRIu64 ".%09" PRIu64 " ", ns < 0 ? "-" : "", size / 1000000000,
            size % 1000000000);
}

/* Starts the records of an archive's members, of which `path` is one. In an archive that is not
 * divided the first member has the whole weight, whichever member that is. */
static void put_archive(struct writing *writing, const char *path, size_t length,
                        struct entry *entry)
{
    const bool first = archives_of(entry->where) != writing->archive;
    if (!first && writing->begun) {
        entry->share = entry->share ? ENTRY_SHARE_REST : 0;
        return;
    }
    const struct archive_file *about = archives_about(writing->archives, entry->where);
    fprintf(writing->file, "%c %" PRIu64 " ", entry->share ? 'z' : 'a', about->bytes);
    put_time(writing->file, about->mtime_ns);
    fwrite(path, 1, length, writing->file);
    fputc(0, writing->file);
    entry->share = entry->share ? about->bytes : 0;
    writing->out->archives += first;
    writing->archive = archives_of(entry->where);
    writing->begun = true;
}

static void put_failed(FILE *file, const struct entry *entry)
{
    const struct failure *failure = &entry->failure;
    fprintf(file, "x %s %d %" PRIu64 " ", reason_name(failure->reason), failure->error_number,
            entry->bytes);
    put_time(file, entry->mtime_ns);
    fprintf(file, "%zu %s ", strlen(failure->message), failure->message);
}

static enum status end_block(struct writing *writing, struct error *err)
{
    char record[128], digest[33];
    const uint64_t count = writing->total.count - writing->block.count,
                   weight = writing->total.weight - writing->block.weight;
    portion_digest(digest, &writing->block);
    const int length = snprintf(record, sizeof record, "p %" PRIu64 " %" PRIu64 " %" PRIu64 " %s",
                                writing->offset, count, weight, digest);
    portion_begin(&writing->block);
    writing->begun = false;
    writing->offset = (uint64_t)ftello(writing->file);
    return bytes_append(&writing->blocks, record, (size_t)length + 1, err);
}

/* Writes an item. Blocks end where a piece begins. */
static enum status put_item(struct writing *writing, const char *path, size_t length,
                            uint32_t in_archive, struct entry *entry, struct error *err)
{
    FILE *file = writing->file;
    const bool member = archives_member(entry->where),
               goes_on = member && archives_of(entry->where) == writing->archive;
    size_t from = 0;
    if (writing->block.count >= BLOCK && !(goes_on && entry->share) &&
        !sample_tied(writing->last.data, writing->last.length, path, length) &&
        end_block(writing, err) != STATUS_OK)
        return STATUS_FAILED;
    if (member)
        put_archive(writing, path, length - in_archive, entry);
    if (entry->failure.reason != REASON_NONE) {
        put_failed(file, entry);
        writing->out->failed++;
    } else if (member) {
        from = length - in_archive + 1;
        fprintf(file, "%c %" PRIu64 " %" PRIu64 " ",
                entry->where & SOURCE_WHERE_IN_ORDER ? 'c' : 'm', entry->bytes,
                archives_place(entry->where));
    } else {
        fprintf(file, "f %" PRIu64 " ", entry->bytes);
        put_time(file, entry->mtime_ns);
    }
    fwrite(path + from, 1, length - from, file);
    fputc(0, file);
    portion_add(&writing->total, path, length, entry);
    portion_add(&writing->block, path, length, entry);
    writing->out->bytes += entry->bytes;
    return bytes_set(&writing->last, path, length, err);
}

/* Writes the items of the walk, directly or, if sources may overlap, through `once`. */
static enum status take_items(struct writing *writing, struct walk *walk, struct once *once,
                              struct stop *stop, struct error *err)
{
    struct walk_item item;
    enum status status;
    while ((status = walk_next(walk, &item, err)) == STATUS_OK) {
        const struct source *source = walk_source(walk, item.source);
        struct bytes *path = &writing->path;
        struct item out = {.entry = item.entry};
        if (item.sequence % STOP_EVERY == 0)
            status = stop_check(stop, "writing the list", err);
        if (archives_member(item.entry.where)) {
            /* A member's path is the archive's, a slash and its name. */
            out.in_archive = item.path_length -
                             (uint32_t)archives_about(writing->archives, item.entry.where)->length;
        }
        if (status == STATUS_OK)
            status = make_path(path, source, &item, out.in_archive, err);
        if (status == STATUS_OK)
            status =
                once
                    ? once_add(once, path->data, path->length, &out,
                               (uint32_t)offsetof(struct item, entry) + entry_size(&out.entry), err)
                    : put_item(writing, path->data, path->length, out.in_archive, &out.entry, err);
        if (status != STATUS_OK)
            return status;
    }
    return status == STATUS_END ? STATUS_OK : status;
}

static enum status put_each_once(struct writing *writing, struct once *once, struct stop *stop,
                                 struct error *err)
{
    struct once_path path;
    struct item item;
    enum status status = once_finish(once, err);
    if (status == STATUS_OK)
        writing->out->repeated = once_repeated(once);
    while (status == STATUS_OK && (status = once_next(once, &path, err)) == STATUS_OK) {
        memcpy(&item, path.payload, path.payload_length);
        if (writing->total.count % STOP_EVERY == 0)
            status = stop_check(stop, "writing the list", err);
        if (status == STATUS_OK)
            status = put_item(writing, path.path, path.length, item.in_archive, &item.entry, err);
    }
    return status == STATUS_END ? STATUS_OK : status;
}

static enum status put_end(struct writing *writing, struct error *err)
{
    struct listfile_summary *out = writing->out;
    if (writing->block.count > 0 && end_block(writing, err) != STATUS_OK)
        return STATUS_FAILED;
    fwrite(writing->blocks.data, 1, writing->blocks.length, writing->file);
    out->count = writing->total.count;
    portion_digest(out->digest, &writing->total);
    fprintf(writing->file, "e %" PRIu64 " %s %" PRIu64 " %" PRIu64, out->count, out->digest,
            writing->total.weight, writing->offset);
    fputc(0, writing->file);
    return STATUS_OK;
}

enum status listfile_write(struct listfile_summary *out, const char *path, struct walk *walk,
                           const char *directory, uint64_t memory, struct stop *stop,
                           struct error *err)
{
    struct writing writing = {.archives = walk_source(walk, 0)->shared->archives,
                              .out = out,
                              .offset = sizeof LISTFILE_BEGINNING};
    struct output *output = NULL;
    struct once *once = NULL;
    *out = (struct listfile_summary){.count = 0};
    portion_begin(&writing.total);
    portion_begin(&writing.block);
    enum status status = output_open(&output, path, err);
    if (status != STATUS_OK)
        return status;
    const int fd = dup(output_descriptor(output));
    writing.file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!writing.file) {
        status = error_errno(err, STATUS_FAILED, errno, "dup", "cannot write the list");
        if (fd >= 0)
            close(fd);
        goto out;
    }
    fwrite(LISTFILE_BEGINNING, 1, sizeof LISTFILE_BEGINNING, writing.file);
    if (walk_source(walk, 1))
        status = once_open(&once, directory, memory, stop, err);
    if (status == STATUS_OK)
        status = take_items(&writing, walk, once, stop, err);
    if (status == STATUS_OK && once)
        status = put_each_once(&writing, once, stop, err);
    if (status == STATUS_OK)
        status = put_end(&writing, err);
    const bool failed = ferror(writing.file);
    if ((fclose(writing.file) != 0 || failed) && status == STATUS_OK)
        status = error_errno(err, STATUS_FAILED, errno, "write", "cannot write %s%s",
                             PATH_TEXT(path), errno == ENOSPC ? " (free some space)" : "");
    if (status == STATUS_OK)
        status = output_commit(output, err);
out:
    once_close(&once);
    output_close(&output);
    bytes_clear(&writing.path);
    bytes_clear(&writing.last);
    bytes_clear(&writing.blocks);
    return status;
}
