/* host_pairs.h: the nearest rows of every row, on the host's threads.
 *
 * Each pair of rows is considered once, for both rows. Products of 8-bit codes (codes.h) tell which
 * pairs may be among the nearest so far of either row; for these the float32 distance is computed
 * and, if that leaves doubt, the canonical distance. Rows that do not fit in memory are read again,
 * block by block. */
#ifndef CLPIPE_NEIGHBOURS_HOST_PAIRS_H
#define CLPIPE_NEIGHBOURS_HOST_PAIRS_H

#include "neighbours/block_reader.h"
#include "neighbours/nearest.h"

/* lists: source->rows x config->n, initialised by nearest_init. Errors are those of
 * neighbours_find. */
enum status host_pairs(struct nearest *lists, struct neighbours *out, struct block_reader *reader,
                       struct error *err);

#endif
