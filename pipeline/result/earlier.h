/* earlier.h: compares the rows of the new file with those of the existing one. */
#ifndef CLPIPE_RESULT_EARLIER_H
#define CLPIPE_RESULT_EARLIER_H

#include "result/content.h"
#include "result/prior.h"
#include "result/row_inputs.h"

/* The rows of the new file. */
struct earlier_rows {
    const struct content *content;
    struct row_lists lists;
    struct row_input input[2]; /* that of INPUT_FILE is zeroed if it has no rows */
    bool codes;                /* all images have one */
    struct prior *prior;       /* for reading rows of the log; NULL if it has none */
};

/* A row counts as kept if its image has the same place (source and path) and bytes, and the
 * features common to both files have the same values. */
struct row_map {
    int64_t *earlier; /* for each image: its row in the existing file; -1: new or changed */
    uint64_t rows, fresh, gone;
    bool same; /* every row has its old number; none is new or missing */
};

/* `old`: the existing file. source_now: for each of its sources, the number in the content, or -1; NULL: the
 * same numbers. `there`, unless NULL: per row of `old`, set if an image or failure of the new file has its
 * place. `directory`: for temporary files. */
#define ROW_THERE  1
#define ROW_FAILED 2
enum status row_map_make(struct row_map *out, const struct earlier_rows *rows, struct result *old,
                         const int *source_now, const char *directory, uint8_t *there,
                         struct error *err);
void row_map_clear(struct row_map *map);

/* *same: all rows are those of INPUT_FILE, whose result is `finished`, in its order, so that
 * nothing needs to be written. Recomputed rows are compared column by column, except for the file
 * system's data. */
enum status rows_are_same(bool *same, const struct earlier_rows *rows, struct result *finished,
                          struct error *err);

#endif
