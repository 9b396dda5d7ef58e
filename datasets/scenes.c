/* scenes.c: sunset over the sea, forest, city at night, and the table of all scenes. Each is
 * painted back to front, with its composition and its light drawn from the seed: evening light
 * reaches the desert and the mountains too, and grey skies the meadow, so that colour separates
 * most pictures of the classes and not all. Random numbers are drawn in statements of their own,
 * because the order in which a call's arguments are evaluated is the compiler's choice. */
#include "brush.h"
#include "lands.h"
#include <math.h>

/* --- sunset over the sea -----------------------------------------------------------------------
 */

/* A headland or an island, as a dark outline standing on the horizon. */
static void paint_headland(struct canvas *canvas, const struct noise *noise, float horizon,
                           float from, float to, float height, struct colour c, float u)
{
    float rows = (float)canvas->height;
    for (unsigned x = 0; x < canvas->width; x++) {
        float at = ((float)x / rows - from) / (to - from);
        if (at < 0.0f || at > 1.0f)
            continue;
        float hump = at * (1.0f - at) * 4.0f;
        float top = height * hump * (0.35f + 0.9f * noise_at(noise->cloud, u + at * 0.35f, u));
        brush_box(canvas, (float)x / rows, horizon - top, ((float)x + 1) / rows, horizon, c, 1.0f);
    }
}

static void paint_boat(struct canvas *canvas, float x, float base, float size, struct colour c)
{
    brush_stroke(canvas, x - 0.5f * size, base, x + 0.5f * size, base, 0.16f * size, 0.16f * size,
                 c, 1.0f);
    brush_stroke(canvas, x, base, x, base - 1.5f * size, 0.05f * size, 0.03f * size, c, 1.0f);
    for (int i = 0; i < 24; i++) {
        float t = (float)i / 24;
        float y = base - size * (0.18f + 1.2f * t);
        brush_box(canvas, x + 0.04f * size, y, x + (0.05f + 0.55f * (1 - t)) * size,
                  y + size * 0.07f, c, 0.92f);
        brush_box(canvas, x - (0.05f + 0.36f * (1 - t)) * size, y, x - 0.04f * size,
                  y + size * 0.07f, c, 0.92f);
    }
}

