/* row_list.h: maps each row of a new file to a row of an input, as runs of rows. */
#ifndef CLPIPE_RESULT_ROW_LIST_H
#define CLPIPE_RESULT_ROW_LIST_H

#include "base/error.h"
#include "result/record.h"
#include <stdint.h>

#define ROW_LIST_NONE UINT32_MAX /* as input: rows missing in all inputs */

struct row_run {
    uint64_t row;   /* first row of the new file */
    uint64_t first; /* of the input */
    uint64_t count;
    uint32_t input;
};

/* Zeroed: an empty one. Any thread may read it when it is complete. */
struct row_list {
    struct row_run *run;
    uint64_t runs, rows;
};

/* Appends the next rows, of an input or of ROW_LIST_NONE. */
enum status row_list_add(struct row_list *list, uint32_t input, uint64_t first, uint64_t count,
                         struct error *err);
/* The number of the run that contains a row. */
uint64_t row_list_find(const struct row_list *list, uint64_t row);
void row_list_clear(struct row_list *list);

/* The rows of both tables of a file made from logs and a finished file. */
enum { INPUT_LOG, INPUT_FILE };
struct row_lists {
    struct row_list images, failures;
};
/* Appends the row at that location (record.h). */
enum status row_lists_add(struct row_lists *lists, uint64_t location, struct error *err);
void row_lists_clear(struct row_lists *lists);

#endif
