/* net_layer: the layers of an 8-bit integer network (docs/networks.md), one value per work-item,
 * for any shape. The kernels for large layers on GPUs compute the same values. */
#include "net_part.h"

#define KIND_ADD      1
#define KIND_MULTIPLY 2
#define KIND_MAX      3
#define KIND_TABLE    6

static inline uchar limit(const __private struct net_shape *s, long value)
{
    return (uchar)clamp(value + s->zero, (long)s->low, (long)s->high);
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
    if (picture >= pictures)                                                                       \
        return;

/* A tensor of the work-item's picture. */
#define TENSOR(place, bytes) (work + (size_t)(place)*batch + (size_t)picture * (bytes))

/* Copies pictures, NET_TAKEN pixels per work-item; abandoned pictures become black. */
__kernel void net_take(__global const uchar *pixels, __global const struct net_part *parts,
                       __global const struct net_shape *shapes, uint layer, uint first,
                       uint pictures, uint batch, __global uchar *work)
{
    const struct net_shape s = shapes[layer];
    const uint count = s.height * s.width;
    FIND_VALUE((count + NET_TAKEN - 1) / NET_TAKEN)
    parts += first + picture;
    const bool given_up = parts->words == NET_NO_WORDS;
    __global uint *out = (__global uint *)TENSOR(s.place, s.bytes);
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

__kernel void net_convolution(__global const struct net_shape *shapes, uint layer, uint pictures,
                              uint batch, __global uchar *work, __global const uchar *model)
{
    const struct net_shape s = shapes[layer];
    FIND_VALUE(s.height * s.width * s.channels)
    const uint pixel = value / s.channels, n = value - pixel * s.channels;
    const uint y = pixel / s.width, x = pixel - y * s.width;
    const uint each = s.channels_a / s.groups;
    __global const uchar *in = TENSOR(s.place_a, s.bytes_a) + n / (s.channels / s.groups) * each;
    __global const char *weights =
        (__global const char *)(model + s.weights) + (size_t)n * s.kernel_y * s.kernel_x * each;
    int sum = ((__global const int *)(model + s.bias))[n];
    for (uint ky = 0; ky < s.kernel_y; ky++)
        for (uint kx = 0; kx < s.kernel_x; kx++, weights += each) {
            const int iy = (int)(y * s.stride_y + ky * s.dilation_y) - (int)s.top;
            const int ix = (int)(x * s.stride_x + kx * s.dilation_x) - (int)s.left;
            if (iy < 0 || iy >= (int)s.height_a || ix < 0 || ix >= (int)s.width_a) {
                for (uint c = 0; c < each; c++)
                    sum += (int)s.zero_a * weights[c];
                continue;
            }
            __global const uchar *q = in + ((size_t)iy * s.width_a + ix) * s.pitch_a;
            for (uint c = 0; c < each; c++)
                sum += (int)q[c] * weights[c];
        }
    __global uchar *out = TENSOR(s.place, s.bytes) + pixel * s.pitch + n;
    *out = limit(&s, requantise(sum, ((__global const int *)(model + s.mul))[n],
                                ((__global const uint *)(model + s.shifts))[n]));
}

/* The maximum, or the mean, of a window. */
__kernel void net_pool(__global const struct net_shape *shapes, uint layer, uint pictures,
                       uint batch, __global uchar *work, __global const uchar *model)
{
    const struct net_shape s = shapes[layer];
    FIND_VALUE(s.height * s.width * s.channels)
    uint taps = 0;
    const uint pixel = value / s.channels, c = value - pixel * s.channels;
    const uint y = pixel / s.width, x = pixel - y * s.width;
    __global const uchar *in = TENSOR(s.place_a, s.bytes_a) + c;
    uint most = 0;
    long sum = 0;
    for (uint ky = 0; ky < s.kernel_y; ky++)
        for (uint kx = 0; kx < s.kernel_x; kx++) {
            const int iy = (int)(y * s.stride_y + ky) - (int)s.top;
            const int ix = (int)(x * s.stride_x + kx) - (int)s.left;
            if (iy < 0 || iy >= (int)s.height_a || ix < 0 || ix >= (int)s.width_a)
                continue;
            const uint q = in[((size_t)iy * s.width_a + ix) * s.pitch_a];
            most = max(most, q);
            sum += (int)q - (int)s.zero_a;
            taps++;
        }
    __global uchar *out = TENSOR(s.place, s.bytes) + pixel * s.pitch + c;
    if (s.kind == KIND_MAX) {
        *out = (uchar)most;
        return;
    }
    const long n = s.counts_padding ? (long)s.kernel_y * s.kernel_x : (long)taps;
    const long above = 2 * sum * s.mul_a + (n << s.shift), below = n << (s.shift + 1);
    const long toward_zero = above / below;
    *out = limit(&s, toward_zero - (above < toward_zero * below));
}

/* Sums over the picture, one channel per work-item. */
__kernel void net_sum(__global const struct net_shape *shapes, uint layer, uint pictures,
                      uint batch, __global uchar *work, __global const uchar *model)
{
    const struct net_shape s = shapes[layer];
    FIND_VALUE(s.channels)
    __global const uchar *in = TENSOR(s.place_a, s.bytes_a) + value;
    int sum = 0;
    for (uint i = 0; i < s.height_a * s.width_a; i++, in += s.pitch_a)
        sum += (int)*in - (int)s.zero_a;
    ((__global int *)TENSOR(s.place, s.bytes))[value] = sum;
}

/* Elementwise layers: each value depends on the values at the same place. */
__kernel void net_each(__global const struct net_shape *shapes, uint layer, uint pictures,
                       uint batch, __global uchar *work, __global const uchar *model)
{
    const struct net_shape s = shapes[layer];
    FIND_VALUE(s.height * s.width * s.channels)
    const uint pixel = value / s.channels, c = value - pixel * s.channels;
    const uint at = pixel * s.pitch + c;
    const uchar q = TENSOR(s.place_a, s.bytes_a)[at];
    __global const uchar *b = TENSOR(s.place_b, s.bytes_b);
    __global uchar *out = TENSOR(s.place, s.bytes) + at;
    const int of_a = (int)q - (int)s.zero_a;
    if (s.kind == KIND_TABLE)
        *out = model[s.weights + (s.groups > 1 ? c : 0) * 256 + q];
    else if (s.kind == KIND_MULTIPLY)
        *out = limit(&s, requantise(of_a * ((int)b[c] - (int)s.zero_b), s.mul_a, s.shift));
    else
        *out = limit(
            &s, (of_a * s.mul_a + ((int)b[at] - (int)s.zero_b) * s.mul_b + (1 << (s.shift - 1))) >>
                    s.shift);
}

/* Stores the values of an output as the words of rows; sums as they are. */
__kernel void net_give(__global const struct net_shape *shapes, uint layer, uint first,
                       uint pictures, uint batch, __global const uchar *work,
                       __global const struct net_part *parts, uint wide, __global uint *words)
{
    const struct net_shape s = shapes[layer];
    FIND_VALUE(s.height * s.width * s.channels)
    __global const uchar *from = TENSOR(s.place, s.bytes);
    const uint pixel = value / s.channels, c = value - pixel * s.channels;
    parts += first + picture;
    if (parts->words != NET_NO_WORDS)
        words[parts->words + value] =
            wide ? ((__global const uint *)from)[value] : (uint)from[pixel * s.pitch + c];
}
