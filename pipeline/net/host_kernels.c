/* host_kernels.c: the variants: AVX-512 VNNI, AVX-VNNI, AVX2 and plain C.
 *
 * Products of uint8 and int8 are exact in all of them. vpmaddubsw, which other programs use if
 * there is no VNNI, saturates; AVX2 multiplies 16-bit values instead. Sums begin with the bias; the
 * model's reader has proven that they stay within int32.
 *
 * Tiles keep their sums in registers. GCC 12 spills those of the vpdpbusd intrinsic to the stack
 * between rounds, hence the inline assembly. The last tile of a panel starts earlier instead of
 * being smaller, recomputing some pixels. */
#include "net/host_kernels.h"

#include <string.h>

/* --- plain -------------------------------------------------------------------------------------- */

enum { PLAIN_LANES = 16 };

static void copy_bytes(void *to, const uint8_t *from, size_t count)
{
    uint8_t *out = to;
    for (size_t i = 0; i < count; i += 16)
        memcpy(out + i, from + i, 16);
}

static void store_plain(uint8_t *out, const int32_t *sums, const struct host_block *b)
{
    const struct host_parameters *p = b->parameters;
    out += b->first;
    for (unsigned c = 0; c < b->count; c++) {
        const int64_t product = (int64_t)(int32_t)((uint32_t)sums[c] << p->pre[c]) * p->mul[c];
        const int64_t value = (product + ((int64_t)p->add[c] << 32)) >> (p->shift[c] + 32);
        out[c] = (uint8_t)(value < b->low ? b->low : value > b->high ? b->high : value);
    }
}

static void multiply_plain(const struct host_work *work)
{
    for (unsigned p = 0; p < work->pixels; p++) {
        const uint8_t *q = work->panel + p * work->stride;
        const int8_t *w = work->block->weights;
        int32_t sums[PLAIN_LANES];
        memcpy(sums, work->block->parameters->bias, sizeof sums);
        for (size_t k = 0; k < work->steps; k++, w += PLAIN_LANES)
            for (unsigned c = 0; c < PLAIN_LANES; c++)
                sums[c] += q[k] * w[c];
        store_plain(work->out[p], sums, work->block);
    }
}

static void depthwise_plain(const struct host_work *work)
{
    for (unsigned p = 0; p < work->pixels; p++) {
        const uint8_t *in = work->in[p] + work->block->first;
        const int8_t *w = work->block->weights;
        int32_t sums[PLAIN_LANES];
        memcpy(sums, work->block->parameters->bias, sizeof sums);
        for (size_t t = 0; t < work->steps; t++, w += PLAIN_LANES)
            for (unsigned c = 0; c < work->block->count; c++)
                sums[c] += in[work->taps[t] + c] * w[c];
        store_plain(work->out[p], sums, work->block);
    }
}

static const struct host_kernels plain = {
    "plain", PLAIN_LANES, 1, 1, 1, 1, NULL, copy_bytes, multiply_plain, depthwise_plain};

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

#if defined(__clang__)
#define UNROLL         _Pragma("unroll")
#define OPTIMIZED(isa) __attribute__((target(isa)))
#else
#define UNROLL         _Pragma("GCC unroll 16")
#define OPTIMIZED(isa) __attribute__((target(isa), optimize("O3")))
#endif

#define VECTOR_INLINE     static inline __attribute__((always_inline)) TARGET
#define DEPTHWISE_VECTORS 4

static inline int32_t four_bytes(const uint8_t *from)
{
    int32_t four;
    memcpy(&four, from, sizeof four);
    return four;
}

/* --- AVX2 and AVX-VNNI: vectors of 8 channels ---------------------------------------------------- */

enum { LANES_256 = 8, VECTORS_256 = 2, TILE_256 = 6 };

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

#define TARGET              OPTIMIZED("avx2")
#define VECTOR              __m256i
#define LANES               LANES_256
#define MM(name)            _mm256_##name
#define LOAD(from)          _mm256_loadu_si256((const __m256i *)(const void *)(from))
#define TAKE_ODD(even, odd) _mm256_blend_epi32(even, odd, 0xaa)
#define STORE_ALL           store_all_256
#define STORE_SOME          store_two_256

VECTOR_INLINE void store_all_256(uint8_t *out, __m256i bytes, unsigned count)
{
    if (count == sizeof bytes)
        _mm256_storeu_si256((__m256i *)(void *)out, bytes);
    else
        memcpy(out, &bytes, count);
}

