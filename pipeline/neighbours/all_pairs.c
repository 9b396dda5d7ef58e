/* all_pairs.c: chooses where pairs of rows are compared. */
#include "neighbours/all_pairs.h"
#include "neighbours/device_pairs.h"
#include "neighbours/host_pairs.h"
#include <stdlib.h>

enum status all_pairs(struct nearest **lists, struct neighbours *out, struct block_reader *reader,
                      struct error *err)
{
    const size_t count = (size_t)reader->source->rows * reader->config->n;
    *lists = malloc(count * sizeof **lists);
    if (!*lists)
        return error_memory(err, count * sizeof **lists, "neighbours");
    if (device_pairs_pays(reader->config))
        return device_pairs(*lists, out, reader, err);
    nearest_init(*lists, count);
    return host_pairs(*lists, out, reader, err);
}
