/* all_pairs.h: the nearest rows of every row. */
#ifndef CLPIPE_NEIGHBOURS_ALL_PAIRS_H
#define CLPIPE_NEIGHBOURS_ALL_PAIRS_H

#include "neighbours/block_reader.h"
#include "neighbours/nearest.h"

/* *lists: source->rows x config->n, in order; the caller frees it. out: receives counts and times.
 * Errors are those of neighbours_of_all. */
enum status all_pairs(struct nearest **lists, struct neighbours *out, struct block_reader *reader,
                      struct error *err);

#endif
