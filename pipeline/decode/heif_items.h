/* heif_items.h: references between the pictures of a HEIF container, and their transformations.
 * Internal to decode.
 *
 * A picture may be a grid of others, or have another one as its alpha channel, recursively. libheif
 * 1.15 follows cycles of such references endlessly, and does not limit their number. */
#ifndef CLPIPE_DECODE_HEIF_ITEMS_H
#define CLPIPE_DECODE_HEIF_ITEMS_H

#include "base/failure.h"
#include "decode/input.h"
#include <stdbool.h>

/* Replacement for the property lists (box 'ipma') in the file, `size` bytes at offset `at`. libheif
 * applies properties in list order, so a size (ispe) listed after a rotation or crop would be taken
 * as that of the result. */
struct heif_items {
    uint8_t *lists; /* NULL: as in the file */
    uint64_t at;
    size_t size;
    /* For the primary picture. */
    bool turned; /* by 90 or 270 degrees */
    bool hevc;   /* some picture is HEVC */
    int mirror;  /* the primary picture's last transformation, removed from the list because libheif
                 * mirrors 8 bits only: 0 top to bottom, 1 left to right, -1 none */
};

/* Checks references and properties before libheif reads them. The caller frees out->lists. */
enum reason heif_items_read(struct heif_items *out, struct input *input, struct failure *failure);

#endif
