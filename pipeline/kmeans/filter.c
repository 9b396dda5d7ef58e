/* filter.c: lays out centroids for the filter, with the bound on its errors folded in.
 *
 * Names follow docs/clustering.md: u is float32's unit roundoff, eta the smallest normal float32
 * (what a device that flushes subnormals may lose at each step), zeta the length of a centroid less
 * the centre, scaled by 2^-exponent. */
#include "kmeans/filter.h"
#include "kmeans.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define U            0x1p-24
#define ETA          0x1p-126
#define EXPONENT_MIN (-120)
/* Covers the few operations that the derivation rounds up: see docs/clustering.md. */
#define MARGIN 1.02
/* Rows that are longer, or whose sums need more operations, are not filtered: beyond these limits,
 * the kernels' allowance of 2^-30 for the canonical distance does not hold. */
#define STRIDE_MAX (1u << 26)
#define CHAIN_MAX  0.25

/* Largest power of two by which centroids may lie beyond the rows for bounds on rows' distances. */
#define SPREAD_MAX 40

/* Maximum size of a pass's results in the mailbox (device_update.c, prune.c, counters.c): bytes per
 * cluster, other bytes, parts. */
#define MAILBOX_CLUSTER ((KMEANS_FACTS + 2) * sizeof(cl_double))
#define MAILBOX_REST    1024
#define MAILBOX_PARTS   6

/* Fewer values of centroids are measured faster than threads wake up. */
#define MEASURE_ALONE 16384

/* A centre, whose kernel is slower, is worthwhile if the columns' means exceed the rows' scatter
 * around them by this factor. */
#define CENTRE_WORTH 16.0

double canonical_error(uint32_t stride)
{
    return (stride / KMEANS_LANES + 8) * 0x1p-53;
}

float float_up(double value)
{
    if (value > (double)FLT_MAX)
        return INFINITY;
    float rounded = (float)value;
    return (double)rounded < value ? nextafterf(rounded, INFINITY) : rounded;
}

static int exponent_above(double value)
{
    int exponent = 0;
    if (value > 0)
        frexp(value, &exponent);
    return exponent;
}

/* --- centre and scale ------------------------------------------------------------------------ */

static enum status choose_centre(struct filter *filter, struct error *err)
{
    const struct data *data = filter->data;
    const struct column_stats *stats = &data->stats;
    double mean_squares = 0, scatter = 0;
    for (uint32_t j = 0; j < data->dimension; j++) {
        double mean = column_stats_mean(stats, j);
        mean_squares += mean * mean;
        scatter += column_stats_scatter(stats, j) / (double)data->rows;
    }
    filter->centred = mean_squares > CENTRE_WORTH * scatter;
    const struct lane_wanted wanted = HOST(filter->centre, data->stride);
    if (lane_hold(filter->held, filter->lane, &wanted, 1, "the centre", err) != STATUS_OK)
        return err->status;
    double largest = 0;
    for (uint32_t j = 0; j < data->dimension && filter->centred; j++) {
        float mean = (float)column_stats_mean(stats, j);
        filter->centre[j] = fabsf(mean) < FLT_MIN ? 0 : mean;
        largest = fmax(largest, (double)stats->largest[j] + fabs((double)mean));
    }
    /* Differences must not overflow; such large data is not centred. */
    if (largest > (double)FLT_MAX / 2) {
        filter->centred = false;
        memset(filter->centre, 0, data->stride * sizeof *filter->centre);
    }
    if (!filter->centred)
        for (uint32_t j = 0; j < data->dimension; j++)
            largest = fmax(largest, (double)stats->largest[j]);
    int exponent = exponent_above(largest);
    /* Even, so that half of it is an integer; not so low that factors overflow. */
    exponent = exponent % 2 != 0 ? exponent + 1 : exponent;
    filter->row_exponent = exponent < EXPONENT_MIN ? EXPONENT_MIN : exponent;
    return STATUS_OK;
}

/* --- programs -------------------------------------------------------------------------------- */

