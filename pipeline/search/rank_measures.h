/* rank_measures.h: what rankings are worth, however they came about: a query's from its relevant ranks, and
 * those of all queries from each one's. docs/search.md has the definitions. */
#ifndef CLPIPE_SEARCH_RANK_MEASURES_H
#define CLPIPE_SEARCH_RANK_MEASURES_H

#include "base/error.h"
#include <stdbool.h>
#include <stdint.h>

/* The class of a row that is left out. */
#define RANKING_NO_CLASS UINT32_MAX

struct ranking {
    uint64_t rows;    /* that are ranked */
    uint64_t queries; /* of them */
    /* NaN where there is no query: */
    double map;             /* mean average precision over the whole ranking */
    double precision_at_1, precision_at_5, precision_at_10;
    double mmap_at_10;      /* of the first 10 alone; mean over each class, then over classes */
    double seconds_read, seconds;
};

/* Precisions are those of the first so many. */
#define MEASURES_DEPTH 10

/* What is known of a row at the end. */
struct measured {
    double precision, precision_of_first; /* average; of all, and of the first MEASURES_DEPTH */
    uint8_t hits_1, hits_5, hits_10;
};

/* Of one query, so far; zeroed at first. */
struct measuring {
    struct measured one;
    double sum, sum_of_first;
    uint32_t found;
};

/* The next relevant row; ranks are from 1 and ascend. */
static inline void measures_add(struct measuring *query, uint64_t rank)
{
    query->sum += (double)++query->found / (double)rank;
    if (rank <= MEASURES_DEPTH)
        query->sum_of_first = query->sum;
    query->one.hits_1 += rank <= 1;
    query->one.hits_5 += rank <= 5;
    query->one.hits_10 += rank <= MEASURES_DEPTH;
}

/* At least one row was relevant. */
static inline struct measured measures_end(const struct measuring *query)
{
    struct measured one = query->one;
    one.precision = query->sum / query->found;
    one.precision_of_first = one.hits_10 > 0 ? query->sum_of_first / one.hits_10 : 0;
    return one;
}

/* The classes of `rows` rows, and how many rows are of each class. */
struct measured_classes {
    const uint32_t *of_row;
    uint64_t rows;
    uint32_t count;
    uint32_t *sizes;
};

/* Counts the sizes. */
enum status measured_classes_open(struct measured_classes *out, const uint32_t *of_row, uint64_t rows,
                                  uint32_t count, struct error *err);
void measured_classes_close(struct measured_classes *classes);

static inline bool measures_is_query(const struct measured_classes *classes, uint64_t row)
{
    return classes->of_row[row] != RANKING_NO_CLASS && classes->sizes[classes->of_row[row]] > 1;
}

/* The measures of all queries; `measured` has one for each row. Sums are those of rows in order,
 * whatever computed them. */
enum status measures_sum_up(struct ranking *out, const struct measured *measured,
                            const struct measured_classes *classes, struct error *err);

#endif
