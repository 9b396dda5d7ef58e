/* library.h: shared by all calls that take a handle. */
#ifndef CLPIPE_LIBRARY_LIBRARY_H
#define CLPIPE_LIBRARY_LIBRARY_H

#include "base/error.h"
#include "base/stop.h"
#include "jobs/machine.h"
#include "library/clpipe.h"
#include <pthread.h>

/* The state behind a struct clpipe *, which is only a number. */
struct library {
    uintptr_t number;          /* the caller's pointer; never reused */
    unsigned users;            /* calls in progress or waiting, and the table of open handles */
    pthread_mutex_t call;      /* held by the call in progress */
    struct stop stop;          /* of it */
    struct clpipe_watch watch; /* of it */
    struct library *next;
    struct ocl_devices devices;
    unsigned chosen[CLUSTERING_DEVICES];
    struct clustering_machine machine;
    struct clustering_contexts contexts;
    uint64_t memory;     /* as given by the caller; 0: not given */
    uint32_t iterations; /* upper bound, of the call */
};

/* Begins a call: finds the handle and waits until it is free. NULL: there is no such handle, or it cannot be used
 * here; *why is set. */
struct library *library_begin(const struct clpipe *clpipe, const struct clpipe_watch *watch,
                              struct error *why);
/* Ends the call, if it has begun; stores `why` in *err and returns its code. */
int library_end(struct library *library, const struct error *why, struct clpipe_error *err);

/* Set while this thread runs a callback, which would wait forever for the handle of its own
 * call. */
extern _Thread_local bool library_calls_back;

/* The engines' `phase` callback: calls the watch, which may request a stop. */
void library_phase(void *library, const char *phase, uint64_t done, uint64_t total);

/* Whether the caller has met a condition; else *ERR is STATUS_USAGE with the formatted sentence. */
#define REQUIRE(CONDITION, ERR, ...)                                                               \
    ((CONDITION) || (error_set(ERR, STATUS_USAGE, __VA_ARGS__), false))

/* Copies a caller's struct, which begins with its size, to one of `size` bytes; members that the caller's version
 * lacks become 0. False: an impossible size, or members that this version does not know; *err is set. */
bool library_take(void *out, size_t size, const void *in, const char *what, struct error *err);

/* Whether elements of `bytes` bytes with these strides and counts per axis are disjoint and within 62 bits. */
bool library_strides_fit(const int64_t *stride, const uint64_t *count, unsigned axes,
                         int64_t bytes);

#endif
