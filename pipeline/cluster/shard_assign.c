/* shard_assign.c: tile by tile, or all of it enqueued at once. */
#include "cluster/shard_assign.h"
#include <string.h>

/* The labels of a tile are new: the sums follow. */
static enum status follow(struct shard *shard, struct tile *tile, int32_t *labels,
                          struct error *err)
{
    if (shard->moves.used)
        return moves_tile(&shard->moves, tile, NULL, err);
    uint64_t moved = 0;
    enum status status = fetch_copy(&shard->data.fetch, "labels", tile->labels,
                                    tile->rows * sizeof *labels, shard->tile_labels, err);
    if (status == STATUS_OK)
        status = update_tile(&moved, &shard->update, tile, labels, shard->tile_labels, err);
    /* The sums' commands must be over before the tile goes. */
    if (status == STATUS_OK && !shard->data.resident)
        status = update_wait(&shard->update, err);
    if (status == STATUS_OK)
        memcpy(labels, shard->tile_labels, tile->rows * sizeof *labels);
    shard->moved += moved;
    return status;
}

/* After all tiles of a share on the device: moves the centroids, if they are to be, and reads what
 * the pass reports. late: the tile that assign_end_tile is still to be called for, or NULL; if rows
 * of it were left, what was done after them did nothing, and is done again. */
static enum status conclude(struct shard *shard, struct tile *late, bool incremental, bool move,
                            struct error *err)
{
    const struct report_count left = assign_rows_left(&shard->assign);
    enum status status = STATUS_OK;
    bool again = true;
    while (again && status == STATUS_OK) {
        again = false;
        if (move)
            status = moves_centroids(&shard->moves, &shard->assign.prune, late ? &left : NULL, err);
        if (status == STATUS_OK)
            status = assign_prepare(&shard->assign, err);
        if (status == STATUS_OK)
            status = report_read(&shard->filter.report, err);
        if (status == STATUS_OK && late)
            status = assign_end_tile(&again, &shard->assign, late, incremental, err);
        if (status == STATUS_OK && again)
            status = moves_tile(&shard->moves, late, NULL, err);
        late = NULL;
    }
    if (status == STATUS_OK)
        moves_count(&shard->moved, &shard->moves);
    return status;
}

/* Labels one tile, and has the sums follow, all of it enqueued at once. */
static enum status assign_late(struct shard *shard, struct tile *tile, bool incremental,
                               struct error *err)
{
    enum status status = assign_begin_tile(&shard->assign, tile, incremental, err);
    const struct report_count left = assign_rows_left(&shard->assign);
    return status == STATUS_OK ? moves_tile(&shard->moves, tile, &left, err) : status;
}

enum status shard_assign(struct shard *shard, int32_t *labels, bool incremental, bool move,
                         struct error *err)
{
    struct tile *tile, *late = NULL;
    shard->moved = 0;
    if (shard->moves.used && shard->data.tile_count == 1 && assign_by_device(&shard->assign))
        late = &shard->data.tiles[0];
    enum status status = data_begin_at_either_end(&shard->data, err);
    while (status == STATUS_OK && (status = data_next(&shard->data, &tile, err)) == STATUS_OK) {
        status = late ? assign_late(shard, tile, incremental, err)
                      : assign_tile(&shard->assign, tile, incremental, err);
        if (status == STATUS_OK && !late)
            status = follow(shard, tile, labels + tile->offset, err);
        if (status == STATUS_OK)
            status = data_done(&shard->data, tile, err);
    }
    data_end(&shard->data);
    if (status != STATUS_END)
        return status;
    return shard->moves.used ? conclude(shard, late, incremental, move, err) : STATUS_OK;
}
