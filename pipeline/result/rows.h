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

struct rows;

/* Opens GROUP of `file`: every column, with its type and as many rows as `path` has. */
enum status rows_open(struct rows **out, hid_t file, const struct table *table, struct error *err);
void rows_close(struct rows **rows);

uint64_t rows_count(const struct rows *rows);

/* Row `row` (below rows_count): the table's row struct, and the bytes of its path. Both are valid
 * until the next call on the same `rows`. */
enum status rows_at(struct rows *rows, uint64_t row, const void **found, const char **path_raw,
                    struct error *err);

/* The dataset of a column, for checks; not positive if an optional one is missing. */
hid_t rows_dataset(const struct rows *rows, unsigned column);

#endif
