/* net_layer: the layers of an 8-bit integer network (docs/networks.md), one value per work-item,
 * for any shape. The kernels for large layers on GPUs compute the same values. */
#include "net_part.h"

#define KIND_ADD      1
#define KIND_MULTIPLY 2
#define KIND_MAX      3
#define KIND_TABLE    6

static inline uchar limit(const __private struct net_fields *f, long value)
{
    return (uchar)clamp(value + f->zero, (long)f->low, (long)f->high);
}

static inline long requantise(int sum, int mul, uint shift)
{
    return ((long)sum * mul + (1l << (shift - 1))) >> shift;
}

/* Gets the layer and its input. */
#define FIND_LAYER                                                                                 \
    const struct net_shape s = shapes[layer], a = shapes[s.f.a];                                   \
    const struct net_fields f = s.f;

/* Sets the value's picture and its index among the `count` values of a picture, or returns. Avoids
 * remainders, here and below: next to a quotient they become an instruction that Oclgrind does not
 * support. */
#define FIND_VALUE(count)                                                                          \
    const uint picture = (uint)(get_global_id(0) / (count));                                       \
    const uint value = (uint)(get_global_id(0) - (size_t)picture * (count));                       \
    if (picture >= pictures)                                                                       \
        return;

/* A tensor of the work-item's picture. */
#define TENSOR(t) (work + (size_t)(t).place * batch + (size_t)picture * (t).bytes)

/* Copies pictures, NET_TAKEN pixels per work-item; abandoned pictures become black. */
__kernel void net_take(__global const uchar *pixels, __global const struct net_part *parts,
                       __global const struct net_shape *shapes, uint layer, uint first,
                       uint pictures, uint batch, __global uchar *work)
{
    const struct net_shape s = shapes[layer];
    const uint count = s.f.height * s.f.width;
    FIND_VALUE((count + NET_TAKEN - 1) / NET_TAKEN)
    parts += first + picture;
    const bool given_up = parts->words == NET_NO_WORDS;
    __global uint *out = (__global uint *)TENSOR(s);
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
    FIND_LAYER
    FIND_VALUE(f.height * f.width * f.channels)
    const uint pixel = value / f.channels, n = value - pixel * f.channels;
    const uint y = pixel / f.width, x = pixel - y * f.width;
    const uint each = a.f.channels / f.groups;
    __global const uchar *in = TENSOR(a) + n / (f.channels / f.groups) * each;
    __global const char *weights =
        (__global const char *)(model + s.weights) + (size_t)n * f.kernel_y * f.kernel_x * each;
    int sum = ((__global const int *)(model + s.bias))[n];
    for (uint ky = 0; ky < f.kernel_y; ky++)
        for (uint kx = 0; kx < f.kernel_x; kx++, weights += each) {
            const int iy = (int)(y * f.stride_y + ky * f.dilation_y) - (int)f.top;
            const int ix = (int)(x * f.stride_x + kx * f.dilation_x) - (int)f.left;
            if (iy < 0 || iy >= (int)a.f.height || ix < 0 || ix >= (int)a.f.width) {
                for (uint c = 0; c < each; c++)
                    sum += (int)a.f.zero * weights[c];
                continue;
            }
            __global const uchar *q = in + ((size_t)iy * a.f.width + ix) * a.pitch;
            for (uint c = 0; c < each; c++)
                sum += (int)q[c] * weights[c];
        }
    __global uchar *out = TENSOR(s) + pixel * s.pitch + n;
    *out = limit(&f, requantise(sum, ((__global const int *)(model + s.mul))[n],
                                ((__global const uint *)(model + s.shifts))[n]));
}

