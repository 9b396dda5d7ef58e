/* listfile_write.c: what a walk has found, as a list. */
#include "base/output.h"
#include "base/path.h"
#include "walk/archives.h"
#include "walk/bytes.h"
#include "walk/filelist.h"
#include "walk/listfile.h"
#include "walk/source_files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STOP_EVERY 1024 /* items */

struct writing {
    FILE *file;
    const struct walk *walk;
    struct listfile_summary *out;
    struct portion_total total;
    struct bytes path; /* of the item, from the working directory */
    uint64_t archive;  /* of the members last written, as archives_of gives it */
};

/* The path by which an item is found from the working directory. */
static enum status make_path(struct bytes *path, const struct source *source,
                             const struct walk_item *item, struct error *err)
{
    size_t prefix = 0;
    enum status status = STATUS_OK;
    bytes_cut(path, 0);
    if (source->kind == &source_directory)
        prefix = strlen(source->name);
    else if (source->kind == &source_file && strrchr(source->name, '/'))
        prefix = (size_t)(strrchr(source->name, '/') - source->name);
    else if (source->kind != &source_list && source->kind != &source_file)
        return error_set(err, STATUS_USAGE, "the source %s has no files that a list could name",
                         source->name);
    if (prefix > 0 || source->kind == &source_directory) {
        status = bytes_append(path, source->name, prefix, err);
        if (status == STATUS_OK)
            status = bytes_append(path, "/", 1, err);
    }
    if (status == STATUS_OK)
        status = bytes_append(path, item->path, item->path_length, err);
    if (status == STATUS_OK && prefix > 0)
        bytes_cut(path, filelist_normalize(path->data, path->length));
    return status;
}

static void put_time(FILE *file, int64_t ns)
{
    const uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    fprintf(file, "%s%" PRIu64 ".%09" PRIu64 " ", ns < 0 ? "-" : "", size / 1000000000,
            size % 1000000000);
}

/* Begins the records of an archive's members. `path` is a member's. */
static void put_archive(struct writing *writing, const struct walk_item *item)
{
    struct archive_file about;
    const struct bytes *path = &writing->path;
    archives_about(&about, walk_archives(writing->walk), item->where);
    /* A member's path is that of the archive, a slash and its name. */
    const size_t behind = item->path_length - about.length;
    fprintf(writing->file, "%c %" PRIu64 " ", item->share ? 'z' : 'a', about.bytes);
    put_time(writing->file, about.mtime_ns);
    fwrite(path->data, 1, path->length - behind, writing->file);
    fputc(0, writing->file);
    writing->archive = archives_of(item->where);
    writing->out->archives++;
}

static void put_failed(FILE *file, const struct walk_item *item)
{
    const struct failure *failure = &item->failure;
    fprintf(file, "x %s %d %" PRIu64 " ", reason_name(failure->reason), failure->error_number,
            item->bytes);
    put_time(file, item->mtime_ns);
    fprintf(file, "%zu %s ", strlen(failure->message), failure->message);
}

static enum status put_item(struct writing *writing, const struct walk_item *item,
                            struct error *err)
{
    const struct source *source = walk_source(writing->walk, item->source);
    struct entry entry = {.bytes = item->bytes, .share = item->share, .failure = item->failure};
    size_t from = 0;
    enum status status = make_path(&writing->path, source, item, err);
    if (status != STATUS_OK)
        return status;
    if (archives_member(item->where)) {
        struct archive_file about;
        archives_about(&about, walk_archives(writing->walk), item->where);
        if (archives_of(item->where) != writing->archive)
            put_archive(writing, item);
        from = writing->path.length - (item->path_length - about.length) + 1;
    }
    if (item->failure.reason != REASON_NONE) {
        put_failed(writing->file, item);
        from = 0;
        writing->out->failed++;
    } else if (archives_member(item->where)) {
        fprintf(writing->file, "%c %" PRIu64 " %" PRIu64 " ",
                item->where & SOURCE_WHERE_IN_ORDER ? 'c' : 'm', item->bytes,
                archives_place(item->where));
    } else {
        fprintf(writing->file, "f %" PRIu64 " ", item->bytes);
        put_time(writing->file, item->mtime_ns);
    }
    fwrite(writing->path.data + from, 1, writing->path.length - from + 1, writing->file);
    portion_add(&writing->total, writing->path.data, writing->path.length, &entry);
    writing->out->bytes += item->bytes;
    return STATUS_OK;
}

static enum status put_items(struct writing *writing, struct walk *walk, struct stop *stop,
                             struct error *err)
{
    struct walk_item item;
    enum status status;
    fwrite(LISTFILE_BEGINNING, 1, sizeof LISTFILE_BEGINNING, writing->file);
    while ((status = walk_next(walk, &item, err)) == STATUS_OK) {
        if (item.sequence % STOP_EVERY == 0)
            status = stop_check(stop, "writing the list", err);
        if (status == STATUS_OK)
            status = put_item(writing, &item, err);
        if (status != STATUS_OK)
            return status;
    }
    if (status != STATUS_END)
        return status;
    writing->out->count = writing->total.count;
    portion_digest(writing->out->digest, &writing->total);
    fprintf(writing->file, "e %" PRIu64 " %s", writing->out->count, writing->out->digest);
    fputc(0, writing->file);
    return STATUS_OK;
}

enum status listfile_write(struct listfile_summary *out, const char *path, struct walk *walk,
                           struct stop *stop, struct error *err)
{
    struct writing writing = {.walk = walk, .out = out};
    struct output *output = NULL;
    char shown[256];
    *out = (struct listfile_summary){.count = 0};
    portion_begin(&writing.total);
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
    status = put_items(&writing, walk, stop, err);
    const bool failed = ferror(writing.file);
    if ((fclose(writing.file) != 0 || failed) && status == STATUS_OK)
        status = error_errno(err, STATUS_FAILED, errno, "write", "cannot write %s%s",
                             path_for_message(shown, sizeof shown, path),
                             errno == ENOSPC ? " (free some space)" : "");
    if (status == STATUS_OK)
        status = output_commit(output, err);
out:
    output_close(&output);
    bytes_clear(&writing.path);
    return status;
}
