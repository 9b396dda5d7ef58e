/* kmeans_draw.h: draws a row with probability proportional to its weighted distance. */
#ifndef CLPIPE_KMEANS_DRAW_H
#define CLPIPE_KMEANS_DRAW_H

#pragma OPENCL EXTENSION cl_khr_fp64 : enable

/* Values that row_of_target has in flight. */
#define AT_A_TIME 16

/* The row of a block, whose weighted distances are given, with which the sum exceeds the target. */
static inline uint row_of_target(__local const double *value, double sum, double target, uint rows)
{
    uint drawn = 0;
    bool reached = false;
    for (uint from = 0; from < rows && !reached; from += AT_A_TIME) {
        double each[AT_A_TIME];
#pragma unroll
        for (uint e = 0; e < AT_A_TIME; e++)
            each[e] = from + e < rows ? value[from + e] : 0.0;
#pragma unroll
        for (uint e = 0; e < AT_A_TIME; e++) {
            sum += each[e];
            drawn = each[e] > 0.0 && !reached ? from + e : drawn;
            reached = reached || (each[e] > 0.0 && sum > target);
        }
    }
    return drawn;
}

#endif
