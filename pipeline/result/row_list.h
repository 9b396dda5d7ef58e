/* row_list.h: maps each row of a new file to a row of an input: runs of rows in an unnamed file, so that
 * memory does not grow with their number. */
#ifndef CLPIPE_RESULT_ROW_LIST_H
#define CLPIPE_RESULT_ROW_LIST_H

#include "base/error.h"
#include "result/record.h"
#include <stdbool.h>
#include <stdint.h>

#define ROW_LIST_NONE UINT32_MAX /* as input: rows missing in all inputs */

struct row_run {
    uint64_t row;   /* first row of the new file */
    uint64_t first; /* of the input */
    uint64_t count;
    uint32_t input;
};

struct row_list;

/* An empty list, whose file is in `directory`. */
enum status row_list_open(struct row_list **out, const char *directory, struct error *err);
/* Appends the next rows, of an input or of ROW_LIST_NONE. One thread. */
enum status row_list_add(struct row_list *list, uint32_t input, uint64_t first, uint64_t count,
                         struct error *err);
/* Call it after the last row; any thread may call the following functions. */
enum status row_list_finish(struct row_list *list, struct error *err);
void row_list_close(struct row_list **list);

uint64_t row_list_rows(const struct row_list *list);
uint64_t row_list_runs(const struct row_list *list);
struct row_run row_list_at(const struct row_list *list, uint64_t run);
/* The number of the run that contains a row. */
uint64_t row_list_find(const struct row_list *list, uint64_t row);

/* The rows of both tables of a file made from logs and a finished file. */
enum { INPUT_LOG, INPUT_FILE };
struct row_lists {
    struct row_list *images, *failures;
};
/* Close them even after a failure. */
enum status row_lists_open(struct row_lists *out, const char *directory, struct error *err);
/* Appends the row at that location (record.h). */
enum status row_lists_add(struct row_lists *lists, uint64_t location, struct error *err);
enum status row_lists_finish(struct row_lists *lists, struct error *err);
void row_lists_close(struct row_lists *lists);

#endif
