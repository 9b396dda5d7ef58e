/* data.c: tiles, resident on the device or streamed to it. */
#include "kmeans/data.h"
#include "base/clock.h"
#include "base/minmax.h"
#include "base/parse.h"
#include "kmeans.h"
#include "kmeans/method.h"
#include "kmeans/reader.h"
#include "matrix/row_tree.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Multiply-adds per tile and iteration on a CPU: a second on a slow one, so that a stop is noticed
 * in time. */
#define TILE_WORK (1ull << 34)

/* Bytes per slot if rows are loaded once: pinning larger ones costs more than it gains, as do fewer
 * fills than this. */
#define LOAD_BYTES (48u << 20)
#define LOAD_FILLS 8

/* Up to so many bytes of rows that are loaded once, pinning slots takes longer than it saves. */
#define UNPINNED_BYTES (512u << 20)

/* Many times the system's read-ahead, and a small part of the page cache. */
#define SPAN_BYTES (256u << 20)

/* A buffer that the reader fills with rows. */
struct row_slot {
    cl_mem host_buffer; /* `host` is mapped from it; NULL: allocated */
    float *host;        /* while the reader may write */
    cl_mem device;      /* the rows for the kernels: host_buffer itself on zero-copy lanes */
    cl_event uploaded;
};

/* State of a pass over streamed data, whose tiles take the slots in turn; resident data has it only
 * while loading. */
struct row_stream {
    struct row_slot slots[DATA_SLOTS];
    size_t slot_bytes;
    struct reader *reader;
    uint32_t requested; /* tiles requested in this pass, */
    uint32_t staged;    /* and taken from the reader */
};

static size_t row_bytes(const struct data *data)
{
    return (size_t)data->stride * sizeof(float);
}

static size_t tile_bytes(const struct data *data, const struct tile *tile)
{
    return tile->rows * row_bytes(data);
}

/* --- the plan -------------------------------------------------------------------------------- */

/* Bytes of a resident row on the device, without its values: labels, bounds, norms, lists, and what
 * seeding keeps. */
#define BESIDE_ROW 64u

static uint32_t whole_blocks(uint64_t rows, uint64_t most)
{
    if (rows > most)
        rows = most;
    rows -= rows % KMEANS_BLOCK_ROWS;
    return rows < KMEANS_BLOCK_ROWS ? KMEANS_BLOCK_ROWS : (uint32_t)rows;
}

static bool pins_slots(const struct data *data)
{
    return !data->resident || data->share.rows * row_bytes(data) > UNPINNED_BYTES;
}

/* Decides what stays on the device, and the tiles. Row indices within a tile have 31 bits. */
static enum status plan(struct data *data, const struct cluster_config *config, size_t *slot_rows,
                        struct error *err)
{
    const struct ocl_device *device = data->lane->device;
    const uint64_t row = row_bytes(data), most_rows = INT_MAX / 2;
    uint64_t host = config->memory, on_device = config->device_memory;
    if (on_device == 0)
        on_device = device->unified_memory ? host : device->global_memory / 8 * 7;
    if (on_device > device->global_memory)
        on_device = device->global_memory;
    uint64_t need;
    data->resident =
        !__builtin_mul_overflow(data->share.rows, row + BESIDE_ROW, &need) && need <= on_device;
    data->spare = data->resident ? on_device - need : 0;
    uint64_t allocation = device->max_allocation ? device->max_allocation : on_device;
    uint64_t staging = host / 2 / DATA_SLOTS,
             preferred = data->lane->tiled ? 128u << 20 : 16u << 20;
    if (staging > preferred)
        staging = preferred;
    uint64_t streamed = on_device / 2 / DATA_SLOTS < staging ? on_device / 2 / DATA_SLOTS : staging;
    uint64_t work = (uint64_t)data->stride * config->k;
    uint64_t bytes = data->resident ? allocation : streamed < allocation ? streamed : allocation;
    data->tile_rows = whole_blocks(bytes / row, most_rows);
    if (!data->lane->tiled && data->tile_rows > TILE_WORK / work)
        data->tile_rows = whole_blocks(TILE_WORK / work, most_rows);
    const uint64_t piece = row_tree_piece(data->dimension * sizeof(float));
    if (data->resident)
        staging = min_u64(staging,
                          min_u64(LOAD_BYTES, max_u64(data->share.rows / LOAD_FILLS, piece) * row));
    *slot_rows = data->resident ? whole_blocks(staging / row, data->tile_rows) : data->tile_rows;
    /* Whole pieces of the digest, which is computed while rows are read. */
    if (data->resident && *slot_rows > piece && piece % KMEANS_BLOCK_ROWS == 0)
        *slot_rows -= *slot_rows % piece;
    if (data->resident && data->tile_rows > *slot_rows) /* whole numbers of fills */
        data->tile_rows -= data->tile_rows % (uint32_t)*slot_rows;
    if (data->tile_rows > data->share.rows)
        data->tile_rows = (uint32_t)data->share.rows;
    if (*slot_rows > data->tile_rows)
        *slot_rows = data->tile_rows;
    if (row > allocation / data->tile_rows) {
        return error_set(err, STATUS_FAILED,
                         "rows of %u values are too long for %s: %u of them must fit in one "
                         "allocation of at most %s",
                         data->dimension, device->name, data->tile_rows, BYTES_TEXT(allocation));
    }
    uint64_t tiles = (data->share.rows + data->tile_rows - 1) / data->tile_rows;
    if (tiles > UINT32_MAX)
        return error_set(err, STATUS_FAILED, "%llu rows are too many",
                         (unsigned long long)data->rows);
    data->tile_count = (uint32_t)tiles;
    return STATUS_OK;
}

