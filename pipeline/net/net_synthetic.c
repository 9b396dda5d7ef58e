/* net_synthetic.c: writes a network file in memory and reads it. */
#include "net/model.h"

#include "base/hash.h"
#include "base/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FILE_BYTES (512u << 10)
#define LAYERS     (uint32_t)(sizeof layers / sizeof *layers)

/* clang-format off */
#define CONVOLUTION(from, h, w, c, ky, kx, stride, dilation, t, l, of, z, least, most)             \
    {.kind = NET_CONVOLUTION, .a = from, .height = h, .width = w, .channels = c, .kernel_y = ky,   \
     .kernel_x = kx, .stride_y = stride, .stride_x = stride, .dilation_y = dilation,               \
     .dilation_x = dilation, .top = t, .left = l, .groups = of, .zero = z, .low = least,           \
     .high = most}
#define POINTWISE(from, h, w, c, z) CONVOLUTION(from, h, w, c, 1, 1, 1, 1, 0, 0, 1, z, 0, 255)
#define DEPTHWISE(from, h, w, c, k, stride)                                                        \
    CONVOLUTION(from, h, w, c, k, k, stride, 1, k / 2, k / 2, c, 9, 0, 255)
#define ADDITION(of_a, of_b, h, w, c, z, least)                                                    \
    {.kind = NET_ADD, .a = of_a, .b = of_b, .height = h, .width = w, .channels = c, .zero = z,     \
     .low = least, .high = 255, .mul_a = 700000, .mul_b = 500000, .shift = 20}
#define SUMS(from, c) {.kind = NET_SUM, .a = from, .height = 1, .width = 1, .channels = c}

/* Layers' fields as in the file. */
static const struct net_fields layers[] = {
    {.kind = NET_TABLE, .height = 17, .width = 13, .channels = 3, .groups = 3, .zero = 130},
    CONVOLUTION(1, 9, 7, 32, 3, 3, 2, 1, 1, 1, 1, 7, 7, 255),
    POINTWISE(2, 9, 7, 96, 0),
    DEPTHWISE(3, 9, 7, 96, 3, 1),
    POINTWISE(4, 9, 7, 24, 130),
    POINTWISE(5, 9, 7, 144, 0),
    DEPTHWISE(6, 9, 7, 144, 5, 1),
    POINTWISE(7, 9, 7, 24, 110),
    ADDITION(8, 5, 9, 7, 24, 120, 0),
    CONVOLUTION(9, 9, 7, 24, 3, 3, 1, 2, 2, 2, 24, 0, 0, 240),
    CONVOLUTION(10, 9, 7, 24, 3, 5, 1, 1, 1, 2, 4, 255, 0, 255),
    ADDITION(11, 9, 9, 7, 24, 120, 0),
    POINTWISE(12, 9, 7, 40, 255),
    DEPTHWISE(13, 5, 4, 40, 5, 2),
    CONVOLUTION(14, 5, 4, 80, 3, 1, 1, 1, 1, 0, 1, 50, 0, 255),
    DEPTHWISE(15, 5, 4, 80, 3, 1),
    DEPTHWISE(16, 3, 2, 80, 3, 2),
    POINTWISE(17, 3, 2, 16, 128),
    CONVOLUTION(18, 3, 2, 104, 3, 3, 1, 2, 2, 2, 1, 128, 3, 250),
    DEPTHWISE(19, 3, 2, 104, 5, 1),
    POINTWISE(20, 3, 2, 104, 128),
    ADDITION(19, 21, 3, 2, 104, 20, 20),
    {.kind = NET_MAX, .a = 22, .height = 3, .width = 2, .channels = 104, .kernel_y = 2,
     .kernel_x = 2, .stride_y = 1, .stride_x = 1, .top = 1, .left = 1, .zero = 20},
    {.kind = NET_MEAN, .a = 23, .height = 3, .width = 2, .channels = 104, .kernel_y = 2,
     .kernel_x = 2, .stride_y = 1, .stride_x = 1, .top = 1, .zero = 100, .high = 255,
     .mul_a = 1500000000, .shift = 30, .counts_padding = 1},
    {.kind = NET_MEAN, .a = 24, .height = 1, .width = 1, .channels = 104, .kernel_y = 3,
     .kernel_x = 2, .stride_y = 1, .stride_x = 1, .zero = 90, .high = 255, .mul_a = 2000000000,
     .shift = 30},
    {.kind = NET_MULTIPLY, .a = 24, .b = 25, .height = 3, .width = 2, .channels = 104, .zero = 128,
     .high = 255, .mul_a = 1600000000, .shift = 36},
    CONVOLUTION(26, 1, 1, 37, 3, 2, 1, 1, 0, 0, 1, 128, 0, 255),
    SUMS(26, 104),
};
/* clang-format on */

