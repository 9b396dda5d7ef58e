/* code_pairs.h: finds all pairs of codes that differ in at most `limit` of their 256 bits, either
 * unchanged or with one of them mirrored: exact, by comparing all with all.
 *
 * Bits of even and odd horizontal frequency are counted separately. Mirroring inverts the odd ones,
 * so one pass gives both distances: even + odd and even + (number of odd bits - odd). */
#ifndef CLPIPE_JOBS_CODE_PAIRS_H
#define CLPIPE_JOBS_CODE_PAIRS_H

#include "base/error.h"
#include "base/watch.h"
#include "base/workers.h"
#include "features/code.h"
#include "ocl/ocl.h"
#include <stdbool.h>
#include <stdint.h>

struct code_pair {
    uint32_t a, b; /* a < b */
    uint16_t distance;
    uint16_t mirrored; /* 1: the distance to the mirrored code, which is smaller */
};

struct code_pairs {
    struct code_pair *pair; /* by a, then b */
    uint64_t count;
    uint32_t limit; /* the largest distance listed */
};

struct code_pairs_config {
    const uint8_t *codes; /* 32 bytes each */
    uint32_t count;
    uint32_t limit;  /* 0 to 128 */
    uint32_t floor;  /* with more than `most` pairs, the limit is lowered, */
    uint64_t most;   /* but not below floor */
    uint64_t memory; /* bytes for the pairs; exceeding it is STATUS_FAILED */
    struct workers *workers;
    struct watch watch; /* shows progress, on any thread */
};

/* Collects the pairs of both searches; lowers `limit` if there are too many. */
struct code_list {
    const struct code_pairs_config *config;
    struct code_pair *pair;
    uint64_t count, room, histogram[CODE_BITS + 1];
    _Atomic uint32_t limit;
};
/* STATUS_FAILED: the pairs do not fit in memory. */
enum status code_list_add(struct code_list *list, const struct code_pair *pair, uint64_t count,
                          struct error *err);
/* Sorts the pairs and hands them over. */
void code_list_end(struct code_pairs *out, struct code_list *list);

/* The bits of all codes in the order of the kernel: words of even ones, then of odd ones
 * (code_pairs_shape.h), `padded` codes, those after config->count of zeros. *odd_bits: how many bits
 * are odd. The caller frees them; NULL: no memory. */
uint32_t *code_pairs_words(uint32_t *odd_bits, const struct code_pairs_config *config,
                           uint32_t padded);

enum status code_pairs_find(struct code_pairs *out, const struct code_pairs_config *config,
                            struct error *err);
/* Like code_pairs_find, on a device; ignores config->plain. The kernel counts bits, or multiplies
 * on tensor cores if the device takes inline PTX and has them (compute capability 8 or higher). It is
 * checked against plain C with a few hundred codes first. STATUS_FAILED: the device does not support
 * it, computes wrong results or lacks memory; use the host instead. */
enum status device_code_pairs_find(struct code_pairs *out, struct ocl_context *context,
                                   const struct code_pairs_config *config, struct error *err);
/* Frees the pairs and zeroes the struct. */
void code_pairs_clear(struct code_pairs *pairs);

#endif
