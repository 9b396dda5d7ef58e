/* codes.h: rows as 8-bit integers, whose products are exact, and what they leave out.
 *
 * A row z (in the metric's space, less a centre, times a power of two) is scale * q + e, where q has a
 * code of 8 bits for each column and |e| <= error. So the distance of two rows is that of their codes,
 * give or take the sum of both errors: docs/search.md. */
#ifndef CLPIPE_SEARCH_CODES_H
#define CLPIPE_SEARCH_CODES_H

#include "base/error.h"
#include "search.h"
#include <stdint.h>

struct code_space {
    uint32_t stride;  /* columns, padded with zeros */
    int32_t largest;  /* codes are -largest to largest */
    double unit;      /* a power of two */
    float *centre;    /* stride values */
};

/* Of one row. Where its values are out of all proportion, scale and square are 0 and the error is
 * CODES_FAR. */
struct code_facts {
    float scale, error, square; /* square: of the length of scale * q */
    int32_t sum;                /* of its codes */
};

/* Farther than any row is from another. */
#define CODES_FAR SEARCH_FAR
/* Relative and absolute allowance for the float32 arithmetic of a test: every length is made that much
 * longer, every square of a row that much smaller. */
#define CODES_SLACK       SEARCH_SLACK
#define CODES_SLACK_LEAST SEARCH_SLACK_LEAST

/* Centre and unit after `count` rows of `stride` values, whose medians make the centre. */
enum status code_space_open(struct code_space *space, const float *sample, uint32_t count,
                            uint32_t stride, struct error *err);
void code_space_close(struct code_space *space);

/* codes: stride of them. */
void codes_make(int8_t *codes, struct code_facts *facts, const struct code_space *space,
                const float *row);

/* The reach of a row: what the distance of codes to it must not exceed for another row, less the
 * other's error, to be within `squared` (INFINITY: any). */
float codes_reach(const struct code_space *space, const struct code_facts *facts, double squared);

#endif
