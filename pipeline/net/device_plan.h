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

#define NET_NO_LAYER   UINT32_MAX
#define NET_TILE_ITEMS 128u /* per work-group of net_tensor */

/* The first kernels of each plan: the plain one of each kind of layer, and two more. */
enum { NET_TAKE = NET_KINDS, NET_GIVE, NET_PLAIN_KERNELS };

/* The kernels of net_tensor. */
enum net_tile_kind { NET_TILE_NONE, NET_TILE_WINDOW, NET_TILE_PIXELS, NET_TILE_DEPTHWISE };

/* How a tensor is made. */
struct net_made {
    /* The convolution that is computed: the tensor's layer, or one fused into this addition, which
     * has no launch itself (is_made_later). NET_NO_LAYER: none. */
    uint32_t convolution;
    bool is_made_later;
    enum net_tile_kind kind; /* NONE: a plain kernel */
    unsigned kernel;         /* of the plan */
    struct net_tile tile;    /* for one picture */
    uint32_t units, group;   /* per picture: rows as in the tile, or work-items; per work-group */
    uint32_t columns;        /* channels per work-group */
};

struct net_plan {
    const struct net_model *model;
    struct held held;      /* the arrays but `packed` */
    uint64_t bytes;        /* of all tensors of one picture */
    struct net_made *made; /* per tensor */
    /* The plain kernels, then those of net_tensor: for each its name and the compiler's options. */
    const char **names, **options;
    unsigned kernel_count;
    uint8_t *packed; /* weights and parameters of net_tensor; NULL: plain kernels only */
    size_t packed_bytes;
};

/* plain: the compiler's options for net_layer. tiles: use the kernels of net_tensor, else only plain
 * ones, with the same offsets. STATUS_FAILED: memory. */
enum status net_plan_open(struct net_plan *plan, const struct net_model *model, const char *plain,
                          bool tiles, struct error *err);
void net_plan_close(struct net_plan *plan); /* accepts a zeroed struct */

/* Bytes per tensor of one picture. */
size_t net_plan_bytes(const struct net_tensor *tensor);

/* The launch that makes a tensor of `pictures` pictures in a workspace for `batch`; returns the
 * number of work-items, 0: an addition makes it. */
size_t net_plan_launch(struct net_tile *tile, const struct net_plan *plan, uint32_t tensor,
                       uint32_t pictures, uint32_t batch);

#endif
