/* model.h: an 8-bit integer network as described by its file: a flat list of layers.
 *
 * docs/networks.md defines the file and the arithmetic. The file is untrusted: any network that
 * this reader accepts can be computed without checks. Sizes, windows and tensors fit, every sum
 * fits int32 in any order of its terms, and memory and multiplications are bounded. */
#ifndef CLPIPE_NET_MODEL_H
#define CLPIPE_NET_MODEL_H

#include "base/held.h"
#include "net_part.h"

#include <stdint.h>

#define NET_MAGIC        "clp-net1"
#define NET_NAME         32
#define NET_LAYERS_MAX   4096u
#define NET_OUTPUTS_MAX  16u
#define NET_VALUES_MAX   65536u /* in an output, or channels of a tensor */
#define NET_ALIGNMENT    64u
#define NET_DIGEST_BYTES 32u

enum net_fit { NET_SQUASH, NET_CROP };

/* The file begins with this; arrays are at multiples of NET_ALIGNMENT, and a digest ends it. */
struct net_header {
    char magic[8];
    uint64_t bytes;
    uint32_t height, width, zero; /* of the picture, which has 3 channels */
    uint32_t fit, crop;           /* enum net_fit; in thousandths of the resized side */
    uint32_t layers, outputs;
    uint32_t about_bytes, names_bytes, classes, class_output;
    uint32_t nothing[9];
};

/* The arrays belong to the model. */
struct net_layer {
    struct net_fields f;
    const int8_t *weights; /* convolution: channels x kernel_y x kernel_x x channels_a / groups */
    const int32_t *bias, *mul, *shift; /* convolution: channels each */
    const uint8_t *tables;             /* table: groups x 256 */
};

/* height x width x channels values in this order: int32 from a `sum` layer, else uint8. top to
 * right: rows and columns that layers read past the edges, where all values are the zero point. */
struct net_tensor {
    uint32_t height, width, channels, zero;
    bool is_sum;
    uint32_t top, bottom, left, right;
    uint32_t readers; /* layers and outputs */
    uint32_t last;    /* the last tensor made while this one is needed */
};

/* Value v means double(v - zero) * double(mul) * 2^-shift. */
struct net_output {
    char name[NET_NAME];
    uint32_t tensor;
    int32_t mul;
    uint32_t shift, nothing;
};

/* Class scores of an output's values x: bias[c] + scale[c] * sum over j of weights[c][j] * x[j]. */
struct net_classes {
    uint32_t count, output; /* count 0: none */
    uint32_t columns;
    const int8_t *weights; /* count x columns */
    const float *scale, *bias;
    const char *names; /* count lines, each ending with a newline; names_bytes in total, no NUL */
    uint32_t names_bytes;
};

/* Read-only once open, so any number of threads may use it. */
struct net_model {
    struct held held; /* layers and tensors */
    struct net_layer *layers;
    struct net_tensor *tensors; /* one more than layers; the picture first */
    const struct net_header *header;
    const struct net_output *outputs;
    struct net_classes classes;
    uint64_t products; /* multiplications per picture */
    char digest[65];   /* SHA-256 of the whole file */
    uint8_t *bytes;    /* the file, `size` bytes, in which all arrays lie */
    size_t size;
    struct net_model *next; /* for use by whoever opened it */
};

/* Reads a file of at most 1 GiB. STATUS_FAILED, with one line that names the path and the fault. */
enum status net_model_open(struct net_model **out, const char *path, struct error *err);

/* The same from bytes, which it takes over (malloc), even on failure; `subject` begins the error
 * line. */
enum status net_model_read(struct net_model **out, uint8_t *bytes, size_t size, const char *subject,
                           struct error *err);

/* A small network with random weights, for self-tests: all kinds of layer, shapes that no vector size
 * divides, extreme zero points and limits, and every kernel of the device's table. Its outputs are
 * "sums" (int32) and "scores" (uint8). STATUS_FAILED: out of memory. */
enum status net_synthetic(struct net_model **out, struct error *err);

/* Accepts a pointer to NULL; sets *model to NULL. */
void net_model_close(struct net_model **model);

/* The number of values of a tensor of one picture. */
size_t net_tensor_values(const struct net_tensor *tensor);

/* How a convolution requantises a channel with 32 bits: (mul_hi(sum << pre, mul) + add) >> shift. */
struct net_scaling {
    int32_t mul, add, shift, pre;
};
struct net_scaling net_layer_scaling(const struct net_layer *layer, uint32_t channel);

/* Finds memory for each of `count` tensors, of `room` bytes: the lowest that is free until tensor
 * `last` is made. Returns the end of all of it. */
size_t net_find_places(size_t *place, const size_t *room, const uint32_t *last, uint32_t count);

/* The output of that name; NULL: there is none. */
const struct net_output *net_model_output(const struct net_model *model, const char *name);

/* Converts the values of an output's tensor, widened to 32 bits, to floating point. */
void net_output_values(float *out, const struct net_model *model, const struct net_output *output,
                       const uint32_t *words);

#endif
