/* heif_items.h: which pictures of a HEIF container are made of which, and how they are turned. Inside
 * decode.
 *
 * A picture may be a grid of others, or have another one as its alpha channel, and these may be
 * made of further ones. libheif 1.15 follows such references for ever where they go in a circle,
 * and as often as they multiply. */
#ifndef CLPIPE_DECODE_HEIF_ITEMS_H
#define CLPIPE_DECODE_HEIF_ITEMS_H

#include "base/failure.h"
#include "decode/input.h"
#include <stdbool.h>

/* The lists of properties (box 'ipma') as libheif is to read them, instead of `size` bytes of the file
 * from `at` on: it takes them in their order, and a size (ispe) that is listed behind what turns or
 * crops the picture would be that of the result. */
struct heif_items {
    uint8_t *lists; /* NULL: as they are in the file */
    uint64_t at;
    size_t size;
    /* Of the primary picture. */
    bool turned; /* by 90 or 270 degrees */
    bool hevc;   /* some picture is */
    int mirror; /* what its last transformation, taken out of the list because libheif mirrors 8 bits
                    only, is to swap: 0 top and bottom, 1 left and right; -1: nothing */
};

/* Looks at references and properties before libheif does; free out->lists. */
enum reason heif_items_read(struct heif_items *out, struct input *input, uint64_t file_bytes,
                            struct failure *failure);

#endif
