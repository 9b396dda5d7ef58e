/* search.h: constants shared by the neighbour search kernels and their host code. docs/search.md
 * gives the definitions and derives the bounds. */
#ifndef CLPIPE_SEARCH_H
#define CLPIPE_SEARCH_H

/* 8-bit codes are stored in blocks of SEARCH_BLOCK columns. A work-group of SEARCH_ITEMS work-items
 * compares SEARCH_ROWS rows with one panel of SEARCH_PANEL lanes at a time. */
#define SEARCH_BLOCK 64
#define SEARCH_PANEL 128
#define SEARCH_SPAN  64 /* lanes that share one bound */
#define SEARCH_ROWS  128
#define SEARCH_ITEMS 128

/* Flags of filter_pairs. */
#define SEARCH_ALL_ROWS  1u
#define SEARCH_BOTH_WAYS 2u

/* Work-items that encode one row, shorten one list, and evaluate one list. */
#define SEARCH_ENCODE_ITEMS 64
#define SEARCH_SHRINK_ITEMS 64
#define SEARCH_EXACT_ITEMS  128

/* Maximum capacity of a row's list, and maximum number of neighbours found on a device. */
#define SEARCH_LIST_MOST 1024
#define SEARCH_N_MOST    256

/* As in codes.h; FAR, halved, is also the reach of a row that has none yet. */
#define SEARCH_FAR         1e15f
#define SEARCH_SLACK       0x1p-19f
#define SEARCH_SLACK_LEAST 0x1p-119f
/* The square of a lane without a row. */
#define SEARCH_NO_ROW 3e38f
#define SEARCH_NONE   0xffffffffu

#endif
