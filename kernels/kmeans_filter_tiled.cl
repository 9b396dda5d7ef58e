/* kmeans_filter_tiled.cl: the filter of kmeans_filter.cl for devices with on-chip local memory
 * (GPUs).
 *
 * A work-group of 16 x 16 scores TILE rows against one panel of TILE centroids at a time. Both are
 * copied to local memory DEPTH columns at a time; a work-item keeps an 8 x 8 square of scores in
 * registers, rows 8 * ty..., centroids 4 * tx... and 64 + 4 * tx..., so that it reads local memory
 * in vectors of 4 without bank conflicts. After each panel a work-item folds its square into the
 * best and second score of its 8 rows; at the end the 16 work-items of a row are folded. */
#include "kmeans_bounds.h"

#pragma OPENCL FP_CONTRACT OFF

#define TILE  128
#define DEPTH 16
#define SIDE  16
#define ITEMS (SIDE * SIDE)
#define EACH  (TILE / SIDE)
/* Floats per column of the local tile of x: 16 bytes more than a power of two spreads the banks. */
#define PITCH (TILE + 4)

/* Copies columns [from, from + DEPTH) of the group's rows and of a panel to local memory. Rows are
 * zero-padded to a multiple of 16 columns; the panel is not. */
static void load_tiles(__local float *xs, __local float *cs, __global const float *x,
                       __global const float *centre, __global const float *panel,
                       __local const uint *at, uint stride, uint columns, uint from,
                       uint lid)
{
    const uint j = lid % DEPTH;
    for (uint r = lid / DEPTH; r < TILE; r += ITEMS / DEPTH)
        xs[j * PITCH + r] = x[(size_t)at[r] * stride + from + j] - centre[from + j];
    for (uint i = lid; i < DEPTH * TILE; i += ITEMS) {
        const uint row = i / TILE;
        cs[i] = from + row < columns ? panel[(size_t)(1 + from) * TILE + i] : 0.0f;
    }
}

/* The lane of the panel that the work-item's c-th score belongs to. */
static uint lane_of(uint tx, uint c)
{
    return 4 * tx + (c & 3) + (c & 4) * 16;
}

