/* host_pairs.h: the nearest rows of every row, by the host's threads.
 *
 * Each pair of rows is looked at once, for both of them. Products of 8-bit codes (codes.h) tell which
 * pairs may be among the nearest of either row so far; of these the difference in float32, and where
 * that leaves doubt the canonical distance decides. Rows that memory does not hold are read again,
 * block by block. */
#ifndef CLPIPE_SEARCH_HOST_PAIRS_H
#define CLPIPE_SEARCH_HOST_PAIRS_H

#include "search/block_reader.h"
#include "search/nearest.h"

/* lists: source->rows x config->n, which begin as nearest_init makes them. */
enum status host_pairs(struct nearest *lists, struct neighbours *out, struct block_reader *reader,
                       struct error *err);

#endif
