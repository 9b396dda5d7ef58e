/* alignment.h: is one picture a copy of another: cropped, turned a little, brightened, with something
 * drawn into it, or both of other sizes?
 *
 * Both are compared as small grey planes. An affine map from one to the other, with a gain and an
 * offset of brightness, is fitted by iteratively reweighted Gauss-Newton steps on three levels of a
 * pyramid (Lucas and Kanade 1981; weights of Geman and McClure, so what does not match does not pull).
 * Then blocks of 8 x 8 pixels are correlated one by one, each without its best plane, so that shading
 * alone resembles nothing; a copy is what has most of its textured blocks right. Deterministic:
 * single additions in one order, no libm but sqrt. */
#ifndef CLPIPE_DUPLICATES_ALIGNMENT_H
#define CLPIPE_DUPLICATES_ALIGNMENT_H

#include <stdbool.h>
#include <stdint.h>

#define ALIGNMENT_SIDE 96u /* longest side of a plane, pixels */

struct alignment_plane {
    uint32_t width, height;                         /* 1 to ALIGNMENT_SIDE each */
    uint8_t pixel[ALIGNMENT_SIDE * ALIGNMENT_SIDE]; /* rows without gaps, upright */
};

struct alignment {
    bool same;
    uint32_t blocks;   /* textured in one of the planes, where they overlap */
    uint32_t matching; /* of them, correlated */
    float overlap;     /* the smaller of the shares of both planes */
};

/* mirrored: b is mirrored from left to right first. Any thread. */
struct alignment alignment_compare(const struct alignment_plane *a, const struct alignment_plane *b,
                                   bool mirrored);

#endif
