/* host_kernels.c: the variants: AMX, AVX-512 VNNI, AVX-VNNI, AVX2 and plain C.
 *
 * Products of uint8 and int8 are exact in all of them. vpmaddubsw, which other programs use without
 * VNNI, saturates; AVX2 multiplies 16-bit values instead. Sums begin with the bias; the model's
 * reader has proven that they stay within int32.
 *
 * Tiles keep their sums in registers. GCC 12 spills those of the vpdpbusd intrinsic to the stack
 * between rounds, hence the inline assembly. The last tile of a panel starts earlier instead of
 * being smaller, recomputing some pixels. */
#include "net/host_kernels.h"

#include <string.h>

/* --- plain -------------------------------------------------------------------------------------- */

enum { PLAIN_LANES = 16 };

static unsigned channel_plain(unsigned vectors, unsigned vector, unsigned lane)
{
    (void)vectors;
    return vector * PLAIN_LANES + lane;
}

static bool runs_everywhere(void)
{
    return true;
}

static void copy_plain(void *to, const uint8_t *from, size_t count)
{
    memcpy(to, from, count);
}

static void store_plain(uint8_t *out, const int32_t *sums, const struct host_block *b)
{
    const struct host_parameters *p = b->parameters;
    for (unsigned c = 0; c < b->count; c++) {
        const int64_t product = (int64_t)(int32_t)((uint32_t)sums[c] << p->pre[c]) * p->mul[c];
        const int64_t value = (product + ((int64_t)p->add[c] << 32)) >> (p->shift[c] + 32);
        out[c] = (uint8_t)(value < b->low ? b->low : value > b->high ? b->high : value);
    }
}

static void multiply_plain(const struct host_multiply *m)
{
    for (unsigned p = 0; p < m->pixels; p++) {
        const uint8_t *q = (const uint8_t *)m->panel + p * m->stride;
        const int8_t *w = m->block->weights;
        int32_t sums[PLAIN_LANES];
        memcpy(sums, m->block->parameters->bias, sizeof sums);
        for (size_t k = 0; k < m->steps; k++, w += PLAIN_LANES)
            for (unsigned c = 0; c < PLAIN_LANES; c++)
                sums[c] += q[k] * w[c];
        store_plain(m->out[p] + m->block->first, sums, m->block);
    }
}

static void depthwise_plain(const struct host_depthwise *d)
{
    for (unsigned p = 0; p < d->pixels; p++) {
        const uint8_t *in = d->in + p * d->step;
        const int8_t *w = d->block->weights;
        int32_t sums[PLAIN_LANES];
        memcpy(sums, d->block->parameters->bias, sizeof sums);
        for (size_t t = 0; t < d->steps; t++, w += PLAIN_LANES)
            for (unsigned c = 0; c < d->block->count; c++)
                sums[c] += in[d->taps[t] + c] * w[c];
        store_plain(d->out + p * d->out_step, sums, d->block);
    }
}

static const struct host_kernels plain = {
    "plain",        PLAIN_LANES,    1, 1, 1, 1, channel_plain, runs_everywhere, copy_plain,
    multiply_plain, depthwise_plain};

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__clang__)
#define UNROLL         _Pragma("unroll")
#define OPTIMIZED(isa) __attribute__((target(isa)))
#else
#define UNROLL         _Pragma("GCC unroll 16")
#define OPTIMIZED(isa) __attribute__((target(isa), optimize("O3")))
#endif

static inline int32_t four_bytes(const uint8_t *from)
{
    int32_t four;
    memcpy(&four, from, sizeof four);
    return four;
}

/* --- AVX2 and AVX-VNNI: blocks of two vectors of 8 channels ------------------------------------- */

#define AVX2        OPTIMIZED("avx2")
#define AVX2_INLINE static inline __attribute__((always_inline)) AVX2

enum { LANES_256 = 8, VECTORS_256 = 2, TILE_256 = 6 };

/* The order of the channels after packing 16 bytes. */
static unsigned channel_256(unsigned vectors, unsigned vector, unsigned lane)
{
    (void)vectors;
    return 8 * (lane / 4) + 4 * vector + lane % 4;
}

static bool runs_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}

static bool runs_avx_vnni(void)
{
    unsigned a = 0, b, c, d;
    return __builtin_cpu_supports("avx2") && __get_cpuid_count(7, 1, &a, &b, &c, &d) &&
           (a >> 4 & 1);
}

