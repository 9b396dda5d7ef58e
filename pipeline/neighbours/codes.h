/* codes.h: 8-bit integer codes of rows, whose products are exact, with bounds on their error.
 *
 * A row z (in the metric's space, less a centre, times a power of two) is scale * q + e, where q
 * has an 8-bit code for each column and |e| <= error. So the distance of two rows differs from that
 * of their codes by at most the sum of both errors: docs/search.md. */
#ifndef CLPIPE_NEIGHBOURS_CODES_H
#define CLPIPE_NEIGHBOURS_CODES_H

#include "neighbours/block_reader.h"
#include "search.h"
#include <stdint.h>

struct code_space {
    uint32_t stride; /* columns, zero-padded */
    int32_t largest; /* codes range from -largest to largest */
    double unit;     /* a power of two */
    float *centre;   /* stride values */
};

/* Facts of one row. If its values are too large or too small for codes, scale and square are 0 and
 * the error is CODES_FAR. */
struct code_facts {
    float scale, error, square; /* square: squared length of scale * q */
    int32_t sum;                /* sum of its codes */
};

/* Farther than any row is from another. */
#define CODES_FAR SEARCH_FAR
/* Relative and absolute allowance for the float32 arithmetic of a test: lengths are rounded up by
 * it, squares of rows down. */
#define CODES_SLACK       SEARCH_SLACK
#define CODES_SLACK_LEAST SEARCH_SLACK_LEAST

/* Chooses centre and unit from a sample of rows spread over the matrix; the centre consists of the
 * columns' medians. Close it even after an error. */
enum status code_space_open(struct code_space *space, struct block_reader *reader,
                            struct error *err);
void code_space_close(struct code_space *space);

/* Encodes a row; codes: `stride` of them. Thread-safe. */
void codes_make(int8_t *codes, struct code_facts *facts, const struct code_space *space,
                const float *row);

/* The reach of a row: another row can only be within `squared` (INFINITY: any) if the distance of
 * their codes, less the other's error, does not exceed it. */
float codes_reach(const struct code_space *space, const struct code_facts *facts, double squared);

#endif
