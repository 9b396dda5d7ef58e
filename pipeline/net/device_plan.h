/* device_plan.h: how an OpenCL device computes a network: where tensors lie, which layers have kernels of
 * net_tensor instead of the plain ones, and the weights in the order in which these read them.
 *
 * Pixels have 4 bytes, or a multiple of 16 for more than 4 channels; what fills them is any value. The
 * tensors of a batch lie side by side. Those that are not needed at the same time may share a place. */
#ifndef CLPIPE_NET_DEVICE_PLAN_H
#define CLPIPE_NET_DEVICE_PLAN_H

#include "net/model.h"
#include "net_part.h"

#define NET_OPTIONS  224u
#define NET_NO_LAYER UINT32_MAX

/* The kernels of net_tensor. */
enum net_tile_kind { NET_TILE_NONE, NET_TILE_WINDOW, NET_TILE_PIXELS, NET_TILE_DEPTHWISE };

struct net_plan_layer {
    enum net_tile_kind kind;
    unsigned variant;       /* of net_tensor */
    struct net_tile tile;   /* for one picture */
    uint32_t rows, columns; /* of what a work-group makes: rows as in the tile; pixels */
    uint32_t warps;         /* of a work-group */
    /* The convolution that the kernel of this addition makes with it; that has no launch of its own. */
    uint32_t convolution;
    bool is_made_later;
};

struct net_plan {
    const struct net_model *model;
    size_t *place;  /* of each tensor of a picture */
    uint64_t bytes; /* of all of them */
    struct net_plan_layer *layers;
    char (*variants)[NET_OPTIONS]; /* compiler options */
    unsigned variant_count;
    uint8_t *packed; /* weights and parameters; NULL: all layers have plain kernels */
    size_t packed_bytes;
};

/* has_tiles: with kernels of net_tensor. Places do not depend on it. */
enum status net_plan_open(struct net_plan *plan, const struct net_model *model, bool has_tiles,
                          struct error *err);
void net_plan_close(struct net_plan *plan); /* accepts zeros */

/* Bytes of a pixel, and of a tensor of one picture. */
uint32_t net_plan_pitch(const struct net_tensor *tensor);
size_t net_plan_bytes(const struct net_tensor *tensor);

/* A layer, which makes tensor `tensor`, as the plain kernels read it; of tensor 0: the picture. */
struct net_shape net_plan_shape(const struct net_plan *plan, uint32_t tensor);

/* Work-groups for `pictures`, and the tile of them in a workspace for `batch` pictures. */
size_t net_plan_launch(struct net_tile *tile, const struct net_plan *plan, uint32_t layer,
                       uint32_t pictures, uint32_t batch);

const char *net_plan_kernel(enum net_tile_kind kind);

#endif
