/* columns.h: writes /images or /failures row by row, in blocks. */
#ifndef CLPIPE_FILE_COLUMNS_H
#define CLPIPE_FILE_COLUMNS_H

#include "file/schema.h"

struct columns;

/* Creates GROUP of `file`, unless it is there, with all columns for `rows` rows (the optional ones only
 * if `optional`) and their scales. `size`: of each column of texts, in the order of the table.
 * The group is left open in *group. */
enum status columns_create(struct columns **out, hid_t *group, hid_t file,
                           const struct table *table, uint64_t rows, bool optional,
                           const struct text_size size[TABLE_TEXTS_MOST], const char *path,
                           struct error *err);

/* Adds the next row: the table's row struct, which is copied with its texts. */
enum status columns_add(struct columns *columns, const void *row, struct error *err);

/* The same of a table of names: the path in the row is ignored, `name` is its bytes. */
enum status columns_add_named(struct columns *columns, const void *row, const char *name,
                              uint32_t name_length, struct error *err);

/* Writes what is left; all rows must have been added. */
enum status columns_finish(struct columns *columns, struct error *err);

void columns_close(struct columns **columns);

#endif
