/* net_synthetic.h: small networks with random weights, for self-tests: every kind of layer, shapes that
 * no vector divides, zero points and limits of both ends; and every kernel of the device's table. */
#ifndef CLPIPE_NET_NET_SYNTHETIC_H
#define CLPIPE_NET_NET_SYNTHETIC_H

#include "net/model.h"

#define NET_SYNTHETICS 2u

/* Network `which`. Its outputs are "sums" (int32) and "scores" (uint8). Close it with net_model_close. */
enum status net_synthetic(struct net_model **out, unsigned which, uint32_t seed, struct error *err);

#endif
