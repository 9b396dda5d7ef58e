/* rows.h: reads /images or /failures row by row.
 *
 * Rows are read in blocks, which grow (up to ROWS_BLOCK) during sequential access and shrink
 * otherwise, so that both are cheap. The memory is bounded by ROWS_TEXT_BYTES, not by the file. One
 * thread at a time. */
#ifndef CLPIPE_RESULT_ROWS_H
#define CLPIPE_RESULT_ROWS_H

#include "result/schema.h"

#define ROWS_BLOCK      4096
#define ROWS_TEXT_BYTES (4u << 20)

/* An open table. The first part is read-only, the rest is private. */
struct rows {
    const struct table *table;
    uint64_t count;
    hid_t dataset[TABLE_COLUMNS_MAX]; /* of columns; not positive: an optional one is missing */

    hid_t file;
    size_t width[TABLE_COLUMNS_MAX]; /* of texts; 0: other values */
    /* The block: rows [first, first + loaded). */
    uint64_t first;
    unsigned loaded, next_block;
    char *block;                    /* ROWS_BLOCK row structs */
    uint8_t *scratch;               /* one column of it */
    char *text[TABLE_COLUMNS_MAX];  /* rows of width + 1 bytes */
    size_t room[TABLE_COLUMNS_MAX]; /* bytes of `text` */
    char *raw;                      /* a path as bytes */
};

/* Opens GROUP of `file`: every column, with its type and as many rows as `path` has. */
enum status rows_open(struct rows **out, hid_t file, const struct table *table, struct error *err);
void rows_close(struct rows **rows);

/* Row `row` (below `count`): the table's row struct, and the bytes of its path. Both are valid
 * until the next call on the same `rows`. */
enum status rows_at(struct rows *rows, uint64_t row, const void **found, const char **path_raw,
                    struct error *err);

#endif
