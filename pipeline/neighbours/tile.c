/* tile.c: the same products and tests for AVX-512 VNNI, for AVX2, and in plain C. */
#include "neighbours/tile.h"
#include "neighbours/codes.h"
#include <stdbool.h>
#include <string.h>

/* --- plain C ---------------------------------------------------------------------------------- */

static void multiply_plain(int32_t *out, const void *rows, const void *panel, uint32_t stride,
                           const int32_t *start)
{
    const int16_t *a = rows, *b = panel;
    for (uint32_t row = 0; row < TILE_ROWS; row++, a += stride) {
        int32_t sum[TILE_LANES];
        for (uint32_t l = 0; l < TILE_LANES; l++)
            sum[l] = start[row];
        for (uint32_t j = 0; j < stride; j += 2)
            for (uint32_t l = 0; l < TILE_LANES; l++)
                sum[l] +=
                    a[j] * b[j * TILE_LANES + 2 * l] + a[j + 1] * b[j * TILE_LANES + 2 * l + 1];
        memcpy(out + row * TILE_LANES, sum, sizeof sum);
    }
}

static inline __attribute__((always_inline)) void
test_body(uint32_t found[TILE_ROWS], const int32_t *products, const struct tile_side *rows,
          size_t row, const struct tile_side *lanes, size_t lane)
{
    float scale[TILE_LANES], error[TILE_LANES], start[TILE_LANES], least[TILE_LANES];
    const float *reach = lanes->reach + lane;
    for (uint32_t l = 0; l < TILE_LANES; l++) {
        const float e = lanes->error[lane + l], square = lanes->square[lane + l];
        scale[l] = 2 * lanes->scale[lane + l];
        error[l] = 2 * e;
        start[l] = e * e - square;
        least[l] = square - reach[l] * reach[l] - CODES_SLACK_LEAST;
    }
    for (uint32_t r = 0; r < TILE_ROWS; r++) {
        const float e = rows->error[row + r], square = rows->square[row + r];
        const float own = rows->reach[row + r], own_scale = rows->scale[row + r];
        const float own_least = square - own * own - CODES_SLACK_LEAST, own_start = e * e - square;
        uint32_t any = 0;
        uint8_t pass[TILE_LANES];
        for (uint32_t l = 0; l < TILE_LANES; l++) {
            const float p = (float)products[r * TILE_LANES + l] * (own_scale * scale[l]);
            pass[l] = (p + (own * error[l] + start[l]) >= own_least) |
                      (p + (2 * e * reach[l] + own_start) >= least[l]);
            any |= pass[l];
        }
        found[r] = 0;
        for (uint32_t l = 0; l < TILE_LANES && any; l++)
            found[r] |= (uint32_t)pass[l] << l;
    }
}

static void test_plain(uint32_t found[TILE_ROWS], const int32_t *products,
                       const struct tile_side *rows, size_t row, const struct tile_side *lanes,
                       size_t lane)
{
    test_body(found, products, rows, row, lanes, lane);
}

static float add_sums(float sum[TILE_SUMS])
{
    for (uint32_t half = TILE_SUMS / 2; half > 0; half /= 2)
        for (uint32_t l = 0; l < half; l++)
            sum[l] += sum[l + half];
    return sum[0];
}

static float distance_plain(const float *x, const float *y, uint32_t stride)
{
    float sum[TILE_SUMS] = {0};
    for (uint32_t j = 0; j < stride; j += TILE_SUMS)
        for (uint32_t l = 0; l < TILE_SUMS; l++) {
            const float t = x[j + l] - y[j + l];
            sum[l] += t * t;
        }
    return add_sums(sum);
}

static const struct tile_ops plain = {"plain", 2, 2, 0, multiply_plain, test_plain, distance_plain};

#if defined(__x86_64__)

#include <immintrin.h>

/* --- AVX2: 16-bit codes, two products at a time ----------------------------------------------- */

#define AVX2 __attribute__((target("avx2,fma")))

