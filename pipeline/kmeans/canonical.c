/* canonical.c: the defining arithmetic in plain C. */
#include "kmeans/canonical.h"
#include <math.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

double canonical_lane_sum(double lanes[KMEANS_LANES])
{
    for (uint32_t half = KMEANS_LANES / 2; half > 0; half /= 2)
        for (uint32_t l = 0; l < half; l++)
            lanes[l] += lanes[l + half];
    return lanes[0];
}

/* fma() is a library call of up to a hundred instructions where the processor has none. */
static double distance_anywhere(const float *x, const float *c, uint32_t stride)
{
    double sum[KMEANS_LANES] = {0};
    for (uint32_t j = 0; j < stride; j += KMEANS_LANES)
        for (uint32_t l = 0; l < KMEANS_LANES; l++) {
            double t = (double)x[j + l] - (double)c[j + l];
            sum[l] = __builtin_fma(t, t, sum[l]);
        }
    return canonical_lane_sum(sum);
}

#if defined(__x86_64__)

/* At -O2, compilers do not keep the lanes in registers of their own accord. */
__attribute__((target("avx2,fma"))) static double distance_avx2(const float *x, const float *c,
                                                                uint32_t stride)
{
    __m256d sum[4] = {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(),
                      _mm256_setzero_pd()};
    for (uint32_t j = 0; j < stride; j += KMEANS_LANES) {
#define ADD(i)                                                                                     \
    {                                                                                              \
        const __m256d t = _mm256_sub_pd(_mm256_cvtps_pd(_mm_loadu_ps(x + j + 4 * (i))),            \
                                        _mm256_cvtps_pd(_mm_loadu_ps(c + j + 4 * (i))));           \
        sum[i] = _mm256_fmadd_pd(t, t, sum[i]);                                                    \
    }
        ADD(0) ADD(1) ADD(2) ADD(3)
#undef ADD
    }
    double lanes[KMEANS_LANES];
    memcpy(lanes, sum, sizeof lanes);
    return canonical_lane_sum(lanes);
}

__attribute__((target("avx512f"))) static double distance_avx512(const float *x, const float *c,
                                                                 uint32_t stride)
{
    __m512d low = _mm512_setzero_pd(), high = low;
    for (uint32_t j = 0; j < stride; j += KMEANS_LANES) {
        const __m512d t = _mm512_sub_pd(_mm512_cvtps_pd(_mm256_loadu_ps(x + j)),
                                        _mm512_cvtps_pd(_mm256_loadu_ps(c + j)));
        const __m512d u = _mm512_sub_pd(_mm512_cvtps_pd(_mm256_loadu_ps(x + j + 8)),
                                        _mm512_cvtps_pd(_mm256_loadu_ps(c + j + 8)));
        low = _mm512_fmadd_pd(t, t, low);
        high = _mm512_fmadd_pd(u, u, high);
    }
    double lanes[KMEANS_LANES];
    memcpy(lanes, &low, sizeof low);
    memcpy(lanes + KMEANS_LANES / 2, &high, sizeof high);
    return canonical_lane_sum(lanes);
}

double canonical_distance(const float *x, const float *c, uint32_t stride)
{
    if (__builtin_cpu_supports("avx512f"))
        return distance_avx512(x, c, stride);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return distance_avx2(x, c, stride);
    return distance_anywhere(x, c, stride);
}

#else

double canonical_distance(const float *x, const float *c, uint32_t stride)
{
    return distance_anywhere(x, c, stride);
}

#endif

double canonical_block_sum(double values[KMEANS_BLOCK_ROWS], uint32_t count)
{
    for (uint32_t i = count; i < KMEANS_BLOCK_ROWS; i++)
        values[i] = 0;
    for (uint32_t half = KMEANS_BLOCK_ROWS / 2; half > 0; half /= 2)
        for (uint32_t i = 0; i < half; i++)
            values[i] += values[i + half];
    return values[0];
}

void canonical_add_blocks(double *sum, const double *values, uint64_t count)
{
    for (uint64_t i = 0; i < count; i += KMEANS_BLOCK_ROWS) {
        double block[KMEANS_BLOCK_ROWS];
        const uint64_t left = count - i;
        const uint32_t rows = left < KMEANS_BLOCK_ROWS ? (uint32_t)left : KMEANS_BLOCK_ROWS;
        memcpy(block, values + i, rows * sizeof *block);
        *sum += canonical_block_sum(block, rows);
    }
}

/* Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3, 2011). */
double canonical_random(uint64_t seed, uint32_t stream, uint64_t counter)
{
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t x[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), stream, 0};
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * x[0], b = (uint64_t)0xCD9E8D57u * x[2];
        uint32_t next[4] = {(uint32_t)(b >> 32) ^ x[1] ^ key[0], (uint32_t)b,
                            (uint32_t)(a >> 32) ^ x[3] ^ key[1], (uint32_t)a};
        memcpy(x, next, sizeof x);
        key[0] += 0x9E3779B9u;
        key[1] += 0xBB67AE85u;
    }
    uint64_t bits = (uint64_t)x[0] << 32 | x[1];
    return (double)(bits >> 11) * 0x1p-53;
}

uint32_t canonical_nearest(double *distance, const float *x, const float *centroids, uint32_t k,
                           uint32_t stride)
{
    uint32_t nearest = 0;
    *distance = canonical_distance(x, centroids, stride);
    for (uint32_t i = 1; i < k; i++) {
        double other = canonical_distance(x, centroids + (size_t)i * stride, stride);
        if (other < *distance) {
            *distance = other;
            nearest = i;
        }
    }
    return nearest;
}

/* The product is exact, and so is ldexp of it; round() rounds halves away from zero. */
int64_t canonical_fixed(float x, float weight, int scale)
{
    return (int64_t)round(ldexp((double)x * (double)weight, scale));
}
