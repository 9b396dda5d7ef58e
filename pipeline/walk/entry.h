/* entry.h: what the walk learns about one path, and which failure it comes to where it is no file
 * to be read. */
#ifndef CLPIPE_WALK_ENTRY_H
#define CLPIPE_WALK_ENTRY_H

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
    uint64_t inode; /* 0: unknown, or not to be trusted; then so is */
    int64_t ctime_ns;
    uint64_t where;         /* struct source_member's; 0 for files */
    uint64_t share;         /* weight in a division into shards (portion.h): of the first member of an
                               archive that is not divided its size; 0: that of `bytes` */
    struct failure failure; /* its message only where there is a reason */
};

/* In `where`, with a path that ends in '/': a directory that clpipe has written; all below it is left
 * out. */
#define ENTRY_OWN UINT64_MAX

/* In `share`: goes with the entry before. */
#define ENTRY_SHARE_REST UINT64_MAX

/* Is it there, but could not be looked at: a file, or a directory with what is below it? */
bool entry_is_unseen(const struct failure *failure);

/* Bytes of an entry that say something. */
uint32_t entry_size(const struct entry *entry);

/* Takes what a walk finds. `path` is NUL-terminated and valid during the call. */
typedef enum status (*entry_fn)(void *context, const char *path, size_t length,
                                const struct entry *entry, struct error *err);

/* From a stat() of `path`, as seen from `directory`, that worked: a regular file is to be read, anything
 * else is not-an-image and the message names it. */
void entry_from_stat(struct entry *entry, const struct stat *st, struct file_system_trust *trust,
                     int directory, const char *path);

/* From a stat() of a symbolic link that failed with `number`. `promised`: the name says image. */
void entry_broken_link(struct entry *entry, int number, bool promised);

/* From a stat() of a path that was listed, but could not be looked at. */
void entry_unreadable(struct entry *entry, int number, const char *what);

/* From a path that was listed and is no longer there. */
void entry_vanished(struct entry *entry);

#endif