AVX2 static void multiply_avx2(int32_t *out, const void *rows, const void *panel, uint32_t stride,
                               const int32_t *start)
{
    for (uint32_t row = 0; row < TILE_ROWS; row += 3)
        for (uint32_t half = 0; half < 2; half++) {
            const int16_t *a = (const int16_t *)rows + (size_t)row * stride;
            const int16_t *b = (const int16_t *)panel + half * TILE_LANES;
            __m256i s00, s01, s10, s11, s20, s21;
            s00 = s01 = _mm256_set1_epi32(start[row]);
            s10 = s11 = _mm256_set1_epi32(start[row + 1]);
            s20 = s21 = _mm256_set1_epi32(start[row + 2]);
            for (uint32_t j = 0; j < stride; j += 2, b += 2 * TILE_LANES) {
                const __m256i b0 = _mm256_loadu_si256((const __m256i *)(const void *)b);
                const __m256i b1 = _mm256_loadu_si256((const __m256i *)(const void *)(b + 16));
                int32_t two[3];
                memcpy(&two[0], a + j, 4);
                memcpy(&two[1], a + stride + j, 4);
                memcpy(&two[2], a + 2 * (size_t)stride + j, 4);
                const __m256i a0 = _mm256_set1_epi32(two[0]), a1 = _mm256_set1_epi32(two[1]),
                              a2 = _mm256_set1_epi32(two[2]);
                s00 = _mm256_add_epi32(s00, _mm256_madd_epi16(b0, a0));
                s01 = _mm256_add_epi32(s01, _mm256_madd_epi16(b1, a0));
                s10 = _mm256_add_epi32(s10, _mm256_madd_epi16(b0, a1));
                s11 = _mm256_add_epi32(s11, _mm256_madd_epi16(b1, a1));
                s20 = _mm256_add_epi32(s20, _mm256_madd_epi16(b0, a2));
                s21 = _mm256_add_epi32(s21, _mm256_madd_epi16(b1, a2));
            }
            const __m256i sums[3][2] = {{s00, s01}, {s10, s11}, {s20, s21}};
            for (uint32_t i = 0; i < 3; i++)
                memcpy(out + (row + i) * TILE_LANES + half * (TILE_LANES / 2), sums[i],
                       sizeof sums[i]);
        }
}

AVX2 static void test_avx2(uint32_t found[TILE_ROWS], const int32_t *products,
                           const struct tile_side *rows, size_t row, const struct tile_side *lanes,
                           size_t lane)
{
    test_body(found, products, rows, row, lanes, lane);
}

AVX2 static float distance_avx2(const float *x, const float *y, uint32_t stride)
{
    __m256 low = _mm256_setzero_ps(), high = low;
    for (uint32_t j = 0; j < stride; j += TILE_SUMS) {
        const __m256 t = _mm256_sub_ps(_mm256_loadu_ps(x + j), _mm256_loadu_ps(y + j));
        const __m256 u = _mm256_sub_ps(_mm256_loadu_ps(x + j + 8), _mm256_loadu_ps(y + j + 8));
        low = _mm256_fmadd_ps(t, t, low);
        high = _mm256_fmadd_ps(u, u, high);
    }
    float sum[TILE_SUMS];
    memcpy(sum, &low, sizeof low);
    memcpy(sum + 8, &high, sizeof high);
    return add_sums(sum);
}

static const struct tile_ops avx2 = {"avx2", 2, 2, 0, multiply_avx2, test_avx2, distance_avx2};

/* --- AVX-512 VNNI: four products at a time, of unsigned codes in panels ------------------------ */

#define VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))

#define EACH_ROW(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)

