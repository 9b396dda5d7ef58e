/* search.h: what the kernels that find neighbours and their host code agree on. docs/search.md gives the
 * definitions and derives the bounds. */
#ifndef CLPIPE_SEARCH_H
#define CLPIPE_SEARCH_H

/* Columns of 8-bit codes come in blocks of this many bytes; rows are compared with panels of so many
 * lanes by work-groups of so many rows and work-items. */
#define SEARCH_BLOCK 64
#define SEARCH_PANEL 128
#define SEARCH_SPAN  64 /* lanes whose facts are bounded together */
#define SEARCH_ROWS  128
#define SEARCH_ITEMS 128

/* How filter_pairs passes over lanes. */
#define SEARCH_ALL_ROWS  1u
#define SEARCH_BOTH_WAYS 2u

/* Work-items that encode a row, that shorten a list, and that evaluate one. */
#define SEARCH_ENCODE_ITEMS 64
#define SEARCH_SHRINK_ITEMS 64
#define SEARCH_EXACT_ITEMS  128

/* A row's list has at most so much room, and at most so many neighbours are found on a device. */
#define SEARCH_LIST_MOST 1024
#define SEARCH_N_MOST    256

/* As codes.h has them; FAR is also the reach of a row that has none yet, halved. */
#define SEARCH_FAR         1e15f
#define SEARCH_SLACK       0x1p-19f
#define SEARCH_SLACK_LEAST 0x1p-119f
/* The square of a lane that is no row. */
#define SEARCH_NO_ROW 3e38f
#define SEARCH_NONE   0xffffffffu

#endif