/* Folds the 16 work-items of each row; work-item tx = i gets the result of row 8 * ty + i. */
static void fold_items(float *best, float *second, uint *where, const float bests[EACH],
                       const float seconds[EACH], const uint wheres[EACH], __local float *fold_best,
                       __local float *fold_second, __local uint *fold_where, uint lid)
{
    const uint tx = lid % SIDE, ty = lid / SIDE;
#pragma unroll
    for (uint i = 0; i < EACH; i++) {
        fold_best[lid] = bests[i];
        fold_second[lid] = seconds[i];
        fold_where[lid] = wheres[i];
        barrier(CLK_LOCAL_MEM_FENCE);
        if (tx == i) {
            float b = fold_best[ty * SIDE], s = fold_second[ty * SIDE];
            uint w = fold_where[ty * SIDE];
            for (uint o = 1; o < SIDE; o++) {
                const float other = fold_best[ty * SIDE + o];
                s = fmin(fmin(s, fold_second[ty * SIDE + o]), fmax(b, other));
                if (other < b) {
                    b = other;
                    w = fold_where[ty * SIDE + o];
                }
            }
            *best = b;
            *second = s;
            *where = w;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

/* Like assign_filter of kmeans_filter.cl, after own_lengths has computed the own distances. */
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
assign_filter(__global const float *restrict x, __global const float *restrict panels,
              __global const int *restrict ids, __global const float *restrict slope,
              __global const float *restrict offset, __global const float *restrict norms,
              __global const float *restrict centre, __global const float *restrict centroids,
              __global const uint *restrict rows, __global int *labels, __global float *near,
              __global float *far, __global float *upper, __global uint *flagged,
              __global uint *counts, uint flagged_count, uint count, uint stride, uint columns,
              uint panel_count, uint use_rows, uint some, float slack, float half_scale,
              float growth, float tiny, float4 bounds)
{
    __local float xs[DEPTH * PITCH] __attribute__((aligned(16)));
    __local float cs[DEPTH * TILE] __attribute__((aligned(16)));
    __local uint at[TILE];
    __local float fold_best[ITEMS], fold_second[ITEMS];
    __local uint fold_where[ITEMS];
    const uint lid = (uint)get_local_id(0);
    const uint tx = lid % SIDE, ty = lid / SIDE;
    const uint first = (uint)get_group_id(0) * TILE;
    for (uint r = lid; r < TILE; r += ITEMS) {
        const uint i = min(first + r, count - 1);
        at[r] = use_rows ? rows[i] : i;
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    float norm[EACH], best[EACH], second[EACH];
    uint where[EACH];
#pragma unroll
    for (uint i = 0; i < EACH; i++) {
        norm[i] = norms[at[ty * EACH + i]];
        best[i] = second[i] = INFINITY;
        where[i] = 0;
    }
    for (uint q = 0; q < panel_count; q++) {
        __global const float *panel = panels + (size_t)q * (columns + 2) * TILE;
        float score[EACH][EACH];
#pragma unroll
        for (uint i = 0; i < EACH; i++)
#pragma unroll
            for (uint c = 0; c < EACH; c++)
                score[i][c] = 0.0f;
        for (uint from = 0; from < columns; from += DEPTH) {
            load_tiles(xs, cs, x, centre, panel, at, stride, columns, from, lid);
            barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
            for (uint j = 0; j < DEPTH; j++) {
                float value[EACH], factor[EACH];
                vstore4(vload4(0, xs + j * PITCH + ty * EACH), 0, value);
                vstore4(vload4(1, xs + j * PITCH + ty * EACH), 1, value);
                vstore4(vload4(tx, cs + j * TILE), 0, factor);
                vstore4(vload4(SIDE + tx, cs + j * TILE), 1, factor);
#pragma unroll
                for (uint i = 0; i < EACH; i++)
#pragma unroll
                    for (uint c = 0; c < EACH; c++)
                        score[i][c] = fma(value[i], factor[c], score[i][c]);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
#pragma unroll
        for (uint c = 0; c < EACH; c++) {
            const uint lane = lane_of(tx, c);
            const float start = panel[lane], slope_of = panel[(size_t)(columns + 1) * TILE + lane];
#pragma unroll
            for (uint i = 0; i < EACH; i++) {
                const float t = score[i][c] + fma(norm[i], slope_of, start);
                second[i] = fmin(second[i], fmax(best[i], t));
                where[i] = t < best[i] ? q * TILE + lane : where[i];
                best[i] = fmin(best[i], t);
            }
        }
    }

    float b = 0.0f, s = 0.0f;
    uint w = 0;
    fold_items(&b, &s, &w, best, second, where, fold_best, fold_second, fold_where, lid);
    if (tx >= EACH || first + ty * EACH + tx >= count)
        return;
    const uint row = at[ty * EACH + tx];
    const float length = norms[row];
    const int id = ids[w];
    const float limit =
        b + 2.0f * fma(length, slope[id], offset[id]) + slack * length * length;
    if (some) {
        float low = near[row], high = far[row];
        const int label =
            label_among_some(&low, &high, b, s, id, labels[row], limit, length, bounds);
        if (label < 0) {
            flagged[atomic_inc(&counts[flagged_count])] = row;
            return;
        }
        labels[row] = label;
        near[row] = low;
        far[row] = high;
        return;
    }
    if (s > limit) {
        labels[row] = id;
        near[row] = near_bound(limit, length, bounds);
        far[row] = far_bound(s, length, bounds);
    } else {
        upper[row] = limit;
        flagged[atomic_inc(&counts[flagged_count])] = row;
    }
}

/* Like seed_filter of kmeans_filter.cl, a work-item for each of 16 rows and 16 candidates. */
#define SEED_DEPTH 64

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
seed_filter(__global const float *restrict x, __global const float *restrict panel,
            __global const float *restrict norms, __global const float *restrict centre,
            __global const float *restrict thresholds, __global uint *mask, uint count, uint stride,
            uint columns)
{
    __local float xs[SIDE][SEED_DEPTH + 1];
    __local float cs[SEED_DEPTH][SIDE];
    __local uint bits[SIDE];
    const uint lid = (uint)get_local_id(0);
    const uint tx = lid % SIDE, ty = lid / SIDE;
    const uint first = (uint)get_group_id(0) * SIDE;
    if (lid < SIDE)
        bits[lid] = 0;
    float score = 0.0f;
    for (uint from = 0; from < columns; from += SEED_DEPTH) {
        const uint depth = min((uint)SEED_DEPTH, columns - from);
        for (uint i = lid; i < SIDE * SEED_DEPTH; i += ITEMS) {
            const uint r = i / SEED_DEPTH, j = i % SEED_DEPTH;
            if (j < depth) {
                const uint at = min(first + r, count - 1);
                xs[r][j] = x[(size_t)at * stride + from + j] - centre[from + j];
            }
        }
        for (uint i = lid; i < depth * SIDE; i += ITEMS)
            cs[i / SIDE][i % SIDE] = panel[(size_t)(1 + from) * SIDE + i];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint j = 0; j < depth; j++)
            score = fma(xs[ty][j], cs[j][tx], score);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const uint row = first + ty;
    if (row < count) {
        score += fma(norms[row], panel[(size_t)(columns + 1) * SIDE + tx], panel[tx]);
        if (score < thresholds[row])
            atomic_or(&bits[ty], 1u << tx);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (tx == 0 && row < count)
        mask[row] = bits[ty];
}
