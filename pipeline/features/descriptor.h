/* descriptor.h: local descriptors: rows of bytes, each of a small square of the upright picture, by the
 * formulas of docs/features.md. A feature counts, or adds up, what a codebook makes of them.
 *
 * The squares of one side lie `step` pixels apart, row by row, as many as there are whole ones, and
 * what is left of the picture is equal on both sides: the first one's corner is at ((width - side) %
 * step) / 2, rows likewise. Several sides follow one after another. */
#ifndef CLPIPE_FEATURES_DESCRIPTOR_H
#define CLPIPE_FEATURES_DESCRIPTOR_H

#include <stddef.h>
#include <stdint.h>

#define DESCRIPTOR_SIDES 4u

/* An upright picture of RGB rows, `stride` bytes apart. */
struct descriptor_picture {
    const uint8_t *pixels;
    size_t stride;
    uint32_t width, height;
};

struct descriptor {
    const char *name;   /* with the version of the formula, which codebooks repeat: "sift-1" */
    uint32_t columns;   /* bytes of a descriptor */
    uint32_t projected; /* values that the projection leaves */
    /* The power of the variance by which projected values are divided: 0.5 makes all variances equal,
     * 0.25 their roots' roots; 0: none. */
    double whiten;
    uint32_t step;
    uint32_t side[DESCRIPTOR_SIDES]; /* of the squares, up to the first 0 */
    /* The C reference, slow and obvious: the descriptor of the square at (x, y). */
    void (*describe)(uint8_t *out, const struct descriptor_picture *picture, uint32_t x, uint32_t y,
                     uint32_t side);
};

/* The squares of one side: columns x rows of them; none: both are 0. */
struct descriptor_grid {
    uint32_t columns, rows, left, top;
};

struct descriptor_grid descriptor_grid(const struct descriptor *descriptor, unsigned side,
                                       uint32_t width, uint32_t height);

/* How many an upright picture of that size has. */
uint32_t descriptor_number(const struct descriptor *descriptor, uint32_t width, uint32_t height);

/* Descriptors [first, first + count) of a picture. */
void descriptor_describe(uint8_t *out, const struct descriptor *descriptor,
                         const struct descriptor_picture *picture, uint32_t first, uint32_t count);

extern const struct descriptor descriptor_dct, descriptor_sift, descriptor_opsift,
    descriptor_patch;

#endif
