/* histogram_tile.h: what the host and the histogram kernels both read. */
#ifndef CLPIPE_KERNELS_HISTOGRAM_TILE_H
#define CLPIPE_KERNELS_HISTOGRAM_TILE_H

#ifdef __OPENCL_VERSION__
#define HISTOGRAM_U32 uint
#else
#include <stdint.h>
#define HISTOGRAM_U32 uint32_t
#endif

/* A rectangle of interleaved RGB pixels, all of one picture and one grid cell. Where a feature has a
 * border, offset is that of the first pixel's first neighbour. */
struct histogram_tile {
    HISTOGRAM_U32 offset;      /* of the first pixel, bytes into the slot */
    HISTOGRAM_U32 stride;      /* bytes from row to row */
    HISTOGRAM_U32 width;       /* pixels a row */
    HISTOGRAM_U32 rows;        /* 0: nothing to count (the picture was given up) */
    HISTOGRAM_U32 counters;    /* of the picture: index of its first counter */
    HISTOGRAM_U32 cell;        /* number of the grid cell */
    HISTOGRAM_U32 cell_tiles;  /* in the first tile of a cell: how many it has; in the others 0 */
    HISTOGRAM_U32 starts_cell; /* 1 in the tile that has the first pixel of its cell */
};

#endif
