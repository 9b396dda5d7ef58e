/* half.h: the first of two filters on NVIDIA GPUs: float16 on tensor cores (kmeans_filter_half.cl).
 *
 * Scores mean what they mean in filter.h, with larger bounds. Of a row that this filter leaves in
 * doubt it lists the centroids that may be the nearest, for the canonical distance to decide. */
#ifndef CLPIPE_CLUSTER_HALF_H
#define CLPIPE_CLUSTER_HALF_H

#include "cluster/filter.h"

/* Centroids as the kernel reads them, in panels of KMEANS_HALF_LANES. */
struct half_panels {
    cl_mem values;  /* lanes x columns float16 */
    cl_mem lanes;   /* lanes x (start, slope) */
    cl_mem ids;     /* lanes: which centroid */
    uint32_t count; /* panels */
};

struct half_filter {
    struct filter *filter;
    bool used;  /* the device can, the rows are resident, and there is memory for their copy */
    bool ready; /* for the centroids of now */
    uint32_t columns;
    cl_program program;
    cl_kernel round, layout, assign, list, settle, decide;
    struct half_panels all, some;
    cl_mem squares;       /* k: of the centroids */
    cl_mem slope, offset; /* k */
    int32_t *host_ids;    /* k: of `some` */
    /* Of the largest tile: */
    cl_mem flagged;  /* rows in doubt */
    cl_mem outcomes; /* of searches among some, 16 bytes a row; after that, slots (see below) */
    cl_mem taken;    /* of the slots that rows in doubt have */
    uint32_t room;   /* rows that there are slots for */
};

/* For the filter's capacity; leaves `used` false where it cannot be or would not pay. */
enum status half_open(struct half_filter *half, struct filter *filter, struct error *err);
void half_close(struct half_filter *half);

/* Follows filter_set_centroids or filter_use_centroids: half->ready tells whether they can be
 * searched. */
void half_take(struct half_filter *half);

/* Lays them out; facts: what move_centroids gave of them (NULL: their squares are the filter's). */
enum status half_lay_out(struct half_filter *half, cl_mem facts, struct error *err);

/* After that, lays out those of half_search_some, whose numbers are in half->some.ids: `count` of
 * them, or less, and -1. half_send_ids puts there those that `wanted` (k bytes) marks. */
enum status half_send_ids(struct half_filter *half, const uint8_t *wanted, uint32_t count,
                          struct error *err);
enum status half_lay_out_some(struct half_filter *half, cl_mem facts, uint32_t count,
                              struct error *err);

/* Makes the tile's rounded rows, and its norms, if it has none yet. */
enum status half_round(struct half_filter *half, struct tile *tile, struct error *err);

/* Rows are those listed in `rows`; their number is counts[rows_count]. What is said to be added to
 * a list of rows is counted in counts[], too. */

/* Searches rows (NULL: all of the tile) among all centroids. Those in doubt are added to
 * half->flagged; upper (of the tile's rows) gets the score that their best centroid does not
 * exceed.
 */
enum status half_search(struct half_filter *half, struct tile *tile, cl_mem rows,
                        uint32_t rows_count, cl_mem upper, cl_mem counts, uint32_t flagged_count,
                        struct error *err);

/* Decides the rows in half->flagged by the canonical distance, on devices with float64. Those with
 * too many centroids to choose from are added to `left`. */
enum status half_decide(struct half_filter *half, struct tile *tile, cl_mem upper, cl_mem left,
                        cl_mem counts, uint32_t flagged_count, uint32_t left_count,
                        struct error *err);

/* Searches rows among some centroids (there may be none), as label_among_some (kmeans_bounds.h).
 * Rows in doubt are added to `left`; half->flagged and counts[retry_count] are of use in between.
 */
enum status half_search_some(struct half_filter *half, struct tile *tile, cl_mem rows,
                             uint32_t rows_count, cl_mem left, cl_mem counts, uint32_t retry_count,
                             uint32_t left_count, struct error *err);

#endif