AVX2_INLINE __m256i load_256(const int32_t *from)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)from);
}

AVX2_INLINE __m256i requantise_256(__m256i sum, const struct host_parameters *p, unsigned v,
                                   bool shifts_first)
{
    const unsigned at = v * LANES_256;
    const __m256i m = load_256(p->mul + at);
    if (shifts_first)
        sum = _mm256_sllv_epi32(sum, load_256(p->pre + at));
    const __m256i even = _mm256_mul_epi32(sum, m);
    const __m256i odd = _mm256_mul_epi32(_mm256_srli_epi64(sum, 32), _mm256_srli_epi64(m, 32));
    const __m256i high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
    return _mm256_srav_epi32(_mm256_add_epi32(high, load_256(p->add + at)),
                             load_256(p->shift + at));
}

/* Stores the channels of a pixel of a block. */
AVX2_INLINE void store_256(uint8_t *out, __m256i a, __m256i b, const struct host_block *block,
                           bool shifts_first)
{
    a = requantise_256(a, block->parameters, 0, shifts_first);
    b = requantise_256(b, block->parameters, 1, shifts_first);
    const __m256i words = _mm256_packs_epi32(a, b);
    const __m256i bytes = _mm256_permute4x64_epi64(_mm256_packus_epi16(words, words), 0x08);
    __m128i values = _mm256_castsi256_si128(bytes);
    values = _mm_max_epu8(values, _mm_set1_epi8((char)block->low));
    values = _mm_min_epu8(values, _mm_set1_epi8((char)block->high));
    if (block->count == LANES_256 * VECTORS_256)
        _mm_storeu_si128((__m128i *)(void *)out, values);
    else
        memcpy(out, &values, block->count);
}

AVX2_INLINE __m256i dot_256(__m256i sum, __m256i values, const void *weights, bool vnni)
{
    const __m256i w = _mm256_load_si256(weights);
    if (!vnni)
        return _mm256_add_epi32(sum, _mm256_madd_epi16(values, w));
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(values), "x"(w));
    return sum;
}

AVX2_INLINE void tile_256(unsigned rows, const struct host_multiply *m, unsigned pixel, bool vnni)
{
    const uint8_t *q = (const uint8_t *)m->panel + pixel * m->stride;
    const uint8_t *w = m->block->weights;
    const struct host_parameters *p = m->block->parameters;
    __m256i sums[TILE_256][VECTORS_256];
    UNROLL
    for (unsigned r = 0; r < rows; r++) {
        sums[r][0] = load_256(p->bias);
        sums[r][1] = load_256(p->bias + LANES_256);
    }
    for (size_t k = 0; k < m->steps; k++, q += 4, w += 64) {
        UNROLL
        for (unsigned r = 0; r < rows; r++) {
            const __m256i values = _mm256_set1_epi32(four_bytes(q + r * m->stride));
            sums[r][0] = dot_256(sums[r][0], values, w, vnni);
            sums[r][1] = dot_256(sums[r][1], values, w + 32, vnni);
        }
    }
    UNROLL
    for (unsigned r = 0; r < rows; r++) {
        uint8_t *out = m->out[pixel + r] + m->block->first;
        if (m->block->shifts_first)
            store_256(out, sums[r][0], sums[r][1], m->block, true);
        else
            store_256(out, sums[r][0], sums[r][1], m->block, false);
    }
}

AVX2_INLINE void multiply_256(const struct host_multiply *m, bool vnni)
{
    if (m->pixels < TILE_256)
        for (unsigned p = 0; p < m->pixels; p++)
            tile_256(1, m, p, vnni);
    else
        for (unsigned p = 0; p < m->pixels; p += TILE_256)
            tile_256(TILE_256, m, p + TILE_256 <= m->pixels ? p : m->pixels - TILE_256, vnni);
}

AVX2 static void multiply_avx2(const struct host_multiply *m)
{
    multiply_256(m, false);
}

AVX2 static void multiply_avx_vnni(const struct host_multiply *m)
{
    multiply_256(m, true);
}

AVX2_INLINE __m128i load_16(const uint8_t *from)
{
    return _mm_loadu_si128((const __m128i *)(const void *)from);
}

