/* ocl_cache.h: the disk caches of compiled kernels, of clpipe and of drivers, and what was measured
 * or proven about kernels. */
#ifndef CLPIPE_OCL_OCL_CACHE_H
#define CLPIPE_OCL_OCL_CACHE_H

#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>

/* Gives PoCL an empty directory of this process to compile in, below $POCL_CACHE_DIR or the temporary files,
 * which is removed at exit. Sets the environment: call it before the first OpenCL call, and while no
 * other thread reads the environment. May be called repeatedly. */
void ocl_cache_for_drivers(void);

/* Why there is no such directory ("" if there is), for the error on a machine without any platform. */
void ocl_cache_trouble(char *text, size_t size);

/* Keeps what PoCL has compiled for sizes of work-groups, for the directories of later processes. Call it when
 * launches are over. Any thread. */
void ocl_cache_keep_kernels(void);

/* Entries of clpipe's cache: named byte strings in one of its folders ("programs"). They are
 * written under a temporary name of the process and renamed, and begin with a digest, so any number
 * of processes, also on several hosts that share a home directory, see complete entries or none. */
enum ocl_cache_state { OCL_CACHE_ABSENT, OCL_CACHE_FOUND, OCL_CACHE_DAMAGED };

/* If found, *data is the entry (malloc) followed by a NUL, else NULL. An entry that cannot be read is absent,
 * and without a cache all are; one that others can write to is damaged. */
enum ocl_cache_state ocl_cache_load(char **data, size_t *size, const char *folder,
                                    const char *name);
/* STATUS_FAILED: it was not stored. */
enum status ocl_cache_save(const char *folder, const char *name, const void *data, size_t size,
                           struct error *err);
/* Removes an entry; *found: it existed. STATUS_FAILED: it could not be removed. */
enum status ocl_cache_remove(bool *found, const char *folder, const char *name, struct error *err);

#endif
