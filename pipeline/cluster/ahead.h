/* ahead.h: programs that are built while rows are read: compilers of GPUs take seconds for all of
 * them, once for each driver and kind of rows. */
#ifndef CLPIPE_CLUSTER_AHEAD_H
#define CLPIPE_CLUSTER_AHEAD_H

#include "ocl/ocl.h"

struct ahead;

#define AHEAD_MOST 8

/* For up to AHEAD_MOST programs of `ocl`, which must outlive it. Nothing is built yet. NULL where memory
 * is short. */
struct ahead *ahead_open(struct ocl_context *ocl);

/* Begins to build one, in a thread of its own; where there is none, it is built when it is wanted. The
 * name is the caller's. */
void ahead_add(struct ahead *ahead, const char *name, const char *options, ...)
    __attribute__((format(printf, 3, 4)));

/* The program of that name and those options once it is built, for the caller to release; NULL: it is
 * not among them, or did not build, or was taken before. One thread at a time; accepts NULL. */
cl_program ahead_take(struct ahead *ahead, const char *name, const char *options);

/* Waits for all; returns how many were not taken. Accepts NULLs. */
unsigned ahead_close(struct ahead **ahead);

#endif
