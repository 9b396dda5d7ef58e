/* npy.h: NumPy's array file, formats 1.0 to 3.0: read as float32 rows, and its header written. */
#ifndef CLPIPE_MATRIX_NPY_H
#define CLPIPE_MATRIX_NPY_H

#include "matrix/matrix.h"

/* Opens a two-dimensional .npy file of float16/32/64 or integers in either byte order; in C order
 * or, more slowly, Fortran order. vector: also accepts one dimension, as one column. The file is
 * untrusted. */
enum status npy_open(struct matrix_source *out, const char *path, bool vector, struct error *err);

/* The header of a C-order .npy, format 1.0: *length bytes, a multiple of 64, followed by the data.
 * dtype is "<f4", "<i4"...; columns 0: one-dimensional. */
#define NPY_HEADER 192
void npy_header(char text[NPY_HEADER], size_t *length, const char *dtype, uint64_t rows,
                uint64_t columns);
/* Writes it to `fd`; the caller appends the data. */
enum status npy_write_header(int fd, const char *dtype, uint64_t rows, uint64_t columns,
                             const char *path, struct error *err);

#endif
