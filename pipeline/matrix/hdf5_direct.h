/* hdf5_direct.h: where the values of a dataset lie in its file as they are, so that threads read them
 * past HDF5, which one thread at a time may call. */
#ifndef CLPIPE_MATRIX_HDF5_DIRECT_H
#define CLPIPE_MATRIX_HDF5_DIRECT_H

#include "matrix/file_rows.h"
/* H5Ovisit changed its callback in 1.12. */
#define H5_USE_110_API
#include <hdf5.h>

/* Type of the elements: IEEE 754 floats and integers of whole bytes without padding. */
bool hdf5_format(struct value_format *out, hid_t dataset);

/* False: its values are in chunks or nowhere, or of another type. The file must be one on the disk, with
 * a driver whose handle is a descriptor; it stays HDF5's and open as long as `dataset`. */
bool hdf5_direct(struct file_rows *out, hid_t dataset, uint32_t dimension, const char *path);

#endif
