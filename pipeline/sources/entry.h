/* entry.h: what the walk knows about a path, with a failure if it cannot be read as a file. */
#ifndef CLPIPE_SOURCES_ENTRY_H
#define CLPIPE_SOURCES_ENTRY_H

#include "base/error.h"
#include "base/failure.h"
#include "base/file_system.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct entry {
    uint64_t bytes;
    int64_t mtime_ns;
    uint64_t inode; /* 0: unknown or unreliable, like ctime_ns in that case */
    int64_t ctime_ns;
    uint64_t where;         /* as in struct source_member; 0 for files */
    uint64_t share;         /* weight in a division into shards (portion.h): for the first member of
                             * an archive that is not divided, the archive's size; 0: `bytes` */
    struct failure failure; /* has a message only if there is a reason */
};

/* As `where`, with a path ending in '/': a directory written by clpipe; everything below it is left
 * out. */
#define ENTRY_OWN UINT64_MAX

/* As `share`: in the same shard as the previous entry. */
#define ENTRY_SHARE_REST UINT64_MAX

/* Does it exist without being readable: a file, or a directory with everything below it? */
bool entry_is_unseen(const struct failure *failure);

/* The bytes of an entry that are used, and stored. */
uint32_t entry_size(const struct entry *entry);

/* Receives an entry of the walk. `path` is NUL-terminated and valid during the call. */
typedef enum status (*entry_fn)(void *context, const char *path, size_t length,
                                const struct entry *entry, struct error *err);

/* From a successful stat() of `path`, relative to `directory`: a regular file is to be read;
 * anything else is not-an-image with a message that names its type. */
void entry_from_stat(struct entry *entry, const struct stat *st, struct file_system_trust *trust,
                     int directory, const char *path);

/* From a stat() of a symbolic link that failed with errno `number`. `promised`: the name has an
 * image extension. */
void entry_broken_link(struct entry *entry, int number, bool promised);

/* From a failed stat() of a path that was listed. */
void entry_unreadable(struct entry *entry, int number, const char *what);

/* From a path that was listed and no longer exists. */
void entry_vanished(struct entry *entry);

#endif
