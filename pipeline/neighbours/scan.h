/* scan.h: the nearest rows of a few queries, compared with all rows by the canonical distance. */
#ifndef CLPIPE_NEIGHBOURS_SCAN_H
#define CLPIPE_NEIGHBOURS_SCAN_H

#include "neighbours/block_reader.h"
#include "neighbours/nearest.h"

/* lists: count x n, in order. queries: count x stride values in the metric's space; own: the row
 * number of each query, NEAREST_NONE for none; NULL: no query is a row. *compared: adds the number
 * of pairs. Errors are those of neighbours_find. */
enum status scan_rows(struct nearest *lists, struct block_reader *reader, const float *queries,
                      const uint32_t *own, uint32_t count, uint64_t *compared, struct error *err);

#endif
