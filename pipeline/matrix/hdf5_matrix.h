/* hdf5_matrix.h: any two-dimensional numeric dataset of any HDF5 file, read as float32 rows. The
 * file is untrusted: type, shape and sizes are checked when it is opened. HDF5 converts floats of
 * any width and byte order and integers; values beyond float32 arrive as infinities. */
#ifndef CLPIPE_MATRIX_HDF5_MATRIX_H
#define CLPIPE_MATRIX_HDF5_MATRIX_H

#include "base/error.h"
#include <stdint.h>

struct hdf5_matrix;

/* STATUS_FAILED: not HDF5, no such dataset (what there is is named), not a matrix of numbers. */
enum status hdf5_matrix_open(struct hdf5_matrix **out, const char *path, const char *dataset,
                             struct error *err);
/* The same of one dimension, too, which counts as one column. */
enum status hdf5_matrix_open_vector(struct hdf5_matrix **out, const char *path, const char *dataset,
                                    struct error *err);
/* Its shape. */
uint64_t hdf5_matrix_rows(const struct hdf5_matrix *matrix);
uint32_t hdf5_matrix_dimension(const struct hdf5_matrix *matrix);
/* Rows [first, first + count) as float32 into `rows`, the caller's. One thread at a time. */
enum status hdf5_matrix_read(struct hdf5_matrix *matrix, uint64_t first, uint64_t count,
                             float *rows, struct error *err);
/* Closes and sets *matrix to NULL, which it may be. */
void hdf5_matrix_close(struct hdf5_matrix **matrix);

/* True if the file is there and HDF5. */
bool hdf5_is_hdf5(const char *path);

/* True for an HDF5 file without clpipe's mark; *example gets a matrix in it, "/embeddings", or "".
 */
bool hdf5_is_foreign(const char *path, char *example, size_t size);

#endif
