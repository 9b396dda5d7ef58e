/* histogram_tile.h: data shared by the host and the histogram kernels. */
#ifndef CLPIPE_KERNELS_HISTOGRAM_TILE_H
#define CLPIPE_KERNELS_HISTOGRAM_TILE_H

#ifdef __OPENCL_VERSION__
#define HISTOGRAM_U32 uint
#else
#include <stdint.h>
#define HISTOGRAM_U32 uint32_t
#endif

/* A rectangle of interleaved RGB pixels of one picture and one grid cell. For features with a
 * border, `offset` is that of the first pixel's upper left neighbour. */
struct histogram_tile {
    HISTOGRAM_U32 offset;      /* byte offset of the first pixel in the slot */
    HISTOGRAM_U32 stride;      /* bytes between rows */
    HISTOGRAM_U32 width;       /* pixels per row */
    HISTOGRAM_U32 rows;        /* 0: nothing to count (picture abandoned) */
    HISTOGRAM_U32 counters;    /* index of the picture's first counter */
    HISTOGRAM_U32 cell;        /* index of the grid cell */
    HISTOGRAM_U32 cell_tiles;  /* in the first tile of a cell: its number of tiles; otherwise 0 */
};

#endif
