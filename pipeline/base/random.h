/* random.h: xorshift32 (G. Marsaglia 2003), for synthetic images: fast and reproducible on every
 * platform, but not for statistics or security. The caller owns the state, which is never 0. */
#ifndef CLPIPE_BASE_RANDOM_H
#define CLPIPE_BASE_RANDOM_H

#include <stdint.h>

#define RANDOM_START 2463534242u

/* The next number, which is the new state; its lowest bits are the least random. */
static inline uint32_t random_next(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

#endif
