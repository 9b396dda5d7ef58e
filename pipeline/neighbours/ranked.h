/* ranked.h: the rows of a preset prepared for ranking (similar, evaluate, pages): reduced to
 * principal components without whitening, if the preset defines their number. docs/features.md
 * shows what that gains. */
#ifndef CLPIPE_NEIGHBOURS_RANKED_H
#define CLPIPE_NEIGHBOURS_RANKED_H

#include "base/stop.h"
#include "matrix/matrix.h"
#include "result/result.h"

/* A matrix of projected.h, or `rows` itself if there is nothing to do. Takes ownership of `rows`, which
 * belong to `about`, even on failure; `result` must outlive them. The components are those of the
 * preset's clustering of the same rows, or are computed in the same way. STATUS_FAILED,
 * STATUS_INTERRUPTED. */
enum status ranked_open(struct matrix_source *out, const struct matrix_source *rows,
                        struct result *result, const struct result_feature *about, unsigned threads,
                        struct stop *stop, struct error *err);

#endif
