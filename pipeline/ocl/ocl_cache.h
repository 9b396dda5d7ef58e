/* ocl_cache.h: where compiled kernels are kept, ours and those of drivers. Inside ocl. */
#ifndef CLPIPE_OCL_OCL_CACHE_H
#define CLPIPE_OCL_OCL_CACHE_H

#include <stdbool.h>
#include <stddef.h>

/* Gives PoCL, which is no platform at all without a directory to compile in, one that works, unless
 * it would find one itself. Sets the environment: before the first OpenCL call, and while no other
 * thread reads the environment. Any number of times. */
void ocl_cache_for_drivers(void);

/* What stands against PoCL's directory ("" for nothing), for the error line of a machine without
 * any platform. */
void ocl_cache_trouble(char *text, size_t size);

/* The file of an entry of our own cache, or false where there is no cache: directory of the program
 * cache, which need not exist, and `name` in it. */
bool ocl_cache_path(char *path, size_t size, const char *name);

#endif
