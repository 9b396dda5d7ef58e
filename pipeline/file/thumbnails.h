/* thumbnails.h: /thumbnails: small JPEG files of the images, end to end, and where each ends.
 *
 *   thumbnails_create ─> thumbnails_add, once for each row ─> thumbnails_finish
 *
 * One thread. */
#ifndef CLPIPE_FILE_THUMBNAILS_H
#define CLPIPE_FILE_THUMBNAILS_H

#include "file/schema.h"

struct thumbnails;

/* Creates the group for `rows` images whose thumbnails have `bytes` bytes in all and were made with
 * their longest side at most `size` pixels. */
enum status thumbnails_create(struct thumbnails **out, hid_t file, uint32_t size, uint64_t rows,
                              uint64_t bytes, const char *path, struct error *err);
/* Adds the next row's; length 0: it has none. */
enum status thumbnails_add(struct thumbnails *thumbnails, const uint8_t *jpeg, uint64_t length,
                           struct error *err);
/* Writes what is left; all rows must have been added. */
enum status thumbnails_finish(struct thumbnails *thumbnails, struct error *err);
void thumbnails_close(struct thumbnails **thumbnails);

/* Those of a file of `rows` images. */
struct thumbnail_reader;
/* *out is NULL where the file has none. `path` is for messages, and must outlive the reader. */
enum status thumbnail_reader_open(struct thumbnail_reader **out, hid_t file, uint64_t rows,
                                  const char *path, struct error *err);
void thumbnail_reader_close(struct thumbnail_reader **reader);
uint32_t thumbnail_reader_size(const struct thumbnail_reader *reader);
/* As result_thumbnail_read. */
enum status thumbnail_reader_read(struct thumbnail_reader *reader, uint64_t row,
                                  const uint8_t **jpeg, uint64_t *length, struct error *err);

#endif
