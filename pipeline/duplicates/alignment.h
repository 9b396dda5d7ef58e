/* alignment.h: is one picture a copy of another: cropped, turned a little, brightened, with something
 * drawn over an edge, or both of other sizes? And not just much like it, as a page of text, a form with
 * other entries, a wall, the next frame, or a thing in another colour?
 *
 * Both are compared as small grey planes. An affine map from one to the other, with a gain and an
 * offset of brightness, is fitted by iteratively reweighted Gauss-Newton steps on up to four levels of a
 * pyramid (Lucas and Kanade 1981; weights of Geman and McClure, so what does not match does not pull).
 * Then blocks of 16 x 16 pixels are correlated one by one, each without the means of its rows and columns, so
 * that shading and lines alone resemble nothing. Most of a picture may resemble another that is no copy, so
 * what decides is how many blocks contradict: by what is in them, or by their mean brightness or colour.
 * Deterministic: single additions in one order, no libm but sqrt. */
#ifndef CLPIPE_DUPLICATES_ALIGNMENT_H
#define CLPIPE_DUPLICATES_ALIGNMENT_H

#include <stdbool.h>
#include <stdint.h>

#define ALIGNMENT_SIDE   256u /* longest side of a plane, pixels */
#define ALIGNMENT_FINE   1024u /* and where a copy must be certain */
#define ALIGNMENT_COLOUR 64u  /* and in colour */
#define ALIGNMENT_LEAST  32u  /* smaller ones are no copies of anything */

struct alignment_plane {
    uint32_t width, height;                                  /* 1 to ALIGNMENT_SIDE each */
    uint32_t colour_width, colour_height;                    /* 1 to ALIGNMENT_COLOUR each */
    uint8_t pixel[ALIGNMENT_SIDE * ALIGNMENT_SIDE];          /* rows without gaps, upright */
    uint8_t colour[ALIGNMENT_COLOUR * ALIGNMENT_COLOUR * 3]; /* RGB */
    uint32_t fine_width, fine_height;                        /* 1 to ALIGNMENT_FINE each, */
    uint8_t *fine; /* of fine[ALIGNMENT_FINE squared], or NULL */
};

/* What a thread needs for a comparison. */
struct alignment_scratch {
    float a[ALIGNMENT_SIDE * ALIGNMENT_SIDE * 4 / 3], b[ALIGNMENT_SIDE * ALIGNMENT_SIDE * 4 / 3];
    float *fine; /* 3 ALIGNMENT_FINE squared, if planes have `fine` */
};

struct alignment {
    bool same;
    bool certain;      /* same, and nothing contradicts: no block, no colour, no edge */
    uint32_t blocks;   /* textured in one of the planes, or contrary, where they overlap */
    uint32_t contrary; /* of them */
    float correlation; /* of all blocks */
    float overlap;     /* the smaller of the shares of both planes */
};

/* mirrored: b is mirrored from left to right first. Any thread. */
struct alignment alignment_compare(const struct alignment_plane *a, const struct alignment_plane *b,
                                   bool mirrored, struct alignment_scratch *scratch);

#endif
