/* model.h: a network of 8-bit integers, as its file describes it: a flat list of layers.
 *
 * docs/networks.md defines the file and the arithmetic. The file is untrusted: whatever this reader
 * accepts can be computed without a check. Sizes, windows and tensors fit, every sum fits into int32
 * in any order of its terms, and memory and multiplications are bounded. */
#ifndef CLPIPE_NET_MODEL_H
#define CLPIPE_NET_MODEL_H

#include "base/error.h"

#include <stdint.h>

#define NET_NAME        32
#define NET_LAYERS_MAX  4096u
#define NET_OUTPUTS_MAX 16u
#define NET_VALUES_MAX  65536u /* of an output, channels of a tensor */
#define NET_NO_CLASSES  UINT32_MAX

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

enum net_fit { NET_SQUASH, NET_CROP };

/* A layer's fields as the file has them. */
struct net_fields {
    uint32_t kind, a, b; /* tensors that it reads; it makes the tensor of its own number plus 1 */
    uint32_t height, width, channels; /* of what it makes */
    uint32_t kernel_y, kernel_x, stride_y, stride_x, dilation_y, dilation_x, top, left;
    uint32_t groups; /* of a convolution; tables of a table: 1 or channels */
    uint32_t zero, low, high;
    int32_t mul_a, mul_b;
    uint32_t shift, counts_padding;
    uint32_t nothing[2];
};

/* The arrays lie in the model. */
struct net_layer {
    struct net_fields f;
    const int8_t *weights; /* convolution: channels x kernel_y x kernel_x x channels_a / groups */
    const int32_t *bias, *mul, *shift; /* convolution: channels each */
    const uint8_t *tables;             /* table: groups x 256 */
};

/* height x width x channels values in this order: int32 of the layer `sum`, else uint8. The layers that
 * read it look at most so many rows and columns past its edges, where its zero point is. */
struct net_tensor {
    uint32_t height, width, channels, zero;
    bool is_sum;
    uint32_t top, bottom, left, right;
};

/* A value v stands for double(v - zero) * double(mul) * 2^-shift. */
struct net_output {
    char name[NET_NAME];
    uint32_t tensor;
    int32_t mul;
    uint32_t shift, nothing;
};

/* Scores of the values x of an output: bias[c] + scale[c] * sum over j of weights[c][j] * x[j]. */
struct net_classes {
    uint32_t count, output; /* 0 and NET_NO_CLASSES: none */
    uint32_t columns;
    const int8_t *weights; /* count x columns */
    const float *scale, *bias;
    const char *names; /* count lines, each ended by a newline; names_bytes in all, no NUL */
    uint32_t names_bytes;
};

/* Read-only once it is open: any number of threads may use it. */
struct net_model {
    uint32_t height, width; /* of the picture, 3 channels */
    enum net_fit fit;
    uint32_t crop; /* in thousandths of the resized side */
    uint32_t layer_count, output_count;
    struct net_layer *layers;
    struct net_tensor *tensors; /* layer_count + 1; the picture first */
    struct net_output outputs[NET_OUTPUTS_MAX];
    struct net_classes classes;
    const char *about; /* about_bytes of UTF-8, not terminated */
    uint32_t about_bytes;
    uint64_t products; /* multiplications for a picture */
    char digest[65];   /* SHA-256 of the whole file */
    uint8_t *bytes;    /* the file, `size` of them */
    size_t size;
};

/* Reads a file of at most 1 GiB. STATUS_FAILED with one line that names the path and the fault. */
enum status net_model_open(struct net_model **out, const char *path, struct error *err);

/* The same from bytes, of which it keeps a copy; `subject` begins the line of an error. */
enum status net_model_read(struct net_model **out, const void *bytes, size_t size,
                           const char *subject, struct error *err);

/* Accepts NULL in *model, and leaves it. */
void net_model_close(struct net_model **model);

/* Values of a tensor of one picture, and the bytes that they take. */
size_t net_tensor_values(const struct net_tensor *tensor);
size_t net_tensor_bytes(const struct net_tensor *tensor);

/* "convolution", "add", ... */
const char *net_kind_name(enum net_kind kind);

/* The output of this name; NULL: the first one. -1: there is none. */
int net_model_output(const struct net_model *model, const char *name);

/* The values of an output as numbers, from those of its tensor. */
void net_output_values(float *out, const struct net_model *model, const struct net_output *output,
                       const void *tensor);

#endif
