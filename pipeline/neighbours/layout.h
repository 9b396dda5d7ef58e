/* layout.h: a map: positions of all rows in two dimensions that keep neighbours together.
 *
 * The method is t-SNE (L. van der Maaten and G. Hinton 2008) on the affinities of the given
 * neighbour graph, with Barnes-Hut forces (L. van der Maaten 2014), learning rate and iterations
 * after A. Belkina et al. 2019, and initialisation by principal components (D. Kobak and P. Berens
 * 2019).
 *
 * The results are bit-identical for any number of threads. */
#ifndef CLPIPE_NEIGHBOURS_LAYOUT_H
#define CLPIPE_NEIGHBOURS_LAYOUT_H

#include "neighbours/edges.h"
#include "neighbours/neighbour_types.h"

/* Neighbours that suit the map; any further ones in a graph are ignored. */
#define LAYOUT_NEIGHBOURS 15u

/* Of the configuration, these functions use metric, threads and watch. */

/* The first two principal components of all rows in the metric's space (see kmeans/transform.h): x
 * and y of each row at xy[2 * i], xy[2 * i + 1]. The axes are those of features/pca.h. Rows that
 * cannot be compared (neighbours/comparable.h) are placed at 0, 0. STATUS_FAILED: reading, memory;
 * STATUS_INTERRUPTED. */
enum status layout_principal(float *xy, const struct matrix_source *matrix,
                             const struct neighbours_config *config, struct error *err);

/* How strongly rows attract each other: the weights of a pair's two directions are averaged, and
 * all weights add up to 1. STATUS_FAILED: out of memory. Close the graph even after an error. */
enum status layout_attract(struct edges *out, const struct neighbours *nearest, struct error *err);

/* Computes the map of all rows from their nearest ones. initial: 2 x rows, from layout_principal;
 * NULL: fixed random positions. Positions span -1 to 1 along the wider axis, centred. Memory: about
 * 64 * n + 200 bytes per row. Accepts any graph: rows without neighbours, coincident rows, several
 * components. STATUS_FAILED: out of memory; STATUS_INTERRUPTED: a stop was requested. */
enum status layout_map(float *xy, const struct neighbours *nearest, const float *initial,
                       const struct neighbours_config *config, struct error *err);

#endif
