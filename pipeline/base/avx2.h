/* avx2.h: functions compiled twice: for any processor, and for those with AVX2. The results are the
 * same. The body is an ALWAYS_INLINE function, called by a plain function and by an AVX2_LOOPS one,
 * which may run only if cpu_has_avx2(). On architectures other than x86-64 both are plain. */
#ifndef CLPIPE_BASE_AVX2_H
#define CLPIPE_BASE_AVX2_H

#include <stdbool.h>

#define ALWAYS_INLINE static inline __attribute__((always_inline))

#if !defined(__x86_64__)
#define AVX2_LOOPS
#elif defined(__clang__)
#define AVX2_LOOPS __attribute__((target("avx2")))
#else
#define AVX2_LOOPS __attribute__((target("avx2"), optimize("O3"))) /* vectorizes loops */
#endif

static inline bool cpu_has_avx2(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2");
#else
    return false;
#endif
}

#endif
