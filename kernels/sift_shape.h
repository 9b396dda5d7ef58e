/* sift_shape.h: how the work of the kernels of gradients is divided; the host reads it as well. */
#ifndef CLPIPE_KERNELS_SIFT_SHAPE_H
#define CLPIPE_KERNELS_SIFT_SHAPE_H

#define GRADIENT_RUN 32 /* pixels that a work-item of sift_gradient takes */
#define SIFT_TILE    32 /* descriptors side by side that a work-group of sift_slot takes */

#endif
