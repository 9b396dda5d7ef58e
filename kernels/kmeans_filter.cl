/* kmeans_filter.cl: finds the nearest centroid, almost always, in float32. For devices without
 * on-chip local memory (CPUs); kmeans_filter_tiled.cl is its twin for the others.
 *
 * Centroids come in panels of WIDTH lanes: row 0 holds the start of each score, rows 1..columns
 * hold the factors of the columns, the last row the factor of the row's norm. A score is thus one
 * chain of fma, 16 centroids wide, and a work-item keeps POINTS x VECTORS of them in registers
 * while it walks down a panel. The factors are such that a score is a lower bound on the squared
 * distance less a term common to all centroids, and at most 2 * (offset + slope * norm) below it. A
 * row whose best score plus that width is below its second score is decided; the others are listed,
 * for the canonical distance to decide.
 *
 * -D POINTS=n     rows per work-item
 * -D VECTORS=n    vectors of 16 lanes per panel: WIDTH is 16 * VECTORS
 * -D CENTRED=0|1  subtract a centre from each row first (data with a large common offset) */
#include "kmeans_bounds.h"

#pragma OPENCL FP_CONTRACT OFF

#if !defined(POINTS) || !defined(VECTORS) || !defined(CENTRED)
#error "POINTS, VECTORS and CENTRED must be given"
#endif

#define WIDTH (16 * VECTORS)

#if CENTRED
#define VALUE(row, centre, j) ((row)[j] - (centre)[j])
#else
#define VALUE(row, centre, j) ((row)[j])
#endif

/* Adds columns [from, to) of POINTS rows to `sum`; `panel` points to the factors of column `from`.
 */
static void add_columns(float16 sum[POINTS][VECTORS], __global const float *const row[POINTS],
                        __global const float *centre, __global const float *panel, uint from,
                        uint to)
{
    for (uint j = from; j < to; j++, panel += WIDTH) {
        float16 factor[VECTORS];
#pragma unroll
        for (int v = 0; v < VECTORS; v++)
            factor[v] = vload16(v, panel);
#pragma unroll
        for (int p = 0; p < POINTS; p++) {
            float16 value = (float16)(VALUE(row[p], centre, j));
#pragma unroll
            for (int v = 0; v < VECTORS; v++)
                sum[p][v] = fma(value, factor[v], sum[p][v]);
        }
    }
}

/* The scores of POINTS rows against one panel. */
static void panel_scores(float16 score[POINTS][VECTORS], __global const float *const row[POINTS],
                         const float norm[POINTS], __global const float *centre,
                         __global const float *panel, uint columns)
{
#pragma unroll
    for (int v = 0; v < VECTORS; v++) {
        float16 start = vload16(v, panel);
        float16 slope = vload16(v, panel + (size_t)(columns + 1) * WIDTH);
#pragma unroll
        for (int p = 0; p < POINTS; p++)
            score[p][v] = fma((float16)(norm[p]), slope, start);
    }
    for (uint from = 0; from < columns; from += KMEANS_FILTER_COLUMNS) {
        float16 sum[POINTS][VECTORS];
#pragma unroll
        for (int p = 0; p < POINTS; p++)
#pragma unroll
            for (int v = 0; v < VECTORS; v++)
                sum[p][v] = (float16)(0.0f);
        add_columns(sum, row, centre, panel + (size_t)(1 + from) * WIDTH, from,
                    min(columns, from + KMEANS_FILTER_COLUMNS));
#pragma unroll
        for (int p = 0; p < POINTS; p++)
#pragma unroll
            for (int v = 0; v < VECTORS; v++)
                score[p][v] += sum[p][v];
    }
}

/* Reduces 16 lanes to the best score, its lane, and the second score. */
static void reduce_lanes(float *best, float *second, int *where, float16 bests, float16 seconds,
                         int16 vectors)
{
    float b[16], s[16];
    int at[16];
    vstore16(bests, 0, b);
    vstore16(seconds, 0, s);
    vstore16(vectors, 0, at);
    *best = b[0];
    *second = s[0];
    *where = at[0] * 16;
    for (int l = 1; l < 16; l++) {
        *second = fmin(fmin(*second, s[l]), fmax(*best, b[l]));
        if (b[l] < *best) {
            *best = b[l];
            *where = at[l] * 16 + l;
        }
    }
}

