/* row_map.h: which row of the existing file each row of the new one was. Calls HDF5: one thread. */
#ifndef CLPIPE_RESULT_ROW_MAP_H
#define CLPIPE_RESULT_ROW_MAP_H

#include "result/prior.h"
#include "result/row_inputs.h"

/* The rows of the file to be written. */
struct new_rows {
    const struct content *content;
    struct row_lists lists;
    const struct row_input *input; /* by the lists' numbers */
    bool codes;                    /* all images have one: /images/code is written */
    struct prior *prior;           /* for reading rows of the log; NULL if it has none */
};

/* A row counts as kept if its image has the same place (source and path) and bytes, and the
 * features common to both files have the same values. */
struct row_map {
    int64_t *earlier; /* for each image: its row in the existing file; -1: new or changed */
    uint64_t rows, fresh, gone;
    bool same; /* every row has its old number; none is new or missing */
};

/* Maps the rows to those of `old`, the existing file. source_now: for each source of `old`, its
 * number in the content, or -1; NULL: the same numbers. there: NULL, or flags for each row of `old`: its
 * place is that of an image (ROW_THERE) or of a failure (ROW_FAILED) of the new file. directory: for
 * temporary files. */
#define ROW_THERE  1
#define ROW_FAILED 2
enum status row_map_make(struct row_map *out, const struct new_rows *rows, struct result *old,
                         const int *source_now, const char *directory, uint8_t *there,
                         struct error *err);
void row_map_clear(struct row_map *map);

/* *same: all rows are those of INPUT_FILE, whose result is `finished`, in its order, so nothing
 * needs to be written. Recomputed rows are compared column by column, except for sizes, times and
 * inodes. */
enum status rows_are_same(bool *same, const struct new_rows *rows, struct result *finished,
                          struct error *err);

#endif
