/* quality_part.h: data shared by the host and quality_slot. docs/features.md defines the
 * numbers. */
#ifndef CLPIPE_KERNELS_QUALITY_PART_H
#define CLPIPE_KERNELS_QUALITY_PART_H

#include "part_types.h"

#define QUALITY_ITEMS     32u /* work-items of a picture; on a CPU 1 */
#define QUALITY_SIDE_MOST 1024u

#define QUALITY_TONES 4u /* the tones of one in this many rows are counted */

/* Where edges are looked for: in 9 rows of 24. */
#define QUALITY_GROUP   24u
#define QUALITY_ROWS    9u
#define QUALITY_SCALES  2u  /* taps are 1 and 2 pixels apart */
#define QUALITY_CLASSES 3u  /* spans of at least 16, 32 and 64 */
#define QUALITY_SPAN    16u
#define QUALITY_COLOUR  16u /* a pixel has colour if its largest channel exceeds the smallest by
                             * this much */
/* Pixels of a border differ from its corner by at most this much: luma, and channels, which JPEG
 * blurs. */
#define QUALITY_FLAT         8u
#define QUALITY_FLAT_CHANNEL 40u

/* Words of a picture: counts of luma in one row of QUALITY_TONES; there the sum of the differences between the
 * largest and the smallest channel, and the pixels with colour; for each scale the places looked at, then
 * for each class the number, the sum of spans and the sum of steps; borders left, top, right, bottom;
 * columns, rows. */
#define QUALITY_AT_COLOUR  256u
#define QUALITY_AT_EDGES   258u
#define QUALITY_EDGE_WORDS (1u + 3u * QUALITY_CLASSES)
#define QUALITY_AT_BORDERS (QUALITY_AT_EDGES + QUALITY_SCALES * QUALITY_EDGE_WORDS)
#define QUALITY_AT_SIZE    (QUALITY_AT_BORDERS + 4u)
#define QUALITY_WORDS      (QUALITY_AT_SIZE + 2u)

/* A whole picture in a slot. */
struct quality_part {
    PART_U32 offset; /* of its first pixel, bytes */
    PART_U32 stride; /* bytes from row to row */
    PART_U32 width, height; /* 0: nothing to do */
    PART_U32 words;  /* index of its first word */
};

#endif
