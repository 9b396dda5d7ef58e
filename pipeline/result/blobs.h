/* blobs.h: a column of blobs: a group with `data`, the bytes of all rows end to end, and `end`, the end of
 * each row.
 *
 * One thread. */
#ifndef CLPIPE_RESULT_BLOBS_H
#define CLPIPE_RESULT_BLOBS_H

#include "result/h5.h"

/* Opens the blobs of a file with `rows` images. */
struct blob_reader;
/* *out is NULL if the file has no such group. A blob of more than `most` bytes counts as damage.
 * `group` must outlive the reader. */
enum status blob_reader_open(struct blob_reader **out, hid_t file, const char *group, uint64_t rows,
                             uint64_t most, struct error *err);
void blob_reader_close(struct blob_reader **reader);
/* The blob of one row, with a terminating NUL; *blob is NULL and *length 0 if it has none. Valid
 * until the next call. */
enum status blob_reader_read(struct blob_reader *reader, uint64_t row, const uint8_t **blob,
                             uint64_t *length, struct error *err);

#endif
