/* code_pairs.h: finds all pairs of codes that differ in at most `limit` of their 256 bits, either
 * unchanged or with one of them mirrored: exact, by comparing all with all.
 *
 * Bits of even and odd horizontal frequency are counted separately. Mirroring inverts the odd ones,
 * so one pass gives both distances: even + odd and even + (number of odd bits - odd). On x86 the
 * bits of 64 codes are counted at a time, four by a table lookup in a register (AVX-512BW, AVX2);
 * elsewhere by the compiler's population count. The pairs are the same either way. */
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

/* How to count. Any of them can be tested; AUTO is the fastest on this processor. */
enum code_count { CODE_COUNT_AUTO, CODE_COUNT_PLAIN, CODE_COUNT_AVX2, CODE_COUNT_AVX512 };
/* False: this processor or build does not support it. */
bool code_count_is_possible(enum code_count count);

struct code_pairs_config {
    const uint8_t *codes; /* 32 bytes each */
    uint32_t count;
    uint32_t limit;  /* 0 to 128 */
    uint32_t floor;  /* with more than `most` pairs, the limit is lowered, */
    uint64_t most;   /* but not below floor */
    uint64_t memory; /* bytes for the pairs; exceeding it is STATUS_FAILED */
    enum code_count how;
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

enum status code_pairs_find(struct code_pairs *out, const struct code_pairs_config *config,
                            struct error *err);
/* Like code_pairs_find, on a device; ignores config->workers and how. The kernel counts bits, or multiplies
 * on tensor cores if the device takes inline PTX and has them (compute capability 8 or higher). It is
 * checked against plain C with a thousand codes first. STATUS_FAILED: the device does not support
 * it, computes wrong results or lacks memory; use the host instead. */
enum status device_code_pairs_find(struct code_pairs *out, struct ocl_context *context,
                                   const struct code_pairs_config *config, struct error *err);
/* Frees the pairs and zeroes the struct. */
void code_pairs_clear(struct code_pairs *pairs);

#endif
