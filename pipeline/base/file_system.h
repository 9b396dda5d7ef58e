/* file_system.h: what an inode number says on the file system of a file. */
#ifndef CLPIPE_BASE_FILE_SYSTEM_H
#define CLPIPE_BASE_FILE_SYSTEM_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/statfs.h>

enum file_system {
    FILE_SYSTEM_UNTRUSTED, /* nothing: FUSE, SMB, FAT, and what is not known */
    FILE_SYSTEM_LOCAL,     /* one file, on this machine */
    FILE_SYSTEM_SHARED,    /* one file of one mount; another mount may be of the same directory */
    FILE_SYSTEM_STACKED,   /* overlayfs: likewise, but times of change are those of the file below */
};

/* By the type that statfs() gave. */
enum file_system file_system_of(const struct statfs *fs);

/* The device looked at last, and whether its inode numbers can be trusted. Begins zeroed. */
struct file_system_trust {
    bool known, trusted;
    dev_t device;
};
/* Of the file that `path` leads to from `directory`; `st` is what stat() gave of it. */
bool file_system_trusted(struct file_system_trust *trust, const struct stat *st, int directory,
                         const char *path);

#endif
