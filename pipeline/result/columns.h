/* columns.h: writes a column from its first row to its last, in blocks. */
#ifndef CLPIPE_RESULT_COLUMNS_H
#define CLPIPE_RESULT_COLUMNS_H

#include "result/schema.h"

struct column_writer {
    hid_t dataset;
    enum value_type type;
    size_t width;
    uint64_t first; /* row of the block */
    unsigned count, room;
    uint8_t *block;
    const char *path;
};

/* Creates the column in an open group, with that scale; `size` is the width of texts (VALUE_TEXT),
 * else NULL. Clear it even after a failure. */
enum status column_create(struct column_writer *out, hid_t file, hid_t group, const char *name,
                          enum value_type type, uint64_t rows, const struct text_size *size,
                          const char *axis, const char *path, struct error *err);
/* Appends a row, of at most the column's width in bytes. */
enum status column_add(struct column_writer *column, const void *value, size_t bytes,
                       struct error *err);
/* Adds the next rows, end to end. */
enum status column_add_rows(struct column_writer *column, const void *rows, uint64_t count,
                            struct error *err);
/* Writes what is left; all rows must have been added. */
enum status column_finish(struct column_writer *column, struct error *err);
void column_clear(struct column_writer *column);

#endif