/* Assigns `count` rows: those listed in `rows` if use_rows, else 0, 1, ... Undecided rows are
 * appended to `flagged` (counts[flagged_count] is their number), with `upper` the score above which
 * no centroid can be the nearest; the others get their labels and bounds.
 *
 * With `some`, the panels hold some of the centroids, and `far` is a lower bound on the distances
 * to the others except the row's own centroid, whose distance is computed first. */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
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
    const uint first = (uint)get_group_id(0) * POINTS;
    uint at[POINTS];
    __global const float *row[POINTS];
    float norm[POINTS];
    float16 best[POINTS], second[POINTS];
    int16 vector[POINTS];
    for (int p = 0; p < POINTS; p++) {
        uint i = min(first + p, count - 1);
        at[p] = use_rows ? rows[i] : i;
        row[p] = x + (size_t)at[p] * stride;
        norm[p] = norms[at[p]];
        best[p] = second[p] = (float16)(INFINITY);
        vector[p] = (int16)(0);
    }
    for (int p = 0; p < POINTS && some && first + p < count; p++) {
        const float squares = difference_squares(
            row[p], centroids + (size_t)labels[at[p]] * stride, stride, half_scale);
        near[at[p]] = fmin(near[at[p]], length_bound(squares, growth, tiny) + bounds.w);
    }

    for (uint q = 0; q < panel_count; q++) {
        float16 score[POINTS][VECTORS];
        panel_scores(score, row, norm, centre, panels + (size_t)q * (columns + 2) * WIDTH, columns);
#pragma unroll
        for (int v = 0; v < VECTORS; v++) {
            int16 here = (int16)((int)(q * VECTORS) + v);
#pragma unroll
            for (int p = 0; p < POINTS; p++) {
                float16 t = score[p][v];
                vector[p] = select(vector[p], here, t < best[p]);
                second[p] = fmin(second[p], fmax(best[p], t));
                best[p] = fmin(best[p], t);
            }
        }
    }

    for (int p = 0; p < POINTS && first + p < count; p++) {
        float b, s;
        int where;
        reduce_lanes(&b, &s, &where, best[p], second[p], vector[p]);
        const int id = ids[where];
        const float limit =
            b + 2.0f * fma(norm[p], slope[id], offset[id]) + slack * norm[p] * norm[p];
        if (some) {
            float low = near[at[p]], high = far[at[p]];
            const int label = label_among_some(&low, &high, b, s, id, labels[at[p]], limit, norm[p],
                                               bounds);
            if (label < 0) {
                flagged[atomic_inc(&counts[flagged_count])] = at[p];
                continue;
            }
            labels[at[p]] = label;
            near[at[p]] = low;
            far[at[p]] = high;
            continue;
        }
        if (s > limit) {
            labels[at[p]] = id;
            near[at[p]] = near_bound(limit, norm[p], bounds);
            far[at[p]] = far_bound(s, norm[p], bounds);
        } else {
            upper[at[p]] = limit;
            flagged[atomic_inc(&counts[flagged_count])] = at[p];
        }
    }
}

#if VECTORS == 1
/* Seeding: sets bit i of mask if candidate i may be nearer than the row's threshold. */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
seed_filter(__global const float *restrict x, __global const float *restrict panel,
            __global const float *restrict norms, __global const float *restrict centre,
            __global const float *restrict thresholds, __global uint *mask, uint count, uint stride,
            uint columns)
{
    const uint first = (uint)get_group_id(0) * POINTS;
    __global const float *row[POINTS];
    float norm[POINTS];
    for (int p = 0; p < POINTS; p++) {
        uint i = min(first + p, count - 1);
        row[p] = x + (size_t)i * stride;
        norm[p] = norms[i];
    }
    float16 score[POINTS][VECTORS];
    panel_scores(score, row, norm, centre, panel, columns);
    for (int p = 0; p < POINTS && first + p < count; p++) {
        int lanes[16];
        vstore16(score[p][0] < (float16)(thresholds[first + p]), 0, lanes);
        uint bits = 0;
        for (int l = 0; l < 16; l++)
            bits |= (lanes[l] ? 1u : 0u) << l;
        mask[first + p] = bits;
    }
}
#endif
