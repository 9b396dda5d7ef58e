/* code_pairs_shape.h: what the host and code_pairs both read. */
#ifndef CLPIPE_KERNELS_CODE_PAIRS_SHAPE_H
#define CLPIPE_KERNELS_CODE_PAIRS_SHAPE_H

#define PAIR_EVEN  5 /* words of 32 bits: bits that mirroring leaves, filled up with zeros, */
#define PAIR_ODD   4 /* and those that it inverts */
#define PAIR_WORDS (PAIR_EVEN + PAIR_ODD)
#define PAIR_BITS  256 /* of a code */

#define PAIR_ITEMS   128 /* of a work-group */
#define PAIR_TILES   3 /* of 16 rows, of a warp */
/* Rows of a work-group; codes are padded to a multiple. */
#define PAIR_ROWS    (PAIR_ITEMS / 32 * 16 * PAIR_TILES)
#define PAIR_COLUMNS 4096 /* that a work-group compares them with */

/* A found pair: row, column, distance, and 0x10000 where it is to the mirrored code. */
#define PAIR_FOUND 3 /* words */

#endif