/* Takes pairs of taps as 16-bit values, or four taps as bytes. */
AVX2_INLINE void depthwise_row_256(const struct host_depthwise *d, size_t steps, bool vnni,
                                   bool shifts_first)
{
    const struct host_parameters *p = d->block->parameters;
    for (unsigned x = 0; x < d->pixels; x++) {
        const uint8_t *in = d->in + x * d->step, *w = d->block->weights;
        const size_t *taps = d->taps;
        __m256i low = load_256(p->bias), high = load_256(p->bias + LANES_256);
        for (size_t s = 0; s < steps; s++, w += 64) {
            __m256i a, b;
            if (vnni) {
                const __m128i p0 = load_16(in + taps[0]), p1 = load_16(in + taps[1]);
                const __m128i p2 = load_16(in + taps[2]), p3 = load_16(in + taps[3]);
                const __m256i one =
                    _mm256_setr_m128i(_mm_unpacklo_epi8(p0, p1), _mm_unpackhi_epi8(p0, p1));
                const __m256i two =
                    _mm256_setr_m128i(_mm_unpacklo_epi8(p2, p3), _mm_unpackhi_epi8(p2, p3));
                a = _mm256_unpacklo_epi16(one, two);
                b = _mm256_unpackhi_epi16(one, two);
                taps += 4;
            } else {
                const __m256i one = _mm256_cvtepu8_epi16(load_16(in + taps[0]));
                const __m256i two = _mm256_cvtepu8_epi16(load_16(in + taps[1]));
                a = _mm256_unpacklo_epi16(one, two);
                b = _mm256_unpackhi_epi16(one, two);
                taps += 2;
            }
            low = dot_256(low, a, w, vnni);
            high = dot_256(high, b, w + 32, vnni);
        }
        store_256(d->out + x * d->out_step, low, high, d->block, shifts_first);
    }
}

/* Specialised for the steps of 3x3 and 5x5. */
AVX2_INLINE void depthwise_256(const struct host_depthwise *d, bool vnni)
{
    const size_t small = vnni ? 3 : 5, large = vnni ? 7 : 13;
    if (d->block->shifts_first)
        depthwise_row_256(d, d->steps, vnni, true);
    else if (d->steps == small)
        depthwise_row_256(d, small, vnni, false);
    else if (d->steps == large)
        depthwise_row_256(d, large, vnni, false);
    else
        depthwise_row_256(d, d->steps, vnni, false);
}

AVX2 static void depthwise_avx2(const struct host_depthwise *d)
{
    depthwise_256(d, false);
}

AVX2 static void depthwise_avx_vnni(const struct host_depthwise *d)
{
    depthwise_256(d, true);
}

AVX2 static void copy_wide(void *to, const uint8_t *from, size_t count)
{
    uint16_t *out = to;
    for (size_t i = 0; i < count; i += 16)
        _mm256_storeu_si256((__m256i *)(void *)(out + i), _mm256_cvtepu8_epi16(load_16(from + i)));
}

static void copy_bytes(void *to, const uint8_t *from, size_t count)
{
    uint8_t *out = to;
    for (size_t i = 0; i < count; i += 16)
        memcpy(out + i, from + i, 16);
}

static const struct host_kernels avx2 = {
    "avx2",    LANES_256,     VECTORS_256,   2, 1, 2, channel_256, runs_avx2,
    copy_wide, multiply_avx2, depthwise_avx2};
static const struct host_kernels avx_vnni = {
    "avx-vnni", LANES_256,         VECTORS_256,       4, 1, 1, channel_256, runs_avx_vnni,
    copy_bytes, multiply_avx_vnni, depthwise_avx_vnni};

/* --- AVX-512 VNNI: blocks of up to four vectors of 16 channels ------------------------------------ */

#define VNNI        OPTIMIZED("avx512f,avx512bw,avx512vl,avx512vnni")
#define VNNI_INLINE static inline __attribute__((always_inline)) VNNI

enum { LANES_512 = 16, VECTORS_512 = 4 };

static unsigned channel_512(unsigned vectors, unsigned vector, unsigned lane)
{
    return vectors == VECTORS_512 ? 16 * (lane / 4) + 4 * vector + lane % 4
                                  : vector * LANES_512 + lane;
}

static bool runs_avx512_vnni(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
}

#define DOT_512(sum, values, weights)                                                              \
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(values), "v"(weights))