bool data_has_room(const struct data *data, uint64_t rows, uint64_t bytes)
{
    /* Counts float16 copies of the rows, too, and twice the plan's bytes beside each row, to be
     * safe. */
    const uint64_t row = row_bytes(data), beside = row / 2 + 2ull * BESIDE_ROW;
    return data->resident &&
           rows * (row + beside) + data->share.rows * beside + bytes <= data->spare;
}

static enum status open_tile(struct data *data, uint32_t i, struct error *err)
{
    struct tile *tile = &data->tiles[i];
    const uint64_t begin = (uint64_t)i * data->tile_rows, left = data->share.rows - begin;
    tile->first = data->share.first + begin;
    tile->offset = begin;
    tile->rows = left < data->tile_rows ? (uint32_t)left : data->tile_rows;
    const size_t each = (size_t)tile->rows * sizeof(float);
    const struct lane_wanted wanted[] = {
        SHARED(tile->labels, each), SHARED(tile->upper_bounds, each),
        SHARED(tile->lower_bounds, each), SHARED(tile->norms, each),
        SHARED(tile->x, tile_bytes(data, tile))};
    if (lane_hold(data->held, data->lane, wanted, data->resident ? 5 : 4, "rows", err) !=
            STATUS_OK ||
        /* Rows start without bounds: a lower bound of 0 decides nothing. */
        lane_fill(data->lane, "no bounds", tile->lower_bounds, 0, 0, each, err) != STATUS_OK)
        return err->status;
    if (!data->weights.of_row)
        return STATUS_OK;
    tile->host_weights = data->weights.of_row + tile->offset;
    const struct lane_wanted weights = SHARED(tile->weights, each);
    if (lane_hold(data->held, data->lane, &weights, 1, "weights", err) != STATUS_OK)
        return err->status;
    return lane_write(data->lane, "weights", tile->weights, 0, each, tile->host_weights, err);
}

/* --- slots ----------------------------------------------------------------------------------- */

static enum status map_slot(struct data *data, struct row_slot *slot, size_t bytes,
                            struct error *err)
{
    void *host = NULL;
    enum status status = lane_map(&host, data->lane, "map slot", slot->host_buffer,
                                  CL_MAP_WRITE_INVALIDATE_REGION, bytes, err);
    slot->host = host;
    return status;
}

static enum status unmap_slot(struct data *data, struct row_slot *slot, struct error *err)
{
    void *host = slot->host;
    slot->host = NULL;
    return lane_unmap(data->lane, "unmap slot", slot->host_buffer, host, STATUS_OK, err);
}

static enum status wait_upload(struct data *data, struct row_slot *slot, struct error *err)
{
    if (!slot->uploaded)
        return STATUS_OK;
    cl_event event = slot->uploaded;
    slot->uploaded = NULL;
    enum status status = ocl_wait(data->lane->upload, event, err);
    clReleaseEvent(event);
    return status;
}

