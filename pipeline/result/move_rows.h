/* move_rows.h: the rows of a file that is being written, from wherever they lie, by several threads.
 *
 *   list of runs ─> a range of a column, about 4 MiB ─> read from its inputs ─> digested, while it is in
 *                   (any thread takes the next one)                             the cache ─> its place
 *
 * A column has rows of a fixed width, or is a blob column: bytes of any length, end to end, and where each
 * row ends. The bytes that are written do not depend on the threads. */
#ifndef CLPIPE_RESULT_MOVE_ROWS_H
#define CLPIPE_RESULT_MOVE_ROWS_H

#include "base/stop.h"
#include "matrix/raw_write.h"
#include "matrix/row_tree.h"
#include "result/row_list.h"

struct move_column;

/* A log, or a file. Any thread. */
struct row_input {
    /* Rows [first, first + count) of a column, end to end: column->row_bytes each, or blobs. */
    enum status (*read)(void *context, const struct move_column *column, uint64_t first,
                        uint64_t count, void *rows, struct error *err);
    /* How many bytes each of these rows of a text or blob column has. */
    enum status (*lengths)(void *context, const struct move_column *column, uint64_t first,
                           uint64_t count, uint64_t *lengths, struct error *err);
    void *context;
};

enum move_kind {
    MOVE_FIXED,
    MOVE_TEXT, /* the same; its width is that of its longest text, see move_measure */
    MOVE_BLOB,
};

struct move_column {
    enum move_kind kind;
    unsigned number;  /* by which the inputs know it */
    size_t row_bytes; /* of a blob column: 8, those of `end` */
    const void *fill; /* a row that no input has; NULL: zeros, or an empty blob */
    const struct row_list *list;
    const struct row_input *input; /* by the numbers that the list has */
    /* Of a blob column where `end` goes, and its bytes. One that was not opened is passed over. */
    struct raw_write to, data;
    /* Get the digests of all pieces; NULL: none are needed. */
    struct row_tree *tree, *data_tree;
    /* By move_measure, of texts and blobs: the bytes of all rows; those before each part of a blob column,
     * to be freed. */
    uint64_t bytes, *before;
};

struct move {
    struct move_column *column;
    unsigned columns, threads;
    struct stop *stop; /* may be NULL */
    /* Of `total`, called by the caller's thread; may be NULL. */
    void (*progress)(void *context, uint64_t done, uint64_t total);
    void *context;
};

/* Rows [first, first + count) of the list, which are no blobs, or the lengths of texts and blobs. */
enum status move_read(const struct move_column *column, uint64_t first, uint64_t count, void *rows,
                      struct error *err);
enum status move_lengths(const struct move_column *column, uint64_t first, uint64_t count,
                         uint64_t *lengths, struct error *err);

/* Before the datasets are created: sets `bytes` of text and blob columns, and of texts row_bytes to the
 * length of the longest one, at least 1. */
enum status move_measure(const struct move *move, struct error *err);

/* Writes all rows of all columns, whose datasets must have their space allocated. HDF5 may be used
 * meanwhile only under its lock (h5_driver.h). STATUS_INTERRUPTED: `stop` was set. */
enum status move_rows(const struct move *move, struct error *err);

#endif
