/* file_system.h: what an inode number identifies, by type of file system. */
#ifndef CLPIPE_BASE_FILE_SYSTEM_H
#define CLPIPE_BASE_FILE_SYSTEM_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/statfs.h>

enum file_system {
    FILE_SYSTEM_UNTRUSTED, /* nothing: FUSE, SMB, FAT, unknown ones */
    FILE_SYSTEM_LOCAL,     /* a file of this machine */
    FILE_SYSTEM_SHARED,    /* a file of one mount; another mount may show the same directory */
    FILE_SYSTEM_STACKED,   /* overlayfs: likewise, but ctime is that of the lower file */
};

/* Classifies the type reported by statfs(). */
enum file_system file_system_of(const struct statfs *fs);

/* Cache of the last device examined. Starts zeroed. */
struct file_system_trust {
    bool known, trusted;
    dev_t device;
};
/* Whether the inode number of a file identifies it; `st` comes from stat() of `path`, which is
 * relative to `directory`. False if it cannot be opened. One thread per `trust`. */
bool file_system_trusted(struct file_system_trust *trust, const struct stat *st, int directory,
                         const char *path);

#endif