static void close_stream(struct data *data)
{
    struct row_stream *stream = data->stream;
    if (!stream)
        return;
    reader_close(&stream->reader);
    struct error ignored = ERROR_INIT;
    for (unsigned i = 0; i < DATA_SLOTS; i++) {
        struct row_slot *slot = &stream->slots[i];
        wait_upload(data, slot, &ignored);
        if (!slot->host_buffer)
            free(slot->host);
        else if (slot->host)
            unmap_slot(data, slot, &ignored);
        if (slot->device != slot->host_buffer)
            ocl_buffer_release(&slot->device);
        ocl_buffer_release(&slot->host_buffer);
    }
    free(stream);
    data->stream = NULL;
}

/* Slots of `rows` rows, as many as are filled; with device twins if kernels read rows from there. */
static enum status open_stream(struct data *data, size_t rows, bool twins, struct error *err)
{
    struct row_stream *stream = data->stream = calloc(1, sizeof *stream);
    if (!stream)
        return error_memory(err, sizeof *stream, "reading rows");
    struct ocl_context *ocl = data->lane->ocl;
    const uint64_t fills = (data->share.rows + rows - 1) / rows;
    stream->slot_bytes = rows * row_bytes(data);
    for (unsigned i = 0; i < DATA_SLOTS && i < fills; i++) {
        struct row_slot *slot = &stream->slots[i];
        if (!pins_slots(data)) {
            if (!(slot->host = malloc(stream->slot_bytes)))
                return error_memory(err, stream->slot_bytes, "reading rows");
            continue;
        }
        if (ocl_buffer(&slot->host_buffer, ocl, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                       stream->slot_bytes, NULL, "rows on the host", err) != STATUS_OK)
            return err->status;
        if (!twins || data->lane->zero_copy)
            slot->device = slot->host_buffer;
        else if (ocl_buffer(&slot->device, ocl, CL_MEM_READ_ONLY, stream->slot_bytes, NULL, "rows",
                            err) != STATUS_OK)
            return err->status;
        if (map_slot(data, slot, stream->slot_bytes, err) != STATUS_OK)
            return err->status;
    }
    return STATUS_OK;
}

/* --- loading --------------------------------------------------------------------------------- */

/* Takes a filled request from the reader, unless a stop was requested, and reports progress. */
static enum status take_fill(const struct data *data, struct reader *reader, struct fill *fill,
                             struct error *err)
{
    const struct cluster_config *config = data->config;
    if (reader_take(reader, fill, err) != STATUS_OK ||
        lane_check_stop(data->lane, err) != STATUS_OK)
        return err->status;
    /* Rank 0 reports for all. */
    uint64_t done = fill->first - data->share.first + fill->rows;
    if (data->comm->size > 1)
        done = (uint64_t)((double)done / (double)data->share.rows * (double)data->rows);
    if (data->comm->rank == 0)
        watch_show(&config->watch, "rows read", done, data->rows);
    return STATUS_OK;
}

/* Reads all rows through the slots and copies them to resident tiles that are not mapped. */
static enum status load_through_slots(struct data *data, size_t slot_rows, struct reader *reader,
                                      struct error *err)
{
    struct row_stream *stream = data->stream;
    const uint64_t fills = (data->share.rows + slot_rows - 1) / slot_rows;
    for (uint64_t asked = 0, taken = 0; taken < fills;) {
        if (asked < fills && asked - taken < DATA_SLOTS) {
            struct row_slot *slot = &stream->slots[asked % DATA_SLOTS];
            uint64_t begin = asked * slot_rows, left = data->share.rows - begin;
            struct fill fill = {data->share.first + begin,
                                (uint32_t)(left < slot_rows ? left : slot_rows), slot->host};
            if (wait_upload(data, slot, err) != STATUS_OK ||
                reader_request(reader, &fill, err) != STATUS_OK)
                return err->status;
            asked++;
            continue;
        }
        struct fill fill;
        struct row_slot *slot = &stream->slots[taken++ % DATA_SLOTS];
        if (take_fill(data, reader, &fill, err) != STATUS_OK)
            return err->status;
        if (!data->resident)
            continue;
        /* A fill lies within one tile: resident tiles are whole numbers of fills. */
        struct tile *tile = data_tile_of(data, fill.first);
        if (ocl_enqueue_write(data->lane->upload, "load rows", tile->x, false,
                              (size_t)(fill.first - tile->first) * row_bytes(data),
                              fill.rows * row_bytes(data), fill.to, OCL_NO_WAITS, &slot->uploaded,
                              err) != STATUS_OK ||
            ocl_flush(data->lane->upload, err) != STATUS_OK)
            return err->status;
    }
    for (unsigned i = 0; i < DATA_SLOTS; i++)
        if (wait_upload(data, &stream->slots[i], err) != STATUS_OK)
            return err->status;
    return STATUS_OK;
}

