/* neighbours_directions.h: the borders between directions of gradients, for the kernel
 *
 * Direction k of n is centred on the angle 360 k / n degrees (x to the right, y down). The borders of
 * the upper half, from 180 / n degrees on, are lines through these points: quotients so close to the
 * tangents that every gradient of luma (components up to 255 for 18 directions, 1,020 for 8) lies on
 * the same side of both. A gradient on a border belongs to the direction behind it. All whole numbers. */
#ifndef CLPIPE_KERNELS_NEIGHBOURS_DIRECTIONS_H
#define CLPIPE_KERNELS_NEIGHBOURS_DIRECTIONS_H

#define BORDERS_18(X)                                                                              \
    X(12698, 2239) X(13775, 7953) X(2013, 2399) X(3766, 10347) X(0, 1) X(-3766, 10347)             \
    X(-2013, 2399) X(-13775, 7953) X(-12698, 2239)
#define BORDERS_8(X) X(13860, 5741) X(5741, 13860) X(-5741, 13860) X(-13860, 5741)

#endif
