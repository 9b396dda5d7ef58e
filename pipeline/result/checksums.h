/* checksums.h: /checksums: for each dataset of the format (except in /runs), the digests of the
 * pieces of its values, under the dataset's path, with its identity as the attribute `root`; and the
 * identity of the file as the attribute `identity` of the group. */
#ifndef CLPIPE_RESULT_CHECKSUMS_H
#define CLPIPE_RESULT_CHECKSUMS_H

#include "matrix/row_tree.h"
#include "result/verify_report.h"

struct copies;

/* The digests of a dataset's pieces, computed while it was written; `name` is absolute. */
struct checksums_known {
    const char *name;
    const struct row_tree *tree;
};

/* The checksums of another file, valid for the objects copied from it. */
struct checksums_kept {
    const struct copies *copies;
    const char *renamed_from, *renamed_to; /* the renamed clustering; NULL: none */
};

/* Writes the checksums of a new file, which has none yet. Digests in `kept` (NULL: none) or `known`
 * (`count` of them) are not recomputed. Flushes the file. */
enum status checksums_write(hid_t file, const struct checksums_kept *kept,
                            const struct checksums_known *known, unsigned count, struct error *err);

/* Digests the datasets at and below `name` (absolute; "/": everything except clusterings and
 * neighbours) and reports the objects and rows that have changed since they were written. */
enum status checksums_verify(struct verify *verify, const char *name, struct error *err);

#endif
