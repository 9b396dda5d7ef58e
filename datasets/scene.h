/* scene.h: synthetic landscapes of six classes, each with colours of its own. Everything is computed
 * from hashes and the four basic operations in float, so that a picture is the same on every
 * machine: the functions of libm, which differ between C libraries, are not used. */
#ifndef CLPIPE_SCENE_H
#define CLPIPE_SCENE_H

#include <stdint.h>

/* Upright picture, rows from the top, three floats (r, g, b, 0 to 1) per pixel. */
struct canvas {
    unsigned width, height;
    float *rgb;
};

#define SCENE_COUNT 6

/* The name of a class. */
const char *scene_name(unsigned scene);

/* Fills the canvas with a picture of the class; equal seeds give equal pictures. */
void scene_paint(struct canvas *canvas, unsigned scene, uint64_t seed);

#endif
