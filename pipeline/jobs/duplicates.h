/* duplicates.h: groups of images that are copies of each other: the same bytes, the same pixels, or
 * near: re-encoded, scaled, cropped, mirrored, brightened, rotated slightly.
 *
 * A group is a star: its first member is the reference, and each other member is a copy of that
 * reference by one of the three tests. So groups do not chain: two members are related only through
 * the reference. Images become references in the order "most pixels, then most bytes, then lowest
 * row"; an image belongs to at most one group. The result depends on the file's rows and, for
 * `pixels` and `near`, on the pictures; never on threads or devices. docs/features.md describes the
 * code and the tests. */
#ifndef CLPIPE_JOBS_DUPLICATES_H
#define CLPIPE_JOBS_DUPLICATES_H

#include "base/error.h"
#include "base/watch.h"
#include "ocl/ocl.h"
#include "result/result.h"
#include <stdbool.h>
#include <stdint.h>

enum duplicates_kind { DUPLICATES_BYTES, DUPLICATES_PIXELS, DUPLICATES_NEAR };
#define DUPLICATES_KINDS 3

/* "bytes", "pixels", "near". */
const char *duplicates_kind_name(enum duplicates_kind kind);

struct duplicates_member {
    uint64_t row;
    /* The closest relation to any other member of the group. */
    enum duplicates_kind kind;
    uint32_t distance; /* of its code, 0 to 256, to that of the reference or its mirror image */
    bool mirrored;     /* the code is closer to that of the mirrored reference */
    uint32_t pixels;   /* same number for equal bytes or, with `compare`, pixels */
};

struct duplicates_group {
    uint64_t first, count;     /* members [first, first + count), at least two */
    enum duplicates_kind kind; /* that of its least similar member */
};

struct duplicates {
    struct duplicates_group *group;   /* ascending by their lowest row */
    struct duplicates_member *member; /* the reference, then the others by row */
    uint64_t groups, members;
    /* Undecided because a picture is missing, has changed or can no longer be decoded: images that
     * may have the pixels of another, pairs that may be near. */
    uint64_t pixels_unknown, near_unknown;
    uint32_t limit; /* the largest distance of codes considered */
};

struct duplicates_config {
    uint32_t near; /* ignores codes that differ in more bits; 0: only bytes and pixels */
    /* Decode pictures again: pairs are near only if the pictures prove it. Otherwise the codes
     * alone decide, and equal pixels are not searched for. */
    bool compare;
    unsigned threads;
    struct ocl_context *context; /* compares codes; if it is NULL or fails, the host does */
    uint64_t memory;             /* bytes, for pairs and for pictures */
    struct watch watch;
};

#define DUPLICATES_FLOOR 24u  /* pairs of codes this close are always compared */
#define DUPLICATES_LIMIT 104u /* default of config.near, with `compare` */
#define DUPLICATES_BLIND 40u  /* and without it */
#define DUPLICATES_MOST  128u

/* STATUS_FAILED: the file has no codes, or out of memory. STATUS_INTERRUPTED: stopped. */
enum status duplicates_find(struct duplicates *out, struct result *result,
                            const struct duplicates_config *config, struct error *err);
/* Frees the groups and zeroes the struct. */
void duplicates_clear(struct duplicates *duplicates);

#endif
