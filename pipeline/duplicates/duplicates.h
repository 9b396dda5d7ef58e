/* duplicates.h: groups of images that are copies of each other: the same bytes, the same pixels, or
 * near: re-encoded, scaled, cropped, mirrored, brightened, turned a little.
 *
 * A group is a star: its first member is the reference, and each other member is a copy of that
 * reference by one of the three tests. So groups do not chain: two members need not resemble each
 * other more than both resemble the reference. Images become references in the order "most pixels,
 * then most bytes, then lowest row"; an image belongs to at most one group. The result depends on the
 * file's rows and, for `pixels` and the less similar of the near ones, on the pictures; never on
 * threads or devices. docs/features.md has the code and the tests. */
#ifndef CLPIPE_DUPLICATES_DUPLICATES_H
#define CLPIPE_DUPLICATES_DUPLICATES_H

#include "base/error.h"
#include <stdbool.h>
#include <stdint.h>

enum duplicates_kind { DUPLICATES_BYTES, DUPLICATES_PIXELS, DUPLICATES_NEAR };
#define DUPLICATES_KINDS 3

/* "bytes", "pixels", "near". */
const char *duplicates_kind_name(enum duplicates_kind kind);

struct duplicates_member {
    uint64_t row;
    /* Of the reference: the closest kind among the other members. Of another: its relation to the
     * reference; `bytes` and `pixels` also where it is so related to an earlier member. */
    enum duplicates_kind kind;
    uint32_t distance; /* of the codes, 0 to 256, to the reference or its mirror image */
    bool mirrored;     /* the code resembles that of the mirrored reference more */
};

struct duplicates_group {
    uint64_t first, count;     /* members [first, first + count), at least two */
    enum duplicates_kind kind; /* the least close among its members */
};

struct duplicates {
    struct duplicates_group *group;   /* by the lowest row in each, ascending */
    struct duplicates_member *member; /* the reference, then the others by row */
    uint64_t groups, members;
    /* Pairs of which a picture could not be decoded again, so that their test is missing. */
    uint64_t not_compared;
    uint32_t limit; /* the largest distance of codes that was looked at */
};

void duplicates_clear(struct duplicates *duplicates);

#endif
