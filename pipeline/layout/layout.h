/* layout.h: a map: positions of all rows in two dimensions in which neighbours stay neighbours.
 *
 * The method is t-SNE (L. van der Maaten and G. Hinton 2008) on the affinities of the given
 * neighbour graph, its forces by the Barnes-Hut approximation (L. van der Maaten 2014), its
 * learning rate and number of iterations after A. Belkina et al. 2019, begun from principal
 * components (D. Kobak and P. Berens 2019).
 *
 * All results are the same bits for any number of threads. */
#ifndef CLPIPE_LAYOUT_LAYOUT_H
#define CLPIPE_LAYOUT_LAYOUT_H

#include "base/error.h"
#include "base/stop.h"
#include "cluster/cluster_types.h"
#include "matrix/matrix.h"
#include <stdint.h>

/* Neighbours that suit the map; where a graph has more, the first so many count. */
#define LAYOUT_NEIGHBOURS 15u

/* The nearest rows of each row, nearest first: row i has neighbour[i * neighbours + j]; -1: fewer than
 * `neighbours`. */
struct layout_graph {
    uint64_t rows;
    uint32_t neighbours;
    const int64_t *neighbour;
};

struct layout_config {
    unsigned threads;  /* at least 1 */
    struct stop *stop; /* may be NULL */
    /* May be NULL; from the calling thread, after each iteration. */
    void (*progress)(void *context, uint64_t done, uint64_t total);
    void *progress_context;
};

/* The first two principal components of all rows in the metric's space (as cluster/transform.h has
 * them): x and y of each row, xy[2 * i], xy[2 * i + 1]. The axes come from at most 8,192 rows,
 * spread evenly. Rows that are not finite, or not in the metric's space, are at 0, 0. */
enum status layout_principal(float *xy, const struct matrix_source *matrix,
                             enum cluster_metric metric, const struct layout_config *config,
                             struct error *err);

/* The map. initial: 2 x rows, of layout_principal; NULL: fixed random positions. Positions fill -1 to
 * 1 along the wider axis, centred. Memory: about 64 * neighbours + 200 bytes a row. Any graph will
 * do: rows without neighbours, rows at the same place, several components. STATUS_INTERRUPTED: a
 * stop was requested. */
enum status layout_map(float *xy, const struct layout_graph *graph, const float *initial,
                       const struct layout_config *config, struct error *err);

#endif
