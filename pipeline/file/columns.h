/* columns.h: writes /images or /failures row by row, in blocks. */
#ifndef CLPIPE_FILE_COLUMNS_H
#define CLPIPE_FILE_COLUMNS_H

#include "file/schema.h"

struct columns;

/* Creates GROUP of `file` with all columns for `rows` rows (the optional ones only if `optional`),
 * their scales attached, and GROUP/path_raw for `raw_rows` paths of `raw_bytes` bytes in all, where there are any. The group
 * is left open in *group. */
enum status columns_create(struct columns **out, hid_t *group, hid_t file,
                           const struct table *table, uint64_t rows, bool optional,
                           uint64_t raw_rows, uint64_t raw_bytes, const char *path,
                           struct error *err);

/* Adds the next row: the table's row struct, which is copied with its texts. The path in it is
 * ignored: `name` is it, in bytes. */
enum status columns_add(struct columns *columns, const void *row, const char *name,
                        uint32_t name_length, struct error *err);

/* Writes what is left; all rows must have been added. */
enum status columns_finish(struct columns *columns, struct error *err);

void columns_close(struct columns **columns);

#endif
