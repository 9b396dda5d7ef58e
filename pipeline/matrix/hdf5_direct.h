/* hdf5_direct.h: where the values of a dataset lie in its file, so that threads read them past
 * HDF5, which one thread at a time may call. */
#ifndef CLPIPE_MATRIX_HDF5_DIRECT_H
#define CLPIPE_MATRIX_HDF5_DIRECT_H

#include "matrix/hdf5_chunks.h"
#include <stdbool.h>

struct hdf5_direct {
    bool possible;              /* false: HDF5 has to read them */
    struct file_rows file;      /* contiguous values; of chunks only what they have in common */
    struct hdf5_chunks *chunks; /* NULL: values are contiguous */
};

/* Type of the elements: IEEE 754 floats and integers of whole bytes without padding. */
bool hdf5_format(struct value_format *out, hid_t dataset);

/* Not possible are other types, values that lie nowhere, and chunks that hdf5_chunks.h does not read.
 * The file must be one of h5_driver.h; it stays HDF5's and open as long as `dataset`, and `path`, which
 * is for messages. To be closed in any case. */
enum status hdf5_direct_open(struct hdf5_direct *out, hid_t dataset, uint32_t dimension,
                             const char *path, struct error *err);
void hdf5_direct_close(struct hdf5_direct *direct);
/* Rows [first, first + count) as float32. Any thread. */
enum status hdf5_direct_read(const struct hdf5_direct *direct, uint64_t first, uint64_t count,
                             float *rows, struct error *err);

#endif
