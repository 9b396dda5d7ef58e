/* archives.h: reads pictures in archives without unpacking them: tar (plain, or compressed with any
 * filter of libarchive) and zip.
 *
 * A member is an entry like a file. Its path is the archive's, a slash, and its name (without
 * leading "./"); its modification time is the archive's; `where` has the archive and the position
 * in it. Members keep the archive's order.
 *
 *     plain tar, stored in a zip    a range of the archive's descriptor; any thread, any order
 *     everything else               one thread per archive decompresses ahead into bounded memory;
 *                                   opened one at a time, in the order of the listing
 *
 * All archives of a walk share this object, so the next ones can be decompressed ahead, whatever
 * SOURCE they belong to. Builds without libarchive use archives_without.c. */
#ifndef CLPIPE_SOURCES_ARCHIVES_H
#define CLPIPE_SOURCES_ARCHIVES_H

#include "sources/source.h"

struct archives;

/* Larger members of compressed archives are failures: members are read as a whole. */
#define ARCHIVE_MEMBER_MAX (256ull << 20)

/* Bits of `where`: two flags, the archive, and the offset in it or the number of the member. */
#define ARCHIVE_PLACE_BITS 43

enum status archives_open(struct archives **out, struct error *err);
/* Ends the threads. Accepts NULL. */
void archives_close(struct archives **archives);

/* Name and version of the library; NULL: none in this build. */
const char *archives_library(void);

/* A file with an archive. */
struct archive_file {
    int directory;    /* base of `name`; stays open as long as the archives */
    const char *name; /* to open it by */
    const char *path; /* as an item; members' paths begin with it */
    size_t length;    /* of the path */
    uint64_t bytes;   /* from stat() */
    int64_t mtime_ns;
    uint64_t inode; /* this and ctime_ns: as in struct entry */
    int64_t ctime_ns;
    bool in_order; /* it has members that must be opened in order */
};

/* Adds the members to the listing in order, except directories. Members that cannot be read have a
 * failure, and only the archive in their `where`: links and devices, sparse and encrypted members,
 * names that lead out of the archive, duplicate names. If the archive cannot be read to its end, an
 * entry with a failure for the archive itself follows its members. Fails like source_listing.add,
 * if out of memory, and on a stop. */
enum status archives_list(struct archives *archives, struct source_listing *listing,
                          const struct archive_file *file, struct error *err);

/* Is it the `where` of an archive member? */
static inline bool archives_member(uint64_t where)
{
    return where & SOURCE_WHERE_ARCHIVE;
}

/* Registers an archive whose members are already known, without listing it. *archive: its part of
 * their `where`. Fails if there are too many archives, if it is too large, or if the build has no
 * libarchive. */
enum status archives_register(uint64_t *archive, struct archives *archives,
                              const struct archive_file *file, struct error *err);
/* The `where` of a member: place is its offset, or if it is opened in order the number of its
 * header. 0: no such position. */
uint64_t archives_where(struct archives *archives, uint64_t archive, uint64_t place, bool in_order);
/* The inverse: the archive, and the position in it. */
static inline uint64_t archives_of(uint64_t where)
{
    return where >> ARCHIVE_PLACE_BITS << ARCHIVE_PLACE_BITS & ~SOURCE_WHERE_IN_ORDER;
}
static inline uint64_t archives_place(uint64_t where)
{
    return where & (((uint64_t)1 << ARCHIVE_PLACE_BITS) - 1);
}

/* Number of archives, to be registered in the same order elsewhere. */
uint64_t archives_count(const struct archives *archives);
/* One of them, without its path; bits of i above the number are ignored. */
const struct archive_file *archives_at(const struct archives *archives, uint64_t i);
/* The archive of a member. */
static inline const struct archive_file *archives_about(const struct archives *archives,
                                                        uint64_t where)
{
    return archives_at(archives, where >> ARCHIVE_PLACE_BITS);
}

/* A tar on standard input, compressed or not, or several concatenated ones: members are read
 * completely, one at a time. *stream: initially NULL. Adds one member, or none for directories and
 * excluded ones; it can be opened until the next call. Members have their own modification times.
 * STATUS_END: end of the tar. STATUS_FAILED: truncated, even between two members, or damaged. */
struct archive_stream;
enum status archive_stream_next(struct archive_stream **stream, struct source_listing *listing,
                                struct error *err);
enum reason archive_stream_open(struct blob *out, struct archive_stream *stream,
                                const struct source_member *member, struct failure *failure);
void archive_stream_close(struct archive_stream **stream);

/* source_kind.open for such members. */
enum reason archives_open_member(struct blob *out, struct archives *archives,
                                 const struct source_member *member, struct failure *failure);
/* For members that are opened again, from the first archive on: ends the threads, and forgets which
 * archives have members to open in order; archives_where says so again. */
void archives_rewind(struct archives *archives);

#endif
