/* net_synthetic.c: writes the file of a network and reads it. */
#include "net/net_synthetic.h"

#include "base/hash.h"
#include "base/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HEADER_BYTES 96u
#define DIGEST_BYTES 32u
#define FILE_BYTES   (256u << 10)
#define ALIGNMENT    64u

/* What layers read, as in the file. */
static const struct net_fields layers[] = {
    {.kind = NET_TABLE, .height = 17, .width = 13, .channels = 3, .groups = 3, .zero = 130},
    {.kind = NET_CONVOLUTION, .a = 1, .height = 9, .width = 7, .channels = 16, .kernel_y = 3,
     .kernel_x = 3, .stride_y = 2, .stride_x = 2, .dilation_y = 1, .dilation_x = 1, .top = 1,
     .left = 1, .groups = 1, .zero = 7, .low = 7, .high = 255},
    {.kind = NET_CONVOLUTION, .a = 2, .height = 9, .width = 7, .channels = 24, .kernel_y = 1,
     .kernel_x = 1, .stride_y = 1, .stride_x = 1, .dilation_y = 1, .dilation_x = 1, .groups = 1,
     .zero = 128, .high = 255},
    {.kind = NET_CONVOLUTION, .a = 3, .height = 9, .width = 7, .channels = 24, .kernel_y = 3,
     .kernel_x = 3, .stride_y = 1, .stride_x = 1, .dilation_y = 2, .dilation_x = 2, .top = 2,
     .left = 2, .groups = 24, .high = 240},
    {.kind = NET_CONVOLUTION, .a = 4, .height = 9, .width = 7, .channels = 24, .kernel_y = 3,
     .kernel_x = 5, .stride_y = 1, .stride_x = 1, .dilation_y = 1, .dilation_x = 1, .top = 1,
     .left = 2, .groups = 4, .zero = 255, .high = 255},
    {.kind = NET_ADD, .a = 5, .b = 3, .height = 9, .width = 7, .channels = 24, .zero = 120,
     .high = 255, .mul_a = 700000, .mul_b = 500000, .shift = 20},
    {.kind = NET_MAX, .a = 6, .height = 5, .width = 4, .channels = 24, .kernel_y = 3, .kernel_x = 3,
     .stride_y = 2, .stride_x = 2, .top = 1, .left = 1, .zero = 120},
    {.kind = NET_MEAN, .a = 7, .height = 5, .width = 4, .channels = 24, .kernel_y = 2, .kernel_x = 2,
     .stride_y = 1, .stride_x = 1, .top = 1, .left = 1, .zero = 100, .high = 255,
     .mul_a = 1500000000, .shift = 30, .counts_padding = 1},
    {.kind = NET_MEAN, .a = 8, .height = 1, .width = 1, .channels = 24, .kernel_y = 5, .kernel_x = 4,
     .stride_y = 1, .stride_x = 1, .zero = 90, .high = 255, .mul_a = 2000000000, .shift = 30},
    {.kind = NET_MULTIPLY, .a = 8, .b = 9, .height = 5, .width = 4, .channels = 24, .zero = 128,
     .high = 255, .mul_a = 1600000000, .shift = 36},
    {.kind = NET_CONVOLUTION, .a = 10, .height = 1, .width = 1, .channels = 37, .kernel_y = 5,
     .kernel_x = 4, .stride_y = 1, .stride_x = 1, .dilation_y = 1, .dilation_x = 1, .groups = 1,
     .zero = 128, .high = 255},
    {.kind = NET_SUM, .a = 10, .height = 1, .width = 1, .channels = 24},
};
#define LAYERS (sizeof layers / sizeof *layers)

static const struct net_output outputs[] = {
    {.name = "sums", .tensor = LAYERS, .mul = 1 << 30, .shift = 40},
    {.name = "scores", .tensor = LAYERS - 1, .mul = 1 << 30, .shift = 38},
};

struct writing {
    uint8_t *bytes;
    size_t at;
    uint32_t random;
};

/* Room for an array at the next multiple of ALIGNMENT. */
static void *put(struct writing *w, size_t bytes)
{
    w->at = (w->at + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    void *array = w->bytes + w->at;
    w->at += bytes;
    return array;
}

/* Sums that use the whole range of what they become; some channels are nearly dead or saturated. */
static void put_convolution(struct writing *w, const struct net_fields *f, uint32_t channels_a)
{
    const size_t taps = (size_t)f->kernel_y * f->kernel_x * (channels_a / f->groups);
    int8_t *weights = put(w, f->channels * taps);
    int32_t *bias = put(w, f->channels * sizeof *bias);
    int32_t *mul = put(w, f->channels * sizeof *mul), *shift = put(w, f->channels * sizeof *shift);
    for (uint32_t n = 0; n < f->channels; n++) {
        int exponent;
        const double spread = n % 11 == 10 ? 2 : 70 * sqrt((double)taps) * 128;
        const double part = frexp(90 / spread / (1 + n % 3), &exponent);
        for (size_t i = 0; i < taps; i++)
            weights[n * taps + i] = n % 11 == 10 ? (int8_t)(i == 0)
                                                 : (int8_t)(random_next(&w->random) >> 24);
        bias[n] = (int32_t)(random_next(&w->random) >> 16) - 32768;
        bias[n] = n % 11 == 10 ? bias[n] % 64 : bias[n];
        mul[n] = (int32_t)(part * 0x7fffffff);
        shift[n] = 31 - exponent;
    }
}

enum status net_synthetic(struct net_model **out, uint32_t seed, struct error *err)
{
    uint32_t header[HEADER_BYTES / 4] = {0}, channels[LAYERS + 1] = {3};
    struct writing w = {.bytes = calloc(1, FILE_BYTES), .random = seed};
    *out = NULL;
    if (!w.bytes)
        return error_memory(err, FILE_BYTES, "a network");
    w.at = HEADER_BYTES;
    memcpy(w.bytes + w.at, outputs, sizeof outputs);
    w.at += sizeof outputs;
    memcpy(w.bytes + w.at, layers, sizeof layers);
    w.at += sizeof layers;
    put(&w, 0); /* no text, and no names */
    for (uint32_t i = 0; i < LAYERS; i++) {
        const struct net_fields *f = &layers[i];
        channels[i + 1] = f->channels;
        if (f->kind == NET_CONVOLUTION)
            put_convolution(&w, f, channels[f->a]);
        uint8_t *tables = f->kind == NET_TABLE ? put(&w, f->groups * 256) : NULL;
        for (uint32_t j = 0; tables && j < f->groups * 256; j++)
            tables[j] = (uint8_t)(random_next(&w.random) >> 24);
    }
    const uint64_t bytes = w.at + DIGEST_BYTES;
    const uint32_t about[] = {17, 13, 128, NET_SQUASH, 1000, LAYERS, sizeof outputs / sizeof *outputs};
    memcpy(header, "clp-net1", 8);
    memcpy(header + 2, &bytes, sizeof bytes);
    memcpy(header + 4, about, sizeof about);
    memcpy(w.bytes, header, sizeof header);
    sha256_of(w.bytes + w.at, w.bytes, w.at);
    const enum status status = net_model_read(out, w.bytes, bytes, "a synthetic network", err);
    free(w.bytes);
    return status;
}
