/* net_part.h: data shared by the host and the network kernels. */
#ifndef CLPIPE_KERNELS_NET_PART_H
#define CLPIPE_KERNELS_NET_PART_H

#include "part_types.h"

#define NET_NO_WORDS 0xffffffffu
#define NET_TAKEN    4 /* pixels that a work-item of net_take copies */

/* A picture in a slot, and where its output goes. */
struct net_part {
    PART_U32 offset; /* byte offset of the first pixel */
    PART_U32 words;  /* index of its first word; NET_NO_WORDS: picture abandoned */
};

/* Kinds of layer, numbered as in the file. */
enum net_kind {
    NET_CONVOLUTION,
    NET_ADD,
    NET_MULTIPLY,
    NET_MAX,
    NET_MEAN,
    NET_SUM,
    NET_TABLE,
    NET_KINDS
};

/* A layer's fields, as in the file (docs/networks.md). */
struct net_fields {
    PART_U32 kind, a, b; /* tensors read; the layer computes tensor number i + 1, i being its own */
    PART_U32 height, width, channels; /* of its output */
    PART_U32 kernel_y, kernel_x, stride_y, stride_x, dilation_y, dilation_x, top, left;
    PART_U32 groups; /* of a convolution; of a table: number of tables, 1 or channels */
    PART_U32 zero, low, high;
    PART_I32 mul_a, mul_b;
    PART_U32 shift, counts_padding;
    PART_U32 nothing[2];
};

/* A launch of one layer; of net_tensor: a convolution, and the addition that follows it, if any. The
 * pictures of a tensor are contiguous. */
struct net_tile {
    PART_U64 place, place_a, place_b; /* byte offsets in the workspace */
    /* And in the packed arrays of net_tensor, or in the model: weights or tables, biases. */
    PART_U32 weights, tails, parameters;
    PART_U32 rows;                              /* WINDOW: pixels, PIXELS: lines, others: pictures */
    PART_U32 pitch, height_a, width_a, pitch_a; /* pitch: bytes per pixel */
    PART_U32 chunks, full, tail; /* of 8 * NT channels; of 64 input channels; bytes left over */
    PART_U32 zero;               /* the zero point of the input in each of 4 bytes */
    PART_I32 added;              /* to the sum of the addition, whose input a is the convolution */
    PART_U32 channels_a, zero_b, nothing;
    struct net_fields f, add; /* f of the picture: its size */
};

#endif