VNNI_INLINE __m512i requantise_512(__m512i sum, const struct host_parameters *p, unsigned v,
                                   bool shifts_first)
{
    const unsigned at = v * LANES_512;
    const __m512i m = _mm512_loadu_si512(p->mul + at);
    if (shifts_first)
        sum = _mm512_sllv_epi32(sum, _mm512_loadu_si512(p->pre + at));
    const __m512i even = _mm512_mul_epi32(sum, m);
    const __m512i odd = _mm512_mul_epi32(_mm512_srli_epi64(sum, 32), _mm512_srli_epi64(m, 32));
    const __m512i high = _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
    return _mm512_srav_epi32(_mm512_add_epi32(high, _mm512_loadu_si512(p->add + at)),
                             _mm512_loadu_si512(p->shift + at));
}

VNNI_INLINE void store_512(uint8_t *out, unsigned vectors, const __m512i sums[VECTORS_512],
                           const struct host_block *block, bool shifts_first)
{
    __m512i v[VECTORS_512];
    UNROLL
    for (unsigned i = 0; i < vectors; i++)
        v[i] = requantise_512(sums[i], block->parameters, i, shifts_first);
    if (vectors == VECTORS_512) {
        __m512i bytes =
            _mm512_packus_epi16(_mm512_packs_epi32(v[0], v[1]), _mm512_packs_epi32(v[2], v[3]));
        bytes = _mm512_max_epu8(bytes, _mm512_set1_epi8((char)block->low));
        bytes = _mm512_min_epu8(bytes, _mm512_set1_epi8((char)block->high));
        _mm512_mask_storeu_epi8(out, ~(__mmask64)0 >> (64 - block->count), bytes);
        return;
    }
    UNROLL
    for (unsigned i = 0; i < vectors; i++) {
        const unsigned left = block->count - i * LANES_512;
        const __m512i low = _mm512_max_epi32(v[i], _mm512_set1_epi32(block->low));
        const __mmask16 mask = (__mmask16)(left >= LANES_512 ? 0xffff : (1u << left) - 1);
        _mm512_mask_cvtepi32_storeu_epi8(out + i * LANES_512, mask,
                                         _mm512_min_epi32(low, _mm512_set1_epi32(block->high)));
    }
}

VNNI_INLINE void tile_512(unsigned rows, unsigned vectors, const struct host_multiply *m,
                          unsigned pixel)
{
    const uint8_t *q = (const uint8_t *)m->panel + pixel * m->stride;
    const uint8_t *w = m->block->weights;
    __m512i sums[HOST_TILE][VECTORS_512];
    UNROLL
    for (unsigned r = 0; r < rows; r++)
        UNROLL
    for (unsigned v = 0; v < vectors; v++)
        sums[r][v] = _mm512_loadu_si512(m->block->parameters->bias + v * LANES_512);
    for (size_t k = 0; k < m->steps; k++, q += 4, w += 64 * (size_t)vectors) {
        __m512i weights[VECTORS_512];
        UNROLL
        for (unsigned v = 0; v < vectors; v++)
            weights[v] = _mm512_load_si512(w + 64 * v);
        UNROLL
        for (unsigned r = 0; r < rows; r++) {
            const __m512i values = _mm512_set1_epi32(four_bytes(q + r * m->stride));
            UNROLL
            for (unsigned v = 0; v < vectors; v++)
                DOT_512(sums[r][v], values, weights[v]);
        }
    }
    UNROLL
    for (unsigned r = 0; r < rows; r++) {
        uint8_t *out = m->out[pixel + r] + m->block->first;
        if (m->block->shifts_first)
            store_512(out, vectors, sums[r], m->block, true);
        else
            store_512(out, vectors, sums[r], m->block, false);
    }
}

VNNI_INLINE void tiles_512(unsigned rows, unsigned vectors, const struct host_multiply *m)
{
    if (m->pixels < rows)
        for (unsigned p = 0; p < m->pixels; p++)
            tile_512(1, vectors, m, p);
    else
        for (unsigned p = 0; p < m->pixels; p += rows)
            tile_512(rows, vectors, m, p + rows <= m->pixels ? p : m->pixels - rows);
}

VNNI static void multiply_avx512(const struct host_multiply *m)
{
    if (m->block->vectors == 4)
        tiles_512(6, 4, m);
    else if (m->block->vectors == 3)
        tiles_512(8, 3, m);
    else if (m->block->vectors == 2)
        tiles_512(12, 2, m);
    else
        tiles_512(HOST_TILE, 1, m);
}

