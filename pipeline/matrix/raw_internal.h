/* raw_internal.h: ways of reading for raw.c that have separate files. With `values`, rows [first,
 * first + count) are read as float32; else as bytes, in the file's byte order. Thread-safe. */
#ifndef CLPIPE_MATRIX_RAW_INTERNAL_H
#define CLPIPE_MATRIX_RAW_INTERNAL_H

#include "matrix/raw.h"

enum status raw_read_either(const struct raw *raw, uint64_t first, uint64_t count, void *out,
                            bool values, struct error *err);
/* Reads a block through HDF5, as values of type `memory`, or as stored. */
enum status raw_read_block(const struct raw *raw, hid_t memory, const hsize_t start[2],
                           const hsize_t extent[2], void *values, struct error *err);

/* raw->chunks stays NULL if a band takes too much memory. `list`: dataset creation properties. */
enum status raw_chunks_open(struct raw *raw, hid_t list, struct error *err);
void raw_chunks_close(struct raw *raw);
/* Whether the bytes of its values are shuffled before anything else. */
bool raw_chunks_shuffled(const struct raw *raw);
enum status raw_chunks_read(const struct raw *raw, uint64_t first, uint64_t count, void *out,
                            bool values, struct error *err);

void raw_segments_close(struct raw *raw);
enum status raw_segments_read(const struct raw *raw, uint64_t first, uint64_t count, void *out,
                              bool values, struct error *err);

/* Bytes of a row in the result. */
static inline uint64_t raw_row_size(const struct raw *raw, bool values)
{
    return values ? raw->columns * sizeof(float) : raw->row_bytes;
}

/* STATUS_FAILED: the file has become shorter. */
enum status raw_check_length(const struct raw *raw, struct error *err);

#endif
