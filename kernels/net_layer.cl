/* net_layer: the layers of an 8-bit integer network (docs/networks.md), one value per work-item,
 * for any shape. The kernels for large layers on GPUs compute the same values. */
#include "net_part.h"

static inline uchar limit(const __private struct net_fields *f, long value)
{
    return (uchar)clamp(value + f->zero, (long)f->low, (long)f->high);
}

static inline long requantise(int sum, int mul, uint shift)
{
    return ((long)sum * mul + (1l << (shift - 1))) >> shift;
}

/* Sets the value's picture and its index among the `count` values of a picture, or returns. Avoids
 * remainders, here and below: next to a quotient they become an instruction that Oclgrind does not
 * support. */
#define FIND_VALUE(count)                                                                          \
    const uint picture = (uint)(get_global_id(0) / (count));                                       \
    const uint value = (uint)(get_global_id(0) - (size_t)picture * (count));                       \
    if (picture >= s.rows)                                                                         \
        return;

/* A tensor with `bytes` per picture: the work-item's picture. */
#define TENSOR(place, bytes) (work + (place) + (size_t)picture * (bytes))
#define INPUT                TENSOR(s.place_a, s.height_a * s.width_a * s.pitch_a)
#define OUTPUT               TENSOR(s.place, s.f.height * s.f.width * s.pitch)
#define ZERO                 ((int)(s.zero & 255))

/* Copies pictures, NET_TAKEN pixels per work-item; abandoned pictures become black. */
__kernel void net_take(__global const uchar *pixels, __global const struct net_part *parts,
                       struct net_tile s, uint first, __global uchar *work)
{
    const uint count = s.f.height * s.f.width;
    FIND_VALUE((count + NET_TAKEN - 1) / NET_TAKEN)
    parts += first + picture;
    const bool given_up = parts->words == NET_NO_WORDS;
    __global uint *out = (__global uint *)OUTPUT;
    pixels += parts->offset;
    if (parts->offset % 4 == 0 && (value + 1) * NET_TAKEN <= count) {
        __global const uint *in = (__global const uint *)pixels + value * 3;
        const uint a = given_up ? 0 : in[0], b = given_up ? 0 : in[1], c = given_up ? 0 : in[2];
        vstore4(
            (uint4)(a & 0xffffff, a >> 24 | (b & 0xffff) << 8, b >> 16 | (c & 0xff) << 16, c >> 8),
            value, out);
        return;
    }
    for (uint i = value * NET_TAKEN; i < min((value + 1) * NET_TAKEN, count); i++)
        out[i] = given_up ? 0 : pixels[3 * i] | pixels[3 * i + 1] << 8 | pixels[3 * i + 2] << 16;
}

/* The multipliers and shifts of the channels follow their biases as in the model. */
__kernel void net_convolution(struct net_tile s, __global const uchar *model, __global uchar *work)
{
    const struct net_fields f = s.f;
    FIND_VALUE(f.height * f.width * f.channels)
    const uint pixel = value / f.channels, n = value - pixel * f.channels;
    const uint y = pixel / f.width, x = pixel - y * f.width;
    const uint each = s.channels_a / f.groups, array = (f.channels * 4 + 63) / 64 * 16;
    __global const int *bias = (__global const int *)(model + s.parameters);
    __global const uchar *in = INPUT + n / (f.channels / f.groups) * each;
    __global const char *weights =
        (__global const char *)(model + s.weights) + (size_t)n * f.kernel_y * f.kernel_x * each;
    int sum = bias[n];
    for (uint ky = 0; ky < f.kernel_y; ky++)
        for (uint kx = 0; kx < f.kernel_x; kx++, weights += each) {
            const int iy = (int)(y * f.stride_y + ky * f.dilation_y) - (int)f.top;
            const int ix = (int)(x * f.stride_x + kx * f.dilation_x) - (int)f.left;
            if (iy < 0 || iy >= (int)s.height_a || ix < 0 || ix >= (int)s.width_a) {
                for (uint c = 0; c < each; c++)
                    sum += ZERO * weights[c];
                continue;
            }
            __global const uchar *q = in + ((size_t)iy * s.width_a + ix) * s.pitch_a;
            for (uint c = 0; c < each; c++)
                sum += (int)q[c] * weights[c];
        }
    __global uchar *out = OUTPUT + pixel * s.pitch + n;
    *out = limit(&f, requantise(sum, bias[array + n], (uint)bias[2 * array + n]));
}

