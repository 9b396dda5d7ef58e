/* ocl_cache.h: where compiled kernels are kept, ours and those of drivers, and what was found out
 * about them. */
#ifndef CLPIPE_OCL_OCL_CACHE_H
#define CLPIPE_OCL_OCL_CACHE_H

#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>

/* Gives PoCL, which is no platform at all without a directory to compile in, one that works, unless
 * it would find one itself. Sets the environment: before the first OpenCL call, and while no other
 * thread reads the environment. Any number of times. */
void ocl_cache_for_drivers(void);

/* What stands against PoCL's directory ("" for nothing), for the error line of a machine without
 * any platform. */
void ocl_cache_trouble(char *text, size_t size);

/* Entries of our own cache: named pieces of bytes in a folder of it ("programs"). They are written
 * under a temporary name of the process's own and renamed, with a digest in front, so any number of
 * processes, also on several hosts of a shared home directory, see whole entries or none. */
enum ocl_cache_state { OCL_CACHE_ABSENT, OCL_CACHE_FOUND, OCL_CACHE_DAMAGED };

/* Only where it is found, *data is its bytes (malloc) with a NUL behind them. Absent is also what
 * cannot be read, and all where there is no cache. */
enum ocl_cache_state ocl_cache_load(char **data, size_t *size, const char *folder,
                                    const char *name);
/* STATUS_FAILED: it is not kept, and why. */
enum status ocl_cache_save(const char *folder, const char *name, const void *data, size_t size,
                           struct error *err);
/* Removes one that may not be there: *found. STATUS_FAILED: it is still there, and why. */
enum status ocl_cache_remove(bool *found, const char *folder, const char *name, struct error *err);

#endif
