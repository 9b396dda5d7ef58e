/* raw.h: rows of one dataset as bytes, for any thread. HDF5 is asked once where they lie: contiguous, in
 * chunks of shuffle, deflate and fletcher32, or in segments, which are datasets of other files. Elsewhere it reads them,
 * one thread at a time.
 *
 * A dataset has one axis or two, the first one's elements being rows, and values of a fixed size. Values
 * follow each other in C order: row r lies at r * row_bytes. The file is untrusted. */
#ifndef CLPIPE_MATRIX_RAW_H
#define CLPIPE_MATRIX_RAW_H

#define H5_USE_110_API
#include <hdf5.h>

#include "base/error.h"
#include "matrix/values.h"
#include <stdint.h>

enum raw_layout {
    RAW_HDF5,       /* HDF5 reads them, under its lock */
    RAW_VIRTUAL,    /* the same, from other files */
    RAW_CONTIGUOUS, /* at `start` of `fd` */
    RAW_CHUNKS,
    RAW_SEGMENTS,
};

struct raw {
    enum raw_layout layout;
    struct value_format format; /* kind 0: no number that values.h knows */
    uint64_t rows, row_bytes;
    uint32_t columns;
    size_t element; /* bytes of a value */
    hid_t dataset;  /* the caller's; RAW_SEGMENTS: none */
    const char *path; /* of the file, the caller's */
    char shown[256];  /* the same for messages */
    int fd;           /* HDF5's, of a file of h5_driver.h; else -1 */
    uint64_t start, file_bytes;
    struct raw_chunks *chunks;
    struct raw_segments *segments;
    unsigned users; /* that will close it */
};

/* `dataset`, in a file of h5_driver.h, and `path` must outlive it; what was written through HDF5 must have
 * been flushed. HDF5's one thread. STATUS_FAILED: more than two axes, values of variable size. */
enum status raw_open(struct raw **out, hid_t dataset, const char *path, struct error *err);

/* A dataset of the shape of `like`, whose rows are those of the dataset `name` of each segment's file, one
 * after the other; of all such files together at most 16 are open, unless more threads read. What is
 * given but `like` must outlive it. */
struct raw_segment {
    const char *path;
    uint64_t rows;
};
/* Opens the file, unless *file is above zero, and its dataset; refuses what is stored elsewhere. */
typedef enum status raw_open_segment(hid_t *file, hid_t *dataset, const char *path, const char *name,
                                     struct error *err);
enum status raw_open_segments(struct raw **out, hid_t like, const char *name,
                              const struct raw_segment *segment, unsigned count,
                              raw_open_segment *open, const char *path, struct error *err);

/* The same, to be closed once more. */
struct raw *raw_share(struct raw *raw);
/* HDF5's one thread. Accepts NULL and NULLs. */
void raw_close(struct raw **raw);

/* Contiguous values of any file, `columns` a row, from `start` on; nothing is to be closed. */
void raw_of_file(struct raw *out, int fd, uint64_t start, uint64_t rows, uint32_t columns,
                 struct value_format format, const char *path);

/* Bytes [at, at + size) of all values, numbers in little-endian order: `at` and `size` are multiples of
 * `element` where a number is big-endian. STATUS_FAILED without `native` of the error: the file is damaged. Any
 * thread. */
enum status raw_read_bytes(const struct raw *raw, uint64_t at, uint64_t size, void *bytes,
                           struct error *err);
/* Rows [first, first + count) as bytes; each value as the nearest float32, those beyond it being
 * infinite. Any thread. */
enum status raw_read(const struct raw *raw, uint64_t first, uint64_t count, void *rows,
                     struct error *err);
enum status raw_read_float(const struct raw *raw, uint64_t first, uint64_t count, float *rows,
                           struct error *err);
/* Whether several threads together read faster than one. */
bool raw_is_parallel(const struct raw *raw);

#endif
