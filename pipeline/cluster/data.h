/* data.h: the matrix, or one device's share of it, as the device sees it: tiles of rows in the
 * metric's space.
 *
 * data_open reads the share once: it checks the rows, gathers the columns' statistics and, where
 * they fit, leaves the rows on the device. Where they do not fit, each pass reads them again:
 *
 *   main: request ──> reader thread: read, transform into a slot ──> main: upload, compute, request
 *
 * with three slots, so that one is read, one is uploaded and one is computed on at the same time.
 * On devices that share memory with the host a slot is mapped, not copied. */
#ifndef CLPIPE_CLUSTER_DATA_H
#define CLPIPE_CLUSTER_DATA_H

#include "cluster/cluster_types.h"
#include "cluster/fetch.h"
#include "cluster/transform.h"
#include "cluster/weights.h"

#define DATA_SLOTS 3

struct tile {
    uint64_t first;  /* row, of all */
    uint64_t offset; /* the same within the share */
    uint32_t rows;
    struct lane_held *held; /* the buffers below; but for x where the data is not resident */
    cl_mem x;    /* rows x stride float32; while acquired, where the data is not resident */
    float *host; /* the same, where the host has them, too: streamed to a device of other memory */
    /* A value for each row, kept between passes. */
    cl_mem labels;       /* int32 */
    cl_mem upper_bounds; /* float32: of the distance to the label's centroid (prune.h) */
    cl_mem lower_bounds; /* float32: of the distance to any other centroid */
    cl_mem norms;        /* float32: the filter's upper bound on the length */
    bool has_norms;
    cl_mem float16; /* rows x padded columns float16; NULL where that filter is not used */
    bool has_float16;
    const float *host_weights; /* of the tile's rows; NULL where all count the same */
    cl_mem weights;            /* the same on the device */
    cl_mem
        summed_labels; /* int32: those that the device's sums hold; NULL where the host keeps them */
};

/* A rank's share of the rows: whole chunks of column_stats_chunk rows but for the last one's. */
struct data_share {
    uint64_t first, rows;
};

struct data {
    struct comm *comm;
    struct lane *lane;
    const struct matrix_source *source;
    const struct cluster_config *config; /* of data_open; for its callback, while it loads */
    struct transform transform;
    uint64_t rows; /* of all shares, as are statistics */
    struct data_share share;
    uint32_t dimension, stride;
    struct column_stats stats;
    struct weights weights;
    struct column_stats weighted; /* where there are weights */
    bool apart;                   /* all ranks read at the same time */
    double seconds_read;          /* of data_open */
    struct tile *tiles;
    uint32_t tile_count, tile_rows; /* tile_rows: of the largest */
    bool resident;
    uint64_t spare;        /* device bytes that resident rows leave of what may be used */
    struct fetch fetch;    /* what the device has of each row, to the host */
    struct stream *stream; /* slots and the reader; NULL for resident data */
    struct tile *tile;     /* that data_next gave last */
    uint32_t next_tile;    /* of this pass: how many came before */
    bool backwards;        /* this pass begins with the last tile */
};

/* All ranks call it, and read at the same time. config->memory is for this share. */
enum status data_open(struct data *data, struct comm *comm, struct lane *lane,
                      const struct matrix_source *source, const struct cluster_config *config,
                      const struct data_share *share, struct error *err);
/* Waits for the reader and frees everything; accepts a zeroed struct and what a failed open left. */
void data_close(struct data *data);

/* A pass over all tiles: begin, then next until it is not STATUS_OK, then end. A tile is the caller's
 * until the following call of next or end. Its `x` may be used by commands of the compute queue, which
 * must have been waited for by then, unless the data is resident. next gives STATUS_END after the
 * last tile and STATUS_INTERRUPTED when a stop was asked for; end, which is called after an error,
 * too, makes STATUS_OK of STATUS_END and returns any other status as it is. */
enum status data_begin(struct data *data, struct error *err);
/* The same, for passes that may take tiles in any order: where they are read again, every other
 * pass goes backwards, so that it begins with what the page cache still has of the one before. In
 * one direction alone the cache drops each part just before it is wanted. */
enum status data_begin_at_either_end(struct data *data, struct error *err);
enum status data_next(struct data *data, struct tile **tile, struct error *err);
enum status data_end(struct data *data, enum status status);

/* Which of `count` tiles comes after `before` others in a pass backwards: the last `span` of them
 * from the first to the last, then those before. Not tile by tile, where the system would read
 * ahead for nothing at each step back. */
static inline uint32_t data_backwards(uint32_t before, uint32_t count, uint32_t span)
{
    const uint32_t first = (count - 1) / span * span, last = count - first;
    if (before < last)
        return first + before;
    return first - ((before - last) / span + 1) * span + (before - last) % span;
}

/* Copies rows of the share (stride values each) to host memory; not during a pass of data that is
 * not resident.
 */
enum status data_rows(struct data *data, float *out, const uint64_t *rows, uint32_t count,
                      struct error *err);

/* The tile of a row of the share. */
struct tile *data_tile_of(struct data *data, uint64_t row);

/* Gives the host all of a tile's rows while the tile is acquired, and takes them back. */
enum status data_map(float **rows, struct data *data, struct tile *tile, struct error *err);
enum status data_unmap(struct data *data, struct tile *tile, float *rows, struct error *err);

#endif
