/* product.c: eight AVX2 accumulators, four of AVX-512, or plain C. */
#include "matrix/product.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define EACH_ROW(DO) DO(0) DO(1) DO(2) DO(3)

__attribute__((target("avx2"))) static void product_avx2(double *out, const double *a,
                                                         size_t row_step, size_t depth_step,
                                                         const double *b, uint32_t depth)
{
#define BEGIN(i)                                                                                   \
    __m256d s##i = _mm256_loadu_pd(out + i * PRODUCT_COLUMNS);                                     \
    __m256d t##i = _mm256_loadu_pd(out + i * PRODUCT_COLUMNS + 4);
#define ADD(i)                                                                                     \
    {                                                                                              \
        const __m256d one = _mm256_broadcast_sd(a + i * row_step);                                 \
        s##i = _mm256_add_pd(s##i, _mm256_mul_pd(one, low));                                       \
        t##i = _mm256_add_pd(t##i, _mm256_mul_pd(one, high));                                      \
    }
#define END(i)                                                                                     \
    _mm256_storeu_pd(out + i * PRODUCT_COLUMNS, s##i);                                             \
    _mm256_storeu_pd(out + i * PRODUCT_COLUMNS + 4, t##i);
    EACH_ROW(BEGIN)
    for (uint32_t c = 0; c < depth; c++, a += depth_step, b += PRODUCT_COLUMNS) {
        const __m256d low = _mm256_loadu_pd(b), high = _mm256_loadu_pd(b + 4);
        EACH_ROW(ADD)
    }
    EACH_ROW(END)
#undef BEGIN
#undef ADD
#undef END
}

__attribute__((target("avx512f"))) static void product_avx512(double *out, const double *a,
                                                              size_t row_step, size_t depth_step,
                                                              const double *b, uint32_t depth)
{
#define BEGIN(i) __m512d s##i = _mm512_loadu_pd(out + i * PRODUCT_COLUMNS);
#define ADD(i)   s##i = _mm512_add_pd(s##i, _mm512_mul_pd(_mm512_set1_pd(a[i * row_step]), right));
#define END(i)   _mm512_storeu_pd(out + i * PRODUCT_COLUMNS, s##i);
    EACH_ROW(BEGIN)
    for (uint32_t c = 0; c < depth; c++, a += depth_step, b += PRODUCT_COLUMNS) {
        const __m512d right = _mm512_loadu_pd(b);
        EACH_ROW(ADD)
    }
    EACH_ROW(END)
#undef BEGIN
#undef ADD
#undef END
}

#endif

static void product_plain(double *out, const double *a, size_t row_step, size_t depth_step,
                          const double *b, uint32_t depth)
{
    for (uint32_t c = 0; c < depth; c++, a += depth_step, b += PRODUCT_COLUMNS)
        for (uint32_t i = 0; i < PRODUCT_ROWS; i++)
            for (uint32_t k = 0; k < PRODUCT_COLUMNS; k++)
                out[i * PRODUCT_COLUMNS + k] += a[i * row_step] * b[k];
}

product_function product_choose(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        return product_avx512;
    if (__builtin_cpu_supports("avx2"))
        return product_avx2;
#endif
    return product_plain;
}
