/* net_layer: the layers of a network of 8-bit integers (docs/networks.md), one value a work-item, for
 * any shape. The kernels for large layers of GPUs make the same values. */
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

/* Sets the value's picture, and its number among the `count` of it, or returns. Here and below without
 * remainders: Oclgrind does not know the instruction that they bring beside a quotient. */
#define FIND_VALUE(count)                                                                          \
    const uint picture = (uint)(get_global_id(0) / (count));                                       \
    const uint value = (uint)(get_global_id(0) - (size_t)picture * (count));                       \
    if (picture >= pictures)                                                                       \
        return;

/* Copies pictures to the workspace; those that were given up are black. */
__kernel void net_take(__global const uchar *pixels, __global const struct net_part *parts,
                       __global const struct net_shape *shapes, uint layer, uint first,
                       uint pictures, __global uchar *work)
{
    const struct net_shape s = shapes[layer];
    FIND_VALUE(s.height * s.width * s.channels)
    parts += first + picture;
    work[s.place + (size_t)picture * s.bytes + value] =
        parts->words != NET_NO_WORDS ? pixels[parts->offset + value] : 0;
}

__kernel void net_convolution(__global const struct net_shape *shapes, uint layer, uint pictures,
                              __global uchar *work, __global const uchar *model)
{
    const struct net_shape s = shapes[layer];
    FIND_VALUE(s.height * s.width * s.channels)
    const uint pixel = value / s.channels, n = value - pixel * s.channels;
    const uint y = pixel / s.width, x = pixel - y * s.width;
    const uint each = s.channels_a / s.groups;
    __global const uchar *in = work + s.place_a + (size_t)picture * s.bytes_a +
                               n / (s.channels / s.groups) * each;
    __global const char *weights = (__global const char *)(model + s.weights) +
                                   (size_t)n * s.kernel_y * s.kernel_x * each;
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
            __global const uchar *q = in + ((size_t)iy * s.width_a + ix) * s.channels_a;
            for (uint c = 0; c < each; c++)
                sum += (int)q[c] * weights[c];
        }
    work[s.place + (size_t)picture * s.bytes + value] =
        limit(&s, requantise(sum, ((__global const int *)(model + s.mul))[n],
                             ((__global const uint *)(model + s.shifts))[n]));
}

/* The largest value, or the mean, of a window. */
__kernel void net_pool(__global const struct net_shape *shapes, uint layer, uint pictures,
                       __global uchar *work, __global const uchar *model)
{
    const struct net_shape s = shapes[layer];
    FIND_VALUE(s.height * s.width * s.channels)
    uint taps = 0;
    const uint pixel = value / s.channels, c = value - pixel * s.channels;
    const uint y = pixel / s.width, x = pixel - y * s.width;
    __global const uchar *in = work + s.place_a + (size_t)picture * s.bytes_a + c;
    uint most = 0;
    long sum = 0;
    for (uint ky = 0; ky < s.kernel_y; ky++)
        for (uint kx = 0; kx < s.kernel_x; kx++) {
            const int iy = (int)(y * s.stride_y + ky) - (int)s.top;
            const int ix = (int)(x * s.stride_x + kx) - (int)s.left;
            if (iy < 0 || iy >= (int)s.height_a || ix < 0 || ix >= (int)s.width_a)
                continue;
            const uint q = in[((size_t)iy * s.width_a + ix) * s.channels_a];
            most = max(most, q);
            sum += (int)q - (int)s.zero_a;
            taps++;
        }
    __global uchar *out = work + s.place + (size_t)picture * s.bytes + value;
    if (s.kind == KIND_MAX) {
        *out = (uchar)most;
        return;
    }
    const long n = s.counts_padding ? (long)s.kernel_y * s.kernel_x : (long)taps;
    const long above = 2 * sum * s.mul_a + (n << s.shift), below = n << (s.shift + 1);
    const long toward_zero = above / below;
    *out = limit(&s, toward_zero - (above < toward_zero * below));
}

/* Sums over the picture, one channel a work-item. */
__kernel void net_sum(__global const struct net_shape *shapes, uint layer, uint pictures,
                       __global uchar *work, __global const uchar *model)
{
    const struct net_shape s = shapes[layer];
    FIND_VALUE(s.channels)
    __global const uchar *in = work + s.place_a + (size_t)picture * s.bytes_a + value;
    int sum = 0;
    for (uint i = 0; i < s.height_a * s.width_a; i++, in += s.channels)
        sum += (int)*in - (int)s.zero_a;
    ((__global int *)(work + s.place + (size_t)picture * s.bytes))[value] = sum;
}

/* Layers that make each value of the values in its place. */
__kernel void net_each(__global const struct net_shape *shapes, uint layer, uint pictures,
                       __global uchar *work, __global const uchar *model)
{
    const struct net_shape s = shapes[layer];
    FIND_VALUE(s.height * s.width * s.channels)
    const uint c = value - value / s.channels * s.channels;
    const uchar q = work[s.place_a + (size_t)picture * s.bytes_a + value];
    __global const uchar *b = work + s.place_b + (size_t)picture * s.bytes_b;
    __global uchar *out = work + s.place + (size_t)picture * s.bytes + value;
    const int of_a = (int)q - (int)s.zero_a;
    if (s.kind == KIND_TABLE)
        *out = model[s.weights + (s.groups > 1 ? c : 0) * 256 + q];
    else if (s.kind == KIND_MULTIPLY)
        *out = limit(&s, requantise(of_a * ((int)b[c] - (int)s.zero_b), s.mul_a, s.shift));
    else
        *out = limit(&s, (of_a * s.mul_a + ((int)b[value] - (int)s.zero_b) * s.mul_b +
                          (1 << (s.shift - 1))) >> s.shift);
}

/* The values of an output as the words of rows: of a sum as they are. */
__kernel void net_give(__global const struct net_shape *shapes, uint layer, uint first,
                       uint pictures, __global const uchar *work,
                       __global const struct net_part *parts, uint wide, __global uint *words)
{
    const struct net_shape s = shapes[layer];
    FIND_VALUE(s.height * s.width * s.channels)
    __global const uchar *from = work + s.place + (size_t)picture * s.bytes;
    parts += first + picture;
    if (parts->words != NET_NO_WORDS)
        words[parts->words + value] = wide ? ((__global const uint *)from)[value] : (uint)from[value];
}
