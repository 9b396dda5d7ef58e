/* net_part.h: what the host and the kernels of networks both read. */
#ifndef CLPIPE_KERNELS_NET_PART_H
#define CLPIPE_KERNELS_NET_PART_H

#ifdef __OPENCL_VERSION__
#define NET_U32 uint
#define NET_I32 int
#else
#include <stdint.h>
#define NET_U32 uint32_t
#define NET_I32 int32_t
#endif

#define NET_NO_WORDS 0xffffffffu

/* A picture in a slot, and where its words go. */
struct net_part {
    NET_U32 offset; /* of the first pixel, bytes */
    NET_U32 words;  /* index of the first one; NET_NO_WORDS: it was given up */
};

/* A layer (pipeline/net/model.h) for a batch of pictures. Tensor t of picture p begins at byte
 * place[t] + p * bytes[t] of the workspace; bytes are a multiple of 4. */
struct net_shape {
    NET_U32 kind;
    NET_U32 place, bytes, height, width, channels; /* what it makes */
    NET_U32 place_a, bytes_a, height_a, width_a, channels_a, zero_a;
    NET_U32 place_b, bytes_b, zero_b;
    NET_U32 kernel_y, kernel_x, stride_y, stride_x, dilation_y, dilation_x, top, left, groups;
    NET_U32 zero, low, high;
    NET_I32 mul_a, mul_b;
    NET_U32 shift, counts_padding;
    NET_U32 weights, bias, mul, shifts; /* bytes from the begin of the model; tables: weights */
};

#endif
