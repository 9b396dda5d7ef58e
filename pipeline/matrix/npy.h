/* npy.h: NumPy's array file, formats 1.0 to 3.0: read as float32 rows, and its header written. */
#ifndef CLPIPE_MATRIX_NPY_H
#define CLPIPE_MATRIX_NPY_H

#include "base/error.h"
#include <stdint.h>

/* A two-dimensional float16/32/64 or integer .npy file of either byte order; in C order, or slower
 * in Fortran order. */
struct npy;
enum status npy_open(struct npy **out, const char *path, struct error *err);
/* The same; one dimension is accepted, too, and counts as one column. */
enum status npy_open_vector(struct npy **out, const char *path, struct error *err);
uint64_t npy_rows(const struct npy *npy);
uint32_t npy_dimension(const struct npy *npy);
enum status npy_read(struct npy *npy, uint64_t first, uint64_t count, float *rows,
                     struct error *err);
/* Frees and NULLs; accepts a pointer to NULL. */
void npy_close(struct npy **npy);

/* Writes the header of a C-order .npy, format 1.0, to `fd`; the caller appends the data. dtype is
 * "<f4", "<i4"...; columns 0: one-dimensional. */
enum status npy_write_header(int fd, const char *dtype, uint64_t rows, uint64_t columns,
                             const char *path, struct error *err);

#endif
