/* earlier.h: how the rows of the file to be compare with those of the file that is there now. */
#ifndef CLPIPE_RESULT_EARLIER_H
#define CLPIPE_RESULT_EARLIER_H

#include "result/content.h"
#include "result/prior.h"
#include "result/row_inputs.h"

/* The rows to be. */
struct earlier_rows {
    const struct content *content;
    struct row_lists lists;
    struct row_input input[2]; /* that of INPUT_FILE is zeroed where no row lies there */
    bool codes;                /* all images have one */
    struct prior *prior;       /* which reads rows of the log; NULL where no row lies there */
};

/* A row is an earlier one if its image has the same place (source and path) and the same bytes, and
 * the features that both files have the same values. */
struct row_map {
    int64_t *earlier; /* for each image: its row, or -1: it is new or has changed */
    uint64_t rows, fresh, gone;
    bool same; /* every row has its old place, and none is new or missing */
};

/* `old`: the existing file. source_now: of each of its sources the number in the content, or -1; NULL: the
 * same. `there`, unless NULL: per row of `old`, set if an image or a failure takes its place. `directory`: for
 * temporary files. */
#define ROW_THERE  1
#define ROW_FAILED 2
enum status row_map_make(struct row_map *out, const struct earlier_rows *rows, struct result *old,
                         const int *source_now, const char *directory, uint8_t *there,
                         struct error *err);
void row_map_clear(struct row_map *map);

/* *same: all rows are those of INPUT_FILE, whose result is `finished`, in its order, so that
 * nothing needs to be written. Rows computed again are compared column by column, except for the
 * file system's data. */
enum status rows_are_same(bool *same, const struct earlier_rows *rows, struct result *finished,
                          struct error *err);

#endif
