/* confirm.h: decides which pairs of similar codes are copies by comparing their pictures. Only
 * pairs that can affect the stars (duplicates.h) are compared: those whose earlier class is a
 * reference, and whose later class is not in the star of an earlier reference. */
#ifndef CLPIPE_JOBS_CONFIRM_H
#define CLPIPE_JOBS_CONFIRM_H

#include "base/watch.h"
#include "jobs/code_pairs.h"
#include "jobs/redecode.h"

struct confirm_config {
    const struct code_pairs *pairs;
    const uint32_t *rank; /* per class, distinct: the lower becomes a reference first */
    const uint32_t *row;  /* per class: the row whose picture is compared */
    uint32_t classes;
    struct reopen *pictures;
    struct workers *workers;
    bool certain;    /* only copies without any contradiction (alignment.h) */
    uint64_t memory; /* bytes for planes; beyond that, pictures are decoded again when needed */
    struct watch watch;
};

/* linked, per pair: in: true if the codes alone decide; out: also true if the pictures agree.
 * *unknown: pairs with a missing picture. The result does not depend on threads and memory.
 * STATUS_FAILED: out of memory. STATUS_INTERRUPTED: a stop was requested. */
enum status confirm_pairs(bool *linked, uint64_t *unknown, const struct confirm_config *config,
                          struct error *err);

#endif
