/* brush.h: what the scenes are painted with: random numbers, noise, soft shapes, and a renderer for
 * terrain. Positions are in units of the picture's height, x from the left, y from the top, so that
 * a scene looks alike at every size. */
#ifndef CLPIPE_BRUSH_H
#define CLPIPE_BRUSH_H

#include "scene.h"
#include <stddef.h>

struct random {
    uint64_t state;
};

static inline uint32_t hash32(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352dU;
    x ^= x >> 15;
    x *= 0x846ca68bU;
    x ^= x >> 16;
    return x;
}

/* 0 to 1, from a lattice point and a seed. */
static inline float hash_unit(int x, int y, uint32_t seed)
{
    uint32_t h = hash32((uint32_t)x * 0x9e3779b1U ^ hash32((uint32_t)y + seed));
    return (float)(h >> 8) * (1.0f / 16777216.0f);
}

/* Uniform in [low, high). */
static inline float between(struct random *random, float low, float high)
{
    random->state = random->state * 6364136223846793005ULL + 1442695040888963407ULL;
    float unit = (float)(hash32((uint32_t)(random->state >> 32)) >> 8) * (1.0f / 16777216.0f);
    return low + unit * (high - low);
}

static inline float clamp01(float v)
{
    return v < 0.0f ? 0.0f : v > 1.0f ? 1.0f : v;
}

/* 0 below `low`, 1 above `high`, smooth between; low > high turns it round. */
static inline float smooth(float low, float high, float v)
{
    float t = clamp01((v - low) / (high - low));
    return t * t * (3.0f - 2.0f * t);
}

static inline struct colour mix(struct colour a, struct colour b, float t)
{
    return (struct colour){a.r + (b.r - a.r) * t, a.g + (b.g - a.g) * t, a.b + (b.b - a.b) * t};
}

static inline struct colour scaled(struct colour a, float s)
{
    return (struct colour){a.r * s, a.g * s, a.b * s};
}

static inline struct colour rgb(float r, float g, float b)
{
    return (struct colour){r, g, b};
}

/* Bilinear, periodic with period 1 in u and v. */
static inline float noise_at(const float *map, float u, float v)
{
    /* Coordinates stay far below 2^20 texels; the bias makes truncation a floor. */
    float x = u * NOISE_SIDE + 1048576.0f / 2, y = v * NOISE_SIDE + 1048576.0f / 2;
    int ix = (int)x, iy = (int)y;
    float fx = x - (float)ix, fy = y - (float)iy;
    const float *row = map + (unsigned)(iy & (NOISE_SIDE - 1)) * NOISE_SIDE;
    const float *below = map + (unsigned)((iy + 1) & (NOISE_SIDE - 1)) * NOISE_SIDE;
    int left = ix & (NOISE_SIDE - 1), right = (ix + 1) & (NOISE_SIDE - 1);
    float top = row[left] + (row[right] - row[left]) * fx;
    float bottom = below[left] + (below[right] - below[left]) * fx;
    return top + (bottom - top) * fy;
}

static inline void blend(struct canvas *canvas, int x, int y, struct colour c, float alpha)
{
    if (x < 0 || y < 0 || x >= (int)canvas->width || y >= (int)canvas->height)
        return;
    float *p = canvas->rgb + 3 * ((size_t)y * canvas->width + (size_t)x);
    p[0] += (c.r - p[0]) * alpha;
    p[1] += (c.g - p[1]) * alpha;
    p[2] += (c.b - p[2]) * alpha;
}

static inline void put(struct canvas *canvas, unsigned x, unsigned y, struct colour c)
{
    float *p = canvas->rgb + 3 * ((size_t)y * canvas->width + x);
    p[0] = c.r;
    p[1] = c.g;
    p[2] = c.b;
}

static inline float canvas_aspect(const struct canvas *canvas)
{
    return (float)canvas->width / (float)canvas->height;
}

/* The whole width down to the last row: colours at the top, at the share `at` of the way to
 * `bottom`, and at `bottom` and below. */
void brush_sky(struct canvas *canvas, float bottom, struct colour top, struct colour middle,
               struct colour low, float at);

/* An ellipse with edges as soft as `soft` (a share of its radius, at least one pixel is used). */
void brush_disc(struct canvas *canvas, float cx, float cy, float rx, float ry, float soft,
                struct colour c, float alpha);

/* Light added around a point, falling to nothing at `radius`. */
void brush_glow(struct canvas *canvas, float cx, float cy, float radius, struct colour c);

/* A line that tapers from thickness `from` to `to`. */
void brush_stroke(struct canvas *canvas, float x0, float y0, float x1, float y1, float from,
                  float to, struct colour c, float alpha);

/* An upright rectangle with antialiased edges. */
void brush_box(struct canvas *canvas, float x0, float y0, float x1, float y1, struct colour c,
               float alpha);

/* A conifer standing at (x, base). */
void brush_conifer(struct canvas *canvas, float x, float base, float height, struct colour dark,
                   struct colour light, struct random *random);

/* Clouds on a flat ceiling seen in perspective, painted over whatever is above `horizon`. */
struct cloud_look {
    float cover;               /* 0 none to 1 overcast */
    float scale;               /* larger: smaller clouds */
    float stretch;             /* above 1: drawn out sideways */
    struct colour lit, shaded; /* towards the light and away from it */
    float u, v;                /* where in the noise */
};
void brush_clouds(struct canvas *canvas, const struct noise *noise, float horizon,
                  const struct cloud_look *look);

/* Rows below `line` become a mirror of those above, broken by ripples and tinted. */
void brush_water(struct canvas *canvas, const struct noise *noise, float line, float roughness,
                 struct colour tint, float opacity, struct random *random);

/* Terrain seen from (0, eye) over the plane, drawn column by column from front to back. */
struct terrain {
    const struct noise *noise;
    float u, v;               /* the viewer's place in the noise */
    float eye;                /* height above zero */
    float near, far;          /* distances drawn */
    float view;               /* half the width of the view at distance 1, per picture height */
    float horizon;            /* y of the horizon */
    float relief;             /* heights are multiplied by this */
    float light_x, light_z;   /* direction of the light over the plane; height 1 */
    struct colour haze;       /* what distance fades to */
    float haze_from, haze_to; /* distances */
    const void *look;         /* for the two functions */
    float (*height)(const struct terrain *terrain, float x, float z);
    /* `light` is 0 to 1 by the angle to the light, `slope` 0 (flat) to 1 (steep). */
    struct colour (*colour)(const struct terrain *terrain, float x, float z, float height,
                            float light, float slope);
};
void brush_terrain(struct canvas *canvas, const struct terrain *terrain);

#endif