/* Register tiles that fit the device's vectors: 32 registers of 16 floats, 16 of 8, or less. */
static void choose_tile(struct filter *filter, uint32_t k)
{
    if (filter->lane->tiled) {
        filter->points = filter->width = 128;
        filter->vectors = 0;
        return;
    }
    cl_uint native = 0;
    clGetDeviceInfo(filter->lane->device->id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, sizeof native,
                    &native, NULL);
    filter->points = native >= 16 ? 8 : native >= 8 ? 4 : 2;
    /* A second vector halves the loads of x, unless most of its lanes would be empty. */
    filter->vectors = native >= 16 && (k >= 128 || (k + 15) / 16 % 2 == 0) ? 2 : 1;
    filter->width = 16 * filter->vectors;
}

/* The program of the search, whose register tiles are `vectors` wide, and its options. */
static const char *search_program(char options[128], const struct filter *filter, uint32_t vectors)
{
    options[0] = '\0';
    if (filter->lane->tiled)
        return "kmeans_filter_tiled";
    snprintf(options, 128, "-DCENTRED=%d -DPOINTS=%u -DVECTORS=%u", filter->centred ? 1 : 0,
             filter->points, vectors);
    return "kmeans_filter";
}

static enum status build(struct filter *filter, struct error *err)
{
    struct lane *lane = filter->lane;
    char options[128];
    const char *name = search_program(options, filter, filter->vectors);
    const struct lane_wanted kernels[] = {
        KERNEL(filter->norms, "kmeans_rows", ROWS_OPTIONS(lane), "row_norms"),
        KERNEL(filter->assign, name, options, "assign_filter"),
        KERNEL(filter->layout, "kmeans_means", "", "lay_out_panels"), /* if device_layout */
    };
    return lane_hold(filter->held, lane, kernels, filter->device_layout ? 3 : 2, "centroids", err);
}

/* --- buffers --------------------------------------------------------------------------------- */

static enum status open_panels(struct panels *panels, struct filter *filter, uint32_t width,
                               uint32_t places, struct error *err)
{
    *panels = (struct panels){.width = width, .capacity = (places + width - 1) / width};
    size_t ids = (size_t)panels->capacity * width;
    size_t values = ids * ((size_t)filter->data->dimension + 2);
    const struct lane_wanted wanted[] = {HOST(panels->host, values), HOST(panels->host_ids, ids),
                                         BUFFER(panels->factors, values * sizeof *panels->host),
                                         BUFFER(panels->ids, ids * sizeof *panels->host_ids)};
    return lane_hold(filter->held, filter->lane, wanted, COUNT_OF(wanted), "centroids", err);
}

/* The longest chain of operations of a score (the tiled kernel has one for all columns), and what
 * the lengths and distances of rows need beyond their float32 sums. */
static void set_bounds(struct filter *filter)
{
    const uint32_t columns = filter->data->dimension;
    const double stride = filter->data->stride, flushed = ldexp(ETA, -filter->row_exponent);
    const double chain =
        16 + (filter->lane->tiled ? columns
                                  : KMEANS_FILTER_COLUMNS + columns / KMEANS_FILTER_COLUMNS + 1);
    filter->no_bound = chain * U > CHAIN_MAX || filter->data->stride > STRIDE_MAX;
    filter->gamma = filter->no_bound ? 0.5 : chain * U / (1 - chain * U);
    filter->half_scale = (float)ldexp(1.0, -filter->row_exponent / 2);
    filter->growth = float_up(1 + 4 * filter->gamma);
    filter->tiny = float_up(stride * 0x1p-120);
    filter->bounds.s[1] = (cl_float)(1 - 8 * filter->gamma - 0x1p-15);
    filter->bounds.s[2] = float_up(stride * (0x1p-118 + 3 * flushed + flushed * flushed));
    filter->bounds.s[3] = float_up(4 * sqrt(stride) * (flushed + 0x1p-60));
}

