/* archives.h: pictures inside archives, read without unpacking them: tar (plain, or compressed by
 * anything that libarchive reads) and zip.
 *
 * A member is an entry like a file. Its path is that of the archive, a slash, and its name in it
 * (without leading "./"); its modification time is the archive's; `where` says in which archive it
 * is and at which place. Members keep the archive's order.
 *
 *     plain tar, stored in a zip    a range of the archive's descriptor; any thread, any order
 *     everything else               a thread an archive decompresses ahead into bounded memory;
 *                                   opened one at a time, in the order of the listing
 *
 * Archives of one walk share this object, so that the next ones are decompressed ahead whatever
 * SOURCE they belong to. A build without libarchive has another implementation, which refuses. */
#ifndef CLPIPE_WALK_ARCHIVES_H
#define CLPIPE_WALK_ARCHIVES_H

#include "walk/source.h"

struct archives;

/* Larger members of compressed archives are failures: they are read as a whole. */
#define ARCHIVE_MEMBER_MAX (256ull << 20)

enum status archives_open(struct archives **out, struct error *err);
/* Ends the threads. Accepts NULL and NULLs. */
void archives_close(struct archives **archives);

/* The library with its version; NULL: this build has none. */
const char *archives_library(void);

/* A file that is an archive. */
struct archive_file {
    int directory;      /* that `name` is relative to; stays open as long as the archives */
    const char *name;   /* to open it by */
    const char *path;   /* of the file as an item; its members' paths begin with it */
    size_t length;      /* of the path */
    uint64_t bytes;     /* as stat() told */
    int64_t mtime_ns;
    uint64_t inode;   /* these two as in struct entry */
    int64_t ctime_ns;
};

/* Adds the members to the listing, one after the other. Directories are no members. What cannot be
 * read is a member with a failure: links and devices, sparse and encrypted members, names that lead
 * out of the archive, a name that was there before; their `where` says no more than the archive. An archive that cannot be read, or not to its
 * end, is an entry of its own with a failure, behind the members before. Fails like
 * source_listing.add, for want of memory, and on a stop. */
enum status archives_list(struct archives *archives, struct source_listing *listing,
                          const struct archive_file *file, struct error *err);

/* Is the member with this `where` in an archive? */
static inline bool archives_member(uint64_t where)
{
    return where & SOURCE_WHERE_ARCHIVE;
}

/* Makes an archive known that is not listed: what its members are is known already. *archive: its part
 * of their `where`. Fails where there are too many, it is too large, or the build has no libarchive. */
enum status archives_register(uint64_t *archive, struct archives *archives,
                              const struct archive_file *file, struct error *err);
/* The `where` of a member: its offset, or where it is opened in order the number of its header. 0: no
 * archive has such a place. */
uint64_t archives_where(struct archives *archives, uint64_t archive, uint64_t place, bool in_order);
/* The other way round: the archive, and the place in it. */
uint64_t archives_of(uint64_t where);
uint64_t archives_place(uint64_t where);
/* The archive of a member: bytes, mtime_ns and length are set. */
void archives_about(struct archive_file *out, const struct archives *archives, uint64_t where);

/* All archives, to be registered in the same order elsewhere; in_order: some members are opened in
 * order. */
uint64_t archives_count(const struct archives *archives);
void archives_at(struct archive_file *out, bool *in_order, const struct archives *archives,
                 uint64_t i);

/* A tar on standard input, also compressed, or several one after the other: its members are read whole, one
 * at a time. *stream: NULL at first. Adds one member, or none for a directory or what is not wanted; it can
 * be opened until the next call. Their modification time is their own. STATUS_END: the tar is complete.
 * STATUS_FAILED: it ends early, also between two members, or is damaged. */
struct archive_stream;
enum status archive_stream_next(struct archive_stream **stream, struct source_listing *listing,
                                struct error *err);
enum reason archive_stream_open(struct blob *out, struct archive_stream *stream,
                                const struct source_member *member, struct failure *failure);
void archive_stream_close(struct archive_stream **stream);

/* As source_kind.open, for such a member. */
enum reason archives_open_member(struct blob *out, struct archives *archives,
                                 const struct source_member *member, struct failure *failure);

#endif
