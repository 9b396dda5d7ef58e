/* shards.h: the rows' shares, each on a device of its own, and work on all of them at once.
 *
 * Devices meet on the host only: labels and distances go to arrays of all rows, sums of clusters
 * are integers and are added up there. With one device everything runs on the calling thread, and
 * nothing is copied. */
#ifndef CLPIPE_CLUSTER_SHARDS_H
#define CLPIPE_CLUSTER_SHARDS_H

#include "cluster/assign.h"
#include "cluster/moves.h"

struct shard {
    struct lane *lane;
    struct data data;
    struct filter filter;
    struct assign assign;
    struct update update; /* of its own rows; only after shards_open_updates */
    struct moves moves;
    int32_t *tile_labels;   /* of the largest tile: free for any pass */
    double *tile_distances; /* likewise */
    uint64_t moved;         /* rows, in the last pass that moved any */
};

/* Stays where it was opened: its parts point to each other. */
struct shards {
    struct shard *shard; /* in the order of the rows */
    uint32_t count;
    uint64_t rows; /* of all */
    struct lane *lanes;
    struct workers *workers; /* the host's threads, which all lanes share */
    struct workers *team;    /* a thread for each shard; NULL for one */
    struct source_lock *lock;
    const struct ocl_context
        *failed; /* the device that an error came from, NULL while there is none */
};

/* Which devices, best first, and what a test decides for them (may be NULL). */
struct shard_devices {
    struct ocl_context *const *contexts;
    uint32_t count;
    const struct lane_choice *choice;
};

/* Reads the rows and makes what labels them, for up to config->k centroids. Devices get rows in
 * proportion to their compute units and clock; not all get some where there are few, and under
 * mini-batches the first gets all. To be closed after an error, too. */
enum status shards_open(struct shards *shards, const struct shard_devices *devices,
                        const struct matrix_source *source, const struct cluster_config *config,
                        struct error *err);
/* Makes what follows the labels with sums. */
enum status shards_open_updates(struct shards *shards, const struct cluster_config *config,
                                struct error *err);
void shards_close(struct shards *shards);

/* Calls part for each shard, on a thread for each where there are several, and waits for all. The
 * error is that of the first shard that has one; another one than an interruption comes first. */
enum status shards_run(struct shards *shards,
                       enum status (*part)(void *context, struct shard *shard, struct error *err),
                       void *context, struct error *err);

/* Notes whose device an error came from, and names it in the error where there are several; returns
 * err->status. */
enum status shards_blame(struct shards *shards, const struct shard *shard, struct error *err);

/* Waits for whatever is under way. */
void shards_settle(const struct shards *shards);

struct shard *shards_of_row(const struct shards *shards, uint64_t row);

/* data_rows, of all rows. */
enum status shards_rows(struct shards *shards, float *out, const uint64_t *rows, uint32_t count,
                        struct error *err);

/* Seconds of reading, and of building programs so far. */
double shards_seconds_read(const struct shards *shards);
double shards_seconds_build(const struct shards *shards);

#endif
