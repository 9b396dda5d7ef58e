/* kmeans_update.cl: exact sums of the rows of each cluster, in 64-bit fixed point.
 *
 * Only rows that changed their cluster are summed: they join the new one and leave the old one.
 * Integers do not care for order, so any partition gives the same sums. The entries come sorted by
 * cluster and cut into segments; a work-item adds up a few columns of one segment in registers, and
 * a second kernel adds the segments to their clusters. Nothing is atomic.
 *
 * -D VECTOR=1|16   columns that a work-item takes as one vector
 * -D VECTORS=n     such vectors a work-item
 * -D WEIGHTED=0|1  whether a row's values count as often as its weight says
 * -D DOUBLES=0|1   see kmeans_fixed.h
 */
#include "kmeans.h"

#if !defined(VECTOR) || !defined(VECTORS) || !defined(WEIGHTED) || !defined(DOUBLES)
#error "VECTOR, VECTORS, WEIGHTED and DOUBLES must be given"
#endif

#include "kmeans_fixed.h"

#if VECTOR == 16
#define LOAD_INTS(p)      vload16(0, (p))
#define STORE_LONGS(v, p) vstore16((v), 0, (p))
#else
#define LOAD_INTS(p)      (*(p))
#define STORE_LONGS(v, p) (*(p) = (v))
#endif

/* Sums of one segment's entries: dimension 0 is columns, dimension 1 the segment. `weights` are not
 * looked at where rows have none. */
__kernel void sum_segments(__global const int *restrict x, __global const int *restrict scales,
                           __global const uint *restrict entries,
                           __global const uint *restrict segments, __global long *sums,
                           __global const int *restrict weights, uint stride)
{
    const uint column = (uint)get_global_id(0) * VECTOR * VECTORS;
    const uint segment = (uint)get_global_id(1);
    if (column >= stride)
        return;
    ints scale[VECTORS];
#if DOUBLES
    doubles unit[VECTORS];
#endif
    longs sum[VECTORS];
    const uint vectors = min((uint)VECTORS, (stride - column) / VECTOR);
    for (uint v = 0; v < VECTORS; v++) {
        scale[v] = v < vectors ? LOAD_INTS(scales + column + v * VECTOR) : (ints)(0);
        sum[v] = (longs)(0);
#if DOUBLES
        unit[v] = unit_of(scale[v]);
#endif
    }
    for (uint e = segments[segment]; e < segments[segment + 1]; e++) {
        const uint entry = entries[e];
        const longs leaves = (longs)(entry & KMEANS_ENTRY_LEAVES ? -1 : 0);
        const uint at = entry & ~KMEANS_ENTRY_LEAVES;
        __global const int *row = x + (size_t)at * stride + column;
        for (uint v = 0; v < vectors; v++) {
#if WEIGHTED
            longs value =
                fixed_point_weighted(LOAD_INTS(row + v * VECTOR), weights[at], scale[v]);
#elif DOUBLES
            longs value = fixed_point_double(LOAD_INTS(row + v * VECTOR), unit[v]);
#else
            longs value = fixed_point(LOAD_INTS(row + v * VECTOR), scale[v]);
#endif
            sum[v] += (value ^ leaves) - leaves;
        }
    }
    for (uint v = 0; v < vectors; v++)
        STORE_LONGS(sum[v], sums + (size_t)segment * stride + column + v * VECTOR);
}

/* Adds the segments [begins[i], begins[i + 1]) to cluster clusters[i]: dimension 0 is columns,
 * dimension 1 is i. */
__kernel void add_segments(__global const long *restrict sums, __global const uint *restrict begins,
                           __global const uint *restrict clusters, __global long *totals,
                           uint stride)
{
    const uint column = (uint)get_global_id(0);
    const uint i = (uint)get_global_id(1);
    if (column >= stride)
        return;
    long total = totals[(size_t)clusters[i] * stride + column];
    for (uint s = begins[i]; s < begins[i + 1]; s++)
        total += sums[(size_t)s * stride + column];
    totals[(size_t)clusters[i] * stride + column] = total;
}
