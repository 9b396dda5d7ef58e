/* seed_pass.h: what seeding keeps for each row, and its passes over the data.
 *
 * Each row has its canonical distance to the nearest seed so far. A round evaluates a few
 * candidates at once: the filter tells which rows each of them might be nearer to, only those are
 * evaluated, and each block of rows sums up what would remain. All sums are in a stated order, so
 * the same rows are drawn on every device. */
#ifndef CLPIPE_CLUSTER_SEED_PASS_H
#define CLPIPE_CLUSTER_SEED_PASS_H

#include "cluster/shards.h"

struct seed_tile {
    cl_mem distances;  /* float64 a row; NULL where the host keeps them */
    cl_mem thresholds; /* float32 a row: what the filter's scores are compared with */
    cl_mem mask;       /* a bit for each candidate */
    cl_mem weights;    /* float64 a row, or NULL */
};

/* What a shard's device has for it. */
struct seed_share {
    struct seeding *seeding;
    struct assign *assign;
    struct data *data;
    struct lane *lane;
    cl_kernel exact, commit;
    struct seed_tile *tiles;
    cl_mem block_sums; /* of one tile: blocks x KMEANS_TRIALS_MAX */
};

struct seeding {
    struct shards *shards;
    struct seed_share *shares; /* one for each shard */
    uint64_t blocks;           /* of all rows */
    double *sums;              /* blocks x KMEANS_TRIALS_MAX: what would remain */
    double *upto;              /* blocks: what remains in this one and all before */
    double *host_distances;    /* rows; NULL where all devices keep theirs */
    const double *weights;     /* rows, or NULL: 1 each */
};

enum status seeding_open(struct seeding *seeding, struct shards *shards, const double *weights,
                         struct error *err);
void seeding_close(struct seeding *seeding);

/* Takes the first seed (stride values). */
enum status seeding_first(struct seeding *seeding, const float *seed, struct error *err);

/* The same for `count` seeds (count x stride values) that were taken one after another before: in
 * far fewer passes. */
enum status seeding_restore(struct seeding *seeding, const float *seeds, uint32_t count,
                            struct error *err);

/* For each of `count` candidates (count x stride values) the sum of weighted distances that would
 * remain if it were taken. */
enum status seeding_evaluate(struct seeding *seeding, double *remaining, const float *candidates,
                             uint32_t count, struct error *err);

/* Takes one of the candidates just evaluated. */
enum status seeding_take(struct seeding *seeding, const float *candidates, uint32_t trial,
                         struct error *err);

/* The sum of weighted distances that remains. */
double seeding_remaining(const struct seeding *seeding);

/* Draws a row with a chance proportional to its weighted distance; `random` is in [0, 1). */
enum status seeding_draw(uint64_t *row, struct seeding *seeding, double random, struct error *err);

#endif
