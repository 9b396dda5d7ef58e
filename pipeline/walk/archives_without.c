/* archives_without.c: in the place of archives.c where the build found no libarchive. An archive is
 * one entry with a failure that says what to install. */
#include "walk/archives.h"

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