enum status filter_open(struct filter *filter, struct lane_held **held, struct data *data,
                        uint32_t capacity, struct error *err)
{
    struct lane *lane = data->lane;
    *filter = (struct filter){.lane = lane, .held = held, .data = data, .capacity = capacity};
    size_t row = data->stride * sizeof(float), values;
    if (__builtin_mul_overflow((size_t)capacity + 256, row + 64, &values))
        return error_memory(err, SIZE_MAX, "centroids");
    if (choose_centre(filter, err) != STATUS_OK)
        return err->status;
    choose_tile(filter, capacity);
    filter->device_layout = lane->tiled && !lane->host_exact;
    set_bounds(filter);
    const size_t each = capacity > KMEANS_TRIALS_MAX ? capacity : KMEANS_TRIALS_MAX;
    const size_t bounds = capacity * sizeof(float);
    const struct lane_wanted wanted[] = {
        HOST(filter->host_start, each),  HOST(filter->host_slope, each),
        HOST(filter->host_offset, each), HOST(filter->squares, each),
        HOST(filter->largest, each),     BUFFER(filter->centroids, capacity * row),
        BUFFER(filter->start, bounds),   BUFFER(filter->slope, bounds),
        BUFFER(filter->offset, bounds),  BUFFER(filter->centre_buffer, row)};
    if (build(filter, err) != STATUS_OK ||
        mailbox_open(&filter->mailbox, held, lane,
                     MAILBOX_CLUSTER * (size_t)capacity + MAILBOX_REST, MAILBOX_PARTS,
                     err) != STATUS_OK ||
        open_panels(&filter->all, filter, filter->width, capacity, err) != STATUS_OK ||
        open_panels(&filter->some, filter, filter->width, capacity, err) != STATUS_OK ||
        lane_hold(filter->held, lane, wanted, COUNT_OF(wanted), "centroids", err) != STATUS_OK)
        return err->status;
    return lane_write(lane, "centre", filter->centre_buffer, 0, row, filter->centre, err);
}

/* --- bounds ---------------------------------------------------------------------------------- */

void filter_measure(struct centroid_move *move, const struct filter *filter, const float *centroid)
{
    move->square = move->largest = 0;
    for (uint32_t j = 0; j < filter->data->dimension; j++) {
        const double value = (double)centroid[j] - (double)filter->centre[j];
        move->square += value * value;
        move->largest = fmax(move->largest, fabs(value));
    }
}

void filter_take_measures(struct filter *filter, const struct centroid_move *moves, uint32_t k)
{
    for (uint32_t c = 0; c < k; c++) {
        filter->squares[c] = moves[c].square;
        filter->largest[c] = moves[c].largest;
    }
}

struct measure_job {
    struct filter *filter;
    const float *centroids;
};

static void measure_part(void *context, uint64_t id)
{
    const struct measure_job *job = context;
    struct centroid_move move;
    filter_measure(&move, job->filter, job->centroids + id * job->filter->data->stride);
    job->filter->squares[id] = move.square;
    job->filter->largest[id] = move.largest;
}

/* Squared length and largest absolute value of `count` centroids on the host, less the centre. */
static void measure(struct filter *filter, const float *centroids, uint32_t count)
{
    struct measure_job job = {filter, centroids};
    if ((size_t)count * filter->data->stride > MEASURE_ALONE)
        workers_run(filter->lane->workers, measure_part, &job, count);
    else
        for (uint32_t i = 0; i < count; i++)
            measure_part(&job, i);
}

/* Starts, slopes and offsets, from the measured squares. */
static void bound(struct filter *filter, uint32_t count)
{
    const uint32_t columns = filter->data->dimension;
    const double scale = ldexp(1.0, -filter->exponent), root = sqrt((double)columns);
    const double gamma = filter->gamma, kappa = canonical_error(filter->data->stride);
    const double rows = ldexp(scale, filter->row_exponent);
    const double margin = MARGIN / (1 - gamma - U);
    for (uint32_t i = 0; i < count; i++) {
        const double square = filter->squares[i] * scale * scale, zeta = sqrt(square);
        double slope = margin * (rows * (2 * gamma + (filter->centred ? 8 * U : 0)) * zeta +
                                 2 * root * ldexp(ETA, filter->row_exponent));
        double offset = margin * ((gamma + 4 * U + 4 * kappa) * square +
                                  4 * root * zeta * scale * ETA + 4 * (columns + 256.0) * ETA);
        /* Every score is minus infinity: the canonical distance decides all rows. */
        if (filter->no_bound) {
            slope = 0;
            offset = INFINITY;
        }
        filter->host_start[i] = (float)(square - offset);
        filter->host_slope[i] = float_up(slope);
        filter->host_offset[i] = float_up(offset);
    }
}

