/* plain.h: rgb:bins=256 in a plain C loop on host threads, the baseline for kernels on CPU devices:
 * four sub-tables used in turn and no further optimisation.
 */
#ifndef CLPIPE_DEVICE_PLAIN_H
#define CLPIPE_DEVICE_PLAIN_H

#include "base/error.h"
#include <stdint.h>

/* Pictures of one size in one buffer, rows without gaps; width a multiple of 4. */
struct plain_pictures {
    const uint8_t *pixels;
    uint64_t stride; /* bytes from picture to picture */
    uint32_t width, height, count;
};

struct plain;

/* Allocates tables for that many threads, which plain_count starts. */
enum status plain_open(struct plain **out, unsigned threads, struct error *err);
/* *plain may be NULL. */
void plain_close(struct plain **plain);

/* Counts all pictures into one histogram, rows divided among the threads. *seconds: wall-clock
 * time, including starting and joining the threads. */
enum status plain_count(double *seconds, struct plain *plain, const struct plain_pictures *pictures,
                        struct error *err);

/* Counter `bin` (of 768) after the last plain_count. */
uint64_t plain_counter(const struct plain *plain, unsigned bin);

#endif
