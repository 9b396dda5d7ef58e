/* device_pairs.h: the nearest rows of every row, by a device with float64.
 *
 * Blocks of rows are searched for among blocks of rows, each on the device, encoded there. Rows whose
 * lists were too short even with a reach from all rows are left to the host. */
#ifndef CLPIPE_SEARCH_DEVICE_PAIRS_H
#define CLPIPE_SEARCH_DEVICE_PAIRS_H

#include "search/block_reader.h"
#include "search/nearest.h"
#include <stdbool.h>

/* Whether a device is used: a GPU with float64 and tensor cores that inline PTX reaches, or any with
 * float64 that a test asks for; n: of the neighbours. */
bool device_pairs_pays(const struct neighbours_config *config);

/* lists: source->rows x config->n; every one is written. */
enum status device_pairs(struct nearest *lists, struct neighbours *out, struct block_reader *reader,
                         struct error *err);

#endif
