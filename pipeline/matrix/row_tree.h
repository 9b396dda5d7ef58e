/* row_tree.h: the digest of a matrix, computed from rows in any order by several threads.
 *
 * Rows are grouped in pieces of 2^p rows, the largest power of two whose values take at most 1 MiB
 * (at least one row; the last piece may be shorter). The digests of the pieces are the leaves of
 * the tree: SHA-256 for the datasets of clpipe's files, the faster MurmurHash3_x64_128 (h1 and h2)
 * for rows of other files, whose digest need not resist attacks. The levels above are up to the
 * caller, except for rows of other files (row_tree_digest): "rows1-" and the first 58 hexadecimal
 * digits of the SHA-256 of the line "rows float32 ROWS,COLUMNS\n" and the leaves, all
 * little-endian. */
#ifndef CLPIPE_MATRIX_ROW_TREE_H
#define CLPIPE_MATRIX_ROW_TREE_H

#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROW_TREE "rows1-"

enum row_tree_hash { ROW_TREE_MURMUR3, ROW_TREE_SHA256 };

struct row_tree;

/* Rows per piece. */
uint64_t row_tree_piece(size_t row_bytes);

enum status row_tree_open(struct row_tree **out, enum row_tree_hash hash, uint64_t rows,
                          size_t row_bytes, struct error *err);
void row_tree_close(struct row_tree **tree);

/* Adds rows [first, first + count). Thread-safe. Skips rows already added; a part of a piece counts
 * only if it continues where an earlier one ended, so that no rows are stored. */
void row_tree_add(struct row_tree *tree, uint64_t first, uint64_t count, const void *rows);

/* The known pieces, as bytes with which another process can continue: its tree of the same matrix
 * takes them while nothing is added. Incomplete pieces are read again. The bytes belong to the
 * tree. */
void *row_tree_state(struct row_tree *tree, size_t *bytes);

/* Forgets all except the complete pieces that begin within these rows, while nothing is added: the
 * byte-wise sum of the states of processes that keep different rows is that of all. */
void row_tree_keep(struct row_tree *tree, uint64_t first, uint64_t count);

/* The first missing rows, at most a piece; false: none are missing. */
bool row_tree_missing(struct row_tree *tree, uint64_t *first, uint64_t *count);

/* When nothing is missing: the leaves, contiguous, 32 or 16 bytes each; they belong to the tree. */
const uint8_t *row_tree_leaves(const struct row_tree *tree, uint64_t *count);
/* Likewise, the digest of float32 rows of another file. */
void row_tree_digest(const struct row_tree *tree, char hex[65]);

#endif
