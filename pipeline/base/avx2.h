/* avx2.h: static functions compiled twice: for any x86-64 processor, and for those with AVX2. The
 * loader chooses; the results are the same. Functions that they call are compiled with them if they
 * are ALWAYS_INLINE. Loops of both are vectorized. */
#ifndef CLPIPE_BASE_AVX2_H
#define CLPIPE_BASE_AVX2_H

#include "base/process.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

#if defined(__clang__)
#define VECTORIZED /* clang vectorizes loops anyway */
#else
#define VECTORIZED __attribute__((optimize("O3")))
#endif
/* Not with sanitizers, whose runtimes are not there yet when the loader chooses. */
#if defined(__x86_64__) && !SANITIZED
#define AVX2_TOO VECTORIZED __attribute__((target_clones("avx2", "default")))
#else
#define AVX2_TOO VECTORIZED
#endif

#endif
