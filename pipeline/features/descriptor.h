/* descriptor.h: local descriptors: rows of bytes, each of a small area of the upright picture, by the
 * formulas of docs/features.md. A feature counts, or adds up, what a codebook makes of them. */
#ifndef CLPIPE_FEATURES_DESCRIPTOR_H
#define CLPIPE_FEATURES_DESCRIPTOR_H

#include <stddef.h>
#include <stdint.h>

struct descriptor {
    const char *name;   /* with the version of the formula, which codebooks repeat: "sift-1" */
    uint32_t columns;   /* bytes of a descriptor */
    uint32_t projected; /* values that the projection leaves */
    /* The exponent of the variance by which projected values are divided: 0.5 makes all variances
     * equal, 0 leaves them. */
    double whiten;
    /* How many an upright picture of that size has. */
    uint32_t (*number)(uint32_t width, uint32_t height);
    /* The C reference: descriptors [first, first + count) of a whole picture of RGB rows, `stride` bytes
     * apart, as stored; width and height are those of the stored picture. Slow and obvious. */
    void (*describe)(uint8_t *out, const uint8_t *pixels, size_t stride, uint32_t width,
                     uint32_t height, uint8_t orientation, uint32_t first, uint32_t count);
};

#endif