/* --- laying out ------------------------------------------------------------------------------ */

struct layout {
    const struct filter *filter;
    struct panels *panels;
    const float *centroids;
};

static void lay_out_place(const struct layout *layout, float *place, int32_t id)
{
    const struct filter *filter = layout->filter;
    const uint32_t columns = filter->data->dimension, width = layout->panels->width;
    const double scale = ldexp(1.0, -filter->exponent);
    if (id < 0) {
        for (uint32_t j = 0; j < columns + 2; j++)
            place[(size_t)j * width] = j == 0 ? INFINITY : 0;
        return;
    }
    const float *centroid = layout->centroids + (size_t)id * filter->data->stride;
    place[0] = filter->host_start[id];
    for (uint32_t j = 0; j < columns; j++) {
        double value = (double)centroid[j] - (double)filter->centre[j];
        float factor = (float)(-2 * value * scale * scale);
        /* A device might flush smaller values. */
        place[(size_t)(1 + j) * width] = fabsf(factor) < FLT_MIN ? 0 : factor;
    }
    place[(size_t)(columns + 1) * width] = -filter->host_slope[id];
}

static void lay_out_panel(void *context, uint64_t panel)
{
    const struct layout *layout = context;
    struct panels *panels = layout->panels;
    float *start =
        panels->host + panel * panels->width * ((size_t)layout->filter->data->dimension + 2);
    for (uint32_t l = 0; l < panels->width; l++)
        lay_out_place(layout, start + l, panels->host_ids[panel * panels->width + l]);
}

/* From the device's centroids and bounds. */
static enum status lay_out_on_device(struct filter *filter, struct panels *panels,
                                     struct error *err)
{
    const cl_uint stride = filter->data->stride, columns = filter->data->dimension;
    const cl_uint places = panels->count * panels->width;
    const cl_double scale = ldexp(1.0, -filter->exponent);
    const size_t global[2] = {places, (size_t)columns + 2};
    return LANE_RUN_2D(filter->lane, "centroid panels", filter->layout, global, NULL, err,
                       OCL_ARG(filter->centroids), OCL_ARG(filter->centre_buffer),
                       OCL_ARG(panels->ids), OCL_ARG(filter->start), OCL_ARG(filter->slope),
                       OCL_ARG(panels->factors), OCL_ARG(stride), OCL_ARG(columns),
                       OCL_ARG(panels->width), OCL_ARG(places), OCL_ARG(scale));
}

/* Fills the panels from `ids` (already in host_ids, `places` of them) and writes them to the
 * device; centroids: NULL if the device has them. */
static enum status lay_out(struct filter *filter, struct panels *panels, uint32_t places,
                           const float *centroids, struct error *err)
{
    panels->count = (places + panels->width - 1) / panels->width;
    if (panels->count == 0)
        return STATUS_OK;
    size_t ids = (size_t)panels->count * panels->width;
    for (size_t l = places; l < ids; l++)
        panels->host_ids[l] = -1;
    if (lane_send(filter->lane, "centroid ids", panels->ids, 0, ids * sizeof *panels->host_ids,
                  panels->host_ids, err) != STATUS_OK)
        return err->status;
    if (!centroids)
        return lay_out_on_device(filter, panels, err);
    struct layout layout = {filter, panels, centroids};
    workers_run(filter->lane->workers, lay_out_panel, &layout, panels->count);
    return lane_send(filter->lane, "centroid panels", panels->factors, 0,
                     ids * ((size_t)filter->data->dimension + 2) * sizeof *panels->host,
                     panels->host, err);
}

void filter_use_centroids(struct filter *filter, uint32_t k)
{
    double largest = 0;
    for (uint32_t i = 0; i < k; i++)
        largest = fmax(largest, filter->largest[i]);
    /* Upper bound for rows and these centroids. */
    int exponent = exponent_above(largest);
    exponent = exponent > filter->row_exponent ? exponent : filter->row_exponent;
    const int spread = exponent - filter->row_exponent;
    filter->exponent = exponent;
    filter->k = k;
    filter->bounds.s[0] = (cl_float)ldexp(1.0, 2 * spread);
    filter->bounds_usable = spread <= SPREAD_MAX && exponent < FLT_MAX_EXP - 1 && !filter->no_bound;
    filter->laid_out = false;
}

