/* tar.h: members of a tar archive (POSIX.1-1988, ustar) at positions known in advance. */
#ifndef CLPIPE_JOBS_TAR_H
#define CLPIPE_JOBS_TAR_H

#include <stdbool.h>
#include <stdint.h>

#define TAR_BLOCK     512u
#define TAR_END       (2 * TAR_BLOCK) /* zeros after the last member */
#define TAR_MOST      UINT64_C(077777777777) /* bytes of a member */
#define TAR_NAME_MOST 99u

/* Size of a member in the archive: header, content, padding. */
static inline uint64_t tar_member_bytes(uint64_t bytes)
{
    return TAR_BLOCK + (bytes + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
}

/* The header of a world-readable regular file; seconds since 1970, at least 0. */
void tar_header(char block[TAR_BLOCK], const char *name, uint64_t bytes, int64_t seconds);

#endif
