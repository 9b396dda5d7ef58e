/* seed_lists.c: rounds of greedy k-means++ by lists of the rows that each candidate can bring nearer
 * (kmeans_lists.cl), on a device with tensor cores. */
#include "kmeans/seed.h"
#include <math.h>

/* Lists are made once a seed has at most this many rows on average, which is also what a candidate
 * can bring nearer if rows and seeds are much alike; they hold at most MOST times the rows. */
#define ROWS_EACH 256
#define MOST      1024
/* Making them takes about as long as one round for this many rows. */
#define ROWS_ROUND 64
/* Bytes of a row while they are made, besides its float16 copy. */
#define BESIDE_ROW 64

bool seed_lists_due(struct seed_lists *lists, const struct shard *shard,
                    const struct seed_draws *draws, uint32_t from)
{
    const struct data *data = &shard->data;
    const uint64_t rows = data->rows, left = draws->config->k - from;
    if (lists->made || data->tile_count != 1 ||
        rows > KMEANS_LISTED_BLOCKS * (uint64_t)KMEANS_BLOCK_ROWS ||
        shard->lane->device->max_work_group < KMEANS_LISTED_ITEMS)
        return false;
    if (lists->due == 0)
        lists->due = rows > ROWS_EACH ? (uint32_t)(rows / ROWS_EACH) : 1;
    return from >= lists->due && left > rows / ROWS_ROUND;
}

/* Turns the lengths of lists into where each begins; *total is that of all. */
static enum status place_lists(uint64_t *total, struct lane *lane, cl_mem ends, uint32_t rows,
                               struct error *err)
{
    struct lane_held *held = NULL;
    cl_uint *host;
    const struct lane_wanted wanted = HOST(host, rows);
    const size_t bytes = rows * sizeof *host;
    enum status status = lane_hold(&held, lane, &wanted, 1, "seeding", err);
    if (status == STATUS_OK)
        status = lane_read(lane, "lengths of lists", ends, 0, bytes, host, err);
    *total = 0;
    for (uint32_t i = 0; i < rows && status == STATUS_OK; i++) {
        const cl_uint length = host[i];
        host[i] = (cl_uint)*total;
        *total += length;
    }
    if (status == STATUS_OK)
        status = lane_write(lane, "ends of lists", ends, 0, bytes, host, err);
    lane_release(&held);
    return status;
}

/* Lists what each row can bring nearer, if there is room for it: lists->made. */
static enum status list_rows(struct seed_lists *lists, struct shard *shard,
                             const struct seed_tile *own, const struct float16_pairs *pairs,
                             cl_kernel lengths, cl_kernel distances, struct error *err)
{
    struct lane *lane = shard->lane;
    struct tile *tile = shard->data.tiles;
    const cl_uint rows = tile->rows, stride = shard->data.stride, none = 0;
    const cl_double scale = ldexp(1.0, -2 * shard->filter.exponent);
    const uint64_t copy = (uint64_t)rows * (stride * sizeof(float) + BESIDE_ROW);
    uint64_t total;
    if (LANE_RUN(lane, "list lengths", lengths, (uint64_t)rows * KMEANS_LANES, KMEANS_OWN_ITEMS,
                 err, OCL_ARG(tile->x), OCL_ARG(shard->filter.centre_buffer),
                 OCL_ARG(own->distances), OCL_ARG(pairs->squares), OCL_ARG(pairs->limits),
                 OCL_ARG(pairs->ids), OCL_ARG(rows), OCL_ARG(stride),
                 OCL_ARG(scale)) != STATUS_OK ||
        float16_lay_out_pairs(pairs, &shard->assign, tile, own->distances, err) != STATUS_OK ||
        ocl_enqueue_fill(lane->compute, "zero counts", lists->ends, 0, 0, rows * sizeof(cl_uint),
                         OCL_NO_WAITS, NULL, err) != STATUS_OK ||
        float16_list_pairs(pairs, &shard->assign, tile, pairs->ids, lists->ends, none, err) !=
            STATUS_OK ||
        place_lists(&total, lane, lists->ends, rows, err) != STATUS_OK)
        return err->status;
    const uint64_t each = sizeof(cl_uint) + sizeof(double);
    const uint64_t allocation = lane->device->max_allocation;
    if (total > (uint64_t)rows * MOST || (allocation > 0 && total > allocation / sizeof(double)) ||
        !data_has_room(&shard->data, 0, copy + total * each))
        return STATUS_OK;
    const cl_uint room = (cl_uint)total;
    const struct lane_wanted wanted[] = {BUFFER(lists->listed, total * sizeof(cl_uint)),
                                         BUFFER(lists->apart, total * sizeof(double))};
    if (lane_hold(&lists->held, lane, wanted, COUNT_OF(wanted), "seeding", err) != STATUS_OK ||
        float16_list_pairs(pairs, &shard->assign, tile, lists->listed, lists->ends, room, err) !=
            STATUS_OK)
        return err->status;
    lists->made = true;
    return LANE_RUN(lane, "list distances", distances, (uint64_t)rows * KMEANS_OWN_ITEMS,
                    KMEANS_OWN_ITEMS, err, OCL_ARG(tile->x), OCL_ARG(lists->ends),
                    OCL_ARG(lists->listed), OCL_ARG(lists->apart), OCL_ARG(stride));
}

