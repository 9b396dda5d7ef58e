/* pieces.h: the values of a dataset in pieces of rows, each with its SHA-256.
 *
 * Pieces are those of row_tree.h; there are none if there are no values. All CPUs read and
 * digest. */
#ifndef CLPIPE_RESULT_PIECES_H
#define CLPIPE_RESULT_PIECES_H

#include "base/hash.h"
#include "result/h5.h"

#define PIECE_DIGEST 32

struct pieces {
    uint64_t count;
    uint8_t (*digest)[PIECE_DIGEST];
    uint64_t rows, piece_rows; /* of the dataset, and of each piece but the last */
    bool known;                /* they need not be computed */
};

/* Data written through HDF5 must have been flushed. STATUS_FAILED: it cannot be read. If chunks are
 * damaged, *pieces has the digests of the readable pieces and zeros for the others, and must be
 * cleared. */
enum status pieces_digest(struct pieces *pieces, hid_t dataset, struct error *err);
void pieces_clear(struct pieces *pieces);

/* The rows of piece `i`. */
void pieces_rows(const struct pieces *pieces, uint64_t i, uint64_t *first, uint64_t *last);

#endif
