/* histogram_bins_gray.h: GRAY, a histogram of luma (histogram_bins_rgb.h defines the interface). */
#ifndef CLPIPE_KERNELS_HISTOGRAM_BINS_GRAY_H
#define CLPIPE_KERNELS_HISTOGRAM_BINS_GRAY_H

static inline uint luma(uint r, uint g, uint b)
{
    return (77u * r + 150u * g + 29u * b + 128u) >> 8;
}

#define FORM_GRAY                      CHANNELS
#define CHANNELS_GRAY                  1
#define VALUES_GRAY(DO, x, y, r, g, b) DO(x, y, 0, luma(r, g, b))

#endif
