/* library.h: what the calls with a handle of devices share. */
#ifndef CLPIPE_LIBRARY_LIBRARY_H
#define CLPIPE_LIBRARY_LIBRARY_H

#include "jobs/machine.h"
#include "library/handle.h"
#include "matrix/strided.h"

/* What a struct clpipe * stands for. */
struct library {
    struct handle handle;
    struct ocl_devices devices;
    unsigned chosen[CLUSTERING_DEVICES], count;
    struct clustering_machine machine;
    struct clustering_contexts contexts;
    uint64_t memory;     /* that was given; 0: none */
    uint32_t iterations; /* of the call, at most */
};

/* The caller's rows as a matrix, which refers to this. */
struct library_rows {
    struct clpipe_rows given;
    struct matrix_strided memory;
    struct matrix_source source;
};

/* STATUS_USAGE: no such rows can be. There may be none. */
enum status library_rows_open(struct library_rows *out, const struct clpipe_rows *rows,
                              struct error *err);

/* More are no request that could be meant. */
#define LIBRARY_THREADS_MOST 4096u
#define LIBRARY_ROWS_MOST    (UINT64_C(1) << 40)

/* Are there such strides, of `count` things of the size of each: apart, and all within 63 bits? */
bool library_strides_fit(const int64_t *stride, const uint64_t *count, unsigned axes,
                         int64_t bytes);

/* A number of the caller's as one of `count` of an enum. */
enum status library_choice(int value, int count, const char *what, struct error *err);

#endif
