/* lands.h: the scenes of lands.c, for the table in scenes.c. */
#ifndef CLPIPE_LANDS_H
#define CLPIPE_LANDS_H

#include "scene.h"

void paint_desert(struct canvas *canvas, const struct noise *noise, uint64_t seed);
void paint_meadow(struct canvas *canvas, const struct noise *noise, uint64_t seed);
void paint_mountains(struct canvas *canvas, const struct noise *noise, uint64_t seed);

#endif
