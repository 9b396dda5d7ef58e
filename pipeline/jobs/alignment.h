/* alignment.h: decides whether one picture is a copy of another (cropped, slightly rotated,
 * brightened, scaled, or with something drawn over an edge) and not merely similar, like another
 * page of text, a form with other entries, a wall, the next frame, or an object in another colour.
 *
 * Both are compared as small grey planes. An affine map between them, with gain and offset of
 * brightness, is fitted by iteratively reweighted Gauss-Newton steps on up to four levels of a
 * pyramid (Lucas and Kanade 1981; Geman-McClure weights, so that mismatches have little influence).
 * Then blocks of 16 x 16 pixels are correlated one by one, each without the means of its rows and
 * columns, so that shading and lines alone do not correlate. Pictures that are not copies may agree
 * in most blocks, so the decision depends on how many blocks contradict: by their content, or by
 * their mean brightness or colour. Deterministic: separate additions in a fixed order, no libm
 * function except sqrt. */
#ifndef CLPIPE_JOBS_ALIGNMENT_H
#define CLPIPE_JOBS_ALIGNMENT_H

#include <stdbool.h>
#include <stdint.h>

#define ALIGNMENT_SIDE   256u  /* longest side of a plane, pixels */
#define ALIGNMENT_FINE   1024u /* the same for certain copies */
#define ALIGNMENT_COLOUR 64u   /* the same for the colour plane */
#define ALIGNMENT_LEAST  32u   /* smaller pictures are never copies */

struct alignment_plane {
    uint32_t width, height;                                  /* 1 to ALIGNMENT_SIDE each */
    uint32_t colour_width, colour_height;                    /* 1 to ALIGNMENT_COLOUR each */
    uint8_t pixel[ALIGNMENT_SIDE * ALIGNMENT_SIDE];          /* upright, rows without padding */
    uint8_t colour[ALIGNMENT_COLOUR * ALIGNMENT_COLOUR * 3]; /* RGB */
    uint32_t fine_width, fine_height;                        /* 1 to ALIGNMENT_FINE each, */
    uint8_t *fine; /* fine[ALIGNMENT_FINE squared], or NULL */
};

/* Scratch memory of one thread. */
struct alignment_scratch {
    float a[ALIGNMENT_SIDE * ALIGNMENT_SIDE * 4 / 3], b[ALIGNMENT_SIDE * ALIGNMENT_SIDE * 4 / 3];
    float *fine; /* 3 ALIGNMENT_FINE squared, if planes have `fine` */
};

struct alignment {
    bool same;
    bool certain;      /* same, with no contradicting block, colour or edge */
    uint32_t blocks;   /* textured in one of the planes, or contradicting, in the overlap */
    uint32_t contrary; /* those that contradict */
    float correlation; /* of all blocks */
    float overlap;     /* the smaller share of the two planes in the overlap */
};

/* mirrored: flips b horizontally first. Thread-safe, with one scratch per thread. */
struct alignment alignment_compare(const struct alignment_plane *a, const struct alignment_plane *b,
                                   bool mirrored, struct alignment_scratch *scratch);

#endif
