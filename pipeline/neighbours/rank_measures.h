/* rank_measures.h: quality of rankings of any origin: for one query, from the ranks of its relevant
 * rows; for all queries, from the measures of each. docs/search.md has the definitions. */
#ifndef CLPIPE_NEIGHBOURS_RANK_MEASURES_H
#define CLPIPE_NEIGHBOURS_RANK_MEASURES_H

#include "base/error.h"
#include <stdbool.h>
#include <stdint.h>

/* The class of a row that is left out. */
#define RANKING_NO_CLASS UINT32_MAX

struct ranking {
    uint64_t queries; /* ranked rows that are queries */
    /* NaN if there are no queries: */
    double map; /* mean average precision over the whole ranking */
    double precision_at_1, precision_at_5, precision_at_10;
    double mmap_at_10; /* over the first 10 only; mean per class, then over classes */
    double seconds;
};

/* Depth of the truncated measures. */
#define MEASURES_DEPTH 10

/* Measures of one query. */
struct measured {
    double precision, precision_of_first; /* average precision: of all ranks, of the first */
    uint8_t hits_1, hits_5, hits_10;
};

/* State for one query; initially zero. */
struct measuring {
    struct measured one;
    double sum, sum_of_first;
    uint32_t found;
};

/* Adds the next relevant row; ranks start at 1 and ascend. */
static inline void measures_add(struct measuring *query, uint64_t rank)
{
    query->sum += (double)++query->found / (double)rank;
    if (rank <= MEASURES_DEPTH)
        query->sum_of_first = query->sum;
    query->one.hits_1 += rank <= 1;
    query->one.hits_5 += rank <= 5;
    query->one.hits_10 += rank <= MEASURES_DEPTH;
}

/* Requires at least one relevant row. */
static inline struct measured measures_end(const struct measuring *query)
{
    struct measured one = query->one;
    one.precision = query->sum / query->found;
    one.precision_of_first = one.hits_10 > 0 ? query->sum_of_first / one.hits_10 : 0;
    return one;
}

/* The classes of `rows` rows, and the number of rows in each. */
struct measured_classes {
    const uint32_t *of_row;
    uint64_t rows;
    uint32_t count;
    uint32_t *sizes;
};

/* Counts the sizes. STATUS_FAILED: out of memory. */
enum status measured_classes_open(struct measured_classes *out, const uint32_t *of_row,
                                  uint64_t rows, uint32_t count, struct error *err);
void measured_classes_close(struct measured_classes *classes);

static inline bool measures_is_query(const struct measured_classes *classes, uint64_t row)
{
    return classes->of_row[row] != RANKING_NO_CLASS && classes->sizes[classes->of_row[row]] > 1;
}

/* Averages over all queries; `measured` has one entry per row. Sums are in row order. */
enum status measures_sum_up(struct ranking *out, const struct measured *measured,
                            const struct measured_classes *classes, struct error *err);

#endif