static uint8_t next_byte(uint32_t *random)
{
    return (uint8_t)(random_next(random) >> 24);
}

/* Appends an array. */
static void *put(uint8_t *file, size_t *at, size_t bytes)
{
    void *array = file + (*at + NET_ALIGNMENT - 1) / NET_ALIGNMENT * NET_ALIGNMENT;
    *at = (size_t)((uint8_t *)array - file) + bytes;
    return array;
}

/* Sums use the whole range of the result; unless channels come in fives, some are nearly dead or
 * saturated, with small shifts. */
static void put_convolution(uint8_t *file, size_t *at, const struct net_fields *f, uint32_t *random)
{
    const size_t n = f->channels;
    const size_t taps = f->kernel_y * f->kernel_x * (layers[f->a - 1].channels / f->groups);
    int8_t *weights = put(file, at, n * taps);
    int32_t *bias = put(file, at, n * sizeof *bias);
    int32_t *mul = put(file, at, n * sizeof *mul), *shift = put(file, at, n * sizeof *shift);
    for (size_t c = 0; c < n; c++) {
        int exponent;
        const bool is_dead = c % 11 == 10 && n % 5 != 0;
        const double spread = is_dead ? 2 : 70 * sqrt((double)taps) * 128;
        const double part = frexp(90 / spread / (1 + (double)(c % 3)), &exponent);
        for (size_t i = 0; i < taps; i++)
            weights[c * taps + i] = is_dead ? i == 0 : (int8_t)next_byte(random);
        bias[c] = (int32_t)(random_next(random) >> 16) - 32768;
        bias[c] = is_dead ? bias[c] % 64 : bias[c];
        mul[c] = (int32_t)(part * 0x7fffffff);
        shift[c] = 31 - exponent;
    }
}

enum status net_synthetic(struct net_model **out, struct error *err)
{
    static const struct net_output outputs[] = {
        {.name = "sums", .tensor = LAYERS, .mul = 1 << 30, .shift = 40},
        {.name = "scores", .tensor = LAYERS - 1, .mul = 1 << 30, .shift = 38},
    };
    uint32_t random = RANDOM_START;
    size_t at = sizeof(struct net_header) + sizeof outputs + sizeof layers;
    uint8_t *file = calloc(1, FILE_BYTES);
    *out = NULL;
    if (!file)
        return error_memory(err, FILE_BYTES, "a network");
    memcpy(file + sizeof(struct net_header), outputs, sizeof outputs);
    memcpy(file + sizeof(struct net_header) + sizeof outputs, layers, sizeof layers);
    put(file, &at, 0); /* no text and no names */
    for (const struct net_fields *f = layers; f < layers + LAYERS; f++) {
        uint8_t *tables = f->kind == NET_TABLE ? put(file, &at, f->groups * 256) : NULL;
        for (uint32_t j = 0; tables && j < f->groups * 256; j++)
            tables[j] = next_byte(&random);
        if (f->kind == NET_CONVOLUTION)
            put_convolution(file, &at, f, &random);
    }
    const struct net_header header = {.magic = NET_MAGIC,
                                      .bytes = at + NET_DIGEST_BYTES,
                                      .height = 17,
                                      .width = 13,
                                      .zero = 128,
                                      .crop = 1000,
                                      .layers = LAYERS,
                                      .outputs = sizeof outputs / sizeof *outputs};
    memcpy(file, &header, sizeof header);
    sha256_of(file + at, file, at);
    return net_model_read(out, file, header.bytes, "a synthetic network", err);
}
