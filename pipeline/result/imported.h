/* imported.h: features computed elsewhere: /features/NAME with the attributes of a feature (spec and
 * kind are "imported"; bins, grid and normalize are empty) and
 *
 *   imported_from     base name of the file of the rows, for HDF5 followed by ":/DATASET"
 *   imported_digest   digest of shape and float32 values of that matrix
 *
 * The row of an image without values is all NaN. */
#ifndef CLPIPE_RESULT_IMPORTED_H
#define CLPIPE_RESULT_IMPORTED_H

#include "base/watch.h"
#include "result/result.h"

struct imported_feature {
    const char *name;
    const char *from; /* UTF-8 */
    /* One for each image; float32; read once, in order; their identity, asked for afterwards, is
     * imported_digest. */
    const struct matrix_source *rows;
    uint64_t rows_at_once; /* rows in memory at a time; at least 1 */
    struct watch watch;    /* between blocks */
};

/* Checks that the feature can be stored in the file of `result`. STATUS_USAGE: the name is invalid,
 * or taken by an imported feature (without `replace`) or another object. STATUS_FAILED: the file
 * holds only clusters, or has no images. */
enum status imported_check(struct result *result, const char *name, bool replace,
                           struct error *err);

/* Whether the file has an imported feature of that name from the same place with bit-identical rows, which
 * are compared up to the first difference. */
enum status imported_equal(bool *equal, struct result *result,
                           const struct imported_feature *feature, struct error *err);

/* Replaces the file of `result` with a copy that has that feature. Clusterings and neighbours of an
 * older feature of that name are left out. */
enum status imported_write(struct result *result, const struct imported_feature *feature,
                           struct error *err);

/* True if a clustering's `feature` is the feature `name` or a join that includes it. */
bool feature_is_part(const char *feature, const char *name);

#endif