/* Reads all rows directly into the mapped tiles. */
static enum status load_in_place(struct data *data, size_t slot_rows, struct reader *reader,
                                 struct error *err)
{
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < data->tile_count && status == STATUS_OK; i++) {
        struct tile *tile = &data->tiles[i];
        void *host = NULL;
        status = lane_map(&host, data->lane, "map rows", tile->x, CL_MAP_WRITE_INVALIDATE_REGION,
                          tile_bytes(data, tile), err);
        for (uint32_t done = 0; done < tile->rows && status == STATUS_OK;) {
            uint32_t left = tile->rows - done;
            uint32_t rows = left < slot_rows ? left : (uint32_t)slot_rows;
            struct fill fill = {tile->first + done, rows,
                                (float *)host + (size_t)done * data->stride};
            status = reader_request(reader, &fill, err);
            if (status == STATUS_OK)
                status = take_fill(data, reader, &fill, err);
            done += rows;
        }
        status = lane_unmap(data->lane, "unmap rows", tile->x, host, status, err);
    }
    return status;
}

static enum status load(struct data *data, size_t slot_rows, struct error *err)
{
    const bool in_place = data->resident && data->lane->zero_copy;
    const struct reader_stats stats = {&data->stats, &data->weighted, data->weights.of_row,
                                       data->share.first};
    struct reader *reader;
    if (!in_place && open_stream(data, slot_rows, !data->resident, err) != STATUS_OK)
        return err->status;
    if (reader_open(&reader, data->source, &data->transform, data->lane->workers, &stats,
                    DATA_SLOTS, err) != STATUS_OK)
        return err->status;
    enum status status = in_place ? load_in_place(data, slot_rows, reader, err)
                                  : load_through_slots(data, slot_rows, reader, err);
    reader_close(&reader);
    if (data->resident)
        close_stream(data);
    return status;
}

static enum status open_stats(struct column_stats *stats, const struct data *data,
                              struct error *err)
{
    return column_stats_open(stats, data->dimension, data->rows, data->share.first,
                             data->share.rows, err);
}

/* Shares the first row, the origin of the statistics. */
static enum status share_origin(struct data *data, struct error *err)
{
    const size_t bytes = data->dimension * sizeof(float);
    if (data->comm->size == 1)
        return STATUS_OK;
    float *row = calloc(data->stride, sizeof *row);
    enum status status = row ? STATUS_OK : error_memory(err, bytes, "a row");
    if (status == STATUS_OK && data->comm->rank == 0)
        status = matrix_read(data->source, 0, 1, row, err);
    if (status == STATUS_OK && data->comm->rank == 0)
        status = transform_rows(&data->transform, NULL, row, row, 0, 1, err);
    if (status == STATUS_OK)
        status = comm_broadcast(data->comm, row, bytes, 0, err);
    if (status == STATUS_OK)
        memcpy(data->stats.origin, row, bytes);
    if (status == STATUS_OK && data->weights.of_row)
        memcpy(data->weighted.origin, row, bytes);
    free(row);
    return status;
}

/* Merges the ranks' statistics into those of all rows. */
static enum status join_stats(struct column_stats *stats, struct data *data, struct error *err)
{
    struct comm *comm = data->comm;
    struct column_stats before;
    enum status status = column_stats_open(&before, stats->dimension, 1, 0, 1, err);
    if (status == STATUS_OK)
        status = comm_receive(comm, before.sum, before.bytes, err);
    if (status == STATUS_OK) {
        column_stats_follow(stats, &before);
        status = comm_send(comm, stats->sum, stats->bytes, err);
    }
    column_stats_close(&before);
    stats->rows = data->rows;
    return status == STATUS_OK ? comm_broadcast(comm, stats->sum, stats->bytes, comm->size - 1, err)
                               : status;
}

