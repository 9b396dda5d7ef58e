/* ocl_cache.h: disk caches of compiled kernels, of clpipe and of drivers, and of measurements and
 * self-test results of kernels. */
#ifndef CLPIPE_OCL_OCL_CACHE_H
#define CLPIPE_OCL_OCL_CACHE_H

#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>

/* Makes PoCL compile in an empty directory of this process, below $POCL_CACHE_DIR or a directory
 * for temporary files, removed at exit. Sets environment variables: call before the first OpenCL
 * call and while no other thread reads the environment. Repeated calls are allowed. */
void ocl_cache_for_drivers(void);

/* Why that directory could not be made ("" if it was), for the error on a machine without
 * platforms. */
const char *ocl_cache_trouble(void);

/* Gives PoCL the kernels per work-group size that earlier processes have saved for the programs
 * built so far. Call after each build, before the program's first launch. Any thread. */
void ocl_cache_fetch_kernels(void);

/* Saves the kernels that PoCL compiled per work-group size, for later processes. Call after the
 * last launch. Any thread. */
void ocl_cache_keep_kernels(void);

/* Entries of clpipe's cache: named byte strings in one of its folders ("programs"). They are
 * written under a temporary name of the process and renamed, and begin with a digest, so any number
 * of processes, even on several hosts that share a home directory, see complete entries or none. */
enum ocl_cache_state { OCL_CACHE_ABSENT, OCL_CACHE_FOUND, OCL_CACHE_DAMAGED };

/* If found, *data is the entry (malloc) followed by a NUL, else NULL. Damaged: wrong digest, or
 * others can write to it. Absent includes unreadable, and no cache. */
enum ocl_cache_state ocl_cache_load(char **data, size_t *size, const char *folder,
                                    const char *name);
/* Is there a cache, without that entry? */
bool ocl_cache_lacks(const char *folder, const char *name);
/* STATUS_FAILED: it was not stored. */
enum status ocl_cache_save(const char *folder, const char *name, const void *data, size_t size,
                           struct error *err);
/* Removes an entry; *found: it existed. STATUS_FAILED: it could not be removed. */
enum status ocl_cache_remove(bool *found, const char *folder, const char *name, struct error *err);

#endif
