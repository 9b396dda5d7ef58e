/* descriptor.h: local descriptors of small squares of the upright picture, as rows of bytes
 * (formulas in docs/features.md). Features aggregate them with a codebook.
 *
 * Squares of one side are `step` pixels apart in a centred grid, row by row, as many as fit: the
 * first corner is at ((width - side) % step) / 2, rows likewise. Squares of several sides follow
 * one another. */
#ifndef CLPIPE_FEATURES_DESCRIPTOR_H
#define CLPIPE_FEATURES_DESCRIPTOR_H

#include <stddef.h>
#include <stdint.h>

#define DESCRIPTOR_SIDES 4u

/* An upright picture in RGB rows, `stride` bytes apart. */
struct descriptor_picture {
    const uint8_t *pixels;
    size_t stride;
    uint32_t width, height;
};

struct descriptor {
    const char *name;   /* with the version of the formula, also stored in codebooks: "sift-1" */
    uint32_t columns;   /* bytes per descriptor */
    uint32_t projected; /* values after the projection */
    /* Exponent of the variance by which projected values are divided: 0.5 gives unit variances,
     * 0.25 their square roots; 0: no division. */
    double whiten;
    uint32_t step;
    uint32_t side[DESCRIPTOR_SIDES]; /* sides of the squares; ends with 0 */
    /* The C reference, which also computes the samples that codebooks are learned from: the descriptor of the
     * square at (x, y). */
    void (*describe)(uint8_t *out, const struct descriptor_picture *picture, uint32_t x, uint32_t y,
                     uint32_t side);
};

/* The squares of one side, columns x rows; both 0 if there are none. */
struct descriptor_grid {
    uint32_t columns, rows, left, top;
};

struct descriptor_grid descriptor_grid(const struct descriptor *descriptor, unsigned side,
                                       uint32_t width, uint32_t height);

/* The number of descriptors of an upright picture of that size. */
uint32_t descriptor_number(const struct descriptor *descriptor, uint32_t width, uint32_t height);

/* Computes descriptors [first, first + count) of a picture. */
void descriptor_describe(uint8_t *out, const struct descriptor *descriptor,
                         const struct descriptor_picture *picture, uint32_t first, uint32_t count);

extern const struct descriptor descriptor_dct, descriptor_sift, descriptor_opsift, descriptor_patch;

#endif
