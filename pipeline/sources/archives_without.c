/* archives_without.c: replaces archives.c in builds without libarchive. An archive is one entry
 * with a failure that says what to install. */
#include "sources/archives.h"

const char *archives_library(void)
{
    return NULL;
}

enum status archives_open(struct archives **out, struct error *err)
{
    (void)err;
    *out = NULL;
    return STATUS_OK;
}

void archives_close(struct archives **archives)
{
    (void)archives;
}

enum status archives_list(struct archives *archives, struct source_listing *listing,
                          const struct archive_file *file, struct error *err)
{
    struct entry entry = {.bytes = file->bytes, .mtime_ns = file->mtime_ns};
    (void)archives;
    failure_set(&entry.failure, REASON_UNSUPPORTED,
                "this build reads no archives: install libarchive-dev and build again");
    listing->found(listing);
    return listing->add(listing, file->path, file->length, &entry, err);
}

enum reason archives_open_member(struct blob *out, struct archives *archives,
                                 const struct source_member *member, struct failure *failure)
{
    (void)out;
    (void)archives;
    (void)member;
    return failure_set(failure, REASON_UNSUPPORTED, "this build reads no archives");
}

void archives_rewind(struct archives *archives)
{
    (void)archives;
}

enum status archive_stream_next(struct archive_stream **stream, struct source_listing *listing,
                                struct error *err)
{
    (void)stream;
    (void)listing;
    return error_set(err, STATUS_FAILED,
                     "this build reads no archives: install libarchive-dev and build again");
}

enum reason archive_stream_open(struct blob *out, struct archive_stream *stream,
                                const struct source_member *member, struct failure *failure)
{
    (void)out;
    (void)stream;
    (void)member;
    return failure_set(failure, REASON_UNSUPPORTED, "this build reads no archives");
}

void archive_stream_close(struct archive_stream **stream)
{
    (void)stream;
}

enum status archives_register(uint64_t *archive, struct archives *archives,
                              const struct archive_file *file, struct error *err)
{
    (void)archive;
    (void)archives;
    (void)file;
    return error_set(err, STATUS_FAILED,
                     "the list has members of archives, and this build reads none: install "
                     "libarchive-dev and build again");
}

uint64_t archives_where(struct archives *archives, uint64_t archive, uint64_t place, bool in_order)
{
    (void)archives;
    (void)archive;
    (void)place;
    (void)in_order;
    return 0;
}

uint64_t archives_count(const struct archives *archives)
{
    (void)archives;
    return 0;
}

const struct archive_file *archives_at(const struct archives *archives, uint64_t i)
{
    (void)archives;
    (void)i;
    return NULL;
}
