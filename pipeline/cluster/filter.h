/* filter.h: the float32 search and its error bound.
 *
 * A score of row x against centroid c is a lower bound on s (|c - m|^2 - 2 (x - m).(c - m)), which
 * is the squared distance less |x - m|^2, times a power of two s; m is a centre, zero for most
 * data. It is at most 2 (offset_c + slope_c * norm_x) below. docs/clustering.md derives offset and
 * slope. */
#ifndef CLPIPE_CLUSTER_FILTER_H
#define CLPIPE_CLUSTER_FILTER_H

#include "cluster/data.h"
#include "cluster/mailbox.h"
#include "kmeans.h"

/* Centroids laid out for the kernels: panels of `width` places, dimension + 2 rows each. */
struct panels {
    cl_mem factors, ids; /* ids: which centroid is at a place, -1: none */
    float *host;
    int32_t *host_ids;
    uint32_t width, count, capacity; /* count, capacity: in panels */
};

/* What a move of a centroid comes to: what move_centroids (kmeans_means.cl) gives of each. */
struct centroid_move {
    double inertia; /* of its rows about the old place, less that about the columns' means */
    double shift;   /* the squared distance between both places */
    double square;  /* the squared length at the new place, less the filter's centre */
    double largest; /* the largest value there, less the centre */
};
_Static_assert(sizeof(struct centroid_move) == KMEANS_FACTS * sizeof(double), "as in the kernel");

struct filter {
    struct lane *lane;
    struct lane_held *held;
    struct data *data;
    uint32_t points; /* rows of a work-item or a work-group */
    uint32_t width, vectors;
    bool centred;
    float *centre; /* stride values */
    cl_mem centre_buffer;
    int row_exponent; /* every |x - m| is below 2 to this */
    int exponent;     /* the same for rows and centroids: scores are scaled by 2^(-2 exponent) */
    double gamma;     /* bound on the relative rounding error of a sum */
    cl_float half_scale, growth, tiny; /* of row_norms */
    cl_float4 bounds;                  /* of kmeans_bounds.h; x is for the centroids taken last */
    bool bounds_usable;                /* bounds on rows' distances: centroids are not too far, and
                                  * differences do not overflow */
    bool no_bound;                     /* rows are too long for one: scores tell nothing */
    bool device_layout;                /* panels are laid out by a kernel */
    bool laid_out;                     /* the panels are of the centroids taken last */
    cl_program rows_program, assign_program, means_program;
    cl_kernel norms, assign, seed, layout;
    struct mailbox mailbox;      /* of what the host reads of each pass */
    uint32_t k, capacity;        /* centroids */
    cl_mem centroids;            /* k x stride */
    cl_mem start, slope, offset; /* k each */
    float *host_start, *host_slope, *host_offset;
    double *squares;         /* k: lengths less the centre, squared */
    double *largest;         /* k: largest values less the centre */
    struct panels all, some; /* all centroids; those asked for */
    cl_mem candidates;       /* KMEANS_TRIALS_MAX x stride */
    struct panels trial;     /* the candidates of seeding, 16 places */
};

/* For data and up to `capacity` centroids. */
enum status filter_open(struct filter *filter, struct data *data, uint32_t capacity,
                        struct error *err);
/* Frees buffers and kernels; accepts a zeroed struct and what a failed open left. */
void filter_close(struct filter *filter);

/* square and largest of one centroid (`stride` values); for any thread. */
void filter_measure(struct centroid_move *move, const struct filter *filter, const float *centroid);

/* Keeps square and largest of k centroids that are to be taken next. */
void filter_take_measures(struct filter *filter, const struct centroid_move *moves, uint32_t k);

/* Takes k centroids. measured: filter_take_measures has had them. */
enum status filter_set_centroids(struct filter *filter, const float *centroids, uint32_t k,
                                 bool measured, struct error *err);

/* The same for k centroids that kernels have put into filter->centroids; filter_take_measures has had
 * them. Only where device_layout. */
void filter_use_centroids(struct filter *filter, uint32_t k);

/* Lays them out for the search: all, and those that `wanted` (k bytes; NULL for none) marks in
 * `some`. centroids: as given above; not looked at where device_layout. */
enum status filter_lay_out(struct filter *filter, const float *centroids, const uint8_t *wanted,
                           struct error *err);
/* The same of all, unless that has been done for these centroids. */
enum status filter_lay_out_all(struct filter *filter, const float *centroids, struct error *err);

/* Takes up to KMEANS_TRIALS_MAX candidates of seeding. */
enum status filter_set_candidates(struct filter *filter, const float *candidates, uint32_t count,
                                  struct error *err);

/* Makes the tile's norms if it has none yet. */
enum status filter_norms(struct filter *filter, struct tile *tile, struct error *err);

/* The least float32 not below a value that is not negative: bounds are rounded up. */
float float_up(double value);

/* Rounding error of the canonical distance, relative. */
double canonical_error(uint32_t stride);

#endif
