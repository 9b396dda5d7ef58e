/* minmax.h: the smaller and the larger of two numbers. */
#ifndef CLPIPE_BASE_MINMAX_H
#define CLPIPE_BASE_MINMAX_H

#include <stdint.h>

static inline uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static inline uint32_t max_u32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

#endif
