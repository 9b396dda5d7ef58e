/* device_plan.h: how an OpenCL device computes a network: offsets of tensors, the kernel of each
 * layer, plain or of net_tensor, and weights in the order in which those of net_tensor read them.
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

/* The first variants of each plan: the plain kernel of each kind of layer, and two more. */
enum { NET_TAKE = NET_KINDS, NET_GIVE, NET_PLAIN_KERNELS };

/* The kernels of net_tensor. */
enum net_tile_kind { NET_TILE_NONE, NET_TILE_WINDOW, NET_TILE_PIXELS, NET_TILE_DEPTHWISE };

struct net_plan_layer {
    /* The convolution that is computed: the layer itself, or one fused into this addition, which
     * has no launch itself (is_made_later). NET_NO_LAYER: none. */
    uint32_t convolution;
    bool is_made_later;
    enum net_tile_kind kind; /* NONE: a plain kernel */
    unsigned variant;
    struct net_tile tile;  /* of net_tensor, for one picture */
    uint32_t units, group; /* per picture: rows as in the tile, or work-items; per work-group */
    uint32_t columns;      /* channels per work-group */
    uint32_t warps;        /* per work-group */
};

struct net_variant {
    const char *program, *kernel;
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
    uint8_t *packed; /* weights and parameters of net_tensor; NULL: plain kernels only */
    size_t packed_bytes;
};

/* plain: the compiler's options for net_layer. tiles: the program of net_tensor's kernels; NULL: only
 * plain kernels, with the same offsets. STATUS_FAILED: memory. */
enum status net_plan_open(struct net_plan *plan, const struct net_model *model, const char *plain,
                          const char *tiles, struct error *err);
void net_plan_close(struct net_plan *plan); /* accepts a zeroed struct */

/* Bytes per tensor of one picture. */
size_t net_plan_bytes(const struct net_tensor *tensor);

/* The launch of a plain kernel that makes or reads a tensor, 0: the picture, for `pictures` in a
 * workspace for `batch`. */
struct net_tile net_plan_tile(const struct net_plan *plan, uint32_t tensor, uint32_t pictures,
                              uint32_t batch);

/* The launch of a layer's kernel; returns the number of work-items, 0: an addition makes it. */
size_t net_plan_launch(struct net_tile *tile, const struct net_plan *plan, uint32_t layer,
                       uint32_t pictures, uint32_t batch);

#endif
