/* neighbours_directions.h: the borders between gradient directions, for the kernel
 *
 * Direction k of n is centred on the angle 360 k / n degrees (x to the right, y down). For eight
 * directions, the borders in the upper half, starting at 22.5 degrees, are the lines through these
 * points; for eighteen, those in a quadrant are tangents times 65536. Both are so close to the true
 * borders that every gradient of luma (components up to 1,020 for 8 directions, 255 for 18) falls
 * on the same side. A gradient on a border belongs to the next direction. All arithmetic is on
 * integers. */
#ifndef CLPIPE_KERNELS_NEIGHBOURS_DIRECTIONS_H
#define CLPIPE_KERNELS_NEIGHBOURS_DIRECTIONS_H

#define BORDERS_8(X) X(13860, 5741) X(5741, 13860) X(-5741, 13860) X(-13860, 5741)
#define TANGENT_10 11556
#define TANGENT_20 23853
#define TANGENT_30 37837
#define TANGENT_40 54991

#endif