static void paint_sunset(struct canvas *canvas, const struct noise *noise, uint64_t seed)
{
    struct random random = {seed};
    float width = canvas_aspect(canvas);
    float horizon = between(&random, 0.52f, 0.66f);
    float sun_x = width * between(&random, 0.22f, 0.78f);
    float sun_r = between(&random, 0.045f, 0.085f);
    float sun_y = horizon - sun_r * between(&random, -0.3f, 1.8f);
    float purple = between(&random, 0, 1); /* how late it is */

    struct colour top = mix(rgb(0.20f, 0.28f, 0.50f), rgb(0.17f, 0.10f, 0.30f), purple);
    struct colour middle = mix(rgb(0.95f, 0.55f, 0.25f), rgb(0.80f, 0.28f, 0.33f), purple);
    struct colour low = mix(rgb(1.0f, 0.80f, 0.42f), rgb(1.0f, 0.52f, 0.22f), purple);
    brush_sky(canvas, horizon, top, middle, low, between(&random, 0.5f, 0.75f));
    brush_glow(canvas, sun_x, sun_y, 0.75f, rgb(0.38f, 0.20f, 0.04f));
    struct cloud_look clouds = {
        .lit = mix(rgb(1.0f, 0.62f, 0.30f), rgb(0.95f, 0.40f, 0.36f), purple),
        .shaded = mix(rgb(0.45f, 0.30f, 0.36f), rgb(0.26f, 0.14f, 0.28f), purple),
    };
    clouds.cover = between(&random, 0.25f, 0.75f);
    clouds.scale = between(&random, 0.5f, 0.9f);
    clouds.stretch = between(&random, 2.0f, 4.0f);
    clouds.u = between(&random, 0, 1);
    clouds.v = between(&random, 0, 1);
    brush_clouds(canvas, noise, horizon, &clouds);
    brush_glow(canvas, sun_x, sun_y, sun_r * 4, rgb(0.55f, 0.38f, 0.12f));
    brush_disc(canvas, sun_x, sun_y, sun_r, sun_r, 0.08f, rgb(1.0f, 0.95f, 0.72f), 1.0f);

    struct colour dark = mix(rgb(0.20f, 0.13f, 0.16f), rgb(0.08f, 0.05f, 0.11f), purple);
    float side = between(&random, 0, 1) < 0.5f ? -0.3f : 0.6f;
    float height = between(&random, 0.03f, 0.16f), outline = between(&random, 0, 1);
    paint_headland(canvas, noise, horizon, width * side, width * (side + 0.7f), height, dark,
                   outline);
    brush_water(canvas, noise, horizon, between(&random, 0.35f, 0.7f),
                mix(rgb(0.16f, 0.17f, 0.28f), rgb(0.10f, 0.06f, 0.17f), purple), 0.36f, &random);

    /* The sun's path on the water: facets that face it, fewer and wider towards the viewer. */
    float rows = (float)canvas->height;
    float u = between(&random, 0, 1);
    for (unsigned y = (unsigned)(horizon * rows) + 1; y < canvas->height; y++) {
        float below = (float)y / rows - horizon;
        float spread = 0.04f + 0.30f * below;
        for (unsigned x = 0; x < canvas->width; x++) {
            float off = ((float)x / rows - sun_x) / spread;
            float facet =
                noise_at(noise->detail, u + (float)x / rows * 0.35f / (below + 0.08f) * 0.3f,
                         0.5f / (below + 0.03f) * 0.4f);
            float need = 0.46f + 0.05f * off * off;
            float a = smooth(need, need + 0.18f, facet) * smooth(3.2f, 0.0f, off < 0 ? -off : off);
            blend(canvas, (int)x, (int)y, mix(low, rgb(1.0f, 0.93f, 0.70f), 0.4f), 0.95f * a);
        }
    }
    if (between(&random, 0, 1) < 0.6f) {
        float at = width * between(&random, 0.12f, 0.88f);
        float size = between(&random, 0.05f, 0.12f);
        paint_boat(canvas, at, horizon + size * 0.35f, size, scaled(dark, 0.7f));
    }
}

/* --- forest ------------------------------------------------------------------------------------
 */

/* One trunk: round by its shading, rough by the noise, with light from the left. */
static void paint_trunk(struct canvas *canvas, const struct noise *noise, float x, float base,
                        float thick, float lean, struct colour dark, struct colour light)
{
    float rows = (float)canvas->height;
    int last = (int)(base * rows);
    for (int y = 0; y < (int)canvas->height && y <= last; y++) {
        float fy = (float)y / rows;
        float middle =
            x + lean * (base - fy) + 0.012f * (noise_at(noise->cloud, x, fy * 0.4f) - 0.5f);
        float flare = smooth(0.09f, 0.0f, base - fy);
        float half = thick / 2 * (0.75f + 0.25f * fy + 0.6f * flare);
        int left = (int)((middle - half) * rows), right = (int)((middle + half) * rows) + 1;
        for (int i = left; i <= right; i++) {
            float side = (((float)i + 0.5f) / rows - middle) / half;
            float bark = noise_at(noise->detail, x * 3 + side * 0.10f, fy * 0.35f + side * 0.02f);
            float lit = clamp01(0.55f - 0.55f * side) * (0.25f + 1.5f * bark * bark);
            float a = clamp01((1.0f - (side < 0 ? -side : side)) * half * rows + 0.5f);
            blend(canvas, i, y, mix(dark, light, clamp01(lit)), a);
        }
    }
}

