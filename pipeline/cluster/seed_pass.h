/* seed_pass.h: what seeding keeps for each row, and its passes over the data.
 *
 * Each row has its canonical distance to the nearest seed so far. A round evaluates a few
 * candidates at once: the filter tells which rows each of them might be nearer to, only those are
 * evaluated, and each block of rows sums up what would remain. All sums are in a stated order, so
 * the same rows are drawn on every device. */
#ifndef CLPIPE_CLUSTER_SEED_PASS_H
#define CLPIPE_CLUSTER_SEED_PASS_H

#include "cluster/shard.h"

struct seed_tile {
    cl_mem distances;  /* float64 a row; NULL where the host keeps them */
    cl_mem thresholds; /* float32 a row: what the filter's scores are compared with */
    cl_mem mask;       /* a bit for each candidate */
    cl_mem weights;    /* float64 a row, or NULL */
};

struct seeding;

/* Where rows have their distances: on the device, or on the host where that has no float64. */
struct seed_ops {
    /* For each row the least distance to the candidates that the mask names and the seeds, summed up
     * for each block. */
    enum status (*evaluate)(struct seeding *seeding, struct tile *tile, const float *candidates,
                            uint32_t trials, struct error *err);
    /* Takes one candidate; all: the first one, for all rows. */
    enum status (*commit)(struct seeding *seeding, struct tile *tile, const float *candidates,
                          uint32_t trial, bool all, struct error *err);
    /* The distances of `rows` rows from that at `offset` of the share on. */
    enum status (*read)(double *distances, struct seeding *seeding, uint64_t offset, uint32_t rows,
                        struct error *err);
};

struct seeding {
    const struct seed_ops *ops;
    struct shard *shard;
    struct assign *assign;
    struct data *data;
    struct lane *lane;
    struct lane_held *held;
    cl_kernel exact, commit;
    struct seed_tile *tiles;
    cl_mem block_sums;      /* of one tile: blocks x KMEANS_TRIALS_MAX */
    uint64_t blocks;        /* of the rank's rows, as are: */
    double *sums;           /* blocks x KMEANS_TRIALS_MAX: what would remain */
    double *upto;           /* blocks: what remains in this one and all before, other ranks' too */
    double *host_distances; /* rows; NULL where the device keeps them */
    const double *weights;  /* rows, or NULL: 1 each */
    double before;          /* what remains in the blocks of the ranks before */
    double *reached;        /* for each rank: what remains in its blocks and all before */
};

/* weights: of the rank's rows. All ranks call this and all that follows, with equal arguments. */
enum status seeding_open(struct seeding *seeding, struct shard *shard, const double *weights,
                         struct error *err);
void seeding_close(struct seeding *seeding);

/* Takes the first `count` seeds (count x stride values), which were taken one after another before
 * if there are several: in far fewer passes. */
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

/* Draws rows with chances proportional to their weighted distances; random[] are in [0, 1). */
enum status seeding_draw(uint64_t *rows, struct seeding *seeding, const double *random,
                         uint32_t count, struct error *err);

#endif
