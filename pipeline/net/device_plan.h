/* device_plan.h: how an OpenCL device computes a network: offsets of tensors, layers with kernels
 * of net_tensor instead of the plain ones, and weights in the order in which these kernels read
 * them.
 *
 * Pixels have 4 bytes, or a multiple of 16 for more than 4 channels; the padding is undefined. The
 * tensors of a batch are contiguous. Tensors that are not needed at the same time may share
 * memory. */
#ifndef CLPIPE_NET_DEVICE_PLAN_H
#define CLPIPE_NET_DEVICE_PLAN_H

#include "base/held.h"
#include "net/model.h"
#include "net_part.h"

#define NET_OPTIONS  288u
#define NET_NO_LAYER UINT32_MAX

/* The kernels of net_tensor. */
enum net_tile_kind { NET_TILE_NONE, NET_TILE_WINDOW, NET_TILE_PIXELS, NET_TILE_DEPTHWISE };

struct net_plan_layer {
    /* The convolution that is computed: the layer itself, or one fused into this addition, which
     * has no launch itself. */
    uint32_t convolution;
    bool is_made_later;
    enum net_tile_kind kind; /* NONE: by plain kernels */
    unsigned variant;
    struct net_tile tile;   /* for one picture */
    uint32_t rows, columns; /* per work-group: rows as in the tile; pixels */
    uint32_t warps;         /* per work-group */
};

/* A program of net_tensor. */
struct net_variant {
    const char *kernel;
    char options[NET_OPTIONS];
};

struct net_plan {
    const struct net_model *model;
    struct held held; /* the arrays but `packed` */
    size_t *place;    /* per tensor, for one picture */
    uint64_t bytes;   /* of all tensors */
    struct net_plan_layer *layers;
    struct net_variant *variants;
    unsigned variant_count;
    uint8_t *packed; /* weights and parameters; NULL: all layers use plain kernels */
    size_t packed_bytes;
};

/* tiles: begin of the compiler's options for net_tensor; NULL: only plain kernels, with the same
 * offsets. STATUS_FAILED: memory. */
enum status net_plan_open(struct net_plan *plan, const struct net_model *model, const char *tiles,
                          struct error *err);
void net_plan_close(struct net_plan *plan); /* accepts a zeroed struct */

/* Bytes per tensor of one picture. */
size_t net_plan_bytes(const struct net_tensor *tensor);

/* The layer that computes tensor `tensor`, as the plain kernels read it; tensor 0: the picture. */
struct net_shape net_plan_shape(const struct net_plan *plan, uint32_t tensor);

/* The number of work-groups for `pictures`, and their tile in a workspace for `batch` pictures. */
size_t net_plan_launch(struct net_tile *tile, const struct net_plan *plan, uint32_t layer,
                       uint32_t pictures, uint32_t batch);

#endif
