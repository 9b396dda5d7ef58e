/* move_rows.h: copies the rows of a new file from logs and other files, with several threads.
 *
 *   list of runs ─> a range of a column, about 1 MiB ─> read from its inputs ─> digested, while it is in
 *                   (any thread takes the next one)                             the cache ─> its place
 *
 * A column has rows of a fixed width, or is a blob column: bytes of any length, end to end, and the end of
 * each row. The bytes written do not depend on the threads. */
#ifndef CLPIPE_RESULT_MOVE_ROWS_H
#define CLPIPE_RESULT_MOVE_ROWS_H

#include "base/watch.h"
#include "matrix/raw_write.h"
#include "matrix/row_tree.h"
#include "result/row_list.h"

struct move_column;

/* A log, or a file. Any thread. */
struct row_input {
    /* Reads rows [first, first + count) of a column, end to end: column->row_bytes each, or blobs.
     * `lengths`, for texts and blobs: the bytes of each of these rows instead, as uint64_t. */
    enum status (*read)(void *context, const struct move_column *column, bool lengths,
                        uint64_t first, uint64_t count, void *to, struct error *err);
    void *context;
};

static inline enum status row_input_read(const struct row_input *input,
                                         const struct move_column *column, bool lengths,
                                         uint64_t first, uint64_t count, void *to,
                                         struct error *err)
{
    return input->read(input->context, column, lengths, first, count, to, err);
}

enum move_kind {
    MOVE_FIXED,
    MOVE_TEXT, /* likewise; its width is that of the longest text, see move_measure */
    MOVE_BLOB,
};

struct move_column {
    enum move_kind kind;
    unsigned number;  /* identifies it to the inputs */
    size_t row_bytes; /* for a blob column 8, that of `end` */
    const void *fill; /* for a row that no input has; NULL: zeros, or an empty blob */
    const struct row_list *list;
    const struct row_input *input; /* indexed by the list's input numbers */
    /* Destinations; in a blob column `to` is for `end` and `data` for the bytes. NULL: skipped. */
    struct raw *to, *data;
    /* Receive the digests of all pieces; NULL: not needed. */
    struct row_tree *tree, *data_tree;
    /* Set by move_measure for texts and blobs: the bytes of all rows, and those before each part of a blob
     * column (the caller frees it). */
    uint64_t bytes, *before;
};

struct move {
    struct move_column *column;
    unsigned columns, threads;
    struct watch watch; /* shows parts of the rows */
};

/* Call it before the datasets are created: sets `bytes` of text and blob columns, and row_bytes of text
 * columns to the length of the longest text, at least 1. */
enum status move_measure(const struct move *move, struct error *err);

/* Writes all rows of all columns, whose datasets must have their space allocated. Meanwhile, HDF5
 * may be used only under its lock (h5_driver.h). STATUS_INTERRUPTED: `stop` was set. */
enum status move_rows(const struct move *move, struct error *err);

#endif
