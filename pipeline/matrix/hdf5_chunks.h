/* hdf5_chunks.h: values of a chunked dataset, read and inflated by as many threads as ask for them.
 * HDF5 only tells where a chunk lies.
 *
 * Chunks may be smaller or larger than what is read at a time, and may split columns. What several
 * reads need is inflated once: chunks stay until all of their rows have been read, and a thread
 * that would wait for a chunk that another one inflates inflates one that will be needed next.
 * Chunks that are kept have at most 128 MiB, of all datasets that are open together, but each may keep
 * 8 MiB or a row of chunks; those that are being inflated take at most as much again. */
#ifndef CLPIPE_MATRIX_HDF5_CHUNKS_H
#define CLPIPE_MATRIX_HDF5_CHUNKS_H

#include "matrix/file_rows.h"
/* H5Ovisit changed its callback in 1.12. */
#define H5_USE_110_API
#include <hdf5.h>

struct hdf5_chunks;

/* `file` is where the dataset lies, but for the offset; it must be open with h5_driver.h. Both stay
 * the caller's, and `path` and `dataset` open. *out is NULL where HDF5 has to read it: it is not
 * chunked, has a filter beside deflate, shuffle and fletcher32, or the chunks of a row take too
 * much memory. */
enum status hdf5_chunks_open(struct hdf5_chunks **out, hid_t dataset, const struct file_rows *file,
                             struct error *err);
/* Rows [first, first + count) as float32; values that were never written are the fill value. Any
 * thread. */
enum status hdf5_chunks_read(struct hdf5_chunks *chunks, uint64_t first, uint64_t count,
                             float *rows, struct error *err);
/* The same, as they are stored. */
enum status hdf5_chunks_read_stored(struct hdf5_chunks *chunks, uint64_t first, uint64_t count,
                                    void *rows, struct error *err);
/* Frees the chunks that no thread reads from. Any thread. */
void hdf5_chunks_trim(struct hdf5_chunks *chunks);
/* Accepts NULL and NULLs. */
void hdf5_chunks_close(struct hdf5_chunks **chunks);

#endif
