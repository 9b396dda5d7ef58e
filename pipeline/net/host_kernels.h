/* host_kernels.h: products of a network's convolutions on the CPU, in exact integers.
 *
 * Channels are processed in blocks, whose weights, biases, multipliers and shifts are in the order
 * of a variant's vectors. A panel holds the inputs of some output pixels, one row each. */
#ifndef CLPIPE_NET_HOST_KERNELS_H
#define CLPIPE_NET_HOST_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOST_CHANNELS 64u /* per block, at most */
#define HOST_SLACK    64u /* bytes past the end of panels and tensors that may be read */
#define HOST_TILE     14u /* pixels per tile, at most */

/* Per channel: requantised + zero = (mul_hi(sum << pre, mul) + add) >> shift. */
struct host_parameters {
    int32_t bias[HOST_CHANNELS], mul[HOST_CHANNELS], add[HOST_CHANNELS], shift[HOST_CHANNELS],
        pre[HOST_CHANNELS];
};

struct host_block {
    const void *weights; /* steps x vectors x lanes x step values; aligned to 64 */
    const struct host_parameters *parameters;
    size_t first;            /* channel of the layer */
    unsigned vectors, count; /* channels stored: the first of lanes x vectors */
    uint8_t low, high;
};

/* Computes a block's channels of some output pixels. */
struct host_work {
    const uint8_t *panel;     /* a row for each pixel, `stride` bytes apart */
    const uint8_t *const *in; /* of a depthwise convolution instead: the first tap of each pixel */
    size_t stride;
    const size_t *taps; /* steps x step offsets from the first one */
    size_t steps;       /* of k, or of taps */
    unsigned pixels;
    uint8_t *const *out; /* per pixel: where the layer's channels begin */
    const struct host_block *block;
};

struct host_kernels {
    const char *name;
    unsigned lanes, vectors; /* vectors per block, at most */
    unsigned across;         /* vectors per block of depthwise convolutions */
    unsigned step;           /* values of k, or taps, multiplied at a time */
    unsigned value;          /* bytes per value in panels and weights: 1 or 2 */
    bool (*runs)(void);      /* NULL: everywhere */
    /* Copies bytes to a panel; may write up to 15 values past the end. */
    void (*copy)(void *to, const uint8_t *from, size_t count);
    void (*multiply)(const struct host_work *w);
    void (*depthwise)(const struct host_work *w);
};

/* The best variant for this CPU, or the one named; NULL: this CPU does not support it. */
const struct host_kernels *host_kernels_choose(const char *name);

#endif