enum status seed_lists_make(struct seed_lists *lists, struct shard *shard,
                            const struct seed_tile *own, struct error *err)
{
    struct lane *lane = shard->lane;
    const struct tile *tile = shard->data.tiles;
    struct lane_held *held = NULL;
    struct float16_pairs pairs;
    cl_program program;
    cl_kernel lengths, distances;
    lists->due = lists->due > UINT32_MAX / 2 ? UINT32_MAX : 2 * lists->due;
    if (!data_has_room(&shard->data, 0,
                       (uint64_t)tile->rows * (shard->data.stride * sizeof(float) + BESIDE_ROW)))
        return STATUS_OK;
    if (lane_program(&program, lane, "kmeans_lists", "", err) != STATUS_OK)
        return err->status;
    const struct lane_wanted to_make[] = {KERNEL(lengths, program, "list_lengths"),
                                          KERNEL(distances, program, "list_distances")};
    const struct lane_wanted to_keep[] = {KERNEL(lists->choose, program, "seed_listed"),
                                          KERNEL(lists->copy, program, "copy_seeds"),
                                          BUFFER(lists->seeds, KMEANS_SEED_BATCH * sizeof(cl_uint)),
                                          BUFFER(lists->ends, tile->rows * sizeof(cl_uint))};
    enum status status = lane_hold(&held, lane, to_make, COUNT_OF(to_make), "seeding", err);
    if (status == STATUS_OK && !lists->held)
        status = lane_hold(&lists->held, lane, to_keep, COUNT_OF(to_keep), "seeding", err);
    if (status == STATUS_OK)
        status = float16_open_pairs(&pairs, &held, &shard->assign, tile, err);
    if (status == STATUS_OK)
        status = list_rows(lists, shard, own, &pairs, lengths, distances, err);
    lane_settle(lane);
    lane_release(&held);
    return status;
}

enum status seed_lists_launch(const struct seed_lists *lists, const struct shard *shard,
                              const struct seed_tile *own, const struct seed_draws *draws,
                              const struct seed_buffers *buffers, uint32_t from, uint32_t to,
                              struct error *err)
{
    const struct tile *tile = shard->data.tiles;
    const cl_uint rows = tile->rows, stride = shard->data.stride, trials = draws->trials;
    const cl_uint weighted = own->weights ? 1 : 0, seed = from, rounds = to - from;
    const cl_mem weights = own->weights ? own->weights : own->distances;
    if (LANE_RUN(shard->lane, "seed listed", lists->choose, KMEANS_LISTED_ITEMS,
                 KMEANS_LISTED_ITEMS, err, OCL_ARG(buffers->random), OCL_ARG(weights),
                 OCL_ARG(lists->ends), OCL_ARG(lists->listed), OCL_ARG(lists->apart),
                 OCL_ARG(own->distances), OCL_ARG(buffers->upto), OCL_ARG(buffers->totals),
                 OCL_ARG(lists->seeds), OCL_ARG(buffers->state), OCL_ARG(rows), OCL_ARG(trials),
                 OCL_ARG(weighted), OCL_ARG(seed), OCL_ARG(rounds)) != STATUS_OK)
        return err->status;
    return LANE_RUN(shard->lane, "copy seeds", lists->copy, (uint64_t)rounds * KMEANS_OWN_ITEMS,
                    KMEANS_OWN_ITEMS, err, OCL_ARG(tile->x), OCL_ARG(lists->seeds),
                    OCL_ARG(buffers->state), OCL_ARG(shard->filter.centroids), OCL_ARG(stride),
                    OCL_ARG(seed));
}
