/* forces.h: how all points of the plane repel each other, by the Barnes-Hut approximation. */
#ifndef CLPIPE_LAYOUT_FORCES_H
#define CLPIPE_LAYOUT_FORCES_H

#include "base/error.h"
#include "cluster/workers.h"
#include <stdint.h>

struct forces;

/* For so many points, fewer than 2^32. */
enum status forces_open(struct forces **out, uint64_t points, struct error *err);
void forces_close(struct forces **forces);

/* With q(i, j) = 1 / (1 + |p_i - p_j|^2): force[2 * i], force[2 * i + 1] = the sum over j of
 * q^2 (p_i - p_j); *total = the sum over all i and j other than i of q. xy: finite. A cell of points
 * counts as one at its mean where its side is below `theta` times its distance. The same bits for
 * any number of workers. */
void forces_repel(float *force, double *total, struct forces *forces, const float *xy, float theta,
                  struct workers *workers);

#endif
