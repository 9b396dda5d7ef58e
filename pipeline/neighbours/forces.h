/* forces.h: the mutual repulsion of points in the plane, by the Barnes-Hut approximation. */
#ifndef CLPIPE_NEIGHBOURS_FORCES_H
#define CLPIPE_NEIGHBOURS_FORCES_H

#include "base/error.h"
#include "base/workers.h"
#include <stdint.h>

struct forces;

/* points: fewer than 2^32. Close it even after an error, which can only be a lack of memory. */
enum status forces_open(struct forces **out, uint64_t points, struct error *err);
void forces_close(struct forces **forces);

/* With q(i, j) = 1 / (1 + |p_i - p_j|^2): force[2 * i], force[2 * i + 1] = the sum over j of q^2
 * (p_i - p_j); *total = the sum of q over all i and j other than i. xy: finite. A cell counts as a
 * single point at its mean if its side is below `theta` times its distance. The bits are the same
 * for any number of workers. One call at a time per object. */
void forces_repel(float *force, double *total, struct forces *forces, const float *xy, float theta,
                  struct workers *workers);

#endif
