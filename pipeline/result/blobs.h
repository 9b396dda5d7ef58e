/* blobs.h: a column of blobs: a group with `data`, the bytes of all rows end to end, and `end`, the end of
 * each row.
 *
 *   blobs_create ─> blobs_add, once for each row ─> blobs_finish
 *
 * One thread. */
#ifndef CLPIPE_RESULT_BLOBS_H
#define CLPIPE_RESULT_BLOBS_H

#include "result/schema.h"

struct blobs;

/* Creates the group ("thumbnails", "images/json") for `rows` images with `bytes` bytes in total;
 * `axis` is the scale of its data. */
enum status blobs_create(struct blobs **out, hid_t file, const char *group, const char *axis,
                         uint64_t rows, uint64_t bytes, const char *path, struct error *err);
/* Adds the next row's blob; length 0: it has none. */
enum status blobs_add(struct blobs *blobs, const void *blob, uint64_t length, struct error *err);
/* Writes what is left; all rows must have been added. */
enum status blobs_finish(struct blobs *blobs, struct error *err);
void blobs_close(struct blobs **blobs);

/* Opens the blobs of a file with `rows` images. */
struct blob_reader;
/* *out is NULL if the file has no such group. A blob of more than `most` bytes is damage. `group`
 * and `path`, which is for messages, must outlive the reader. */
enum status blob_reader_open(struct blob_reader **out, hid_t file, const char *group, uint64_t rows,
                             uint64_t most, const char *path, struct error *err);
void blob_reader_close(struct blob_reader **reader);
/* The blob of one row, with a terminating NUL; *blob is NULL and *length 0 if it has none. Valid
 * until the next call. */
enum status blob_reader_read(struct blob_reader *reader, uint64_t row, const uint8_t **blob,
                             uint64_t *length, struct error *err);

#endif
