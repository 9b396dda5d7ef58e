/* file_rows.h: numbers that lie in a file one after another, without gaps: read past any library, by as
 * many threads as want to. */
#ifndef CLPIPE_MATRIX_FILE_ROWS_H
#define CLPIPE_MATRIX_FILE_ROWS_H

#include "base/error.h"
#include "matrix/values.h"
#include <stdint.h>

struct file_rows {
    int fd;            /* the caller's */
    const char *path;  /* for messages */
    uint64_t offset;   /* of the first value */
    uint32_t dimension;
    struct value_format format;
};

/* Exactly `size` bytes at `offset`. STATUS_FAILED: they cannot be read, or the file ends before. */
enum status file_rows_bytes(const struct file_rows *file, void *out, size_t size, uint64_t offset,
                            struct error *err);
/* Values [first, first + count), and rows of `dimension` of them, as float32. Any thread. */
enum status file_rows_values(const struct file_rows *file, uint64_t first, uint64_t count, float *out,
                             struct error *err);
enum status file_rows_read(const struct file_rows *file, uint64_t first, uint64_t count, float *rows,
                           struct error *err);

#endif
