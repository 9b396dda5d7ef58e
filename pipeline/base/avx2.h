/* avx2.h: functions compiled twice: for any processor, and for those with AVX2. The results are the
 * same. The body is an ALWAYS_INLINE function, called by a plain function, which may be a PLAIN_LOOPS
 * one, and by an AVX2_LOOPS one, which may run only if cpu_has_avx2(). Loops of both kinds are
 * vectorized. On architectures other than x86-64 both are plain. */
#ifndef CLPIPE_BASE_AVX2_H
#define CLPIPE_BASE_AVX2_H

#include <stdbool.h>

#define ALWAYS_INLINE static inline __attribute__((always_inline))

#if defined(__clang__)
#define PLAIN_LOOPS /* clang vectorizes loops anyway */
#else
#define PLAIN_LOOPS __attribute__((optimize("O3")))
#endif
#if defined(__x86_64__)
#define AVX2_LOOPS PLAIN_LOOPS __attribute__((target("avx2")))
#else
#define AVX2_LOOPS PLAIN_LOOPS
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
