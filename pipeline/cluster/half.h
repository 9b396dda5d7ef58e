/* half.h: the first of two filters on NVIDIA GPUs: float16 on tensor cores (kmeans_filter_half.cl).
 *
 * Scores mean what they mean in filter.h, with larger bounds. Rows that this filter leaves in doubt
 * are searched again by the float32 one. */
#ifndef CLPIPE_CLUSTER_HALF_H
#define CLPIPE_CLUSTER_HALF_H

#include "cluster/filter.h"

/* Centroids as the kernel reads them, in panels of KMEANS_HALF_LANES. */
struct half_panels {
    cl_mem values; /* lanes x columns float16 */
    cl_mem lanes;  /* lanes x (start, slope) */
    cl_mem ids;    /* lanes: which centroid, -1 for none */
    float *host_lanes;
    int32_t *host_ids;
    uint32_t count; /* panels */
};

struct half_filter {
    struct filter *filter;
    bool used;  /* the device can, the rows are resident, and there is memory for their copy */
    bool ready; /* for the centroids of now */
    uint32_t columns;
    cl_program program;
    cl_kernel convert, assign;
    struct half_panels all, some;
    cl_mem slope, offset; /* k */
    float *host_slope, *host_offset;
    cl_mem flagged; /* rows in doubt, of the largest tile */
};

/* For the filter's capacity; leaves `used` false where it cannot be or would not pay. */
enum status half_open(struct half_filter *half, struct filter *filter, struct error *err);
void half_close(struct half_filter *half);

/* Follows filter_set_centroids. */
enum status half_set_centroids(struct half_filter *half, struct error *err);

/* Searches the tile's rows (the counts[rows_count] of them in `rows`; NULL: all) among all
 * centroids. Rows in doubt are added to half->flagged, whose length is
 * counts[flagged_count]; upper (of the tile's rows) gets the score that their best centroid does
 * not exceed. */
enum status half_search(struct half_filter *half, struct tile *tile, cl_mem rows,
                        uint32_t rows_count, cl_mem upper, cl_mem counts, uint32_t flagged_count,
                        struct error *err);

/* Searches the counts[rows_count] rows listed among the filter's `some` centroids, as
 * label_among_some (kmeans_bounds.h); rows in doubt are added to `flagged`. */
enum status half_search_some(struct half_filter *half, struct tile *tile, cl_mem rows,
                             uint32_t rows_count, cl_mem flagged, cl_mem counts,
                             uint32_t flagged_count, struct error *err);

#endif