enum status filter_set_centroids(struct filter *filter, const float *centroids, uint32_t k,
                                 struct error *err)
{
    measure(filter, centroids, k);
    filter_use_centroids(filter, k);
    return lane_send(filter->lane, "centroids", filter->centroids, 0,
                     (size_t)k * filter->data->stride * sizeof *centroids, centroids, err);
}

enum status filter_lay_out(struct filter *filter, const float *centroids, const uint8_t *wanted,
                           struct error *err)
{
    const uint32_t k = filter->k;
    const float *source = filter->device_layout ? NULL : centroids;
    const size_t bytes = k * sizeof(float);
    struct lane *lane = filter->lane;
    uint32_t places = 0;
    bound(filter, k);
    filter->laid_out = false;
    filter->some.count = 0;
    for (uint32_t i = 0; i < k; i++) {
        filter->all.host_ids[i] = (int32_t)i;
        if (wanted && wanted[i])
            filter->some.host_ids[places++] = (int32_t)i;
    }
    if (lane_send(lane, "error bounds", filter->start, 0, bytes, filter->host_start, err) !=
            STATUS_OK ||
        lane_send(lane, "error bounds", filter->slope, 0, bytes, filter->host_slope, err) !=
            STATUS_OK ||
        lane_send(lane, "error bounds", filter->offset, 0, bytes, filter->host_offset, err) !=
            STATUS_OK ||
        lay_out(filter, &filter->all, k, source, err) != STATUS_OK ||
        (wanted && lay_out(filter, &filter->some, places, source, err) != STATUS_OK))
        return err->status;
    filter->laid_out = true;
    return STATUS_OK;
}

enum status filter_lay_out_all(struct filter *filter, const float *centroids, struct error *err)
{
    return filter->laid_out ? STATUS_OK : filter_lay_out(filter, centroids, NULL, err);
}

/* Buffers for seeding, with 16 lanes. */
static enum status open_seed(struct filter *filter, struct error *err)
{
    struct lane *lane = filter->lane;
    char options[128];
    const char *name = search_program(options, filter, 1);
    const struct lane_wanted wanted[] = {
        KERNEL(filter->seed, name, options, "seed_filter"),
        BUFFER(filter->candidates, KMEANS_TRIALS_MAX * filter->data->stride * sizeof(float))};
    if (lane_hold(filter->held, lane, wanted, COUNT_OF(wanted), "candidates", err) != STATUS_OK)
        return err->status;
    return open_panels(&filter->trial, filter, KMEANS_TRIALS_MAX, KMEANS_TRIALS_MAX, err);
}

enum status filter_set_candidates(struct filter *filter, const float *candidates, uint32_t count,
                                  struct error *err)
{
    const size_t row = filter->data->stride * sizeof *candidates;
    if (!filter->seed && open_seed(filter, err) != STATUS_OK)
        return err->status;
    /* Candidates are rows, so they stay below the rows' exponent. */
    filter->laid_out = false;
    filter->exponent = filter->row_exponent;
    filter->k = 0;
    for (uint32_t i = 0; i < count; i++)
        filter->trial.host_ids[i] = (int32_t)i;
    measure(filter, candidates, count);
    bound(filter, count);
    if (lay_out(filter, &filter->trial, count, candidates, err) != STATUS_OK)
        return err->status;
    return lane_send(filter->lane, "candidates", filter->candidates, 0, count * row, candidates,
                     err);
}

enum status filter_norms(struct filter *filter, struct tile *tile, struct error *err)
{
    if (tile->has_norms)
        return STATUS_OK;
    const cl_uint rows = tile->rows, stride = filter->data->stride;
    enum status status = LANE_RUN(
        filter->lane, "row norms", filter->norms, rows, 64, err, OCL_ARG(tile->x),
        OCL_ARG(filter->centre_buffer), OCL_ARG(tile->norms), OCL_ARG(rows), OCL_ARG(stride),
        OCL_ARG(filter->half_scale), OCL_ARG(filter->growth), OCL_ARG(filter->tiny));
    tile->has_norms = status == STATUS_OK;
    return status;
}