/* The maximum, or the mean, of a window. */
__kernel void net_pool(__global const struct net_shape *shapes, uint layer, uint pictures,
                       uint batch, __global uchar *work, __global const uchar *model)
{
    FIND_LAYER
    FIND_VALUE(f.height * f.width * f.channels)
    uint taps = 0;
    const uint pixel = value / f.channels, c = value - pixel * f.channels;
    const uint y = pixel / f.width, x = pixel - y * f.width;
    __global const uchar *in = TENSOR(a) + c;
    uint most = 0;
    long sum = 0;
    for (uint ky = 0; ky < f.kernel_y; ky++)
        for (uint kx = 0; kx < f.kernel_x; kx++) {
            const int iy = (int)(y * f.stride_y + ky) - (int)f.top;
            const int ix = (int)(x * f.stride_x + kx) - (int)f.left;
            if (iy < 0 || iy >= (int)a.f.height || ix < 0 || ix >= (int)a.f.width)
                continue;
            const uint q = in[((size_t)iy * a.f.width + ix) * a.pitch];
            most = max(most, q);
            sum += (int)q - (int)a.f.zero;
            taps++;
        }
    __global uchar *out = TENSOR(s) + pixel * s.pitch + c;
    if (f.kind == KIND_MAX) {
        *out = (uchar)most;
        return;
    }
    const long n = f.counts_padding ? (long)f.kernel_y * f.kernel_x : (long)taps;
    const long above = 2 * sum * f.mul_a + (n << f.shift), below = n << (f.shift + 1);
    const long toward_zero = above / below;
    *out = limit(&f, toward_zero - (above < toward_zero * below));
}

/* Sums over the picture, one channel per work-item. */
__kernel void net_sum(__global const struct net_shape *shapes, uint layer, uint pictures,
                      uint batch, __global uchar *work, __global const uchar *model)
{
    FIND_LAYER
    FIND_VALUE(f.channels)
    __global const uchar *in = TENSOR(a) + value;
    int sum = 0;
    for (uint i = 0; i < a.f.height * a.f.width; i++, in += a.pitch)
        sum += (int)*in - (int)a.f.zero;
    ((__global int *)TENSOR(s))[value] = sum;
}

/* Elementwise layers: each value depends on the values at the same place. */
__kernel void net_each(__global const struct net_shape *shapes, uint layer, uint pictures,
                       uint batch, __global uchar *work, __global const uchar *model)
{
    FIND_LAYER
    FIND_VALUE(f.height * f.width * f.channels)
    const uint pixel = value / f.channels, c = value - pixel * f.channels;
    const uint at = pixel * s.pitch + c;
    const uchar q = TENSOR(a)[at];
    const struct net_shape b = shapes[f.b];
    __global const uchar *from_b = TENSOR(b);
    __global uchar *out = TENSOR(s) + at;
    const int of_a = (int)q - (int)a.f.zero;
    if (f.kind == KIND_TABLE)
        *out = model[s.weights + (f.groups > 1 ? c : 0) * 256 + q];
    else if (f.kind == KIND_MULTIPLY)
        *out = limit(&f, requantise(of_a * ((int)from_b[c] - (int)b.f.zero), f.mul_a, f.shift));
    else
        *out = limit(
            &f, (of_a * f.mul_a + ((int)from_b[at] - (int)b.f.zero) * f.mul_b + (1 << (f.shift - 1))) >>
                    f.shift);
}

/* Stores the values of an output as the words of rows; sums as they are. */
__kernel void net_give(__global const struct net_shape *shapes, uint layer, uint first,
                       uint pictures, uint batch, __global const uchar *work,
                       __global const struct net_part *parts, uint wide, __global uint *words)
{
    const struct net_shape s = shapes[layer];
    FIND_VALUE(s.f.height * s.f.width * s.f.channels)
    __global const uchar *from = TENSOR(s);
    const uint pixel = value / s.f.channels, c = value - pixel * s.f.channels;
    parts += first + picture;
    if (parts->words != NET_NO_WORDS)
        words[parts->words + value] =
            wide ? ((__global const uint *)from)[value] : (uint)from[pixel * s.pitch + c];
}
