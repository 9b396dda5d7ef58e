/* imported.h: features that were computed elsewhere: /features/NAME with the attributes of a feature,
 * of which spec and kind are "imported" and bins, grid and normalize empty, and beside them
 *
 *   imported_from     base name of the file of the rows, for HDF5 followed by ":/DATASET"
 *   imported_digest   digest of shape and float32 values of that matrix
 *
 * The row of an image without values is NaN throughout. */
#ifndef CLPIPE_RESULT_IMPORTED_H
#define CLPIPE_RESULT_IMPORTED_H

#include "matrix/matrix.h"
#include "result/result.h"

struct imported_feature {
    const char *name;
    const char *from;                 /* UTF-8 */
    const struct matrix_source *rows; /* one for each image; float32; read once, in order */
    uint64_t rows_at_once;            /* maximum in memory; at least 1 */
    /* Asked for when all rows have been read: imported_digest. */
    enum status (*digest)(void *context, char hex[65], struct error *err);
    /* Called between blocks; anything but STATUS_OK ends it. */
    enum status (*progress)(void *context, uint64_t done, uint64_t total, struct error *err);
    void *context;
};

/* Whether the feature can be stored in the file of `result`. STATUS_USAGE: the name is impossible,
 * or taken: by an imported feature and not `replace`, or by something else. STATUS_FAILED: the file
 * is of clusters alone, or has no images. */
enum status imported_check(struct result *result, const char *name, bool replace,
                           struct error *err);

/* Whether the file has an imported feature of that name from the same place with the same rows, bit by bit;
 * they are compared up to the first that differs. */
enum status imported_equal(bool *equal, struct result *result,
                           const struct imported_feature *feature, struct error *err);

/* Replaces the file of `result` by a copy with that feature. Clusterings and neighbours of an older
 * feature of that name are left out. */
enum status imported_write(struct result *result, const struct imported_feature *feature,
                           struct error *err);

/* True if a clustering's `feature` is the feature `name` or joined of it. */
bool feature_is_part(const char *feature, const char *name);

#endif
