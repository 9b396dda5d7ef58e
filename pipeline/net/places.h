/* places.h: which memory the tensors of a network share. */
#ifndef CLPIPE_NET_PLACES_H
#define CLPIPE_NET_PLACES_H

#include "net/model.h"

/* How many layers and outputs read a tensor, and the last tensor that is made while it is needed. */
struct net_reading {
    uint32_t count, last;
};

/* of: one per tensor of the model. */
void net_count_readers(struct net_reading *of, const struct net_model *model);

/* Finds the lowest free place for each of `count` tensors, `room` bytes of memory, over the layers
 * that need it. Returns the end of the last one. */
size_t net_find_places(size_t *place, const size_t *room, const struct net_reading *of,
                       uint32_t count);

#endif
