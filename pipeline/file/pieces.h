/* pieces.h: the values of a dataset in pieces of 1 MiB, each with its SHA-256.
 *
 * The values are those of serial.h, in C order and end to end; the last piece may be shorter, and
 * there is none where there are no values. Contiguous numbers, and those
 * that are deflated, are read and digested by all CPUs. */
#ifndef CLPIPE_FILE_PIECES_H
#define CLPIPE_FILE_PIECES_H

#include "file/serial.h"

#define PIECE_BYTES  (1u << 20)
#define PIECE_DIGEST 32

struct pieces {
    uint64_t count;
    uint8_t (*digest)[PIECE_DIGEST];
    /* For pieces_rows. */
    uint64_t rows, row_bytes; /* row_bytes 0: texts of variable length, then: */
    uint64_t *row;            /* where each piece begins */
};

/* What was written to the file through HDF5 must have been flushed. STATUS_FAILED: it cannot be
 * read; a damaged text is named with its row, and of chunks that are damaged *pieces still has the
 * digests of the pieces that can be read, zeros for the others, and is to be cleared. */
enum status pieces_digest(struct pieces *pieces, const struct serial *serial, hid_t dataset,
                          const char *name, const struct serial_values *values, struct error *err);
void pieces_clear(struct pieces *pieces);

/* The rows that piece `i` has bytes of. */
void pieces_rows(const struct pieces *pieces, uint64_t i, uint64_t *first, uint64_t *last);

#endif
