/* device_pairs.h: the nearest rows of every row, on a device with float64.
 *
 * Blocks of query rows are compared with blocks of rows, all of them encoded on the device. Rows
 * whose lists overflow even when started with a known reach are left to the caller. */
#ifndef CLPIPE_NEIGHBOURS_DEVICE_PAIRS_H
#define CLPIPE_NEIGHBOURS_DEVICE_PAIRS_H

#include "neighbours/block_reader.h"
#include "neighbours/nearest.h"
#include <stdbool.h>

/* Whether to use a device: n is at most SEARCH_N_MOST, and it is a GPU with float64 and tensor
 * cores usable through inline PTX or, if a test requests it, any device with float64. */
bool device_pairs_pays(const struct neighbours_config *config);

/* lists: source->rows x config->n, all of which are written. again: the *count rows with more similar
 * rows than any list holds, whose neighbours are unknown; the caller frees it. Errors are those of
 * neighbours_find. */
enum status device_pairs(struct nearest *lists, uint64_t **again, uint32_t *count,
                         struct neighbours *out, struct block_reader *reader, struct error *err);

#endif