/* Leaves as a mass: thick at the top, and as undergrowth around `floor`. */
static void paint_leaves(struct canvas *canvas, const struct noise *noise, float size, float crown,
                         float floor, struct colour dark, struct colour light, float alpha,
                         struct random *random)
{
    float rows = (float)canvas->height;
    float u = between(random, 0, 1), v = between(random, 0, 1);
    for (unsigned y = 0; y < canvas->height; y++) {
        float fy = (float)y / rows;
        float want = smooth(crown, 0.0f, fy) * 0.75f;
        if (floor < 1.0f && fy < floor + 0.05f)
            want += smooth(floor - 0.16f, floor, fy) * 0.5f;
        float edge = smooth(0.05f, 0.16f, want);
        if (edge <= 0.0f)
            continue;
        for (unsigned x = 0; x < canvas->width; x++) {
            float fx = (float)x / rows;
            float mass = noise_at(noise->cloud, u + fx * 0.22f / size, v + fy * 0.22f / size);
            float leaf = noise_at(noise->detail, v + fx * 0.5f / size, u + fy * 0.5f / size);
            float n = 0.6f * mass + 0.4f * leaf;
            float a = smooth(0.80f - 0.55f * want, 0.86f - 0.55f * want, n);
            if (a <= 0.0f)
                continue;
            float fine = noise_at(noise->detail, fx * 0.9f / size + v, fy * 0.9f / size + u);
            float lit = clamp01(2.6f * (leaf - 0.36f) + 1.5f * (fine - 0.5f));
            blend(canvas, (int)x, (int)y, mix(dark, light, lit), a * alpha * edge);
        }
    }
}

static void paint_forest_floor(struct canvas *canvas, const struct noise *noise, float line,
                               struct colour dark, struct colour light, struct random *random)
{
    float rows = (float)canvas->height;
    float u = between(random, 0, 1), v = between(random, 0, 1);
    for (unsigned y = (unsigned)(line * rows); y < canvas->height; y++) {
        float below = ((float)y + 0.5f) / rows - line;
        float depth = 1.0f / (below + 0.10f);
        for (unsigned x = 0; x < canvas->width; x++) {
            float across = ((float)x / rows - 0.7f) * depth * 0.12f;
            float broad = noise_at(noise->cloud, u + across, v + depth * 0.12f);
            float fine = noise_at(noise->detail, v + across * 4, u + depth * 0.5f);
            float lit =
                clamp01(2.2f * (broad - 0.38f)) * 0.6f + clamp01(1.6f * (fine - 0.3f)) * 0.4f;
            blend(canvas, (int)x, (int)y, mix(dark, light, lit), smooth(0.0f, 0.05f, below));
        }
    }
}

