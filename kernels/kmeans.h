/* kmeans.h: what the k-means kernels and their host code agree on. docs/clustering.md gives the
 * definitions and derives the bounds. */
#ifndef CLPIPE_KMEANS_H
#define CLPIPE_KMEANS_H

/* The canonical distance of two rows has this many partial sums: lane l adds up the columns l, l +
 * 16, l + 32, ... Rows are padded with zeros to a multiple of it, which changes nothing. */
#define KMEANS_LANES 16

/* Sums over rows (of seeding weights, of distances) are pairwise within blocks of this many rows,
 * and the blocks' sums are added in order. A power of two. */
#define KMEANS_BLOCK_ROWS 256

/* The filter adds up this many columns before it adds that partial sum to the score, which keeps
 * the bound on its rounding errors small. */
#define KMEANS_FILTER_COLUMNS 128

/* The float16 filter takes rows in blocks of this many columns, and panels of this many centroids. */
#define KMEANS_HALF_COLUMNS 32
#define KMEANS_HALF_PANEL   128

/* Its work-group: work-items, and the rows that they take; and the start of places without a centroid:
 * far, and finite, so that its lowest bits may be any. */
#define KMEANS_HALF_ITEMS 128
#define KMEANS_HALF_ROWS  128
#define KMEANS_HALF_FAR   1e37f

/* What it does (assign_half, list_half), the centroids that an undecided row has room for, and the
 * work-items that round one row. */
#define KMEANS_HALF_ALL    0
#define KMEANS_HALF_SOME   1
#define KMEANS_HALF_LIST   2
#define KMEANS_HALF_SLOTS  8
#define KMEANS_HALF_SHARES 8

/* The update on the device: work-items of a group that scans, and entries that a work-item adds up
 * at a time. */
#define KMEANS_SCAN_ITEMS 256
#define KMEANS_MOVES_SPAN 32

/* Rows that a work-item of count_moves and place_moves takes at most, and at a time. A bit of 32
 * stands for each; a group's fit into 16 bits. */
#define KMEANS_MOVES_EACH 32
#define KMEANS_MOVES_STEP 4

/* Rows that a work-item of shift_bounds and split_rows takes (32 at most): on CPUs many, so that the
 * counters are touched seldom. */
#define KMEANS_SPLIT_CPU   32
#define KMEANS_SPLIT_TILED 8

/* Ways of pruning that shift_bounds weighs up at most, and the work-group of own_lengths. */
#define KMEANS_CANDIDATES 16
#define KMEANS_OWN_ITEMS  128

/* What is planned of a pass, 32-bit values: a threshold for each candidate (float), how many
 * centroids moved at all, and what shift_bounds counts. */
#define KMEANS_PLAN_MOVED KMEANS_CANDIDATES
#define KMEANS_PLAN_FOUND (KMEANS_CANDIDATES + 1)
#define KMEANS_PLAN       (KMEANS_PLAN_FOUND + KMEANS_CANDIDATES + 2)

/* Shifts that a group of KMEANS_SCAN_ITEMS ranks. */
#define KMEANS_RANKED 16

/* Candidates of one round of seeding, at most; also the places of their panel. */
#define KMEANS_TRIALS_MAX 16

/* Commands after a search do nothing while it has left rows without a label, as counts[unless] tells;
 * KMEANS_ALWAYS: it has not. */
#define KMEANS_ALWAYS 0xffffffffu
#ifdef __OPENCL_VERSION__
static inline uint rows_now(uint rows, __global const uint *counts, uint unless)
{
    return unless != KMEANS_ALWAYS && counts[unless] > 0 ? 0 : rows;
}

/* In a group of KMEANS_SCAN_ITEMS: sums[i] becomes what the work-items up to i have in `mine`
 * (Hillis and Steele, 1986). */
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

/* Values that move_centroids gives of each cluster; which of them is the squared length. */
#define KMEANS_FACTS        4
#define KMEANS_FACTS_SQUARE 2

/* Entries of the update: a row of the tile, and whether it leaves the cluster. */
#define KMEANS_ENTRY_LEAVES 0x80000000u

#endif
