/* ranked.h: the rows of a preset as rankings take them (similar, evaluate, pages): by principal components
 * without whitening, where the preset says how many. docs/features.md has what that gains. */
#ifndef CLPIPE_SEARCH_RANKED_H
#define CLPIPE_SEARCH_RANKED_H

#include "base/stop.h"
#include "file/result.h"
#include "matrix/matrix.h"

/* Takes `rows` over, which are those of `about`, also after a failure; `result` must outlive them. *out is
 * `rows` itself where there is nothing to do. Components are those that the preset's clustering of the
 * same rows has, or are computed alike. */
enum status ranked_open(struct matrix_source *out, const struct matrix_source *rows,
                        struct result *result, const struct result_feature *about,
                        unsigned threads, struct stop *stop, struct error *err);

/* Rows of the feature, `count` x the columns of `rows`, to those that `ranked` has; NaN where one says
 * nothing. */
void ranked_values(const struct matrix_source *ranked, float *out, const float *rows,
                   uint64_t count);
/* The columns of `rows`. */
uint32_t ranked_columns(const struct matrix_source *ranked);

#endif