VNNI_INLINE void depthwise_row_512(const struct host_depthwise *d, size_t steps, bool shifts_first)
{
    const __mmask64 mask = ~(__mmask64)0 >> (64 - d->block->count);
    for (unsigned x = 0; x < d->pixels; x++) {
        const uint8_t *in = d->in + x * d->step, *w = d->block->weights;
        const size_t *taps = d->taps;
        __m512i sums[VECTORS_512];
        UNROLL
        for (unsigned v = 0; v < VECTORS_512; v++)
            sums[v] = _mm512_loadu_si512(d->block->parameters->bias + v * LANES_512);
        for (size_t s = 0; s < steps; s++, taps += 4, w += 256) {
            const __m512i a = _mm512_maskz_loadu_epi8(mask, in + taps[0]);
            const __m512i b = _mm512_maskz_loadu_epi8(mask, in + taps[1]);
            const __m512i c = _mm512_maskz_loadu_epi8(mask, in + taps[2]);
            const __m512i e = _mm512_maskz_loadu_epi8(mask, in + taps[3]);
            const __m512i ab = _mm512_unpacklo_epi8(a, b), ab_high = _mm512_unpackhi_epi8(a, b);
            const __m512i ce = _mm512_unpacklo_epi8(c, e), ce_high = _mm512_unpackhi_epi8(c, e);
            const __m512i fours[VECTORS_512] = {
                _mm512_unpacklo_epi16(ab, ce), _mm512_unpackhi_epi16(ab, ce),
                _mm512_unpacklo_epi16(ab_high, ce_high), _mm512_unpackhi_epi16(ab_high, ce_high)};
            UNROLL
            for (unsigned v = 0; v < VECTORS_512; v++)
                DOT_512(sums[v], fours[v], _mm512_load_si512(w + 64 * v));
        }
        store_512(d->out + x * d->out_step, VECTORS_512, sums, d->block, shifts_first);
    }
}

VNNI static void depthwise_avx512(const struct host_depthwise *d)
{
    if (d->block->shifts_first)
        depthwise_row_512(d, d->steps, true);
    else if (d->steps == 3)
        depthwise_row_512(d, 3, false);
    else if (d->steps == 7)
        depthwise_row_512(d, 7, false);
    else
        depthwise_row_512(d, d->steps, false);
}

static const struct host_kernels avx512_vnni = {
    "avx512-vnni", LANES_512,       VECTORS_512,     4, 1, 1, channel_512, runs_avx512_vnni,
    copy_bytes,    multiply_avx512, depthwise_avx512};

/* --- AMX: tiles of 16 pixels by 16 channels, 64 values of k at a time ---------------------------- */

#define AMX OPTIMIZED("avx512f,avx512bw,avx512vl,avx512vnni,amx-tile,amx-int8")

enum { PIXELS_AMX = 16, WHOLE_AMX = 16 };
/* arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA), since Linux 5.16. */
enum { REQUEST_STATE = 0x1023, TILE_STATE = 18 };

