/* histogram_tile.h: data shared by the host and the histogram kernels. */
#ifndef CLPIPE_KERNELS_HISTOGRAM_TILE_H
#define CLPIPE_KERNELS_HISTOGRAM_TILE_H

#include "part_types.h"

/* A rectangle of interleaved RGB pixels of one picture and one grid cell. For features with a
 * border, `offset` is that of the first pixel's upper left neighbour. */
struct histogram_tile {
    PART_U32 offset;      /* byte offset of the first pixel in the slot */
    PART_U32 stride;      /* bytes between rows */
    PART_U32 width;       /* pixels per row */
    PART_U32 rows;        /* 0: nothing to count (picture abandoned) */
    PART_U32 counters;    /* index of the picture's first counter */
    PART_U32 cell;        /* index of the grid cell */
    PART_U32 cell_tiles;  /* in the first tile of a cell: its number of tiles; otherwise 0 */
};

#endif
