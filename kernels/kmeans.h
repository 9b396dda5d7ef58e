/* kmeans.h: constants shared by the k-means kernels and their host code. docs/clustering.md gives
 * the definitions and derives the bounds. */
#ifndef CLPIPE_KMEANS_H
#define CLPIPE_KMEANS_H

/* The canonical distance of two rows has this many partial sums: lane l adds up columns l, l + 16,
 * l + 32, ... Rows are zero-padded to a multiple of it, which does not change the sums. */
#define KMEANS_LANES 16

/* Sums over rows (of seeding weights, of distances) are pairwise within blocks of this many rows;
 * the sums of the blocks are added in order. A power of two. */
#define KMEANS_BLOCK_ROWS 256

/* The filter accumulates this many columns in a partial sum before adding it to the score, which
 * keeps the bound on its rounding errors small. */
#define KMEANS_FILTER_COLUMNS 128

/* The float16 filter takes blocks of this many columns and panels of this many centroids. */
#define KMEANS_HALF_COLUMNS 32
#define KMEANS_HALF_PANEL   128

/* Its work-group: work-items, and rows they score. FAR: where the score of a lane without a
 * centroid starts: far away, but finite, so that its lowest bits may be anything. */
#define KMEANS_HALF_ITEMS 128
#define KMEANS_HALF_ROWS  128
#define KMEANS_HALF_FAR   1e37f

/* Modes of assign_half and list_half, centroid slots of a row, and work-items that round a row. */
#define KMEANS_HALF_ALL    0
#define KMEANS_HALF_SOME   1
#define KMEANS_HALF_LIST   2
#define KMEANS_HALF_SLOTS  64
#define KMEANS_HALF_SHARES 8
#define KMEANS_HALF_LANE_ITEMS 32

/* The update on the device: work-items of a scanning group, entries a work-item sums at a time. */
#define KMEANS_SCAN_ITEMS 256
#define KMEANS_MOVES_SPAN 32

/* Maximum number of rows per work-item of count_moves and place_moves, and rows in flight. Each row
 * has a bit of 32; a group's rows fit 16 bits. */
#define KMEANS_MOVES_EACH 32
#define KMEANS_MOVES_STEP 4

/* Rows per work-item of shift_bounds and split_rows (at most 32): many on CPUs, so that the
 * counters are rarely touched. */
#define KMEANS_SPLIT_CPU   32
#define KMEANS_SPLIT_TILED 8

/* Maximum number of thresholds that shift_bounds compares; the work-group of own_lengths. */
#define KMEANS_CANDIDATES 16
#define KMEANS_OWN_ITEMS  128

/* Layout of the plan of a pass, in 32-bit values: a threshold for each candidate (float), the
 * number of centroids that moved at all, and the counts of shift_bounds. */
#define KMEANS_PLAN_MOVED KMEANS_CANDIDATES
#define KMEANS_PLAN_FOUND (KMEANS_CANDIDATES + 1)
#define KMEANS_PLAN       (KMEANS_PLAN_FOUND + KMEANS_CANDIDATES + 2)

/* Shifts that a group of KMEANS_SCAN_ITEMS ranks. */
#define KMEANS_RANKED 16

/* Maximum number of candidates per round of seeding; also the lanes of their panel. */
#define KMEANS_TRIALS_MAX 16

/* What seed_parts takes: blocks of rows in a part, values in a row. */
#define KMEANS_PART_BLOCKS 64
#define KMEANS_PART_STRIDE 4096

/* What rounds of seeding on the device keep: the candidate that the last one chose (NONE: it is taken already),
 * the seeds so far, and the groups of seed_exact that are done. Seed s has random numbers and total s modulo the
 * batch. */
#define KMEANS_CHOSEN     0
#define KMEANS_SEEDS      1
#define KMEANS_DONE       2
#define KMEANS_SEED_STATE 3
#define KMEANS_NONE       0xffffffffu
#define KMEANS_SEED_BATCH 256

/* What seed_listed takes, and its work-group. */
#define KMEANS_LISTED_BLOCKS 1024
#define KMEANS_LISTED_ITEMS  1024

/* Candidates that a group of seed_exact evaluates. */
#define KMEANS_TOGETHER 8

/* Commands after a search do nothing if it left rows without a label, counted in counts[unless].
 * KMEANS_ALWAYS: they run regardless. */
#define KMEANS_ALWAYS 0xffffffffu
#ifdef __OPENCL_VERSION__
static inline uint rows_now(uint rows, __global const uint *counts, uint unless)
{
    return unless != KMEANS_ALWAYS && counts[unless] > 0 ? 0 : rows;
}

/* Inclusive scan over a group of KMEANS_SCAN_ITEMS: sums[i] becomes the sum of `mine` over
 * work-items 0 to i (Hillis and Steele, 1986). */
static inline __attribute__((always_inline)) void scan_sums(__local uint *sums, uint lid, uint mine)
{
    sums[lid] = mine;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint reach = 1; reach < KMEANS_SCAN_ITEMS; reach *= 2) {
        const uint before = lid >= reach ? sums[lid - reach] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        sums[lid] += before;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
#endif

/* Values that move_centroids returns for each cluster, and which of them is the squared length. */
#define KMEANS_FACTS        4
#define KMEANS_FACTS_SQUARE 2

/* An entry of the update is a row of the tile, with this bit set if the row leaves the cluster. */
#define KMEANS_ENTRY_LEAVES 0x80000000u

#endif