VECTOR_INLINE void store_two_256(uint8_t *out, unsigned vectors, const __m256i *v,
                                 const struct host_block *block)
{
    (void)vectors;
    const __m256i words = _mm256_packs_epi32(v[0], v[1]);
    const __m256i bytes = _mm256_permute4x64_epi64(_mm256_packus_epi16(words, words), 0x08);
    __m128i values = _mm256_castsi256_si128(bytes);
    values = _mm_max_epu8(values, _mm_set1_epi8((char)block->low));
    values = _mm_min_epu8(values, _mm_set1_epi8((char)block->high));
    if (block->count == sizeof values)
        _mm_storeu_si128((__m128i *)(void *)out, values);
    else
        memcpy(out, &values, block->count);
}

#define SET(name)                 name##_avx2
#define TAPS                      2
#define DOT(sum, values, weights) sum = _mm256_add_epi32(sum, _mm256_madd_epi16(values, weights))
#include "net/host_vectors.h"

TARGET static void multiply_avx2(const struct host_work *work)
{
    tiles_avx2(TILE_256, VECTORS_256, work);
}

TARGET static void copy_wide(void *to, const uint8_t *from, size_t count)
{
    uint16_t *out = to;
    for (size_t i = 0; i < count; i += 16)
        _mm256_storeu_si256(
            (__m256i *)(void *)(out + i),
            _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(from + i))));
}

static const struct host_kernels avx2 = {
    "avx2", LANES_256, VECTORS_256, DEPTHWISE_VECTORS, 2,
    2,      runs_avx2, copy_wide,   multiply_avx2,     depthwise_avx2};

#define SET(name) name##_avx_vnni
#define TAPS      4
#define DOT(sum, values, weights)                                                                  \
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(values), "x"(weights))
#include "net/host_vectors.h"

TARGET static void multiply_avx_vnni(const struct host_work *work)
{
    tiles_avx_vnni(TILE_256, VECTORS_256, work);
}

static const struct host_kernels avx_vnni = {
    "avx-vnni", LANES_256,     VECTORS_256, DEPTHWISE_VECTORS, 4,
    1,          runs_avx_vnni, copy_bytes,  multiply_avx_vnni, depthwise_avx_vnni};

#undef TARGET
#undef VECTOR
#undef LANES
#undef MM
#undef LOAD
#undef TAKE_ODD
#undef STORE_ALL
#undef STORE_SOME

/* --- AVX-512 VNNI: vectors of 16 channels --------------------------------------------------------- */

enum { LANES_512 = 16, VECTORS_512 = 4 };

static bool runs_avx512_vnni(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
}

#define SET(name)           name##_avx512
#define TARGET              OPTIMIZED("avx512f,avx512bw,avx512vl,avx512vnni")
#define VECTOR              __m512i
#define LANES               LANES_512
#define TAPS                4
#define MM(name)            _mm512_##name
#define LOAD(from)          _mm512_loadu_si512(from)
#define TAKE_ODD(even, odd) _mm512_mask_blend_epi32(0xaaaa, even, odd)
#define STORE_ALL           store_all_512
#define STORE_SOME          store_some_512
#define DOT(sum, values, weights)                                                                  \
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(values), "v"(weights))

VECTOR_INLINE void store_all_512(uint8_t *out, __m512i bytes, unsigned count)
{
    _mm512_mask_storeu_epi8(out, ~(__mmask64)0 >> (64 - count), bytes);
}

VECTOR_INLINE void store_some_512(uint8_t *out, unsigned vectors, const __m512i *v,
                                  const struct host_block *block)
{
    UNROLL
    for (unsigned i = 0; i < vectors; i++) {
        const unsigned left = block->count - i * LANES_512;
        const __m512i low = _mm512_max_epi32(v[i], _mm512_set1_epi32(block->low));
        const __mmask16 mask = (__mmask16)(left >= LANES_512 ? 0xffff : (1u << left) - 1);
        _mm512_mask_cvtepi32_storeu_epi8(out + i * LANES_512, mask,
                                         _mm512_min_epi32(low, _mm512_set1_epi32(block->high)));
    }
}

#include "net/host_vectors.h"

TARGET static void multiply_avx512(const struct host_work *work)
{
    if (work->block->vectors == 4)
        tiles_avx512(6, 4, work);
    else if (work->block->vectors == 3)
        tiles_avx512(8, 3, work);
    else if (work->block->vectors == 2)
        tiles_avx512(12, 2, work);
    else
        tiles_avx512(HOST_TILE, 1, work);
}

static const struct host_kernels avx512_vnni = {
    "avx512-vnni",    LANES_512,  VECTORS_512,     DEPTHWISE_VECTORS, 4, 1,
    runs_avx512_vnni, copy_bytes, multiply_avx512, depthwise_avx512};

static const struct host_kernels *const all[] = {&avx512_vnni, &avx_vnni, &avx2, &plain};

#else

static const struct host_kernels *const all[] = {&plain};

#endif

const struct host_kernels *host_kernels_choose(const char *name)
{
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if ((!name || strcmp(name, all[i]->name) == 0) && (!all[i]->runs || all[i]->runs()))
            return all[i];
    return NULL;
}