static void paint_forest(struct canvas *canvas, const struct noise *noise, uint64_t seed)
{
    struct random random = {seed};
    float width = canvas_aspect(canvas);
    float floor = between(&random, 0.70f, 0.82f);
    float autumn = between(&random, -1.6f, 1.0f); /* below zero: summer */
    autumn = clamp01(autumn);
    float gloom = between(&random, 0.55f, 1.0f);
    struct colour mist = mix(rgb(0.80f, 0.90f, 0.58f), rgb(0.98f, 0.86f, 0.55f), autumn);
    struct colour leaf = mix(rgb(0.34f, 0.56f, 0.14f), rgb(0.78f, 0.46f, 0.10f), autumn);
    struct colour deep = mix(rgb(0.05f, 0.13f, 0.05f), rgb(0.20f, 0.09f, 0.03f), autumn);
    mist = scaled(mist, gloom);
    leaf = scaled(leaf, 0.6f + 0.4f * gloom);

    float glow_x = width * between(&random, 0.25f, 0.75f);
    brush_sky(canvas, 1.0f, mix(mist, leaf, 0.35f), mist, mix(mist, leaf, 0.7f), 0.55f);
    brush_glow(canvas, glow_x, 0.35f, 0.7f, scaled(rgb(0.30f, 0.28f, 0.12f), gloom));
    paint_leaves(canvas, noise, 0.35f, 1.0f, floor, mix(deep, mist, 0.55f), mix(leaf, mist, 0.6f),
                 0.8f, &random);
    const int layers = 4;
    for (int layer = 0; layer < layers; layer++) {
        float near = (float)(layer + 1) / (float)layers; /* 1: in front */
        struct colour dark = mix(mist, rgb(0.07f, 0.05f, 0.035f), 0.30f + 0.68f * near);
        struct colour light = mix(mist, rgb(0.40f, 0.31f, 0.20f), 0.35f + 0.60f * near);
        float base = floor + 0.02f + 0.17f * near * near;
        if (layer == 2)
            paint_forest_floor(canvas, noise, floor, mix(deep, leaf, 0.18f), mix(leaf, mist, 0.25f),
                               &random);
        int trunks = (int)(width * (9.0f - 6.6f * near) + between(&random, 0, 2));
        for (int i = 0; i < trunks; i++) {
            float x = width * ((float)i + between(&random, 0.1f, 0.9f)) / (float)trunks;
            float thick = 0.012f + 0.085f * near * near * between(&random, 0.6f, 1.2f);
            float foot = base + between(&random, -0.02f, 0.02f);
            float lean = between(&random, -0.05f, 0.05f);
            paint_trunk(canvas, noise, x, foot, thick, lean, dark, light);
        }
        paint_leaves(canvas, noise, 0.4f + 0.5f * near, 0.32f + 0.30f * (1 - near),
                     layer < 2 ? floor : 1.0f, mix(mist, deep, 0.45f + 0.55f * near),
                     mix(mist, leaf, 0.5f + 0.5f * near), 0.95f, &random);
    }
    /* Shafts of light fall from the bright place between the crowns. */
    float rows = (float)canvas->height;
    float slant = between(&random, -0.5f, 0.5f), u = between(&random, 0, 1);
    for (unsigned y = 0; y < canvas->height; y++) {
        for (unsigned x = 0; x < canvas->width; x++) {
            float fy = (float)y / rows, along = (float)x / rows - slant * fy;
            float shaft = smooth(0.52f, 0.75f, noise_at(noise->cloud, u + along * 0.35f, u));
            float off = (along - glow_x) * 1.4f;
            float a = 0.24f * shaft * smooth(1.0f, 0.0f, fy) / (1.0f + off * off);
            blend(canvas, (int)x, (int)y, rgb(1.0f, 0.96f, 0.74f), a * gloom);
        }
    }
}

/* --- city at night -----------------------------------------------------------------------------
 */

static void paint_tower(struct canvas *canvas, float x, float base, float across, float height,
                        struct colour wall, float window, float share, struct random *random)
{
    uint32_t seed = (uint32_t)(between(random, 0, 1) * 16777216.0f);
    float top = base - height;
    brush_box(canvas, x, top, x + across, base, wall, 1.0f);
    brush_box(canvas, x, top, x + across * 0.12f, base, scaled(wall, 1.5f), 0.6f);
    if (between(random, 0, 1) < 0.35f) {
        brush_box(canvas, x + across * 0.3f, top - 0.025f, x + across * 0.7f, top, wall, 1.0f);
        brush_stroke(canvas, x + across / 2, top - 0.02f, x + across / 2, top - 0.10f, 0.004f,
                     0.002f, wall, 1.0f);
        brush_disc(canvas, x + across / 2, top - 0.10f, 0.004f, 0.004f, 0.5f,
                   rgb(1.0f, 0.15f, 0.10f), 0.9f);
    }
    float pitch_x = window * 1.55f, pitch_y = window * 1.9f;
    int columns = (int)((across - window) / pitch_x), floors = (int)((height - window) / pitch_y);
    if (columns < 1)
        return;
    float margin = (across - (float)columns * pitch_x + pitch_x - window) / 2;
    for (int j = 0; j < floors; j++) {
        /* Some floors are all lit, as offices are. */
        float on = hash_unit(j, -1, seed) < 0.12f ? 0.95f : share;
        for (int i = 0; i < columns; i++) {
            if (hash_unit(i, j, seed) > on)
                continue;
            float warm = hash_unit(i + 999, j, seed);
            struct colour lamp = warm < 0.65f   ? rgb(1.0f, 0.80f, 0.42f)
                                 : warm < 0.88f ? rgb(1.0f, 0.94f, 0.78f)
                                                : rgb(0.68f, 0.85f, 1.0f);
            float wx = x + margin + (float)i * pitch_x, wy = top + window + (float)j * pitch_y;
            brush_box(canvas, wx, wy, wx + window, wy + window * 1.15f, lamp,
                      0.55f + 0.45f * hash_unit(i, j + 500, seed));
        }
    }
}