VNNI static void multiply_vnni(int32_t *out, const void *rows, const void *panel, uint32_t stride,
                               const int32_t *start)
{
    const int8_t *a = rows, *b = panel;
#define BEGIN(r)                                                                                   \
    __m512i low##r = _mm512_set1_epi32(start[r]), high##r = low##r;                                \
    const int8_t *a##r = a + r * (size_t)stride;
#define ADD(r)                                                                                     \
    {                                                                                              \
        int32_t four;                                                                              \
        memcpy(&four, a##r + j, sizeof four);                                                      \
        const __m512i codes = _mm512_set1_epi32(four);                                             \
        low##r = _mm512_dpbusd_epi32(low##r, b0, codes);                                           \
        high##r = _mm512_dpbusd_epi32(high##r, b1, codes);                                         \
    }
#define END(r)                                                                                     \
    _mm512_storeu_si512(out + r * TILE_LANES, low##r);                                             \
    _mm512_storeu_si512(out + r * TILE_LANES + 16, high##r);
    EACH_ROW(BEGIN)
    for (uint32_t j = 0; j < stride; j += 4, b += 4 * TILE_LANES) {
        const __m512i b0 = _mm512_loadu_si512(b), b1 = _mm512_loadu_si512(b + 64);
        EACH_ROW(ADD)
    }
    EACH_ROW(END)
#undef BEGIN
#undef ADD
#undef END
}

VNNI static void test_vnni(uint32_t found[TILE_ROWS], const int32_t *products,
                           const struct tile_side *rows, size_t row, const struct tile_side *lanes,
                           size_t lane)
{
    for (uint32_t r = 0; r < TILE_ROWS; r++)
        found[r] = 0;
    for (uint32_t half = 0; half < TILE_LANES; half += 16) {
        const size_t at = lane + half;
        const __m512 e = _mm512_loadu_ps(lanes->error + at);
        const __m512 square = _mm512_loadu_ps(lanes->square + at);
        const __m512 reach = _mm512_loadu_ps(lanes->reach + at);
        const __m512 scale = _mm512_loadu_ps(lanes->scale + at),
                     scale2 = _mm512_add_ps(scale, scale);
        const __m512 error = _mm512_add_ps(e, e);
        const __m512 start = _mm512_sub_ps(_mm512_mul_ps(e, e), square);
        const __m512 least = _mm512_sub_ps(_mm512_sub_ps(square, _mm512_mul_ps(reach, reach)),
                                           _mm512_set1_ps(CODES_SLACK_LEAST));
        for (uint32_t r = 0; r < TILE_ROWS; r++) {
            const float own_e = rows->error[row + r], own_square = rows->square[row + r];
            const float own = rows->reach[row + r];
            const __m512 p = _mm512_mul_ps(
                _mm512_cvtepi32_ps(_mm512_loadu_si512(products + r * TILE_LANES + half)),
                _mm512_mul_ps(scale2, _mm512_set1_ps(rows->scale[row + r])));
            const __m512 here =
                _mm512_add_ps(p, _mm512_fmadd_ps(_mm512_set1_ps(own), error, start));
            const __m512 there =
                _mm512_add_ps(p, _mm512_fmadd_ps(_mm512_set1_ps(2 * own_e), reach,
                                                 _mm512_set1_ps(own_e * own_e - own_square)));
            const float own_least = own_square - own * own - CODES_SLACK_LEAST;
            const __mmask16 pass = _mm512_cmp_ps_mask(here, _mm512_set1_ps(own_least), _CMP_GE_OQ) |
                                   _mm512_cmp_ps_mask(there, least, _CMP_GE_OQ);
            found[r] |= (uint32_t)pass << half;
        }
    }
}

VNNI static float distance_avx512(const float *x, const float *y, uint32_t stride)
{
    __m512 sum = _mm512_setzero_ps();
    for (uint32_t j = 0; j < stride; j += TILE_SUMS) {
        const __m512 t = _mm512_sub_ps(_mm512_loadu_ps(x + j), _mm512_loadu_ps(y + j));
        sum = _mm512_fmadd_ps(t, t, sum);
    }
    return _mm512_reduce_add_ps(sum);
}

static const struct tile_ops vnni = {"avx512-vnni",  4, 1, 128, multiply_vnni, test_vnni,
                                     distance_avx512};

static bool runs(const struct tile_ops *ops)
{
    if (ops == &vnni)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
    if (ops == &avx2)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return true;
}

static const struct tile_ops *const all[] = {&vnni, &avx2, &plain};

#else

static bool runs(const struct tile_ops *ops)
{
    return ops != NULL;
}

static const struct tile_ops *const all[] = {&plain};

#endif

const struct tile_ops *tile_choose(const char *name)
{
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (name ? strcmp(name, all[i]->name) == 0 && runs(all[i]) : runs(all[i]))
            return all[i];
    return NULL;
}

static void put(const struct tile_ops *ops, void *to, size_t at, int32_t code)
{
    if (ops->code_bytes == 1)
        ((uint8_t *)to)[at] = (uint8_t)code;
    else
        ((int16_t *)to)[at] = (int16_t)code;
}

void tile_put_lane(const struct tile_ops *ops, void *panel, uint32_t lane, const int8_t *codes,
                   uint32_t stride)
{
    for (uint32_t j = 0; j < stride; j += ops->group)
        for (uint32_t i = 0; i < ops->group; i++)
            put(ops, panel, ((size_t)j * TILE_LANES + (size_t)lane * ops->group) + i,
                codes[j + i] + ops->offset);
}

void tile_put_row(const struct tile_ops *ops, void *row, const int8_t *codes, uint32_t stride)
{
    for (uint32_t j = 0; j < stride; j++)
        put(ops, row, j, codes[j]);
}