/* The operand of ldtilecfg: all tiles have 16 rows of 64 bytes. */
static const struct {
    uint8_t palette, start_row, unused[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tiles_amx __attribute__((aligned(64))) = {
    .palette = 1,
    .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
    .rows = {16, 16, 16, 16, 16, 16, 16, 16},
};

/* Asks the kernel for the tiles' state, which a process does not have from the start. */
static bool runs_amx(void)
{
    unsigned a, b, c, d = 0;
    return runs_avx512_vnni() && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
           (d >> 24 & 3) == 3 /* amx-tile, amx-int8 */ &&
           syscall(SYS_arch_prctl, REQUEST_STATE, TILE_STATE) == 0;
}

#define AMX_INLINE static inline __attribute__((always_inline)) AMX

/* The sums of a tile's pixels: vectors of 16 channels. */
struct sums_amx {
    int32_t of[PIXELS_AMX][VECTORS_512][LANES_512];
} __attribute__((aligned(64)));

/* Sums in tiles 0 to 3, pixels in tile 4, weights in tiles 5 to 7 in turn. */
AMX_INLINE void multiply_tile_amx(unsigned vectors, const struct host_multiply *m, unsigned pixel,
                                  struct sums_amx *sums)
{
    const uint8_t *q = (const uint8_t *)m->panel + pixel * m->stride;
    const uint8_t *w = m->block->weights;
    const int32_t *bias = m->block->parameters->bias;
    const size_t step = (size_t)64 * vectors;
    /* The same 16 biases for each pixel. */
    _tile_loadd(0, bias, 0);
    if (vectors > 1)
        _tile_loadd(1, bias + LANES_512, 0);
    if (vectors > 2)
        _tile_loadd(2, bias + 2 * LANES_512, 0);
    if (vectors > 3)
        _tile_loadd(3, bias + 3 * LANES_512, 0);
    for (size_t k = 0; k < m->steps; k += WHOLE_AMX, q += 64, w += WHOLE_AMX * step) {
        _tile_loadd(4, q, m->stride);
        _tile_loadd(5, w, step);
        _tile_dpbusd(0, 4, 5);
        if (vectors > 1) {
            _tile_loadd(6, w + 64, step);
            _tile_dpbusd(1, 4, 6);
        }
        if (vectors > 2) {
            _tile_loadd(7, w + 128, step);
            _tile_dpbusd(2, 4, 7);
        }
        if (vectors > 3) {
            _tile_loadd(5, w + 192, step);
            _tile_dpbusd(3, 4, 5);
        }
    }
    _tile_stored(0, sums->of[0][0], sizeof sums->of[0]);
    if (vectors > 1)
        _tile_stored(1, sums->of[0][1], sizeof sums->of[0]);
    if (vectors > 2)
        _tile_stored(2, sums->of[0][2], sizeof sums->of[0]);
    if (vectors > 3)
        _tile_stored(3, sums->of[0][3], sizeof sums->of[0]);
}

AMX_INLINE void store_tile_amx(unsigned vectors, const struct host_multiply *m, unsigned pixel,
                               const struct sums_amx *sums)
{
    for (unsigned r = 0; r < PIXELS_AMX; r++) {
        __m512i of_pixel[VECTORS_512];
        UNROLL
        for (unsigned v = 0; v < vectors; v++)
            of_pixel[v] = _mm512_load_si512(sums->of[r][v]);
        uint8_t *out = m->out[pixel + r] + m->block->first;
        if (m->block->shifts_first)
            store_512(out, vectors, of_pixel, m->block, true);
        else
            store_512(out, vectors, of_pixel, m->block, false);
    }
}

/* A tile is stored while the next one is multiplied: stores of tiles are not forwarded to loads. */
AMX_INLINE void tiles_amx_of(unsigned vectors, const struct host_multiply *m)
{
    struct sums_amx sums[2];
    unsigned before = 0, turn = 0;
    for (unsigned p = 0; p < m->pixels; p += PIXELS_AMX, turn ^= 1) {
        const unsigned pixel = p + PIXELS_AMX <= m->pixels ? p : m->pixels - PIXELS_AMX;
        multiply_tile_amx(vectors, m, pixel, &sums[turn]);
        if (p > 0)
            store_tile_amx(vectors, m, before, &sums[turn ^ 1]);
        before = pixel;
    }
    store_tile_amx(vectors, m, before, &sums[turn ^ 1]);
}

AMX static void multiply_amx(const struct host_multiply *m)
{
    if (m->pixels < PIXELS_AMX) {
        multiply_avx512(m);
        return;
    }
    _tile_loadconfig(&tiles_amx);
    if (m->block->vectors == 4)
        tiles_amx_of(4, m);
    else if (m->block->vectors == 3)
        tiles_amx_of(3, m);
    else if (m->block->vectors == 2)
        tiles_amx_of(2, m);
    else
        tiles_amx_of(1, m);
    _tile_release();
}

static const struct host_kernels amx = {
    "amx",      LANES_512,    VECTORS_512,     4, WHOLE_AMX, 1, channel_512, runs_amx,
    copy_bytes, multiply_amx, depthwise_avx512};

static const struct host_kernels *const all[] = {&amx, &avx512_vnni, &avx_vnni, &avx2, &plain};

#else

static const struct host_kernels *const all[] = {&plain};

#endif

#define COUNT (sizeof all / sizeof *all)

const struct host_kernels *host_kernels_choose(const char *name)
{
    for (size_t i = 0; i < COUNT; i++)
        if ((!name || strcmp(name, all[i]->name) == 0) && all[i]->runs())
            return all[i];
    return NULL;
}

const char *host_kernels_name(unsigned i)
{
    return i < COUNT ? all[i]->name : NULL;
}
