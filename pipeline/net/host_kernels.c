/* host_kernels.c: the variants: AMX, AVX-512 VNNI, AVX-VNNI, AVX2 and plain C.
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
    "plain", PLAIN_LANES, 1, 1, 1, 1, 1, NULL, copy_bytes, multiply_plain, depthwise_plain};

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

TARGET static void multiply_avx2(const struct host_multiply *m)
{
    tiles_avx2(TILE_256, VECTORS_256, m);
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
    "avx2",    LANES_256, VECTORS_256,   DEPTHWISE_VECTORS, 2, 1, 2,
    runs_avx2, copy_wide, multiply_avx2, depthwise_avx2};

#define SET(name) name##_avx_vnni
#define TAPS      4
#define DOT(sum, values, weights)                                                                  \
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(values), "x"(weights))
#include "net/host_vectors.h"

TARGET static void multiply_avx_vnni(const struct host_multiply *m)
{
    tiles_avx_vnni(TILE_256, VECTORS_256, m);
}

static const struct host_kernels avx_vnni = {
    "avx-vnni",    LANES_256,  VECTORS_256,       DEPTHWISE_VECTORS, 4, 1, 1,
    runs_avx_vnni, copy_bytes, multiply_avx_vnni, depthwise_avx_vnni};

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

TARGET static void multiply_avx512(const struct host_multiply *m)
{
    if (m->block->vectors == 4)
        tiles_avx512(6, 4, m);
    else if (m->block->vectors == 3)
        tiles_avx512(8, 3, m);
    else if (m->block->vectors == 2)
        tiles_avx512(12, 2, m);
    else
        tiles_avx512(HOST_TILE, 1, m);
}

static const struct host_kernels avx512_vnni = {
    "avx512-vnni",    LANES_512,  VECTORS_512,     DEPTHWISE_VECTORS, 4, 1, 1,
    runs_avx512_vnni, copy_bytes, multiply_avx512, depthwise_avx512};

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
        store_avx512(m->out[pixel + r] + m->block->first, vectors, of_pixel, m->block);
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
    "amx",    LANES_512,  VECTORS_512,  DEPTHWISE_VECTORS, 4, WHOLE_AMX, 1,
    runs_amx, copy_bytes, multiply_amx, depthwise_avx512};

static const struct host_kernels *const all[] = {&amx, &avx512_vnni, &avx_vnni, &avx2, &plain};

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
