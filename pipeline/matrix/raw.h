/* raw.h: rows of one dataset as bytes, for any thread. HDF5 is asked once where they are:
 * contiguous, in chunks with shuffle, deflate and fletcher32, or in segments, which are datasets of
 * other files. Otherwise HDF5 reads them, one thread at a time.
 *
 * A dataset has one or two axes, the first being the rows, and values of a fixed size in C order:
 * row r begins at r * row_bytes. The file is untrusted. */
#ifndef CLPIPE_MATRIX_RAW_H
#define CLPIPE_MATRIX_RAW_H

#define H5_USE_110_API
#include <hdf5.h>

#include "base/error.h"
#include "matrix/values.h"
#include <stdint.h>

enum raw_layout {
    RAW_HDF5,       /* read by HDF5, under its lock: several threads are no faster than one */
    RAW_CONTIGUOUS, /* at `start` of `fd` */
    RAW_CHUNKS,
    RAW_SEGMENTS,
};

struct raw {
    enum raw_layout layout;
    struct value_format format; /* kind 0: not a number that values.h supports */
    uint64_t rows, row_bytes;
    uint32_t columns;
    size_t element;   /* bytes of a value */
    hid_t dataset;    /* the caller's; RAW_SEGMENTS: none */
    const char *path; /* of the file; the caller's */
    char shown[256];  /* the same for messages */
    int fd;           /* HDF5's, for a file of h5_driver.h; else -1 */
    uint64_t start, file_bytes;
    uint64_t chunk_rows; /* RAW_CHUNKS: rows of a chunk; else 0 */
    struct raw_chunks *chunks;
    struct raw_segments *segments;
    unsigned users; /* references that have yet to be closed: 1, until others are added */
};

/* `dataset`, in a file of h5_driver.h, and `path` must outlive it; writes through HDF5 must have
 * been flushed. Only on HDF5's thread. STATUS_FAILED: more than two axes, values of variable size. */
enum status raw_open(struct raw **out, hid_t dataset, const char *path, struct error *err);

/* A dataset with the shape of `like`, made up of the rows of the dataset `name` in each segment's
 * file, one after another. Over all such datasets at most 16 files are open, unless more threads
 * read. All arguments except `like` must outlive it. */
struct raw_segment {
    const char *path;
    uint64_t rows;
};
/* Opens the file, unless *file is positive, and its dataset; refuses data stored elsewhere. */
typedef enum status raw_open_segment(hid_t *file, hid_t *dataset, const char *path,
                                     const char *name, struct error *err);
enum status raw_open_segments(struct raw **out, hid_t like, const char *name,
                              const struct raw_segment *segment, unsigned count,
                              raw_open_segment *open, const char *path, struct error *err);

/* Lets contiguous values be read after HDF5 has closed their file: from `fd`, which is open for the
 * same file and must outlive them, as must `path`. */
void raw_detach(struct raw *raw, int fd, const char *path);
/* Only on HDF5's thread. Accepts a pointer to NULL; sets *raw to NULL. */
void raw_close(struct raw **raw);

/* Contiguous values of any file, `columns` per row, starting at `start`; needs no closing. */
void raw_of_file(struct raw *out, int fd, uint64_t start, uint64_t rows, uint32_t columns,
                 struct value_format format, const char *path);

/* Read rows [first, first + count) as bytes, numbers in little-endian order, or with each value
 * rounded to float32, values beyond it becoming infinite. STATUS_FAILED without `native` in the
 * error: the file is damaged. Thread-safe. */
enum status raw_read(const struct raw *raw, uint64_t first, uint64_t count, void *rows,
                     struct error *err);
enum status raw_read_float(const struct raw *raw, uint64_t first, uint64_t count, float *rows,
                           struct error *err);

#endif
