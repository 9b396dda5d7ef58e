/* shard_assign.c: tile by tile; or one tile, all of it enqueued before the only wait. */
#include "cluster/shard_assign.h"
#include "cluster/assigner.h"
#include <string.h>

/* --- sums on the host ------------------------------------------------------------------------ */

/* The labels of a tile are new: sums, counts and the host's labels follow. */
static enum status sum_on_host(struct shard *shard, struct tile *tile, int32_t *labels,
                               struct error *err)
{
    uint64_t moved = 0;
    if (fetch_copy(&shard->data.fetch, "labels", tile->labels, tile->rows * sizeof *labels,
                   shard->tile_labels, err) != STATUS_OK ||
        update_tile(&moved, &shard->update, tile, labels, shard->tile_labels, err) != STATUS_OK)
        return err->status;
    memcpy(labels, shard->tile_labels, tile->rows * sizeof *labels);
    shard->moved += moved;
    return STATUS_OK;
}

/* --- sums on the device ---------------------------------------------------------------------- */

/* Enqueues what follows the sums, if centroids are to move, and reads what the pass has left in the
 * mailbox. left: it is for nothing if there are such rows; NULL: there are none. */
static enum status follow_and_read(struct shard *shard, bool move, const struct device_count *left,
                                   struct error *err)
{
    enum status status = STATUS_OK;
    if (move && shard->exchange.used)
        status = exchange_begin(&shard->exchange, err);
    else if (move)
        status = device_update_centroids(&shard->device_update, &shard->assign.prune, left, err);
    if (status != STATUS_OK)
        return status;
    /* Less to wait for when the next pass comes. */
    if (counters_zero_next(&shard->assign.counters, err) != STATUS_OK)
        return err->status;
    return mailbox_read(&shard->filter.mailbox, err);
}

/* The only tile: labels, sums and the move are enqueued at once. If the device has left rows without
 * a label, sums and move have done nothing, and follow once these are labelled. */
static enum status assign_only_tile(struct shard *shard, struct tile *tile, bool incremental,
                                    bool move, struct error *err)
{
    struct assign *assign = &shard->assign;
    struct device_update *update = &shard->device_update;
    bool any_left = false;
    if (assign_begin_tile(assign, tile, incremental, err) != STATUS_OK)
        return err->status;
    const struct device_count left = assign_rows_left(assign);
    if (device_update_tile(update, tile, &left, err) != STATUS_OK ||
        follow_and_read(shard, move, &left, err) != STATUS_OK ||
        assign_end_tile(&any_left, assign, tile, incremental, err) != STATUS_OK)
        return err->status;
    if (!any_left)
        return STATUS_OK;
    if (device_update_tile(update, tile, NULL, err) != STATUS_OK)
        return err->status;
    return follow_and_read(shard, move, NULL, err);
}

/* Labels the tiles, and has the sums follow. */
static enum status assign_tiles(struct shard *shard, int32_t *labels, bool incremental,
                                struct error *err)
{
    struct tile *tile;
    enum status status = data_begin_at_either_end(&shard->data, err);
    while (status == STATUS_OK && (status = data_next(&shard->data, &tile, err)) == STATUS_OK) {
        status = assign_tile(&shard->assign, tile, incremental, err);
        if (status == STATUS_OK)
            status = shard->device_update.used
                         ? device_update_tile(&shard->device_update, tile, NULL, err)
                         : sum_on_host(shard, tile, labels + tile->offset, err);
    }
    return data_end(&shard->data, status);
}

/* A stop is looked for before the centroids move, never afterwards: then the iteration counts. */
enum status shard_assign(struct shard *shard, int32_t *labels, bool incremental, bool move,
                         struct error *err)
{
    const bool on_device = shard->device_update.used;
    shard->moved = 0;
    if (lane_check_stop(shard->lane, err) != STATUS_OK)
        return err->status;
    if (on_device && shard->data.tile_count == 1 && shard->assign.assigner->in_one_wait) {
        if (assign_only_tile(shard, &shard->data.tiles[0], incremental, move, err) != STATUS_OK)
            return err->status;
    } else if (assign_tiles(shard, labels, incremental, err) != STATUS_OK ||
               (on_device && follow_and_read(shard, move, NULL, err) != STATUS_OK)) {
        return err->status;
    }
    if (on_device)
        device_update_count(&shard->moved, &shard->device_update);
    return STATUS_OK;
}

static enum status move_centroids(void *context, struct error *err)
{
    struct shard *shard = context;
    if (device_update_centroids(&shard->device_update, &shard->assign.prune, NULL, err) !=
        STATUS_OK)
        return err->status;
    return mailbox_read(&shard->filter.mailbox, err);
}

enum status shard_move(struct shard *shard, struct error *err)
{
    return exchange_end(&shard->exchange, move_centroids, shard, err);
}
