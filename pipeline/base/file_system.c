/* file_system.c: magic numbers from linux/magic.h and of file systems outside the kernel. */
#include "base/file_system.h"
#include "base/path.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdint.h>
#include <unistd.h>

enum file_system file_system_of(const struct statfs *fs)
{
    static const uint32_t local[] = {
        EXT4_SUPER_MAGIC,     XFS_SUPER_MAGIC,      BTRFS_SUPER_MAGIC,
        TMPFS_MAGIC,          RAMFS_MAGIC,          F2FS_SUPER_MAGIC,
        NILFS_SUPER_MAGIC,    ISOFS_SUPER_MAGIC,    UDF_SUPER_MAGIC,
        SQUASHFS_MAGIC,       EROFS_SUPER_MAGIC_V1, REISERFS_SUPER_MAGIC,
        0x2fc12fc1 /* ZFS */, 0x3153464a /* JFS */, 0xca451a4e /* bcachefs */};
    static const uint32_t shared[] = {NFS_SUPER_MAGIC,       CEPH_SUPER_MAGIC,
                                      OCFS2_SUPER_MAGIC,     0x0bd00bd0 /* Lustre */,
                                      0x47504653 /* GPFS */, 0x19830326 /* BeeGFS */};
    const uint32_t type = (uint32_t)fs->f_type;
    for (size_t i = 0; i < sizeof local / sizeof *local; i++)
        if (local[i] == type)
            return FILE_SYSTEM_LOCAL;
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        if (shared[i] == type)
            return FILE_SYSTEM_SHARED;
    return type == OVERLAYFS_SUPER_MAGIC ? FILE_SYSTEM_STACKED : FILE_SYSTEM_UNTRUSTED;
}

bool file_system_trusted(struct file_system_trust *trust, const struct stat *st, int directory,
                         const char *path)
{
    struct statfs fs;
    if (trust->known && trust->device == st->st_dev)
        return trust->trusted;
    const int fd = path_open_at(directory, path, O_PATH);
    *trust = (struct file_system_trust){.known = fd >= 0,
                                        .trusted = fd >= 0 && fstatfs(fd, &fs) == 0 &&
                                                   file_system_of(&fs) != FILE_SYSTEM_UNTRUSTED,
                                        .device = st->st_dev};
    if (fd >= 0)
        close(fd);
    return trust->trusted;
}