/* Each process digests the pieces of its rows; the sum of these states is that of all rows. */
static enum status join_reading(struct data *data, struct error *err)
{
    struct row_tree *tree = data->comm->apart ? data->config->reading : NULL;
    size_t bytes;
    if (!tree)
        return STATUS_OK;
    row_tree_keep(tree, data->share.first, data->share.rows);
    void *state = row_tree_state(tree, &bytes);
    const size_t count = (bytes + sizeof(int64_t) - 1) / sizeof(int64_t);
    int64_t *values = calloc(count, sizeof *values);
    if (!values)
        return error_memory(err, bytes, "a digest");
    memcpy(values, state, bytes);
    enum status status = comm_sum(data->comm, values, values, count, err);
    if (status == STATUS_OK)
        memcpy(state, values, bytes);
    free(values);
    return status;
}

/* Reads the rows while the other ranks read theirs. */
static enum status load_all(struct data *data, size_t slot_rows, struct error *err)
{
    if (share_origin(data, err) != STATUS_OK || load(data, slot_rows, err) != STATUS_OK ||
        join_stats(&data->stats, data, err) != STATUS_OK ||
        (data->weights.of_row && join_stats(&data->weighted, data, err) != STATUS_OK))
        return err->status;
    return join_reading(data, err);
}

enum status data_open(struct data *data, struct lane_held **held, struct comm *comm,
                      struct lane *lane, const struct matrix_source *source,
                      const struct cluster_config *config, const struct data_share *share,
                      struct error *err)
{
    const int64_t start = clock_now();
    *data = (struct data){.comm = comm,
                          .lane = lane,
                          .held = held,
                          .source = source,
                          .config = config,
                          .rows = source->rows,
                          .share = *share,
                          .dimension = source->dimension};
    if (data->dimension > UINT32_MAX - KMEANS_LANES)
        return error_set(err, STATUS_FAILED, "rows of %u values are too long", data->dimension);
    data->stride = (data->dimension + KMEANS_LANES - 1) / KMEANS_LANES * KMEANS_LANES;
    data->transform = (struct transform){config->metric, data->dimension, data->stride, "row"};
    size_t slot_rows = 0;
    if (plan(data, config, &slot_rows, err) != STATUS_OK ||
        open_stats(&data->stats, data, err) != STATUS_OK ||
        weights_open(&data->weights, comm, config->weights, share->first, share->rows,
                     method_samples(config), config->k, err) != STATUS_OK ||
        (data->weights.of_row && open_stats(&data->weighted, data, err) != STATUS_OK))
        return err->status;
    const struct lane_wanted tiles = HOST(data->tiles, data->tile_count);
    if (lane_hold(held, lane, &tiles, 1, "tiles", err) != STATUS_OK)
        return err->status;
    for (uint32_t i = 0; i < data->tile_count; i++)
        if (open_tile(data, i, err) != STATUS_OK)
            return err->status;
    if (fetch_open(&data->fetch, held, lane, data->tile_rows * sizeof(double), err) != STATUS_OK ||
        load_all(data, slot_rows, err) != STATUS_OK)
        return err->status;
    data->config = NULL;
    data->seconds_read = clock_seconds_since(start);
    return STATUS_OK;
}

void data_close(struct data *data)
{
    close_stream(data);
    column_stats_close(&data->stats);
    column_stats_close(&data->weighted);
    weights_close(&data->weights);
}

/* --- passes ---------------------------------------------------------------------------------- */

/* The tile that follows `before` others in the pass. */
static struct tile *tile_after(struct data *data, uint32_t before)
{
    if (!data->backwards)
        return &data->tiles[before];
    const uint64_t bytes = data->tile_rows * row_bytes(data);
    const uint32_t span = bytes < SPAN_BYTES ? (uint32_t)(SPAN_BYTES / bytes) : 1;
    return &data->tiles[data_backwards(before, data->tile_count, span)];
}

static struct row_slot *slot_of(struct data *data, uint32_t tile)
{
    return &data->stream->slots[tile % DATA_SLOTS];
}

static enum status request_tile(struct data *data, struct error *err)
{
    const uint32_t at = data->stream->requested++;
    const struct tile *tile = tile_after(data, at);
    const struct fill fill = {tile->first, tile->rows, slot_of(data, at)->host};
    return reader_request(data->stream->reader, &fill, err);
}

