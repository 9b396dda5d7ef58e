/* float16_filter.h: the first of two filters on NVIDIA GPUs: float16 on tensor cores (kmeans_filter_half.cl).
 *
 * Scores mean what they mean in filter.h, with larger bounds. For a row that it leaves
 * undecided it lists the centroids that may be the nearest, for the canonical distance to decide. */
#ifndef CLPIPE_CLUSTER_FLOAT16_FILTER_H
#define CLPIPE_CLUSTER_FLOAT16_FILTER_H

#include "cluster/filter.h"

/* Centroids as the kernel reads them, in panels of KMEANS_HALF_PANEL. */
struct float16_panels {
    cl_mem values;  /* places x columns float16 */
    cl_mem starts;  /* places x (start, slope) */
    cl_mem ids;     /* places: which centroid */
    uint32_t count; /* panels */
};

struct float16_filter {
    struct filter *filter;
    struct lane_held *held;
    uint32_t columns;
    cl_kernel round, layout, assign, list, settle, decide;
    struct float16_panels all, some;
    cl_mem squares;       /* k: of the centroids */
    cl_mem slope, offset; /* k */
    int32_t *host_ids;    /* k: of `some` */
    /* Of the largest tile: */
    cl_mem flagged;  /* undecided rows */
    cl_mem outcomes; /* of searches among some, 16 bytes a row; after that, slots (see below) */
    cl_mem taken;    /* of the slots that undecided rows have */
    uint32_t room;   /* rows that there are slots for */
};

/* Whether the device can, the rows are resident, there is memory for their copy, and they and the
 * centroids are as many as it takes. */
bool float16_pays(const struct filter *filter);

/* For the filter's capacity; only where it pays. To be closed after an error, too. */
enum status float16_open(struct float16_filter *float16, struct filter *filter, struct error *err);
void float16_close(struct float16_filter *float16);

/* Room for the rounded rows of a tile. */
enum status float16_open_tile(struct float16_filter *float16, struct tile *tile, struct error *err);

/* Whether the centroids that the filter has taken can be searched. */
bool float16_usable(const struct float16_filter *float16);

/* Lays them out; moves: the struct centroid_move of each on the device (NULL: their squares are the filter's). */
enum status float16_lay_out(struct float16_filter *float16, cl_mem moves, struct error *err);

/* After that, lays out those of float16_search_some, whose numbers are in float16->some.ids: `count` of
 * them, or less, and -1. float16_send_ids puts there those that `wanted` (k bytes) marks. */
enum status float16_send_ids(struct float16_filter *float16, const uint8_t *wanted, uint32_t count,
                             struct error *err);
enum status float16_lay_out_some(struct float16_filter *float16, cl_mem moves, uint32_t count,
                                 struct error *err);

/* Makes the tile's rounded rows, and its norms, if it has none yet. */
enum status float16_round(struct float16_filter *float16, struct tile *tile, struct error *err);

/* Below, `rows` is a list of counts[rows_count] rows. A row is added to another list by raising that
 * list's counter; its index in counts[] is the parameter named after the list. */

/* Searches rows (NULL: all of the tile) among all centroids. Undecided ones are added to
 * float16->flagged; upper (of the tile's rows) gets the score that their best centroid does not
 * exceed.
 */
enum status float16_search(struct float16_filter *float16, struct tile *tile, cl_mem rows,
                           uint32_t rows_count, cl_mem upper, cl_mem counts, uint32_t flagged_count,
                           struct error *err);

/* Decides the rows in float16->flagged by the canonical distance, on devices with float64. Those with
 * too many centroids to choose from are added to `left`. */
enum status float16_decide(struct float16_filter *float16, struct tile *tile, cl_mem upper,
                           cl_mem left, cl_mem counts, uint32_t flagged_count, uint32_t left_count,
                           struct error *err);

/* Searches rows among some centroids (there may be none), as label_among_some (kmeans_bounds.h).
 * Undecided rows are added to `left`; float16->flagged and counts[retry_count] are of use in between.
 */
enum status float16_search_some(struct float16_filter *float16, struct tile *tile, cl_mem rows,
                                uint32_t rows_count, cl_mem left, cl_mem counts,
                                uint32_t retry_count, uint32_t left_count, struct error *err);

#endif
