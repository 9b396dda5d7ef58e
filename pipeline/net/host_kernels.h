/* host_kernels.h: products of a network's convolutions on this processor, in exact integers.
 *
 * Channels are taken in blocks, whose weights, biases, multipliers and shifts lie in the order in which
 * a variant's vectors take them. A panel holds the inputs of some output pixels, one row for each. */
#ifndef CLPIPE_NET_HOST_KERNELS_H
#define CLPIPE_NET_HOST_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOST_CHANNELS 64u /* of a block, at most */
#define HOST_SLACK    64u /* bytes past what is read, in panels and tensors, that may be read, too */
#define HOST_TILE     14u /* pixels of a tile, at most */

/* Of the sum of a channel: requantised + zero = (mul_hi(sum << pre, mul) + add) >> shift. */
struct host_parameters {
    int32_t bias[HOST_CHANNELS], mul[HOST_CHANNELS], add[HOST_CHANNELS], shift[HOST_CHANNELS],
        pre[HOST_CHANNELS];
};

struct host_block {
    const void *weights; /* steps x vectors x lanes x step values; aligned to 64 */
    const struct host_parameters *parameters;
    unsigned vectors, count; /* channels that are stored: the first of lanes x vectors */
    bool shifts_first;       /* a `pre` is not 0 */
    uint8_t low, high;
};

/* pixels rows of a panel times a block. */
struct host_multiply {
    const void *panel;
    size_t stride, steps; /* bytes from row to row; steps of k */
    unsigned pixels;
    uint8_t *const *out; /* where the pixel's channels begin */
    size_t first;        /* channel of the block */
    struct host_block block;
};

/* A row of pixels of a depthwise convolution. */
struct host_depthwise {
    const uint8_t *in;  /* the first tap of the first pixel, at the block's first channel */
    size_t step;        /* bytes from one pixel's first tap to the next one's */
    const size_t *taps; /* steps x step places, counted from the first tap */
    size_t steps;
    unsigned pixels;
    uint8_t *out;
    size_t out_step;
    struct host_block block;
};

struct host_kernels {
    const char *name;
    unsigned lanes, vectors; /* of a block, at most; depthwise: always so many vectors */
    unsigned step;           /* values of k, or taps, that are multiplied at a time */
    unsigned value;          /* bytes of a value in panels and weights: 1 or 2 */
    /* The block's channel in a lane of a vector. */
    unsigned (*channel)(unsigned vectors, unsigned vector, unsigned lane);
    bool (*runs)(void);
    /* Copies bytes to a panel; may write up to 15 values past them. */
    void (*copy)(void *to, const uint8_t *from, size_t count);
    void (*multiply)(const struct host_multiply *m);
    void (*depthwise)(const struct host_depthwise *d);
};

/* The best that this processor runs, or the one of this name; NULL: it does not run here. */
const struct host_kernels *host_kernels_choose(const char *name);

/* All names, best first, whether they run here or not; NULL from the last on. */
const char *host_kernels_name(unsigned i);

#endif