enum status data_begin(struct data *data, struct error *err)
{
    data->tile = NULL;
    data->next_tile = 0;
    data->backwards = !data->resident && !data->backwards;
    if (data->resident)
        return STATUS_OK;
    struct row_stream *stream = data->stream;
    stream->requested = stream->staged = 0;
    /* A CPU computes for longer than one thread reads, and should keep its caches for that. */
    const bool alone = !data->lane->tiled && data->transform.metric == METRIC_EUCLIDEAN;
    if (reader_open(&stream->reader, data->source, &data->transform,
                    alone ? NULL : data->lane->workers, NULL, DATA_SLOTS, err) != STATUS_OK)
        return err->status;
    for (unsigned i = 0; i < DATA_SLOTS && i < data->tile_count; i++)
        if (request_tile(data, err) != STATUS_OK)
            return err->status;
    return STATUS_OK;
}

/* Takes one filled slot from the reader and uploads it to the device. */
static enum status stage(struct data *data, struct error *err)
{
    struct row_stream *stream = data->stream;
    struct fill fill;
    if (reader_take(stream->reader, &fill, err) != STATUS_OK)
        return err->status;
    struct row_slot *slot = slot_of(data, stream->staged++);
    if (data->lane->zero_copy)
        return unmap_slot(data, slot, err);
    if (ocl_enqueue_write(data->lane->upload, "upload rows", slot->device, false, 0,
                          fill.rows * row_bytes(data), slot->host, OCL_NO_WAITS, &slot->uploaded,
                          err) != STATUS_OK)
        return err->status;
    return ocl_flush(data->lane->upload, err);
}

/* Returns a slot of streamed data to the reader. */
static enum status release_tile(struct data *data, struct error *err)
{
    struct row_stream *stream = data->stream;
    data->tile->x = NULL;
    data->tile->host = NULL;
    data->tile = NULL;
    if (data->lane->zero_copy &&
        map_slot(data, slot_of(data, data->next_tile - 1), stream->slot_bytes, err) != STATUS_OK)
        return err->status;
    return stream->requested < data->tile_count ? request_tile(data, err) : STATUS_OK;
}

enum status data_next(struct data *data, struct tile **tile, struct error *err)
{
    if ((data->tile && !data->resident && release_tile(data, err) != STATUS_OK) ||
        lane_check_stop(data->lane, err) != STATUS_OK)
        return err->status;
    if (data->next_tile == data->tile_count)
        return STATUS_END;
    *tile = data->tile = tile_after(data, data->next_tile++);
    if (data->resident)
        return STATUS_OK;
    struct row_stream *stream = data->stream;
    while (stream->staged < data->next_tile ||
           (stream->staged < stream->requested && reader_ready(stream->reader)))
        if (stage(data, err) != STATUS_OK)
            return err->status;
    struct row_slot *slot = slot_of(data, data->next_tile - 1);
    (*tile)->x = slot->device;
    (*tile)->host = slot->host;
    return wait_upload(data, slot, err);
}

enum status data_end(struct data *data, enum status status)
{
    if (status == STATUS_END)
        status = STATUS_OK;
    data->tile = NULL;
    if (data->resident || !data->stream)
        return status;
    /* After an error slots may be in any state: all return to the host for the next pass. */
    struct row_stream *stream = data->stream;
    struct error ignored = ERROR_INIT;
    reader_close(&stream->reader);
    for (unsigned i = 0; i < DATA_SLOTS; i++) {
        wait_upload(data, &stream->slots[i], &ignored);
        if (stream->slots[i].host_buffer && !stream->slots[i].host)
            map_slot(data, &stream->slots[i], stream->slot_bytes, &ignored);
    }
    return status;
}

void data_pad(const struct data *data, float *to, const float *from, uint32_t count)
{
    memset(to, 0, count * row_bytes(data));
    for (size_t i = 0; i < count; i++)
        memcpy(to + i * data->stride, from + i * data->dimension, data->dimension * sizeof *to);
}

struct tile *data_tile_of(struct data *data, uint64_t row)
{
    return &data->tiles[(row - data->share.first) / data->tile_rows];
}

/* From this number on, rows take longer one by one than by gather_rows. */
#define GATHERED 32

/* Reads rows of resident data: the queue is in order, so all reads end with the last. Each blocks if
 * lane_read does: NVIDIA's driver takes several times as long for non-blocking ones. */
