/* library.h: what the calls with a handle of devices share. */
#ifndef CLPIPE_LIBRARY_LIBRARY_H
#define CLPIPE_LIBRARY_LIBRARY_H

#include "base/error.h"
#include "base/stop.h"
#include "jobs/machine.h"
#include "library/clpipe.h"
#include "matrix/matrix.h"
#include "matrix/values.h"
#include <pthread.h>

/* What a struct clpipe * stands for. */
struct library {
    uintptr_t number;          /* what the caller has as a pointer; never given again */
    unsigned users;            /* calls in progress or waiting, and the table of open handles */
    pthread_mutex_t call;      /* held by the call in progress */
    struct stop stop;          /* of it */
    struct clpipe_watch watch; /* of it */
    struct library *next;
    struct ocl_devices devices;
    unsigned chosen[CLUSTERING_DEVICES], count;
    struct clustering_machine machine;
    struct clustering_contexts contexts;
    uint64_t memory;     /* that was given; 0: none */
    uint32_t iterations; /* of the call, at most */
};

/* Begins a call: finds the handle and waits until it is free. NULL: there is none, or it cannot be used here; *why is
 * set. */
struct library *library_begin(const struct clpipe *clpipe, const struct clpipe_watch *watch,
                              struct error *why);
/* Ends the call, if it has begun, and tells *err what `why` says; returns the code of that. */
int library_end(struct library *library, const struct error *why, struct clpipe_error *err);

/* Tells the watch of the call, whose answer may be a stop; the engines' `phase` callback. */
void library_phase(void *library, const char *phase, uint64_t done, uint64_t total);

/* Copies a struct of the caller that begins with its size into one of `size` bytes, with 0 for what his version lacks.
 * STATUS_USAGE: no size that can be, or members that this version does not know. */
enum status library_take(void *out, size_t size, const void *in, const char *what,
                         struct error *err);

/* The caller's rows as a matrix, which refers to this. */
struct library_rows {
    struct clpipe_rows given; /* with strides that are not 0 */
    struct value_format format;
    struct matrix_source source;
};

/* STATUS_USAGE: no such rows can be. There may be none. */
enum status library_rows_open(struct library_rows *out, const struct clpipe_rows *rows,
                              struct error *err);

/* Are there such strides, of `count` things of the size of each: apart, and all within 63 bits? */
bool library_strides_fit(const int64_t *stride, const uint64_t *count, unsigned axes,
                         int64_t bytes);

/* STATUS_USAGE: `value` is not one of the `count` of an enum, of which `what` is one. */
enum status library_choice(int value, int count, const char *what, struct error *err);

#endif
