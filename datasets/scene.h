/* scene.h: the painted scenes of the sample. Everything is computed from hashes, table look-ups and
 * the four basic operations in float (plus sqrt), so that a picture is the same on every machine:
 * the libm functions that may differ between C libraries are not used. */
#ifndef CLPIPE_SCENE_H
#define CLPIPE_SCENE_H

#include <stdint.h>

/* Upright picture, rows from the top, three floats (r, g, b, nominally 0 to 1) per pixel. */
struct canvas {
    unsigned width, height;
    float *rgb;
};

struct colour {
    float r, g, b;
};

#define NOISE_SIDE 512 /* texels, a power of two */

/* Periodic noise, 0 to 1, shared by all pictures. */
struct noise {
    float cloud[NOISE_SIDE * NOISE_SIDE];  /* fractal sum */
    float detail[NOISE_SIDE * NOISE_SIDE]; /* the same, other seed, rougher */
    float swell[NOISE_SIDE * NOISE_SIDE];  /* broad and smooth */
    float ridge[NOISE_SIDE * NOISE_SIDE];  /* ridged: sharp crests, smooth valleys */
};

struct scene {
    const char *name; /* the class */
    void (*paint)(struct canvas *canvas, const struct noise *noise, uint64_t seed);
};

#define SCENE_COUNT 6
extern const struct scene scenes[SCENE_COUNT];

void noise_fill(struct noise *noise);

/* Lens and sensor: vignette, grain, and values clamped to 0 to 1. */
void canvas_develop(struct canvas *canvas, float grain, uint64_t seed);

#endif
