/* distances.c: each row converted to float64 is used with four others: with the rows of both sides
 * in registers, conversions and loads are shared, and sixteen sums hide each other's latency. The
 * lanes of the canonical distance are independent until the end, so a pass takes as many of them as
 * fit. */
#include "neighbours/distances.h"
#include "kmeans/canonical.h"
#include <stdbool.h>
#include <string.h>

#define SIDE DISTANCES_SIDE

#if defined(__x86_64__)

#include <immintrin.h>

/* --- AVX-512: 8 lanes a pass ------------------------------------------------------------------- */

#define AVX512   __attribute__((target("avx512f")))
#define EACH(DO) DO(0) DO(1) DO(2) DO(3)

/* Sums of the lanes starting at `lane`: sum[i * SIDE + j]. */
AVX512 static void lanes_avx512(__m512d sum[SIDE * SIDE], const float *const x[SIDE],
                                const float *const y[SIDE], uint32_t lane, uint32_t stride)
{
    const float *x0 = x[0], *x1 = x[1], *x2 = x[2], *x3 = x[3];
    const float *y0 = y[0], *y1 = y[1], *y2 = y[2], *y3 = y[3];
#define BEGIN(i)                                                                                   \
    __m512d s##i##0 = _mm512_setzero_pd(), s##i##1 = s##i##0, s##i##2 = s##i##0, s##i##3 = s##i##0;
#define LOAD(i) const __m512d c##i = _mm512_cvtps_pd(_mm256_loadu_ps(y##i + l));
#define ADD(i)                                                                                     \
    {                                                                                              \
        const __m512d a = _mm512_cvtps_pd(_mm256_loadu_ps(x##i + l));                              \
        const __m512d t0 = _mm512_sub_pd(a, c0), t1 = _mm512_sub_pd(a, c1);                        \
        const __m512d t2 = _mm512_sub_pd(a, c2), t3 = _mm512_sub_pd(a, c3);                        \
        s##i##0 = _mm512_fmadd_pd(t0, t0, s##i##0);                                                \
        s##i##1 = _mm512_fmadd_pd(t1, t1, s##i##1);                                                \
        s##i##2 = _mm512_fmadd_pd(t2, t2, s##i##2);                                                \
        s##i##3 = _mm512_fmadd_pd(t3, t3, s##i##3);                                                \
    }
#define END(i)                                                                                     \
    sum[i * SIDE] = s##i##0, sum[i * SIDE + 1] = s##i##1, sum[i * SIDE + 2] = s##i##2,             \
            sum[i * SIDE + 3] = s##i##3;
    EACH(BEGIN)
    for (uint32_t l = lane; l < stride; l += KMEANS_LANES) {
        EACH(LOAD)
        EACH(ADD)
    }
    EACH(END)
#undef BEGIN
#undef LOAD
#undef ADD
#undef END
}

/* Like canonical_lane_sum after lane l has added lane l + 8. */
AVX512 static double add_eight(__m512d eight)
{
    const __m256d four =
        _mm256_add_pd(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd(eight, 1));
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

AVX512 static void of_avx512(double *out, const float *const x[SIDE], const float *const y[SIDE],
                             uint32_t stride)
{
    __m512d low[SIDE * SIDE], high[SIDE * SIDE];
    lanes_avx512(low, x, y, 0, stride);
    lanes_avx512(high, x, y, 8, stride);
    for (unsigned i = 0; i < SIDE * SIDE; i++)
        out[i] = add_eight(_mm512_add_pd(low[i], high[i]));
}

/* --- AVX2: 4 lanes a pass, two rows against four ------------------------------------------------ */

#define AVX2 __attribute__((target("avx2,fma")))

AVX2 static void lanes_avx2(__m256d sum[2 * SIDE], const float *x0, const float *x1,
                            const float *const y[SIDE], uint32_t lane, uint32_t stride)
{
    const float *y0 = y[0], *y1 = y[1], *y2 = y[2], *y3 = y[3];
    __m256d s00 = _mm256_setzero_pd(), s01 = s00, s02 = s00, s03 = s00;
    __m256d s10 = s00, s11 = s00, s12 = s00, s13 = s00;
    for (uint32_t l = lane; l < stride; l += KMEANS_LANES) {
        const __m256d a = _mm256_cvtps_pd(_mm_loadu_ps(x0 + l));
        const __m256d b = _mm256_cvtps_pd(_mm_loadu_ps(x1 + l));
#define ADD(j)                                                                                     \
    {                                                                                              \
        const __m256d c = _mm256_cvtps_pd(_mm_loadu_ps(y##j + l));                                 \
        const __m256d t = _mm256_sub_pd(a, c), u = _mm256_sub_pd(b, c);                            \
        s0##j = _mm256_fmadd_pd(t, t, s0##j);                                                      \
        s1##j = _mm256_fmadd_pd(u, u, s1##j);                                                      \
    }
        EACH(ADD)
#undef ADD
    }
    sum[0] = s00, sum[1] = s01, sum[2] = s02, sum[3] = s03;
    sum[4] = s10, sum[5] = s11, sum[6] = s12, sum[7] = s13;
}

AVX2 static void of_avx2(double *out, const float *const x[SIDE], const float *const y[SIDE],
                         uint32_t stride)
{
    __m256d sum[KMEANS_LANES / 4][2 * SIDE];
    for (unsigned i = 0; i < SIDE; i += 2) {
        for (unsigned pass = 0; pass < KMEANS_LANES / 4; pass++)
            lanes_avx2(sum[pass], x[i], x[i + 1], y, 4 * pass, stride);
        for (unsigned j = 0; j < 2 * SIDE; j++) {
            const __m256d four = _mm256_add_pd(_mm256_add_pd(sum[0][j], sum[2][j]),
                                               _mm256_add_pd(sum[1][j], sum[3][j]));
            const __m128d two =
                _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
            out[i * SIDE + j] = _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
        }
    }
}

static bool runs(const char *name)
{
    if (strcmp(name, "avx512") == 0)
        return __builtin_cpu_supports("avx512f");
    if (strcmp(name, "avx2") == 0)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return true;
}

#else

static bool runs(const char *name)
{
    return name != NULL;
}

#endif

static void of_plain(double *out, const float *const x[SIDE], const float *const y[SIDE],
                     uint32_t stride)
{
    for (unsigned i = 0; i < SIDE; i++)
        for (unsigned j = 0; j < SIDE; j++)
            out[i * SIDE + j] = canonical_distance(x[i], y[j], stride);
}

static const struct {
    const char *name;
    distances_function function;
} all[] = {
#if defined(__x86_64__)
    {"avx512", of_avx512},
    {"avx2", of_avx2},
#endif
    {"plain", of_plain},
};

distances_function distances_choose(const char *name)
{
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if ((!name || strcmp(name, all[i].name) == 0) && runs(all[i].name))
            return all[i].function;
    return NULL;
}
