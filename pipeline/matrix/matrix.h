/* matrix.h: rows of float32 values from any source.
 *
 *   npy.h                   a NumPy file
 *   hdf5_matrix.h           a dataset of any HDF5 file
 *   joined.h                the columns of several matrices side by side
 *   result/feature_matrix.h   a feature of a clpipe file, or several joined
 *
 * Each of these fills a struct matrix_source, which its owner closes with matrix_close. */
#ifndef CLPIPE_MATRIX_MATRIX_H
#define CLPIPE_MATRIX_MATRIX_H

#include "base/error.h"
#include "base/stop.h"
#include "matrix/values.h"
#include <stdbool.h>
#include <stdint.h>

struct matrix_source {
    uint64_t rows;
    uint32_t dimension;
    char type[12]; /* type of the values in a foreign file: "float64", "uint8"; else "" */
    /* Reads rows [first, first + count) into `rows`, count x dimension values, row-major: any
     * range, any number of times, by one thread at a time unless `concurrent`. */
    enum status (*read)(void *context, uint64_t first, uint64_t count, float *rows,
                        struct error *err);
    /* Whether a row has no information (features/kind.h); NULL: every row has. */
    bool (*blank)(const void *context, const float *row);
    bool concurrent; /* read() may be called by several threads at once */
    uint64_t piece;  /* rows that one of them reads at a time (matrix_piece); 0: as if copied */
    /* 64 hexadecimal digits that identify names, types and values; NULL: none. */
    enum status (*identity)(void *context, char hex[65], struct error *err);
    /* NULL: nothing to free. */
    void (*close)(void *context);
    void *context;
};

static inline enum status matrix_read(const struct matrix_source *matrix, uint64_t first,
                                      uint64_t count, float *rows, struct error *err)
{
    return matrix->read(matrix->context, first, count, rows, err);
}

static inline bool matrix_is_blank(const struct matrix_source *matrix, const float *row)
{
    return matrix->blank && matrix->blank(matrix->context, row);
}

static inline bool matrix_row_is_zero(const float *row, uint32_t dimension)
{
    uint32_t zeros = 0;
    while (zeros < dimension && row[zeros] == 0)
        zeros++;
    return zeros == dimension;
}

/* Rows of another matrix, by their numbers: what `context` of such a source points to. */
struct matrix_list {
    const struct matrix_source *all;
    const uint64_t *row; /* ascending, so that neighbours are read together */
};
/* `list` and its inputs must stay valid until the last read. */
void matrix_list_source(struct matrix_source *out, struct matrix_list *list, uint64_t count);

/* Rows in memory, which their owner keeps: `context` points to this struct. */
struct matrix_memory {
    const void *values; /* row 0, column 0 */
    uint32_t dimension;
    struct value_format format;        /* zeroed: float32; in the order of the host */
    int64_t row_stride, column_stride; /* bytes, may be negative; 0: no gaps */
};
/* Replaces members that are 0 with their defaults. */
void matrix_memory_source(struct matrix_source *out, struct matrix_memory *memory, uint64_t rows);

/* Sets the type: kind 'f', 'i' or 'u', and the bytes of a value. */
void matrix_set_type(struct matrix_source *matrix, char kind, size_t bytes);

/* Closes and zeroes it; accepts a zeroed one. */
void matrix_close(struct matrix_source *matrix);

/* The number of rows that fit a buffer of a few megabytes; at least 1. */
uint64_t matrix_rows_at_once(const struct matrix_source *matrix);

/* The number of rows that one of several threads reads at a time: whole pieces of a digest. */
uint64_t matrix_piece(const struct matrix_source *matrix);

/* Reads all rows in such pieces, by up to `threads` threads (at least 1) if the matrix is concurrent. take:
 * gets each piece, on any of them; NULL: reading is all. stop may be NULL. */
enum status matrix_each(const struct matrix_source *matrix, unsigned threads, struct stop *stop,
                        void (*take)(void *context, uint64_t first, uint64_t count,
                                     const float *rows),
                        void *context, struct error *err);

/* All values of a matrix of one column, or of one row; the caller frees them. `name` is for
 * messages. STATUS_FAILED: it has several columns and several rows. */
enum status matrix_column(float **values, const struct matrix_source *matrix, const char *name,
                          struct error *err);

/* Counts distinct rows, up to `most`, except those beginning with NaN. roots: of square roots. */
enum status matrix_distinct(uint32_t *distinct, const struct matrix_source *matrix, uint32_t most,
                            bool roots, struct error *err);

#endif
