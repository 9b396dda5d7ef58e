/* filter.h: the float32 search and its error bound.
 *
 * A score of row x against centroid c is a lower bound on s (|c - m|^2 - 2 (x - m).(c - m)), the
 * squared distance less |x - m|^2, times a power of two s; m is a centre, zero for most data. It is
 * at most 2 (offset_c + slope_c * norm_x) below that. docs/clustering.md derives offset and
 * slope. */
#ifndef CLPIPE_KMEANS_FILTER_H
#define CLPIPE_KMEANS_FILTER_H

#include "kmeans.h"
#include "kmeans/data.h"
#include "ocl/mailbox.h"

/* Centroids laid out for the kernels: panels of `width` lanes with dimension + 2 rows each. */
struct panels {
    cl_mem factors, ids; /* ids: the centroid of each lane; -1: none */
    float *host;
    int32_t *host_ids;
    uint32_t width, count, capacity; /* count, capacity: panels */
};

/* The result of moving a centroid, as move_centroids (kmeans_means.cl) returns it. */
struct centroid_move {
    double inertia; /* of its rows about the old position, less that about the columns' means */
    double shift;   /* squared distance between the two positions */
    double square;  /* squared length at the new position, less the filter's centre */
    double largest; /* largest absolute value there, less the centre */
};
_Static_assert(sizeof(struct centroid_move) == KMEANS_FACTS * sizeof(double), "as in the kernel");

struct filter {
    struct lane *lane;
    struct lane_held **held;
    struct data *data;
    uint32_t points; /* rows per work-item or work-group */
    uint32_t width, vectors;
    bool centred;
    float *centre; /* stride values */
    cl_mem centre_buffer;
    int row_exponent; /* every |x - m| is below 2^row_exponent */
    int exponent;     /* the same for rows and centroids: scores are scaled by 2^(-2 exponent) */
    double gamma;     /* bound on the relative rounding error of a sum */
    cl_float half_scale, growth, tiny; /* parameters of row_norms */
    cl_float4 bounds;                  /* see kmeans_bounds.h; x is for the current centroids */
    bool bounds_usable;                /* bounds on rows' distances: centroids are not too far away,
                                        * and differences do not overflow */
    bool no_bound;                     /* rows are too long for any bound: scores mean nothing */
    bool device_layout;                /* a kernel lays out the panels */
    bool laid_out;                     /* the panels hold the current centroids */
    cl_kernel norms, assign, seed, layout;
    struct mailbox mailbox;      /* results that the host reads after each pass */
    uint32_t k, capacity;        /* centroids */
    cl_mem centroids;            /* k x stride */
    cl_mem start, slope, offset; /* k each */
    float *host_start, *host_slope, *host_offset;
    double *squares;         /* k: squared lengths, less the centre */
    double *largest;         /* k: largest absolute values, less the centre */
    struct panels all, some; /* all centroids; the selected ones */
    cl_mem candidates;       /* KMEANS_TRIALS_MAX x stride */
    struct panels trial;     /* the candidates of seeding, 16 lanes */
};

/* For data and up to `capacity` centroids. lane_release of *held frees it. */
enum status filter_open(struct filter *filter, struct lane_held **held, struct data *data,
                        uint32_t capacity, struct error *err);

/* Computes square and largest of one centroid (`stride` values). Thread-safe. */
void filter_measure(struct centroid_move *move, const struct filter *filter, const float *centroid);

/* Stores square and largest of k centroids, to be used next. */
void filter_take_measures(struct filter *filter, const struct centroid_move *moves, uint32_t k);

/* Sets k centroids, and measures them. */
enum status filter_set_centroids(struct filter *filter, const float *centroids, uint32_t k,
                                 struct error *err);

/* The same for k centroids that kernels put into filter->centroids, after filter_take_measures.
 * Only if device_layout. */
void filter_use_centroids(struct filter *filter, uint32_t k);

/* Lays them out for the search: all centroids, and in `some` those that `wanted` (k bytes; may be
 * NULL) marks. centroids: as given above; ignored if device_layout. */
enum status filter_lay_out(struct filter *filter, const float *centroids, const uint8_t *wanted,
                           struct error *err);
/* The same for all centroids, unless these are already laid out. */
enum status filter_lay_out_all(struct filter *filter, const float *centroids, struct error *err);

/* Sets up to KMEANS_TRIALS_MAX candidates of seeding. */
enum status filter_set_candidates(struct filter *filter, const float *candidates, uint32_t count,
                                  struct error *err);

/* Computes the tile's norms, if it has none yet. */
enum status filter_norms(struct filter *filter, struct tile *tile, struct error *err);

/* Rounds a non-negative value up to float32, for upper bounds. */
float float_up(double value);

/* Relative rounding error of the canonical distance. */
double canonical_error(uint32_t stride);

#endif
