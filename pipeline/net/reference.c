/* reference.c: every layer as defined in docs/networks.md, one value at a time. */
#include "net/reference.h"

/* The taps of one output pixel that lie inside the input. */
struct window {
    int64_t y, x; /* of the first tap */
    uint32_t y_from, y_to, x_from, x_to;
};

/* The taps [*from, *to) of a direction that are in [0, size). */
static void clip_taps(uint32_t *from, uint32_t *to, int64_t first, uint32_t kernel,
                      uint32_t dilation, uint32_t size)
{
    *from = 0;
    *to = kernel;
    while (*from < kernel && first + (int64_t)*from * dilation < 0)
        ++*from;
    while (*to > *from && first + (int64_t)(*to - 1) * dilation >= size)
        --*to;
}

static struct window window_at(const struct net_fields *f, const struct net_tensor *a, uint32_t y,
                               uint32_t x)
{
    struct window w = {
        (int64_t)y * f->stride_y - f->top, (int64_t)x * f->stride_x - f->left, 0, 0, 0, 0};
    clip_taps(&w.y_from, &w.y_to, w.y, f->kernel_y, f->dilation_y, a->height);
    clip_taps(&w.x_from, &w.x_to, w.x, f->kernel_x, f->dilation_x, a->width);
    return w;
}

static const uint8_t *tap(const struct net_fields *f, const struct net_tensor *a,
                          const struct window *w, const uint8_t *in, uint32_t ky, uint32_t kx)
{
    const size_t y = (size_t)(w->y + (int64_t)ky * f->dilation_y);
    const size_t x = (size_t)(w->x + (int64_t)kx * f->dilation_x);
    return in + (y * a->width + x) * a->channels;
}

static void convolve_pixel(uint8_t *out, const struct net_layer *layer, const struct net_tensor *a,
                           const struct window *w, const uint8_t *in)
{
    const struct net_fields *f = &layer->f;
    const uint32_t each = a->channels / f->groups, made = f->channels / f->groups;
    const int8_t *weights = layer->weights;
    for (uint32_t n = 0; n < f->channels; n++) {
        int32_t sum = layer->bias[n];
        for (uint32_t ky = 0; ky < f->kernel_y; ky++)
            for (uint32_t kx = 0; kx < f->kernel_x; kx++, weights += each) {
                const bool inside =
                    ky >= w->y_from && ky < w->y_to && kx >= w->x_from && kx < w->x_to;
                const uint8_t *q = inside ? tap(f, a, w, in, ky, kx) + n / made * each : NULL;
                for (uint32_t c = 0; c < each; c++)
                    sum += (q ? q[c] : (int32_t)a->zero) * weights[c];
            }
        out[n] = net_clamp(f, net_requantise(sum, layer->mul[n], layer->shift[n]));
    }
}

static void pool_pixel(uint8_t *out, const struct net_fields *f, const struct net_tensor *a,
                       const struct window *w, const uint8_t *in)
{
    const int64_t taps = f->counts_padding ? (int64_t)f->kernel_y * f->kernel_x
                                           : (int64_t)(w->y_to - w->y_from) * (w->x_to - w->x_from);
    for (uint32_t c = 0; c < f->channels; c++) {
        int64_t sum = 0;
        uint8_t most = 0;
        for (uint32_t ky = w->y_from; ky < w->y_to; ky++)
            for (uint32_t kx = w->x_from; kx < w->x_to; kx++) {
                const uint8_t q = tap(f, a, w, in, ky, kx)[c];
                most = q > most ? q : most;
                sum += q - (int64_t)a->zero;
            }
        out[c] = f->kind == NET_MAX ? most : net_mean(f, sum, taps);
    }
}

static void sum_picture(int32_t *out, const struct net_tensor *a, const uint8_t *in)
{
    for (uint32_t c = 0; c < a->channels; c++)
        out[c] = 0;
    for (size_t p = 0; p < (size_t)a->height * a->width; p++)
        for (uint32_t c = 0; c < a->channels; c++)
            out[c] += *in++ - (int32_t)a->zero;
}

/* Elementwise layers: each value depends on the values at the same position. */
static uint8_t value_at(const struct net_layer *layer, const struct net_tensor *a,
                        const struct net_tensor *b, const uint8_t *from_a, const uint8_t *from_b,
                        size_t i)
{
    const struct net_fields *f = &layer->f;
    const uint32_t channel = (uint32_t)(i % f->channels);
    const int32_t of_a = from_a[i] - (int32_t)a->zero;
    if (f->kind == NET_TABLE)
        return layer->tables[(f->groups > 1 ? channel : 0) * 256 + from_a[i]];
    if (f->kind == NET_MULTIPLY)
        return net_clamp(f, net_requantise(of_a * (from_b[channel] - (int32_t)b->zero), f->mul_a,
                                           (int32_t)f->shift));
    const int32_t of_b = from_b[i] - (int32_t)b->zero;
    return net_clamp(f, (of_a * f->mul_a + of_b * f->mul_b + (1 << (f->shift - 1))) >> f->shift);
}

void net_reference_layer(const struct net_model *model, uint32_t i, void *const *tensors)
{
    const struct net_layer *layer = &model->layers[i];
    const struct net_fields *f = &layer->f;
    const struct net_tensor *a = &model->tensors[f->a], *b = &model->tensors[f->b];
    const uint8_t *from_a = tensors[f->a], *from_b = tensors[f->b];
    uint8_t *out = tensors[i + 1];
    if (f->kind == NET_SUM) {
        sum_picture(tensors[i + 1], a, from_a);
        return;
    }
    if (f->kernel_y == 0) {
        const size_t count = net_tensor_values(&model->tensors[i + 1]);
        for (size_t at = 0; at < count; at++)
            out[at] = value_at(layer, a, b, from_a, from_b, at);
        return;
    }
    for (uint32_t y = 0; y < f->height; y++)
        for (uint32_t x = 0; x < f->width; x++, out += f->channels) {
            const struct window w = window_at(f, a, y, x);
            if (f->kind == NET_CONVOLUTION)
                convolve_pixel(out, layer, a, &w, from_a);
            else
                pool_pixel(out, f, a, &w, from_a);
        }
}
