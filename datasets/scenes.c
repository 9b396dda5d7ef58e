/* scenes.c: the classes, and how a picture is painted.
 *
 * A sky and a ground, each a gradient between two colours of the class, meet at a rough horizon.
 * Fractal noise moves the colours along the gradients and lights or shades them; hue, horizon and
 * contrast vary with the seed, and some pictures borrow another class's light, so that colour
 * separates most pictures of the classes and not all. */
#include "scene.h"

#define OCTAVES 5

struct colour {
    float r, g, b;
};

static const struct scene {
    const char *name;
    struct colour sky[2], ground[2]; /* from the top to the horizon, from there to the bottom */
    float rough;                     /* how much the noise of the ground shows */
} scenes[SCENE_COUNT] = {
    {"sunset",
     {{.22f, .18f, .42f}, {.98f, .58f, .26f}},
     {{.72f, .36f, .24f}, {.10f, .08f, .18f}},
     .5f},
    {"forest",
     {{.55f, .66f, .62f}, {.30f, .42f, .28f}},
     {{.16f, .30f, .12f}, {.06f, .12f, .05f}},
     .9f},
    {"night",
     {{.01f, .02f, .07f}, {.08f, .09f, .20f}},
     {{.05f, .05f, .08f}, {.02f, .02f, .04f}},
     .4f},
    {"desert",
     {{.36f, .56f, .84f}, {.80f, .84f, .84f}},
     {{.90f, .72f, .46f}, {.72f, .48f, .26f}},
     .4f},
    {"meadow",
     {{.30f, .52f, .90f}, {.72f, .84f, .96f}},
     {{.48f, .70f, .26f}, {.24f, .50f, .12f}},
     .7f},
    {"mountains",
     {{.52f, .62f, .74f}, {.84f, .88f, .92f}},
     {{.62f, .64f, .70f}, {.30f, .32f, .36f}},
     .9f},
};

const char *scene_name(unsigned scene)
{
    return scenes[scene].name;
}

/* The finalizer of MurmurHash3. */
static uint32_t hash(uint32_t h)
{
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return h ^ h >> 16;
}

static float unit(uint32_t h)
{
    return (float)(h >> 8) / 16777216.0f;
}

/* The n-th random number of a picture, from low to high. */
static float draw(uint32_t seed, uint32_t n, float low, float high)
{
    return low + (high - low) * unit(hash(seed ^ hash(n + 1)));
}

static float lattice(uint32_t seed, uint32_t x, uint32_t y)
{
    return unit(hash(seed ^ hash(x ^ hash(y))));
}

/* Value noise, 0 to 1, with octaves of half the size and weight; x and y are at least 0. */
static float noise(uint32_t seed, float x, float y)
{
    float sum = 0, weight = 0.5f;
    for (uint32_t octave = 0; octave < OCTAVES; octave++, x *= 2, y *= 2, weight /= 2) {
        const uint32_t i = (uint32_t)x, j = (uint32_t)y, s = hash(seed + octave);
        float u = x - (float)i, v = y - (float)j;
        u = u * u * (3 - 2 * u);
        v = v * v * (3 - 2 * v);
        const float above = lattice(s, i, j) + u * (lattice(s, i + 1, j) - lattice(s, i, j));
        const float below =
            lattice(s, i, j + 1) + u * (lattice(s, i + 1, j + 1) - lattice(s, i, j + 1));
        sum += weight * (above + v * (below - above));
    }
    return sum;
}

static float clamp01(float value)
{
    return value < 0 ? 0 : value > 1 ? 1 : value;
}

static float mix(float a, float b, float t)
{
    return a + (b - a) * t;
}

void scene_paint(struct canvas *canvas, unsigned number, uint64_t seed64)
{
    const struct scene *scene = &scenes[number];
    const uint32_t seed = hash((uint32_t)seed64 ^ hash((uint32_t)(seed64 >> 32)));
    /* One picture in six has the light of a sunset. */
    const struct scene *light = draw(seed, 0, 0, 1) < 1.0f / 6 ? &scenes[0] : scene;
    const float horizon = draw(seed, 1, 0.35f, 0.65f), ridge = draw(seed, 2, 0.05f, 0.25f);
    const float tint[3] = {draw(seed, 3, -.06f, .06f), draw(seed, 4, -.06f, .06f),
                           draw(seed, 5, -.06f, .06f)};
    const float contrast = draw(seed, 6, 0.25f, 0.5f), grain = draw(seed, 7, 0.01f, 0.03f);
    float *p = canvas->rgb;
    for (unsigned y = 0; y < canvas->height; y++) {
        for (unsigned x = 0; x < canvas->width; x++, p += 3) {
            const float u = (float)x / (float)canvas->height, v = (float)y / (float)canvas->height;
            const float edge = horizon + ridge * (noise(seed, 4 * u, 0) - 0.5f);
            const float texture = noise(hash(seed), 6 * u, 9 * v) - 0.5f;
            const int above = v < edge;
            const struct colour *from = above ? light->sky : scene->ground;
            const float t = clamp01((above ? v / edge : (v - edge) / (1 - edge)) + 0.4f * texture);
            const float shade = contrast * texture * (above ? 0.4f : 2 * scene->rough) +
                                grain * (lattice(seed, x, y) - 0.5f);
            p[0] = clamp01(mix(from[0].r, from[1].r, t) * (1 + tint[0]) + shade);
            p[1] = clamp01(mix(from[0].g, from[1].g, t) * (1 + tint[1]) + shade);
            p[2] = clamp01(mix(from[0].b, from[1].b, t) * (1 + tint[2]) + shade);
        }
    }
}
