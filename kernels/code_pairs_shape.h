/* code_pairs_shape.h: constants shared by the host and code_pairs. */
#ifndef CLPIPE_KERNELS_CODE_PAIRS_SHAPE_H
#define CLPIPE_KERNELS_CODE_PAIRS_SHAPE_H

#define PAIR_EVEN  5 /* 32-bit words of bits that mirroring preserves, padded with zeros, */
#define PAIR_ODD   4 /* and of bits that it inverts */
#define PAIR_WORDS (PAIR_EVEN + PAIR_ODD)
#define PAIR_BITS  256 /* bits in a code */

#define PAIR_ITEMS   128 /* work-items in a work-group */
#define PAIR_TILES   3 /* tiles of 16 rows that a warp takes */
/* Rows that a work-group takes; the number of codes is padded to a multiple. */
#define PAIR_ROWS    (PAIR_ITEMS / 32 * 16 * PAIR_TILES)
#define PAIR_COLUMNS 4096 /* columns that a work-group compares its rows with */

/* A pair found: row, column, and distance, with bit 0x10000 set if the mirrored code matched. */
#define PAIR_FOUND 3 /* 32-bit words per pair */

#endif
