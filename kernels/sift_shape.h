/* sift_shape.h: how the gradient kernels divide their work; also read by the host. */
#ifndef CLPIPE_KERNELS_SIFT_SHAPE_H
#define CLPIPE_KERNELS_SIFT_SHAPE_H

#define GRADIENT_RUN 32 /* pixels that a work-item of sift_gradient takes */
#define SIFT_TILE    32 /* adjacent descriptors that a work-group of sift_slot takes */

#endif
