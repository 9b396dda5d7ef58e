/* duplicates.h: groups of images that are copies of each other: the same bytes, the same pixels, or
 * near: re-encoded, scaled, cropped, mirrored, brightened, turned a little.
 *
 * A group is a star: its first member is the reference, and each other member is a copy of that
 * reference by one of the three tests. So groups do not chain: two members need not resemble each
 * other more than both resemble the reference. Images become references in the order "most pixels,
 * then most bytes, then lowest row"; an image belongs to at most one group. The result depends on the
 * file's rows and, for `pixels` and near ones, on the pictures; never on threads or devices. docs/features.md has the code and the tests. */
#ifndef CLPIPE_DUPLICATES_DUPLICATES_H
#define CLPIPE_DUPLICATES_DUPLICATES_H

#include "base/error.h"
#include "base/stop.h"
#include "file/result.h"
#include "ocl/ocl.h"
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
    uint32_t distance; /* of the codes, 0 to 256, to the reference or its mirror image */
    bool mirrored;     /* the code resembles that of the mirrored reference more */
    uint32_t pixels;   /* equal where bytes or, with `compare`, pixels are */
};

struct duplicates_group {
    uint64_t first, count;     /* members [first, first + count), at least two */
    enum duplicates_kind kind; /* the least close of its members */
};

struct duplicates {
    struct duplicates_group *group;   /* by the lowest row in each, ascending */
    struct duplicates_member *member; /* the reference, then the others by row */
    uint64_t groups, members;
    /* What could not be decided because a picture is gone, has changed or cannot be decoded any more:
     * images that may have the pixels of another, pairs that may be near. */
    uint64_t pixels_unknown, near_unknown;
    uint32_t limit; /* the largest distance of codes that was looked at */
};

struct duplicates_config {
    uint32_t near; /* codes that differ in more bits are not looked at; 0: only bytes and pixels */
    /* Pairs are near only if their pictures, decoded again, prove it. Otherwise the codes alone decide,
     * and same pixels are not looked for. */
    bool compare;
    unsigned threads;
    struct ocl_context *context; /* compares codes; NULL, or where that fails: the host does */
    uint64_t memory;             /* bytes, for pairs and for pictures */
    struct stop *stop;           /* may be NULL */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total); /* or NULL */
    void *progress_context;
};

#define DUPLICATES_FLOOR   24u  /* pairs of codes this close are compared however many there are */
#define DUPLICATES_LIMIT   104u /* config.near by default, with `compare` */
#define DUPLICATES_BLIND   40u  /* and without */
#define DUPLICATES_MOST    128u

/* STATUS_FAILED: the file has no codes, or memory. STATUS_INTERRUPTED: a stop was requested. */
enum status duplicates_find(struct duplicates *out, struct result *result,
                            const struct duplicates_config *config, struct error *err);
void duplicates_clear(struct duplicates *duplicates);

#endif
