/* neighbours_directions.h: the borders between directions of gradients, for the kernel
 *
 * Direction k of n is centred on the angle 360 k / n degrees (x to the right, y down). Of eight, the
 * borders of the upper half, from 22.5 degrees on, are lines through these points; of eighteen, those
 * of a quarter are tangents times 65536. Both are so close to the true borders that every gradient
 * of luma (components up to 1,020 for 8 directions, 255 for 18) lies on the same side of both. A
 * gradient on a border belongs to the direction behind it. All whole numbers. */
#ifndef CLPIPE_KERNELS_NEIGHBOURS_DIRECTIONS_H
#define CLPIPE_KERNELS_NEIGHBOURS_DIRECTIONS_H

#define BORDERS_8(X) X(13860, 5741) X(5741, 13860) X(-5741, 13860) X(-13860, 5741)
#define TANGENT_10 11556
#define TANGENT_20 23853
#define TANGENT_30 37837
#define TANGENT_40 54991

#endif
