/* net_tensor: convolutions of an 8-bit integer network (docs/networks.md) by tensor cores and
 * 4-byte dot products. Gives the same values as net_layer.cl.
 *
 * One program is one kernel for one shape; PIXELS, WINDOW or DEPTHWISE selects which:
 * - WINDOW: rows, the output pixels of all pictures, times channels. A warp computes 16 * MT rows
 *   of 8 * NT channels, TURNS times. The order of k is free as long as both operands agree, so lane
 *   t of four takes bytes 16 t to 16 t + 15 of 64 channels: one 16-byte load, straight from the
 *   tensor, feeds two products. The order of channels is free, too: lane t has 2 * NT adjacent
 *   ones. TAPS 1: 1 x 1 with stride 1. TAIL: the remainder channels % 64: 0: none, 1: up to 32, 2:
 *   more. ADDS: fuses the following addition.
 * - PIXELS: the same for pixels of 4 bytes, eight taps per product; a warp computes a row of a
 *   picture.
 * - DEPTHWISE: a work-item computes 4 channels of OX by OY pixels; words of one pixel's 4 channels
 *   are transposed into words of one channel's 4 pixels.
 * LIMITS: low and high are not 0 and 255. SHIFTS: sums are shifted before they are multiplied.
 *
 * EMULATED: the including program has replaced NVIDIA's instructions, and lanes meet at its
 * barriers. */
#include "net_part.h"

#ifndef EMULATED

#define UNROLL     _Pragma("unroll")
#define ONE_BY_ONE _Pragma("unroll 1")
#define LANES_MEET __asm__ volatile("bar.warp.sync 0xffffffff;" ::: "memory")
#define WARP_LANES __local uint(*lanes)[6] = 0;

static inline int multiply_high(int a, int b, int c)
{
    int made;
    __asm__("mad.hi.s32 %0, %1, %2, %3;" : "=r"(made) : "r"(a), "r"(b), "r"(c));
    return made;
}

