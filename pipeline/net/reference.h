/* reference.h: the plain C reference of a network's layers, which every engine is compared with. */
#ifndef CLPIPE_NET_REFERENCE_H
#define CLPIPE_NET_REFERENCE_H

#include "net/model.h"

/* (sum * mul + 2^(shift - 1)) >> shift; shift is 24 to 54. */
static inline int64_t net_requantise(int32_t sum, int32_t mul, int32_t shift)
{
    return ((int64_t)sum * mul + ((int64_t)1 << (shift - 1))) >> shift;
}

static inline uint8_t net_clamp(const struct net_fields *f, int64_t value)
{
    value += f->zero;
    return (uint8_t)(value < f->low ? f->low : value > f->high ? f->high : value);
}

/* The mean of `taps` values, with the rounding of all network means. */
static inline uint8_t net_mean(const struct net_fields *f, int64_t sum, int64_t taps)
{
    const int64_t above = 2 * sum * f->mul_a + (taps << f->shift), below = taps << (f->shift + 1);
    return net_clamp(f, above / below - (above % below < 0));
}

/* Computes layer i for one picture: tensor i + 1 from tensors[a] and tensors[b], densely packed. */
void net_reference_layer(const struct net_model *model, uint32_t i, void *const *tensors);

#endif
