/* heif_items.h: which pictures of a HEIF container are made of which. Inside decode.
 *
 * A picture may be a grid of others, or have another one as its alpha channel, and these may be
 * made of further ones. libheif 1.15 follows such references for ever where they go in a circle,
 * and as often as they multiply. */
#ifndef CLPIPE_DECODE_HEIF_ITEMS_H
#define CLPIPE_DECODE_HEIF_ITEMS_H

#include "base/failure.h"
#include "decode/input.h"

/* Looks at the references before libheif does. */
enum reason heif_items_check(struct input *input, uint64_t file_bytes, struct failure *failure);

#endif