static inline uint pack(int a, int b, int c, int d)
{
    uint upper, made;
    __asm__("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(upper) : "r"(d), "r"(c), "r"(0));
    __asm__("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(made) : "r"(b), "r"(a), "r"(upper));
    return made;
}

static __attribute__((unused)) int dot4(uint a, uint w, int sum)
{
    int made;
    __asm__("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(made) : "r"(a), "r"(w), "r"(sum));
    return made;
}

static __attribute__((unused)) uint permute(uint a, uint b, uint order)
{
    uint made;
    __asm__("prmt.b32 %0, %1, %2, %3;" : "=r"(made) : "r"(a), "r"(b), "r"(order));
    return made;
}

static __attribute__((unused)) void multiply(int *sum, uint a0, uint a1, uint a2, uint a3, uint b0,
                                             uint b1, __local uint (*lanes)[6])
{
    __asm__("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
            "{%8, %9}, {%0, %1, %2, %3};"
            : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
            : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

#endif

/* A requantised sum before clamping to a byte. p: bias, multiplier, addend, shifts. */
static inline int requantise(int sum, int4 p)
{
#if SHIFTS
    return multiply_high(sum << (p.w >> 8), p.y, p.z) >> (p.w & 255);
#else
    return multiply_high(sum, p.y, p.z) >> p.w;
#endif
}

static inline uint pack_limited(int a, int b, int c, int d, int low, int high)
{
#if LIMITS
    return pack(clamp(a, low, high), clamp(b, low, high), clamp(c, low, high), clamp(d, low, high));
#else
    return pack(a, b, c, d);
#endif
}

/* The following addition: adds four values of the other tensor to four of this layer. */
static __attribute__((unused)) uint add_word(uint q, uint other, const __private struct net_tile *s)
{
#define ADDED(i)                                                                                   \
    (((int)(q >> 8 * i & 255) * s->add.mul_a + (int)(other >> 8 * i & 255) * s->add.mul_b + s->added) >>   \
     s->add.shift)
    return pack_limited(ADDED(0), ADDED(1), ADDED(2), ADDED(3), s->add.low, s->add.high);
}

static __attribute__((unused)) void store(__global uchar *out, __global const uchar *other, uint at,
                                          uint4 v, const __private struct net_tile *s)
{
#if ADDS
    const uint4 z = *(__global const uint4 *)(other + at);
    v = (uint4)(add_word(v.x, z.x, s), add_word(v.y, z.y, s), add_word(v.z, z.z, s),
                add_word(v.w, z.w, s));
#endif
    *(__global uint4 *)(out + at) = v;
}

#ifdef WINDOW

#define ROWS   (2 * MT)    /* per lane */
#define WORDS  (NT / 2)    /* per row of a lane; 16-byte pieces per row of a warp */
#define PITCH  (WORDS | 1) /* pieces per row in local memory */
#define DIRECT (NT == 8)   /* a lane has whole pieces */

/* Addresses of the inputs of a lane's rows at one tap. */
struct taps {
    __global const uchar *at[ROWS];
    bool inside[ROWS];
};

static inline uint4 load(const __private struct taps *taps, uint row, uint k, uint zero)
{
    return TAPS == 1 || taps->inside[row] ? *(__global const uint4 *)(taps->at[row] + k)
                                          : (uint4)(zero);
}

static inline void multiply_all(int (*sum)[NT][4], const uint4 *a, __global const uint4 *weights,
                                __local uint (*lanes)[6])
{
    UNROLL
    for (int j = 0; j < NT; j++) {
        const uint4 b = weights[j * 32];
        UNROLL
        for (int m = 0; m < MT; m++) {
            const uint4 x = a[2 * m], y = a[2 * m + 1];
            multiply(sum[m][j], x.x, y.x, x.y, y.y, b.x, b.y, lanes);
            multiply(sum[m][j], x.z, y.z, x.w, y.w, b.z, b.w, lanes);
        }
    }
}

__kernel __attribute__((reqd_work_group_size(32 * WARPS, 1, 1))) void
net_window(struct net_tile s, __global const uchar *restrict constants, __global uchar *work)
{
    const uint lane = (uint)get_local_id(0) & 31, warp = (uint)get_local_id(0) / 32;
    const uint g = lane / 4, t = lane % 4;
    const uint block = (uint)get_group_id(0) / s.chunks;
    const uint chunk = (uint)get_group_id(0) - block * s.chunks;
    const uint channel = chunk * (8 * NT), taps_all = s.f.kernel_y * s.f.kernel_x;
    __global const uchar *restrict in = work + s.place_a;
    WARP_LANES
#if !DIRECT
    __local uint4 stage[WARPS][16 * MT * PITCH];
    __local uint *mine = (__local uint *)stage[warp];
#endif
    /* The first channels of a chunk for each of the four lanes, then the second, ... */
    __global const int4 *q = (__global const int4 *)(constants + s.parameters) + channel + t;
    ONE_BY_ONE
    for (uint turn = 0; turn < TURNS; turn++) {
        const uint first = ((block * TURNS + turn) * WARPS + warp) * (16 * MT);
        __global const uint4 *weights = (__global const uint4 *)(constants + s.weights) +
                                        (size_t)chunk * taps_all * s.full * NT * 32 + lane;
        int sum[MT][NT][4];
        struct taps taps;
        UNROLL
        for (int i = 0; i < MT * NT * 4; i++)
            sum[i / 4 / NT][i / 4 % NT][i % 4] = 0;
#if TAPS > 1
        int y[ROWS], x[ROWS];
        __global const uchar *picture[ROWS];
#endif
        UNROLL
        for (int i = 0; i < ROWS; i++) {
            const uint row = min(first + i * 8 + g, s.rows - 1);
#if TAPS > 1
            const uint of = row / (s.f.height * s.f.width), pixel = row - of * (s.f.height * s.f.width);
            y[i] = (int)(pixel / s.f.width * s.f.stride_y) - (int)s.f.top;
            x[i] = (int)((pixel - pixel / s.f.width * s.f.width) * s.f.stride_x) - (int)s.f.left;
            picture[i] = in + (size_t)of * s.height_a * s.width_a * s.pitch_a;
#else
            taps.at[i] = in + (size_t)row * s.pitch_a;
#endif
        }
        for (uint tap = 0; tap < (TAPS > 1 ? taps_all : 1); tap++) {
#if TAPS > 1
            const uint ky = tap / s.f.kernel_x, kx = tap - ky * s.f.kernel_x;
            UNROLL
            for (int i = 0; i < ROWS; i++) {
                const int iy = y[i] + (int)(ky * s.f.dilation_y),
                          ix = x[i] + (int)(kx * s.f.dilation_x);
                taps.inside[i] = iy >= 0 && iy < (int)s.height_a && ix >= 0 && ix < (int)s.width_a;
                taps.at[i] =
                    picture[i] + (taps.inside[i] ? iy * (int)s.width_a + ix : 0) * (int)s.pitch_a;
            }
#endif
            for (uint k = 0; k < s.full; k++, weights += NT * 32) {
                uint4 a[ROWS];
                UNROLL
                for (int i = 0; i < ROWS; i++)
                    a[i] = load(&taps, i, k * 64 + t * 16, s.zero);
                multiply_all(sum, a, weights, lanes);
            }
#if TAIL == 2
            __global const uint4 *b = (__global const uint4 *)(constants + s.tails) + lane +
                                      (size_t)(chunk * taps_all + tap) * NT * 32;
            uint4 a[ROWS];
            UNROLL
            for (int i = 0; i < ROWS; i++)
                a[i] = t < 3 ? load(&taps, i, s.full * 64 + t * 16, s.zero) : (uint4)(0);
            multiply_all(sum, a, b, lanes);
#elif TAIL == 1
            __global const uint2 *b = (__global const uint2 *)(constants + s.tails) + lane +
                                      (size_t)(chunk * taps_all + tap) * NT * 32;
            uint2 a[ROWS];
            UNROLL
            for (int i = 0; i < ROWS; i++)
                a[i] = t * 8 >= s.tail ? (uint2)(0)
                       : TAPS == 1 || taps.inside[i]
                           ? *(__global const uint2 *)(taps.at[i] + s.full * 64 + t * 8)
                           : (uint2)(s.zero);
            UNROLL
            for (int j = 0; j < NT; j++) {
                const uint2 w = b[j * 32];
                UNROLL
                for (int m = 0; m < MT; m++)
                    multiply(sum[m][j], a[2 * m].x, a[2 * m + 1].x, a[2 * m].y, a[2 * m + 1].y, w.x,
                             w.y, lanes);
            }
#endif
        }
        const size_t begin = (size_t)first * s.pitch + channel;
        __global uchar *out = work + s.place + begin;
        __global const uchar *other = work + s.place_b + begin;
        uint word[MT][2][WORDS];
        UNROLL
        for (int i = 0; i < WORDS; i++) {
            const int4 p0 = q[16 * i], p1 = q[16 * i + 4], p2 = q[16 * i + 8], p3 = q[16 * i + 12];
            UNROLL
            for (int r = 0; r < ROWS; r++) {
                const int *a = &sum[r / 2][2 * i][r % 2 * 2],
                          *b = &sum[r / 2][2 * i + 1][r % 2 * 2];
                word[r / 2][r % 2][i] = pack_limited(
                    requantise(a[0] + p0.x, p0), requantise(a[1] + p1.x, p1),
                    requantise(b[0] + p2.x, p2), requantise(b[1] + p3.x, p3), s.f.low, s.f.high);
            }
        }
#if DIRECT
        UNROLL
        for (int r = 0; r < ROWS; r++) {
            const uint row = first + r * 8 + g;
            const uint *w = word[r / 2][r % 2];
            if (row < s.rows && channel + t * 16 < s.pitch)
                store(out, other, (r * 8 + g) * s.pitch + t * 16, (uint4)(w[0], w[1], w[2], w[3]),
                      &s);
        }
#else
        LANES_MEET;
        UNROLL
        for (int i = 0; i < ROWS * WORDS; i++)
            mine[(i / WORDS * 8 + g) * (PITCH * 4) + t * WORDS + i % WORDS] =
                word[i / WORDS / 2][i / WORDS % 2][i % WORDS];
        LANES_MEET;
        UNROLL
        for (uint i = 0; i < (16 * MT * WORDS + 31) / 32; i++) {
            const uint u = i * 32 + lane, r = u / WORDS, c = u % WORDS;
            if (u < 16 * MT * WORDS && first + r < s.rows && channel + c * 16 < s.pitch)
                store(out, other, r * s.pitch + c * 16, stage[warp][r * PITCH + c], &s);
        }
#endif
    }
}

#endif

#ifdef PIXELS

/* KERNEL: taps across. weights: for each eight taps, NT tiles of two words per lane. */
__kernel __attribute__((reqd_work_group_size(32 * WARPS, 1, 1))) void
net_pixels(struct net_tile s, __global const uchar *restrict constants, __global uchar *work)
{
    const uint lane = (uint)get_local_id(0) & 31, warp = (uint)get_local_id(0) / 32;
    const uint g = lane / 4, t = lane % 4;
    const uint line = min((uint)get_group_id(0) * WARPS + warp, s.rows - 1); /* of all pictures */
    const uint of = line / s.f.height, y = line - of * s.f.height;
    __global const uint *restrict in =
        (__global const uint *)(work + s.place_a) + (size_t)of * s.height_a * s.width_a;
    __global const uint2 *weights = (__global const uint2 *)(constants + s.weights) + lane;
    __global const int4 *p = (__global const int4 *)(constants + s.parameters) + t * (2 * NT);
    __global uchar *out = work + s.place + (size_t)line * s.f.width * s.pitch + t * (2 * NT);
    WARP_LANES
    for (uint begin = 0; begin < s.f.width; begin += 16) {
        int sum[NT][4];
        UNROLL
        for (int j = 0; j < NT; j++) {
            sum[j][0] = sum[j][2] = p[2 * j].x;
            sum[j][1] = sum[j][3] = p[2 * j + 1].x;
        }
        UNROLL
        for (uint k = 0; k < (TAPS + 7) / 8; k++) {
            uint a[4];
            UNROLL
            for (uint i = 0; i < 4; i++) {
                const uint tap = k * 8 + i / 2 * 4 + t;
                const int iy = (int)(y * s.f.stride_y + tap / KERNEL * s.f.dilation_y) - (int)s.f.top;
                const int ix =
                    (int)((begin + i % 2 * 8 + g) * s.f.stride_x + tap % KERNEL * s.f.dilation_x) -
                    (int)s.f.left;
                a[i] = tap >= TAPS ? 0
                       : iy >= 0 && iy < (int)s.height_a && ix >= 0 && ix < (int)s.width_a
                           ? in[(uint)iy * s.width_a + (uint)ix]
                           : s.zero;
            }
            UNROLL
            for (int j = 0; j < NT; j++) {
                const uint2 b = weights[(k * NT + j) * 32];
                multiply(sum[j], a[0], a[1], a[2], a[3], b.x, b.y, lanes);
            }
        }
        UNROLL
        for (int h = 0; h < 2; h++) {
            const uint x = begin + h * 8 + g;
            if (x >= s.f.width)
                continue;
            UNROLL
            for (int j = 0; j < NT / 2; j++)
                ((__global uint *)(out + x * s.pitch))[j] = pack_limited(
                    requantise(sum[2 * j][2 * h], p[4 * j]),
                    requantise(sum[2 * j][2 * h + 1], p[4 * j + 1]),
                    requantise(sum[2 * j + 1][2 * h], p[4 * j + 2]),
                    requantise(sum[2 * j + 1][2 * h + 1], p[4 * j + 3]), s.f.low, s.f.high);
        }
    }
}

#endif

#ifdef DEPTHWISE

#if KERNEL == 3
#define OX   2
#define COLS (STRIDE == 1 ? 4 : 6)
#define NW   1
#else
#define OX   (STRIDE == 1 ? 4 : 2)
#define COLS 8
#define NW   2
#endif
#define TURNED (KERNEL == 3 && STRIDE == 1 ? 1 : KERNEL == 3 ? OX : OX + 1)

/* Transposes words of four pixels into words of four channels. */
static inline void turn(uint *out, const uint *in)
{
    const uint p = permute(in[0], in[1], 0x5140), q = permute(in[2], in[3], 0x5140);
    const uint r = permute(in[0], in[1], 0x7362), s = permute(in[2], in[3], 0x7362);
    out[0] = permute(p, q, 0x5410);
    out[1] = permute(p, q, 0x7632);
    out[2] = permute(r, s, 0x5410);
    out[3] = permute(r, s, 0x7632);
}

/* Adds row `r` of the input to the sums that it contributes to. */
static inline void add_row(int (*sum)[OX][4], const uint *in, uint4 (*w)[NW], int r)
{
    uint d[TURNED][4];
    turn(d[0], in);
#if KERNEL == 3 && STRIDE == 2
    turn(d[1], in + 2);
#elif KERNEL == 5
    turn(d[TURNED - 1], in + 4);
    UNROLL
    for (int c = 0; c < 4; c++) {
#if STRIDE == 1
        d[1][c] = permute(d[0][c], d[4][c], 0x4321);
        d[2][c] = permute(d[0][c], d[4][c], 0x5432);
        d[3][c] = permute(d[0][c], d[4][c], 0x6543);
#else
        d[1][c] = permute(d[0][c], d[2][c], 0x5432);
#endif
    }
#endif
    UNROLL
    for (int ky = 0; ky < KERNEL; ky++) {
        if (r - ky < 0 || (r - ky) % STRIDE != 0 || (r - ky) / STRIDE >= OY)
            continue;
        const uint u[4] = {w[ky][0].x, w[ky][0].y, w[ky][0].z, w[ky][0].w};
        const uint v[4] = {w[ky][NW - 1].x, w[ky][NW - 1].y, w[ky][NW - 1].z, w[ky][NW - 1].w};
        UNROLL
        for (int i = 0; i < OX * 4; i++) {
            const int x = i / 4, c = i % 4;
            int *at = &sum[(r - ky) / STRIDE][x][c];
            if (TURNED == 1)
                *at = dot4(d[0][c], x ? u[c] << 8 : u[c], *at);
            else
                *at = dot4(d[x][c], u[c], *at);
            if (KERNEL == 5)
                *at = dot4(d[x + 1 < TURNED ? x + 1 : 0][c], v[c], *at);
        }
    }
}

/* weights: for 4 channels and each row of the window, NW words, one component per channel. */
__kernel __attribute__((reqd_work_group_size(32 * WARPS, 1, 1))) void
net_depthwise(struct net_tile s, __global const uchar *restrict constants, __global uchar *work)
{
    uint id = (uint)get_global_id(0);
    const uint across = (WIDTH + OX - 1) / OX, down = (HEIGHT + OY - 1) / OY;
    const uint word = id % (CHANNELS / 4);
    id /= CHANNELS / 4;
    const uint left = id % across;
    id /= across;
    const uint x0 = left * OX, y0 = id % down * OY, picture = id / down;
    if (picture >= s.rows)
        return;
    const int ix = (int)(x0 * STRIDE) - LEFT, iy = (int)(y0 * STRIDE) - TOP;
    __global const uchar *restrict in =
        work + s.place_a + (size_t)picture * (HEIGHT_A * WIDTH_A * CHANNELS) + word * 4;
    __global const int4 *p = (__global const int4 *)(constants + s.parameters) + word * 4;
    const int4 p0 = p[0], p1 = p[1], p2 = p[2], p3 = p[3];
    uint4 w[KERNEL][NW];
    UNROLL
    for (int i = 0; i < KERNEL * NW; i++)
        w[i / NW][i % NW] =
            ((__global const uint4 *)(constants + s.weights))[word * KERNEL * NW + i];
    int sum[OY][OX][4];
    UNROLL
    for (int i = 0; i < OY * OX; i++) {
        int *at = sum[i / OX][i % OX];
        at[0] = p0.x;
        at[1] = p1.x;
        at[2] = p2.x;
        at[3] = p3.x;
    }
    UNROLL
    for (int r = 0; r < (OY - 1) * STRIDE + KERNEL; r++) {
        const bool row_in = iy + r >= 0 && iy + r < HEIGHT_A;
        uint v[COLS];
        UNROLL
        for (int c = 0; c < COLS; c++)
            v[c] = row_in && ix + c >= 0 && ix + c < WIDTH_A
                       ? *(__global const uint *)(in + ((iy + r) * WIDTH_A + ix + c) * CHANNELS)
                       : s.zero;
        add_row(sum, v, w, r);
    }
    __global uchar *out = work + s.place + (size_t)picture * (HEIGHT * WIDTH * CHANNELS) + word * 4;
    UNROLL
    for (uint i = 0; i < OY * OX; i++) {
        const uint y = y0 + i / OX, x = x0 + i % OX;
        const int *a = sum[i / OX][i % OX];
        if (y < HEIGHT && x < WIDTH)
            *(__global uint *)(out + (y * WIDTH + x) * CHANNELS) =
                pack_limited(requantise(a[0], p0), requantise(a[1], p1), requantise(a[2], p2),
                             requantise(a[3], p3), s.f.low, s.f.high);
    }
}

#endif
