/* net_synthetic.h: a small network with random weights, for self-tests: all kinds of layer, shapes
 * that no vector size divides, extreme zero points and limits, and every kernel of the device's
 * table. */
#ifndef CLPIPE_NET_NET_SYNTHETIC_H
#define CLPIPE_NET_NET_SYNTHETIC_H

#include "net/model.h"

/* Its outputs are "sums" (int32) and "scores" (uint8). Close it with net_model_close.
 * STATUS_FAILED: out of memory. */
enum status net_synthetic(struct net_model **out, struct error *err);

#endif
