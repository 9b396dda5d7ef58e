/* confirm.h: which pairs of similar codes are copies, by comparing their pictures. Only pairs that can
 * matter to the stars (duplicates.h) are compared: one whose earlier class is a reference, and whose
 * later one is not in the star of a reference before that. */
#ifndef CLPIPE_DUPLICATES_CONFIRM_H
#define CLPIPE_DUPLICATES_CONFIRM_H

#include "duplicates/code_pairs.h"
#include "duplicates/redecode.h"

struct confirm_config {
    const struct code_pairs *pairs;
    const uint32_t *rank; /* of each class, distinct: the lower becomes a reference first */
    const uint32_t *row;  /* of each class: whose picture is compared */
    uint32_t classes;
    struct redecode *pictures;
    struct workers *workers;
    bool certain;    /* only copies in which nothing at all contradicts (alignment.h) */
    uint64_t memory; /* bytes for planes; more are decoded again when they are needed again */
    struct stop *stop;
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total); /* or NULL */
    void *progress_context;
};

/* linked: of each pair, in: true if the codes alone decide; out: also true if the pictures agree.
 * *unknown: pairs of which a picture was gone. The result does not depend on threads and memory.
 * STATUS_FAILED: memory. STATUS_INTERRUPTED: a stop was requested. */
enum status confirm_pairs(bool *linked, uint64_t *unknown, const struct confirm_config *config,
                          struct error *err);

#endif