/* The maximum, or the mean, of a window. */
__kernel void net_pool(struct net_tile s, __global const uchar *model, __global uchar *work)
{
    const struct net_fields f = s.f;
    FIND_VALUE(f.height * f.width * f.channels)
    uint taps = 0;
    const uint pixel = value / f.channels, c = value - pixel * f.channels;
    const uint y = pixel / f.width, x = pixel - y * f.width;
    __global const uchar *in = INPUT + c;
    uint most = 0;
    long sum = 0;
    for (uint ky = 0; ky < f.kernel_y; ky++)
        for (uint kx = 0; kx < f.kernel_x; kx++) {
            const int iy = (int)(y * f.stride_y + ky) - (int)f.top;
            const int ix = (int)(x * f.stride_x + kx) - (int)f.left;
            if (iy < 0 || iy >= (int)s.height_a || ix < 0 || ix >= (int)s.width_a)
                continue;
            const uint q = in[((size_t)iy * s.width_a + ix) * s.pitch_a];
            most = max(most, q);
            sum += (int)q - ZERO;
            taps++;
        }
    __global uchar *out = OUTPUT + pixel * s.pitch + c;
    if (f.kind == NET_MAX) {
        *out = (uchar)most;
        return;
    }
    const long n = f.counts_padding ? (long)f.kernel_y * f.kernel_x : (long)taps;
    const long above = 2 * sum * f.mul_a + (n << f.shift), below = n << (f.shift + 1);
    const long toward_zero = above / below;
    *out = limit(&f, toward_zero - (above < toward_zero * below));
}

/* Sums over the picture, one channel per work-item. */
__kernel void net_sum(struct net_tile s, __global const uchar *model, __global uchar *work)
{
    FIND_VALUE(s.f.channels)
    __global const uchar *in = INPUT + value;
    int sum = 0;
    for (uint i = 0; i < s.height_a * s.width_a; i++, in += s.pitch_a)
        sum += (int)*in - ZERO;
    ((__global int *)OUTPUT)[value] = sum;
}

/* Elementwise layers: each value depends on the values at the same place. */
__kernel void net_each(struct net_tile s, __global const uchar *model, __global uchar *work)
{
    const struct net_fields f = s.f;
    FIND_VALUE(f.height * f.width * f.channels)
    const uint pixel = value / f.channels, c = value - pixel * f.channels;
    const uint at = pixel * s.pitch + c;
    const uchar q = INPUT[at];
    /* The second input of a multiplication has one pixel. */
    const uint pixels_b = f.kind == NET_MULTIPLY ? 1 : f.height * f.width;
    __global const uchar *b = TENSOR(s.place_b, pixels_b * s.pitch);
    __global uchar *out = OUTPUT + at;
    const int of_a = (int)q - ZERO, zero_b = (int)s.zero_b;
    if (f.kind == NET_TABLE)
        *out = model[s.weights + (f.groups > 1 ? c : 0) * 256 + q];
    else if (f.kind == NET_MULTIPLY)
        *out = limit(&f, requantise(of_a * ((int)b[c] - zero_b), f.mul_a, f.shift));
    else
        *out = limit(&f, (of_a * f.mul_a + ((int)b[at] - zero_b) * f.mul_b + (1 << (f.shift - 1))) >>
                             f.shift);
}

/* Stores the values of an output as the words of rows; sums as they are. */
__kernel void net_give(struct net_tile s, uint first, __global const uchar *work,
                       __global const struct net_part *parts, __global uint *words)
{
    FIND_VALUE(s.f.height * s.f.width * s.f.channels)
    __global const uchar *from = OUTPUT;
    const uint pixel = value / s.f.channels, c = value - pixel * s.f.channels;
    parts += first + picture;
    if (parts->words != NET_NO_WORDS)
        words[parts->words + value] = s.f.kind == NET_SUM ? ((__global const uint *)from)[value]
                                                           : (uint)from[pixel * s.pitch + c];
}
