/* kmeans_means.cl: computes new centroids from the sums of the clusters and lays them out for the
 * filter, on devices with float64. pipeline/kmeans/update.c gives the same bits for the centroids,
 * their moves and the inertia; pipeline/kmeans/filter.c lays out centroids for other devices. */
#include "kmeans_lanes.h"

#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF

/* Adds the lanes as canonical() does; every work-item of the group gets the sum. */
static double add_lanes(__local double *lanes, double mine, uint lid)
{
    fold_lanes(lanes, mine, lid);
    const double sum = lanes[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return sum;
}

/* A group of KMEANS_LANES moves one centroid to the mean of its cluster's rows. While any cluster
 * is empty (counts[k + 2]), all centroids stay, since the host first gives it a row; with `anyway`,
 * only those of empty clusters stay. weight_unit: unit of the clusters' weights; 0: rows have no
 * weights. shifts: how far it has moved, as a length times shift_scale, rounded up. facts:
 * KMEANS_FACTS values per cluster:
 *
 *   0  the rows' inertia about the old centroid, less that about the columns' means
 *   1  the canonical distance from the old centroid to the new one
 *   2  the squared length of the new one less the centre
 *   3  the largest absolute value of the new one less the centre */
__kernel __attribute__((reqd_work_group_size(KMEANS_LANES, 1, 1))) void
move_centroids(__global const long *restrict totals, __global const long *restrict counts,
               __global const long *restrict weights, double weight_unit,
               __global const double *restrict units, __global const double *restrict means,
               __global const float *restrict centre, __global float *centroids,
               __global double *facts, __global float *shifts, uint k, uint stride, uint columns,
               uint cosine, double shift_scale, uint anyway)
{
    __local double lanes[KMEANS_LANES];
    const uint lid = (uint)get_local_id(0), cluster = (uint)get_group_id(0);
    __global const long *sums = totals + (size_t)cluster * stride;
    __global float *centroid = centroids + (size_t)cluster * stride;
    const double count =
        weight_unit > 0.0 ? (double)weights[cluster] * weight_unit : (double)counts[cluster];
    double inertia = 0.0;
    for (uint j = lid; j < columns && count > 0.0; j += KMEANS_LANES) {
        const double mean = means[j], shift = (double)centroid[j] - mean;
        const double sum = (double)sums[j] * units[j] - count * mean;
        inertia += shift * (count * shift - 2.0 * sum);
    }
    inertia = add_lanes(lanes, inertia, lid);

    double length = 0.0;
    for (uint j = lid; j < stride && cosine && count > 0.0; j += KMEANS_LANES) {
        const double mean = (double)sums[j] / count * units[j];
        length += mean * mean;
    }
    length = add_lanes(lanes, length, lid);
    const bool stays =
        count == 0.0 || (counts[k + 2] > 0 && !anyway) || (cosine && length == 0.0);
    const double factor = cosine && !stays ? 1.0 / sqrt(length) : 1.0;

    double shift = 0.0, square = 0.0, largest = 0.0;
    for (uint j = lid; j < stride; j += KMEANS_LANES) {
        const float before = centroid[j];
        const float now = stays ? before : (float)((double)sums[j] / count * units[j] * factor);
        const double step = (double)now - (double)before, value = (double)now - (double)centre[j];
        shift = fma(step, step, shift);
        square += value * value;
        largest = fmax(largest, fabs(value));
        centroid[j] = now;
    }
    shift = add_lanes(lanes, shift, lid);
    square = add_lanes(lanes, square, lid);
    lanes[lid] = largest;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid == 0) {
        for (uint l = 1; l < KMEANS_LANES; l++)
            largest = fmax(largest, lanes[l]);
        __global double *out = facts + (size_t)cluster * KMEANS_FACTS;
        out[0] = inertia;
        out[1] = shift;
        out[2] = square;
        out[3] = largest;
        shifts[cluster] = convert_float_rtp(sqrt(shift) * shift_scale);
    }
}

/* Lays out panels for the filter: dimension 0 is lanes, dimension 1 is rows of a panel. */
__kernel void lay_out_panels(__global const float *restrict centroids,
                             __global const float *restrict centre,
                             __global const int *restrict ids,
                             __global const float *restrict starts,
                             __global const float *restrict slopes, __global float *panels,
                             uint stride, uint columns, uint width, uint lanes, double scale)
{
    const uint lane = (uint)get_global_id(0), row = (uint)get_global_id(1);
    if (lane >= lanes || row >= columns + 2)
        return;
    const int id = ids[lane];
    float value = 0.0f;
    if (id < 0) {
        value = row == 0 ? INFINITY : 0.0f;
    } else if (row == 0) {
        value = starts[id];
    } else if (row == columns + 1) {
        value = -slopes[id];
    } else {
        const uint j = row - 1;
        const double shifted =
            (double)centroids[(size_t)id * stride + j] - (double)centre[j];
        value = (float)(-2.0 * shifted * scale * scale);
        /* A device might flush smaller values. */
        value = fabs(value) < FLT_MIN ? 0.0f : value;
    }
    /* Without %: next to / it becomes an instruction that Oclgrind 21.10 does not support. */
    const uint panel = lane / width;
    panels[((size_t)panel * (columns + 2) + row) * width + (lane - panel * width)] = value;
}
