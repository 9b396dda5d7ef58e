/* checksums.h: /checksums: for each dataset of the format (but for /runs) the digests of its values'
 * pieces, under its own path, with the dataset's identity as attribute `root`; and the identity of
 * the file as attribute `identity` of the group. */
#ifndef CLPIPE_RESULT_CHECKSUMS_H
#define CLPIPE_RESULT_CHECKSUMS_H

#include "matrix/row_tree.h"
#include "result/defined.h"
#include "result/pieces.h"
#include "result/verify_report.h"

/* The digests of a dataset's pieces that are known from writing it; `name` is absolute. */
struct checksums_known {
    const char *name;
    const struct row_tree *tree;
};

/* The checksums of another file that stand for what was copied from it. */
struct checksums_kept {
    const struct result *from;
    /* Whether an object, by its absolute name, was not copied, nor what is below it. */
    bool (*leave_out)(const void *context, const char *name);
    const void *context;
    const char *renamed_from,
        *renamed_to; /* a clustering that has another name now; NULL: none has */
};

/* Writes the checksums of a file that is written, which has none yet. Digests that are `kept` (NULL: none
 * are) or known (`count` of them) are not computed. Flushes the file. */
enum status checksums_write(hid_t file, const char *path, const struct checksums_kept *kept,
                            const struct checksums_known *known, unsigned count, struct error *err);

/* Digests the datasets at and below `name` (absolute, "/" for all but clusterings and neighbours)
 * and reports what is not as it was written, with its rows. */
enum status checksums_verify(struct verify *verify, const char *name, struct error *err);

#endif
