/* removal.h: decides which members of groups can be removed without losing the last copy of any. It
 * relies on the current files, not on the result:
 *
 *   - a member counts only if its file exists, with the size, time and bytes that were read;
 *   - a member is removed only if it is certainly a different file from all kept ones (jobs/original.h),
 *   - and is a copy of a kept one: by all bytes, by all pixels, or because both pictures were
 *     aligned (alignment.h). Codes alone prove nothing, nor do pictures of animations and pages;
 *   - a file is removed only if a file is kept, not just a member of an archive. */
#ifndef CLPIPE_JOBS_REMOVAL_H
#define CLPIPE_JOBS_REMOVAL_H

#include "base/held.h"
#include "jobs/duplicates.h"
#include "jobs/original.h"

/* The member that a group keeps: the one with the most pixels (then the most bytes), the lowest
 * row, or the latest time (ties: a file before a member of an archive, then the lowest row); if
 * that is a member of an archive, the best of the files, too. */
enum removal_keep { REMOVAL_BEST, REMOVAL_FIRST, REMOVAL_NEWEST };

enum removal_verdict {
    REMOVAL_KEPT,
    REMOVAL_SAFE,      /* can be removed */
    REMOVAL_SAME,      /* another name of a kept file */
    REMOVAL_UNCERTAIN, /* perhaps another name: its file system cannot tell */
    REMOVAL_GONE,
    REMOVAL_CHANGED,  /* the file, or the one kept for it, has changed */
    REMOVAL_UNPROVEN, /* not proven to be a copy of one that is kept */
    REMOVAL_ALONE,    /* nothing is kept for it */
};
#define REMOVAL_VERDICTS 8
/* Names for programs, and texts for messages. */
extern const char *const removal_names[REMOVAL_VERDICTS], *const removal_texts[REMOVAL_VERDICTS];

struct removal_config {
    enum removal_keep keep;
    bool prove; /* read files and compare pictures; if not set, only check file attributes */
    /* Names to remove, in the order of original_name; everything else is kept. NULL: remove
     * everything that is not kept. */
    char *const *listed;
    uint64_t listed_count;
};

struct removal_entry {
    struct original file;
    enum removal_verdict verdict;
    bool repeated;                  /* SAFE, but an earlier entry has the same name */
    bool going, read, proven, more; /* more: has more pictures than the decoded one */
    uint64_t kept;                  /* SAFE: the member that it is a copy of */
    struct result_image image;      /* without its texts */
    uint8_t sha[32];
};

struct removal {
    struct removal_entry *entry; /* one per found->member */
    struct held held;
    uint64_t count[REMOVAL_VERDICTS];
    uint64_t files, members; /* that can be removed: files, members of archives; each name once */
    uint64_t bytes;          /* of files without another name */
};

/* `found` is the result of duplicates_find with `how`; without how->compare only equal bytes are
 * proof. Finally reads all removable files and those kept for them. Clear it even after a failure.
 * STATUS_FAILED, STATUS_INTERRUPTED. */
enum status removal_find(struct removal *out, struct result *result, const struct duplicates *found,
                         const struct removal_config *config, const struct duplicates_config *how,
                         struct error *err);
/* Frees what removal_find stored and zeroes it. `found`: as given there. */
void removal_clear(struct removal *removal, const struct duplicates *found);

#endif
