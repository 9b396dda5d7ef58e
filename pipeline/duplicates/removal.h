/* removal.h: which members of groups can be removed, so that of none the last copy goes. The files decide,
 * as they are now, not what the result says of them:
 *
 *   - a member counts only if its file is there, with the size, the time and the bytes that were read;
 *   - what goes is certainly another file than all that is kept (pictures/original.h),
 *   - and itself a copy of one that is kept: by all bytes, by all pixels, or because both pictures were
 *     aligned (alignment.h); codes alone prove nothing, and pictures nothing of animations and pages;
 *   - a file goes only if a file is kept, not just a member of an archive. */
#ifndef CLPIPE_DUPLICATES_REMOVAL_H
#define CLPIPE_DUPLICATES_REMOVAL_H

#include "duplicates/duplicates.h"
#include "pictures/original.h"

/* What a group keeps: what has the most pixels (then the most bytes), the lowest row, or the latest time (of
 * equals a file rather than a member of an archive, then the lowest row); and where that is a member of an
 * archive the best of the files, too. */
enum removal_keep { REMOVAL_BEST, REMOVAL_FIRST, REMOVAL_NEWEST };

enum removal_verdict {
    REMOVAL_KEPT,
    REMOVAL_SAFE,      /* can go */
    REMOVAL_SAME,      /* the file of one that is kept, by another name */
    REMOVAL_UNCERTAIN, /* perhaps: its file system does not tell */
    REMOVAL_GONE,
    REMOVAL_CHANGED,  /* or what is kept for it, meanwhile */
    REMOVAL_UNPROVEN, /* no copy of one that is kept */
    REMOVAL_ALONE,    /* nothing is kept for it */
};
#define REMOVAL_VERDICTS 8
/* For programs, and for people. */
extern const char *const removal_names[REMOVAL_VERDICTS], *const removal_texts[REMOVAL_VERDICTS];

struct removal_config {
    enum removal_keep keep;
    bool prove; /* read files and compare pictures; else files are only looked at */
    /* What is to go, by ascending original_name, and all else is kept; NULL: all that is not kept. */
    char *const *listed;
    uint64_t listed_count;
};

struct removal_entry {
    struct original file;
    enum removal_verdict verdict;
    bool repeated;                  /* SAFE, but with the name of an earlier entry */
    bool going, read, proven, more; /* more: than the picture that is decoded */
    uint64_t kept;                  /* SAFE: the member that it is a copy of */
    struct result_image image;      /* without texts */
    uint8_t sha[32];
};

struct removal {
    struct removal_entry *entry; /* of each of found->member */
    uint64_t count[REMOVAL_VERDICTS];
    uint64_t files, members; /* that can go: files, and members of archives, each name once */
    uint64_t bytes;          /* of files that have no other name */
};

/* `found` is the result of duplicates_find with `how`; without how->compare only equal bytes are proof. The
 * last that is done is to read all that can go, and what is kept for it. Clear it also after a failure. */
enum status removal_find(struct removal *out, struct result *result, const struct duplicates *found,
                         const struct removal_config *config, const struct duplicates_config *how,
                         struct error *err);
void removal_clear(struct removal *removal, const struct duplicates *found);

#endif
