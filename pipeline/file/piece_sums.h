/* piece_sums.h: the pieces (pieces.h) of datasets whose values pass by in order, before they are in a
 * file. Several threads digest what has come together. One thread calls. */
#ifndef CLPIPE_FILE_PIECE_SUMS_H
#define CLPIPE_FILE_PIECE_SUMS_H

#include "file/pieces.h"

struct piece_sums;

/* For `datasets` datasets, with at most `threads` threads. */
enum status piece_sums_open(struct piece_sums **out, unsigned datasets, unsigned threads, struct error *err);
/* Accepts NULL and NULLs. */
void piece_sums_close(struct piece_sums **sums);

/* The next values of a dataset. */
enum status piece_sums_add(struct piece_sums *sums, unsigned dataset, const void *bytes, size_t size,
                           struct error *err);
/* Call after the last add; the caller clears *pieces. Its rows and row_bytes are not set. */
enum status piece_sums_take(struct piece_sums *sums, unsigned dataset, struct pieces *pieces,
                            struct error *err);

#endif