static void paint_night(struct canvas *canvas, const struct noise *noise, uint64_t seed)
{
    struct random random = {seed};
    float width = canvas_aspect(canvas);
    float shore = between(&random, 0.66f, 0.80f);
    float warm = between(&random, 0, 1);
    struct colour glow = mix(rgb(0.16f, 0.17f, 0.36f), rgb(0.42f, 0.22f, 0.16f), warm);
    struct colour sky = rgb(0.015f, 0.02f, 0.07f);
    brush_sky(canvas, shore, sky, mix(sky, glow, 0.35f), glow, 0.55f);
    int stars = (int)(130 * width);
    for (int i = 0; i < stars; i++) {
        float x = between(&random, 0, width), y = between(&random, 0, shore * 0.75f);
        float r = between(&random, 0.0006f, 0.0016f);
        brush_disc(canvas, x, y, r, r, 0.8f, rgb(0.9f, 0.93f, 1.0f), between(&random, 0.1f, 0.6f));
    }
    if (between(&random, 0, 1) < 0.5f) {
        float x = width * between(&random, 0.1f, 0.9f), y = between(&random, 0.10f, 0.22f);
        float r = between(&random, 0.03f, 0.05f);
        brush_glow(canvas, x, y, r * 6, rgb(0.20f, 0.21f, 0.24f));
        brush_disc(canvas, x, y, r, r, 0.06f, rgb(0.96f, 0.94f, 0.85f), 1.0f);
        brush_disc(canvas, x - r * 0.3f, y - r * 0.2f, r * 0.25f, r * 0.2f, 0.9f,
                   rgb(0.78f, 0.77f, 0.72f), 0.6f);
        brush_disc(canvas, x + r * 0.25f, y + r * 0.3f, r * 0.3f, r * 0.22f, 0.9f,
                   rgb(0.80f, 0.79f, 0.74f), 0.6f);
    }
    for (int layer = 0; layer < 3; layer++) {
        float near = (float)layer / 2;
        struct colour wall =
            mix(mix(glow, sky, 0.35f), rgb(0.035f, 0.037f, 0.055f), 0.25f + 0.7f * near);
        float x = -between(&random, 0, 0.05f);
        while (x < width) {
            float across = between(&random, 0.05f, 0.10f) * (1.0f + 0.7f * near);
            float tall = between(&random, 0, 1);
            float height = (0.10f + 0.50f * tall * tall) * (1.0f - 0.30f * near) + 0.05f;
            paint_tower(canvas, x, shore, across, height, wall, 0.007f + 0.005f * near,
                        between(&random, 0.15f, 0.55f), &random);
            x += across + (between(&random, 0, 1) < 0.3f ? between(&random, 0.0f, 0.08f) : 0.0f);
        }
    }
    /* Street lamps along the quay. */
    for (float x = between(&random, 0, 0.1f); x < width; x += between(&random, 0.08f, 0.12f)) {
        brush_glow(canvas, x, shore - 0.012f, 0.06f, rgb(0.60f, 0.38f, 0.12f));
        brush_disc(canvas, x, shore - 0.012f, 0.005f, 0.005f, 0.4f, rgb(1.0f, 0.92f, 0.70f), 1.0f);
    }
    brush_water(canvas, noise, shore, between(&random, 0.35f, 0.8f), rgb(0.01f, 0.015f, 0.045f),
                0.30f, &random);
}

const struct scene scenes[SCENE_COUNT] = {
    {"sunset", paint_sunset}, {"forest", paint_forest}, {"night", paint_night},
    {"desert", paint_desert}, {"meadow", paint_meadow}, {"mountains", paint_mountains},
};
