/* hdf5_matrix.h: any two-dimensional numeric dataset of any HDF5 file, read as float32 rows. The
 * file is untrusted: type, shape and sizes are checked on opening. HDF5 converts integers, and
 * floats of any width and byte order; values beyond float32 become infinities. */
#ifndef CLPIPE_MATRIX_HDF5_MATRIX_H
#define CLPIPE_MATRIX_HDF5_MATRIX_H

#include "matrix/matrix.h"

/* vector: also accepts one dimension, as one column. STATUS_FAILED: not HDF5, no such dataset (the
 * message lists those that exist), not numeric. */
enum status hdf5_matrix_open(struct matrix_source *out, const char *path, const char *dataset,
                             bool vector, struct error *err);

/* True for an HDF5 file without clpipe's mark; *example gets a matrix in it, "/embeddings", or "".
 */
bool hdf5_is_foreign(const char *path, char *example, size_t size);

#endif
