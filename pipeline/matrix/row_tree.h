/* row_tree.h: the digest of a matrix, computed of rows in any order by several threads.
 *
 * Rows are taken in pieces of 2^p rows, the largest power of two whose values are at most 1 MiB (at least
 * one row; the last piece may be shorter). The digests of the pieces are the leaves of the tree: SHA-256
 * for the datasets of clpipe's files, the faster MurmurHash3_x64_128 (h1 and h2) for rows of other files,
 * whose digest need not resist attacks. What stands above the leaves is the caller's, but for the rows of
 * other files, row_tree_digest: "rows1-" and the first 58 hexadecimal digits of the SHA-256 of the line
 * "rows float32 ROWS,COLUMNS\n" and the leaves, all little-endian. */
#ifndef CLPIPE_MATRIX_ROW_TREE_H
#define CLPIPE_MATRIX_ROW_TREE_H

#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROW_TREE "rows1-"

enum row_tree_hash { ROW_TREE_MURMUR3, ROW_TREE_SHA256 };

struct row_tree;

/* Rows of a piece. */
uint64_t row_tree_piece(size_t row_bytes);

enum status row_tree_open(struct row_tree **out, enum row_tree_hash hash, uint64_t rows,
                          size_t row_bytes, struct error *err);
void row_tree_close(struct row_tree **tree);

/* Takes rows [first, first + count) from any thread. What was seen before is passed over; a part of a
 * piece counts only if it goes on where an earlier one ended, so that nothing is kept of it. */
void row_tree_add(struct row_tree *tree, uint64_t first, uint64_t count, const void *rows);

/* The pieces that are known, as bytes that another process may continue with: its own tree of the same
 * matrix takes them while nothing is added. A piece that is not whole is read again. */
void *row_tree_state(struct row_tree *tree, size_t *bytes);

/* Forgets all but the whole pieces that begin within these rows, while nothing is added: of the states of
 * processes that keep different rows the sum, byte by byte, is that of all. */
void row_tree_keep(struct row_tree *tree, uint64_t first, uint64_t count);

/* The first rows that are missing, at most a piece; false: there are none. */
bool row_tree_missing(struct row_tree *tree, uint64_t *first, uint64_t *count);

/* Once nothing is missing: the leaves, end to end, 32 or 16 bytes each, which stay the tree's. */
const uint8_t *row_tree_leaves(const struct row_tree *tree, uint64_t *count);
/* And of float32 rows of another file their digest. */
void row_tree_digest(const struct row_tree *tree, char hex[65]);

#endif
