/* labelled.h: what follows from the labels of rows and their distances. */
#ifndef CLPIPE_BASE_LABELLED_H
#define CLPIPE_BASE_LABELLED_H

#include <stdint.h>

/* The sizes of k clusters, and the n rows nearest to each centroid (k x n, the nearest first, of equally near
 * ones the lower row; -1 where there are fewer). Labels that are no cluster do not count. */
void labelled_count(uint64_t *sizes, int64_t *nearest, uint32_t n, const int32_t *labels,
                    const float *distances, uint64_t rows, uint32_t k);

#endif
