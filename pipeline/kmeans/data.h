/* data.h: a matrix, or one device's share of it, as tiles of rows in the metric's space on the
 * device.
 *
 * data_open reads the share once: it checks the rows, gathers column statistics and, if they fit,
 * leaves the rows on the device. If they do not fit, each pass reads them again:
 *
 *   main: request ──> reader thread: read, transform into a slot ──> main: upload, compute, request
 *
 * with three slots: one being read, one being uploaded and one being computed on. On devices that
 * share memory with the host a slot is mapped, not copied. */
#ifndef CLPIPE_KMEANS_DATA_H
#define CLPIPE_KMEANS_DATA_H

#include "kmeans/cluster_types.h"
#include "kmeans/transform.h"
#include "kmeans/weights.h"
#include "ocl/fetch.h"

#define DATA_SLOTS 3

/* Of the program kmeans_rows. */
#define ROWS_OPTIONS(lane) ((lane)->tiled ? "-DTILED=1" : "-DTILED=0")

struct tile {
    uint64_t first;  /* first row, counted over all shares */
    uint64_t offset; /* first row, counted within the share */
    uint32_t rows;
    cl_mem x;    /* rows x stride float32; while acquired, if the data is not resident */
    float *host; /* the same on the host, if streamed to a device with its own memory */
    /* One value per row, kept between passes. */
    cl_mem labels;       /* int32 */
    cl_mem upper_bounds; /* float32: on the distance to the label's centroid (prune.h) */
    cl_mem lower_bounds; /* float32: on the distance to any other centroid */
    cl_mem norms;        /* float32: the filter's upper bound on the row's length */
    bool has_norms;
    cl_mem float16; /* rows x padded columns float16; NULL without that filter */
    cl_mem reaches; /* float32, beside it: the factor of its bound on a row's scores */
    bool has_float16;
    const float *host_weights; /* of the tile's rows; NULL: all count the same */
    cl_mem weights;            /* the same on the device */
    cl_mem summed_labels;      /* int32: labels in the device's sums; NULL: the host keeps them */
};

/* A rank's share of the rows: whole chunks of column_stats_chunk rows, except at the end. */
struct data_share {
    uint64_t first, rows;
};

struct data {
    struct comm *comm;
    struct lane *lane;
    struct lane_held **held; /* what tiles own: all but x of data that is not resident */
    const struct matrix_source *source;
    const struct cluster_config *config; /* of data_open; for its callback while loading */
    struct transform transform;
    uint64_t rows; /* in all shares, as are the statistics */
    struct data_share share;
    uint32_t dimension, stride;
    struct column_stats stats;
    struct weights weights;
    struct column_stats weighted; /* if there are weights */
    double seconds_read;          /* in data_open */
    struct tile *tiles;
    uint32_t tile_count, tile_rows; /* tile_rows: in the largest */
    bool resident;
    uint64_t spare;            /* usable bytes of the device left by resident rows */
    struct fetch fetch;        /* copies per-row results to the host */
    struct row_stream *stream; /* slots and the reader; NULL if resident */
    struct tile *tile;         /* the last one given by data_next */
    uint32_t next_tile;        /* tiles already given in this pass */
    bool backwards;            /* this pass begins with the last tile */
};

/* Collective: all ranks read at the same time. config->memory is for this share. Close it even after an
 * error. Errors of rows are those of cluster_run. */
enum status data_open(struct data *data, struct lane_held **held, struct comm *comm,
                      struct lane *lane, const struct matrix_source *source,
                      const struct cluster_config *config, const struct data_share *share,
                      struct error *err);
/* Whether that many more rows, and `bytes`, fit on the device beside the resident ones. */
bool data_has_room(const struct data *data, uint64_t rows, uint64_t bytes);
/* Waits for the reader and frees everything but *held; accepts a zeroed struct. */
void data_close(struct data *data);

/* A pass over all tiles, in any order: begin, then next until it is not STATUS_OK, then end. Tiles that
 * are read again come backwards in every other pass, so that it begins with the rows that the page cache
 * still holds. In one direction only, the cache would drop each part just before it is needed.
 *
 * A tile is the caller's until the next call of next or end. Commands on the compute queue may use its `x`;
 * unless the data is resident, they must have finished by then. next returns STATUS_END after the
 * last tile and STATUS_INTERRUPTED if a stop was requested; end must be called after an error, too:
 * it returns STATUS_OK for STATUS_END and any other status unchanged. */
enum status data_begin(struct data *data, struct error *err);
enum status data_next(struct data *data, struct tile **tile, struct error *err);
enum status data_end(struct data *data, enum status status);

/* Index of the tile that follows `before` others in a backward pass over `count` tiles: the last
 * `span` tiles in ascending order, then the `span` before them. Stepping back tile by tile would
 * waste the system's read-ahead. */
static inline uint32_t data_backwards(uint32_t before, uint32_t count, uint32_t span)
{
    const uint32_t first = (count - 1) / span * span, last = count - first;
    if (before < last)
        return first + before;
    return first - ((before - last) / span + 1) * span + (before - last) % span;
}

/* Brings rows of resident data together on the device, at most as many at a time as it was opened
 * for: row i of `to` becomes rows[i]. lane_release of *held frees it. */
struct gather {
    cl_kernel kernel;
    cl_uint *list; /* of rows of a tile */
    cl_mem device_list;
};
enum status data_open_gather(struct gather *gather, struct lane_held **held,
                             const struct data *data, uint32_t count, struct error *err);
enum status data_gather(const struct gather *gather, struct data *data, cl_mem to,
                        const uint64_t *rows, uint32_t count, struct error *err);

/* Copies rows of the share (stride values each) to `out`; not during a pass over streamed data. */
enum status data_rows(struct data *data, float *out, const uint64_t *rows, uint32_t count,
                      struct error *err);

/* Copies centroids of `dimension` values to centroids of `stride` values, padded with zeros. */
void data_pad(const struct data *data, float *to, const float *from, uint32_t count);

/* The tile that contains a row of the share. */
struct tile *data_tile_of(struct data *data, uint64_t row);

/* Map all rows of an acquired tile to the host, and unmap them. */
enum status data_map(float **rows, struct data *data, struct tile *tile, struct error *err);
enum status data_unmap(struct data *data, struct tile *tile, float *rows, struct error *err);

#endif
