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

/* The value's picture, and its number within it; false: there is none. */
static inline bool find_value(uint *picture, uint *value, const __private struct net_shape *s,
                              uint count)
{
    const size_t item = get_global_id(0);
    *picture = (uint)(item / count);
    *value = (uint)(item % count);
    return *picture < s->pictures;
}

/* Copies pictures to the workspace. */
__kernel void net_take(__global const uchar *pixels, __global const struct net_part *parts,
                       struct net_shape s, __global uchar *work)
{
    uint picture, value;
    if (!find_value(&picture, &value, &s, s.height * s.width * s.channels))
        return;
    parts += s.first + picture;
    if (parts->words != NET_NO_WORDS)
        work[s.place + (size_t)picture * s.bytes + value] = pixels[parts->offset + value];
}

__kernel void net_convolution(struct net_shape s, __global uchar *work,
                              __global const uchar *model)
{
    uint picture, value;
    if (!find_value(&picture, &value, &s, s.height * s.width * s.channels))
        return;
    const uint n = value % s.channels, x = value / s.channels % s.width;
    const uint y = value / s.channels / s.width;
    const uint each = s.channels_a / s.groups;
    __global const uchar *in = work + s.place_a + (size_t)picture * s.bytes_a +
                               n / (s.channels / s.groups) * each;
    __global const char *weights = (__global const char *)(model + s.weights) +
                                   (size_t)n * s.kernel_y * s.kernel_x * each;
    int sum = ((__global const int *)(model + s.bias))[n];
    for (uint ky = 0; ky < s.kernel_y; ky++) {
        const int iy = (int)(y * s.stride_y + ky * s.dilation_y) - (int)s.top;
        for (uint kx = 0; kx < s.kernel_x; kx++, weights += each) {
            const int ix = (int)(x * s.stride_x + kx * s.dilation_x) - (int)s.left;
            const bool inside =
                iy >= 0 && iy < (int)s.height_a && ix >= 0 && ix < (int)s.width_a;
            __global const uchar *q = in + ((size_t)iy * s.width_a + ix) * s.channels_a;
            for (uint c = 0; c < each; c++)
                sum += (inside ? (int)q[c] : (int)s.zero_a) * weights[c];
        }
    }
    work[s.place + (size_t)picture * s.bytes + value] =
        limit(&s, requantise(sum, ((__global const int *)(model + s.mul))[n],
                             ((__global const uint *)(model + s.shifts))[n]));
}

/* The largest value, or the mean, of a window. */
__kernel void net_pool(struct net_shape s, __global uchar *work, __global const uchar *model)
{
    uint picture, value, taps = 0;
    if (!find_value(&picture, &value, &s, s.height * s.width * s.channels))
        return;
    const uint c = value % s.channels, x = value / s.channels % s.width;
    const uint y = value / s.channels / s.width;
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
    *out = limit(&s, above / below - (above % below < 0));
}

/* Sums over the picture, one channel a work-item. */
__kernel void net_sum(struct net_shape s, __global uchar *work, __global const uchar *model)
{
    uint picture, channel;
    if (!find_value(&picture, &channel, &s, s.channels))
        return;
    __global const uchar *in = work + s.place_a + (size_t)picture * s.bytes_a + channel;
    int sum = 0;
    for (uint i = 0; i < s.height_a * s.width_a; i++, in += s.channels)
        sum += (int)*in - (int)s.zero_a;
    ((__global int *)(work + s.place + (size_t)picture * s.bytes))[channel] = sum;
}

/* Layers that make each value of the values in its place. */
__kernel void net_each(struct net_shape s, __global uchar *work, __global const uchar *model)
{
    uint picture, value;
    if (!find_value(&picture, &value, &s, s.height * s.width * s.channels))
        return;
    const uint c = value % s.channels;
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
__kernel void net_give(struct net_shape s, __global const uchar *work,
                       __global const struct net_part *parts, uint wide, __global uint *words)
{
    uint picture, value;
    if (!find_value(&picture, &value, &s, s.height * s.width * s.channels))
        return;
    __global const uchar *from = work + s.place + (size_t)picture * s.bytes;
    parts += s.first + picture;
    if (parts->words != NET_NO_WORDS)
        words[parts->words + value] = wide ? ((__global const uint *)from)[value] : (uint)from[value];
}