static enum status read_rows(struct data *data, float *out, const uint64_t *rows, uint32_t count,
                             struct error *err)
{
    struct lane *lane = data->lane;
    const size_t bytes = row_bytes(data);
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        const struct tile *tile = data_tile_of(data, rows[i]);
        const size_t at = (size_t)(rows[i] - tile->first) * bytes;
        float *to = out + (size_t)i * data->stride;
        status = i + 1 == count || lane->device->nvidia
                     ? lane_read(lane, "read row", tile->x, at, bytes, to, err)
                     : ocl_enqueue_read(lane->compute, "read row", tile->x, false, at, bytes, to,
                                        OCL_NO_WAITS, NULL, err);
    }
    if (status != STATUS_OK)
        lane_settle(lane); /* `out` may be freed */
    return status;
}

enum status data_open_gather(struct gather *gather, struct lane_held **held,
                             const struct data *data, uint32_t count, struct error *err)
{
    const struct lane_wanted wanted[] = {
        KERNEL(gather->kernel, "kmeans_rows", ROWS_OPTIONS(data->lane), "gather_rows"),
        HOST(gather->list, count), SHARED(gather->device_list, count * sizeof *gather->list)};
    return lane_hold(held, data->lane, wanted, COUNT_OF(wanted), "rows", err);
}

enum status data_gather(const struct gather *gather, struct data *data, cl_mem to,
                        const uint64_t *rows, uint32_t count, struct error *err)
{
    const cl_uint stride = data->stride;
    enum status status = STATUS_OK;
    for (cl_uint from = 0, end; from < count && status == STATUS_OK; from = end) {
        const struct tile *tile = data_tile_of(data, rows[from]);
        for (end = from; end < count && data_tile_of(data, rows[end]) == tile; end++)
            gather->list[end - from] = (cl_uint)(rows[end] - tile->first);
        const size_t global[2] = {stride / KMEANS_LANES, end - from};
        /* Waits for the kernel that reads the list. */
        status = lane_write(data->lane, "list of rows", gather->device_list, 0,
                            (end - from) * sizeof *gather->list, gather->list, err);
        if (status == STATUS_OK)
            status = LANE_RUN_2D(data->lane, "gather rows", gather->kernel, global, NULL, err,
                                 OCL_ARG(tile->x), OCL_ARG(gather->device_list), OCL_ARG(to),
                                 OCL_ARG(from), OCL_ARG(stride));
    }
    return status;
}

/* The same for many rows. */
static enum status gather_rows(struct data *data, float *out, const uint64_t *rows, uint32_t count,
                               struct error *err)
{
    struct lane_held *held = NULL;
    struct gather gather;
    cl_mem gathered;
    const struct lane_wanted wanted = BUFFER(gathered, count * row_bytes(data));
    enum status status = data_open_gather(&gather, &held, data, count, err);
    if (status == STATUS_OK)
        status = lane_hold(&held, data->lane, &wanted, 1, "rows", err);
    if (status == STATUS_OK)
        status = data_gather(&gather, data, gathered, rows, count, err);
    if (status == STATUS_OK)
        status = lane_read(data->lane, "rows", gathered, 0, count * row_bytes(data), out, err);
    lane_release(&held);
    return status;
}

enum status data_rows(struct data *data, float *out, const uint64_t *rows, uint32_t count,
                      struct error *err)
{
    if (data->resident)
        return (data->lane->tiled && count >= GATHERED ? gather_rows : read_rows)(data, out, rows,
                                                                                  count, err);
    float *row = malloc(data->dimension * sizeof *row);
    if (!row)
        return error_memory(err, data->dimension * sizeof *row, "a row");
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        status = data->source->read(data->source->context, rows[i], 1, row, err);
        if (status == STATUS_OK)
            status = transform_rows(&data->transform, data->lane->workers,
                                    out + (size_t)i * data->stride, row, rows[i], 1, err);
    }
    free(row);
    return status;
}

enum status data_map(float **rows, struct data *data, struct tile *tile, struct error *err)
{
    void *host = tile->host;
    enum status status = host ? STATUS_OK
                              : lane_map(&host, data->lane, "map rows", tile->x, CL_MAP_READ,
                                         tile_bytes(data, tile), err);
    *rows = host;
    return status;
}

enum status data_unmap(struct data *data, struct tile *tile, float *rows, struct error *err)
{
    return tile->host ? STATUS_OK
                      : lane_unmap(data->lane, "unmap rows", tile->x, rows, STATUS_OK, err);
}
