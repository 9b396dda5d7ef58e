/* lands.c: desert, flower meadow and snow mountains, which stand on rendered terrain. */
#include "lands.h"
#include "brush.h"
#include <math.h>

struct land {
    struct colour ground, second, shadow;
    float line; /* mountains: height of the snow line; meadow: share of dry grass */
};

/* Dunes: folded noise gives long crests, bent by a second, broader noise. */
static float dune_height(const struct terrain *t, float x, float z)
{
    float bend = noise_at(t->noise->swell, t->u + x * 0.03f, t->v + z * 0.03f);
    float n = noise_at(t->noise->swell, t->u + x * 0.045f + bend * 0.10f, t->v + z * 0.11f);
    float fold = 1.0f - fabsf(2.0f * n - 1.0f) * 1.6f;
    return (0.40f * (fold > 0.0f ? fold : 0.0f) + 0.75f * bend) * smooth(0.2f, 3.0f, z);
}

static struct colour dune_colour(const struct terrain *t, float x, float z, float height,
                                 float light, float slope)
{
    const struct land *land = t->look;
    float ripple = noise_at(t->noise->detail, t->u + x * 0.35f + z * 0.1f, t->v + z * 1.9f) - 0.5f;
    float near = smooth(2.5f, 0.4f, z);
    float lit = smooth(0.28f, 0.86f, light + ripple * 0.22f * near);
    struct colour sand = mix(land->ground, land->second, clamp01(height * 0.9f + slope));
    return mix(land->shadow, sand, lit);
}

static void paint_cactus(struct canvas *canvas, float x, float base, float size, struct colour c)
{
    struct colour lit = mix(c, rgb(0.65f, 0.68f, 0.38f), 0.4f);
    for (int pass = 0; pass < 2; pass++) {
        struct colour paint = pass ? lit : c;
        float shrink = pass ? 0.35f : 1.0f, off = pass ? -0.025f * size : 0.0f;
        float trunk = 0.16f * size * shrink, arm = 0.11f * size * shrink;
        brush_stroke(canvas, x + off, base, x + off, base - size, trunk, trunk, paint, 1.0f);
        brush_stroke(canvas, x + off, base - 0.42f * size, x - 0.24f * size + off,
                     base - 0.46f * size, arm, arm, paint, 1.0f);
        brush_stroke(canvas, x - 0.24f * size + off, base - 0.46f * size, x - 0.25f * size + off,
                     base - 0.78f * size, arm, arm, paint, 1.0f);
        brush_stroke(canvas, x + off, base - 0.30f * size, x + 0.26f * size + off,
                     base - 0.34f * size, arm, arm, paint, 1.0f);
        brush_stroke(canvas, x + 0.26f * size + off, base - 0.34f * size, x + 0.27f * size + off,
                     base - 0.62f * size, arm, arm, paint, 1.0f);
    }
}

void paint_desert(struct canvas *canvas, const struct noise *noise, uint64_t seed)
{
    struct random random = {seed};
    float width = canvas_aspect(canvas);
    float horizon = between(&random, 0.36f, 0.50f);
    float evening = between(&random, -1.4f, 1.0f);
    evening = clamp01(evening);
    struct colour haze = mix(rgb(0.86f, 0.86f, 0.80f), rgb(0.98f, 0.68f, 0.42f), evening);
    brush_sky(canvas, horizon, mix(rgb(0.20f, 0.46f, 0.80f), rgb(0.33f, 0.33f, 0.55f), evening),
              mix(rgb(0.50f, 0.70f, 0.90f), rgb(0.80f, 0.58f, 0.50f), evening), haze, 0.6f);
    if (between(&random, 0, 1) < 0.5f) {
        struct cloud_look clouds = {.scale = 0.6f,
                                    .stretch = 3.0f,
                                    .lit = mix(rgb(1, 1, 1), haze, 0.3f),
                                    .shaded = mix(rgb(0.8f, 0.82f, 0.86f), haze, 0.3f)};
        clouds.cover = between(&random, 0.05f, 0.25f);
        clouds.u = between(&random, 0, 1);
        clouds.v = between(&random, 0, 1);
        brush_clouds(canvas, noise, horizon, &clouds);
    }
    float red = between(&random, 0, 1);
    struct land land = {
        .ground = mix(rgb(0.86f, 0.66f, 0.38f), rgb(0.84f, 0.48f, 0.24f), red),
        .second = mix(rgb(0.97f, 0.84f, 0.58f), rgb(0.96f, 0.64f, 0.34f), red),
        .shadow = mix(rgb(0.46f, 0.30f, 0.17f), rgb(0.36f, 0.16f, 0.11f), red),
    };
    struct terrain dunes = {
        .noise = noise,
        .near = 0.35f,
        .far = 40.0f,
        .view = 0.62f,
        .horizon = horizon,
        .light_z = 0.5f,
        .haze = haze,
        .haze_from = 4.0f,
        .haze_to = 34.0f,
        .look = &land,
        .height = dune_height,
        .colour = dune_colour,
    };

    dunes.u = between(&random, 0, 1);
    dunes.v = between(&random, 0, 1);
    dunes.eye = between(&random, 0.75f, 1.0f);
    dunes.relief = between(&random, 0.9f, 1.3f);
    dunes.light_x = between(&random, 0, 1) < 0.5f ? -1.1f : 1.1f;
    brush_terrain(canvas, &dunes);
    if (between(&random, 0, 1) < 0.45f) {
        float size = between(&random, 0.12f, 0.30f);
        float x = width * between(&random, 0.1f, 0.9f);
        float base = between(&random, horizon + 0.25f, 0.92f);
        paint_cactus(canvas, x, base, size, rgb(0.16f, 0.25f, 0.12f));
    }
}

static float hill_height(const struct terrain *t, float x, float z)
{
    return noise_at(t->noise->swell, t->u + x * 0.045f, t->v + z * 0.045f) * smooth(0.3f, 5.0f, z);
}

static struct colour hill_colour(const struct terrain *t, float x, float z, float height,
                                 float light, float slope)
{
    const struct land *land = t->look;
    float patch = noise_at(t->noise->cloud, t->v + x * 0.21f, t->u + z * 0.21f);
    float blade = noise_at(t->noise->detail, t->u + x * 1.3f, t->v + z * 0.9f);
    float wood =
        smooth(0.60f, 0.64f, noise_at(t->noise->cloud, t->u + x * 0.11f, t->v + z * 0.09f)) *
        smooth(3.0f, 6.0f, z);
    float lit = clamp01(0.35f + 0.65f * light + 0.7f * (blade - 0.5f) - 0.2f * slope);
    struct colour grass =
        mix(land->ground, land->second, clamp01(2.5f * (patch - 0.35f) + height * 0.1f));
    grass = mix(grass, rgb(0.10f, 0.22f, 0.09f), wood * 0.85f);
    return mix(land->shadow, grass, lit);
}

static void paint_flower(struct canvas *canvas, float x, float y, float size, int kind,
                         struct random *random)
{
    static const struct colour petals[5] = {{0.88f, 0.10f, 0.08f},
                                            {0.98f, 0.82f, 0.10f},
                                            {0.97f, 0.96f, 0.94f},
                                            {0.55f, 0.28f, 0.75f},
                                            {0.95f, 0.45f, 0.65f}};
    static const float around[6][2] = {{1, 0},  {0.5f, 0.87f},   {-0.5f, 0.87f},
                                       {-1, 0}, {-0.5f, -0.87f}, {0.5f, -0.87f}};
    struct colour petal = scaled(petals[kind], between(random, 0.8f, 1.05f));
    float squash = between(random, 0.55f, 0.9f);
    brush_stroke(canvas, x, y, x + between(random, -0.4f, 0.4f) * size, y + 3.2f * size,
                 size * 0.18f, size * 0.14f, rgb(0.20f, 0.38f, 0.10f), 0.9f);
    for (int i = 0; i < 6; i++) {
        struct colour c = scaled(petal, 0.86f + 0.06f * around[i][0] - 0.10f * around[i][1]);
        brush_disc(canvas, x + around[i][0] * size * 0.55f,
                   y + around[i][1] * size * 0.55f * squash, size * 0.5f, size * 0.5f * squash,
                   0.25f, c, 0.95f);
    }
    struct colour heart = kind == 1   ? rgb(0.70f, 0.42f, 0.06f)
                          : kind == 0 ? rgb(0.12f, 0.05f, 0.06f)
                                      : rgb(0.96f, 0.78f, 0.16f);
    brush_disc(canvas, x, y, size * 0.33f, size * 0.33f * squash, 0.3f, heart, 1.0f);
}

void paint_meadow(struct canvas *canvas, const struct noise *noise, uint64_t seed)
{
    struct random random = {seed};
    float width = canvas_aspect(canvas);
    float horizon = between(&random, 0.34f, 0.46f);
    float grey = between(&random, -1.2f, 1.0f); /* above zero: an overcast day */
    grey = clamp01(grey);
    struct colour haze = mix(rgb(0.80f, 0.89f, 0.95f), rgb(0.80f, 0.82f, 0.82f), grey);
    brush_sky(canvas, horizon, mix(rgb(0.22f, 0.48f, 0.86f), rgb(0.55f, 0.60f, 0.66f), grey),
              mix(rgb(0.47f, 0.71f, 0.94f), rgb(0.70f, 0.74f, 0.78f), grey), haze, 0.6f);
    struct cloud_look clouds = {
        .stretch = 1.3f, .lit = rgb(1.0f, 1.0f, 0.99f), .shaded = rgb(0.70f, 0.75f, 0.82f)};
    clouds.cover = between(&random, 0.3f, 0.6f) + 0.4f * grey;
    clouds.scale = between(&random, 0.9f, 1.4f);
    clouds.u = between(&random, 0, 1);
    clouds.v = between(&random, 0, 1);
    brush_clouds(canvas, noise, horizon, &clouds);
    float dry = between(&random, 0, 1);
    struct land land = {
        .ground = mix(rgb(0.26f, 0.50f, 0.13f), rgb(0.45f, 0.50f, 0.16f), dry),
        .second = mix(rgb(0.47f, 0.68f, 0.20f), rgb(0.70f, 0.68f, 0.28f), dry),
        .shadow = rgb(0.07f, 0.17f, 0.04f),
    };
    struct terrain hills = {
        .noise = noise,
        .eye = 0.62f,
        .near = 0.3f,
        .far = 30.0f,
        .view = 0.6f,
        .horizon = horizon + 0.02f,
        .light_x = 0.6f,
        .light_z = 0.3f,
        .haze = mix(haze, rgb(0.45f, 0.58f, 0.55f), 0.4f),
        .haze_from = 6.0f,
        .haze_to = 40.0f,
        .look = &land,
        .height = hill_height,
        .colour = hill_colour,
    };
    hills.u = between(&random, 0, 1);
    hills.v = between(&random, 0, 1);
    hills.relief = between(&random, 1.3f, 2.2f);
    brush_terrain(canvas, &hills);

    /* Grass and flowers stand in rows that come nearer: small and dense first, large last. */
    int first = (int)between(&random, 0, 5), second = (int)between(&random, 0, 5);
    float flowers = between(&random, 0.35f, 1.0f);
    uint32_t patch_seed = (uint32_t)(between(&random, 0, 1) * 16777216.0f);
    for (float near = 0.10f; near < 1.15f; near *= 1.085f) {
        float y = horizon + 0.05f + (0.98f - horizon) * near;
        float blade = 0.095f * near;
        int blades = (int)(width * 7.0f / (near + 0.05f));
        for (int i = 0; i < blades; i++) {
            float x = between(&random, -0.05f, width + 0.05f);
            float base = y + between(&random, 0.0f, 0.05f) * near;
            struct colour c = mix(land.ground, land.second, between(&random, 0, 1));
            c = mix(land.shadow, c, between(&random, 0.35f, 1.0f));
            float lean = between(&random, -0.35f, 0.35f), length = between(&random, 0.4f, 1.0f);
            brush_stroke(canvas, x, base, x + lean * blade, base - blade * length, 0.009f * near,
                         0.003f * near, c, 0.85f);
        }
        int count = (int)(width * flowers * 5.0f / (near + 0.08f));
        for (int i = 0; i < count; i++) {
            float x = between(&random, 0, width), at = y + between(&random, -0.05f, 0.02f) * near;
            float where = noise_at(noise->cloud, x * 0.3f / near + 0.01f * (float)(patch_seed % 97),
                                   near * 0.4f);
            int kind = where < 0.46f ? first : where < 0.56f ? second : 2;
            float size = 0.030f * near * between(&random, 0.6f, 1.15f);
            paint_flower(canvas, x, at - blade * 0.6f, size, kind, &random);
        }
    }
}

static float peak_height(const struct terrain *t, float x, float z)
{
    float n = noise_at(t->noise->ridge, t->u + x * 0.036f, t->v + z * 0.036f);
    return n * n * smooth(1.8f, 5.5f, z) - 0.05f;
}

static struct colour peak_colour(const struct terrain *t, float x, float z, float height,
                                 float light, float slope)
{
    const struct land *land = t->look;
    float rough = noise_at(t->noise->detail, t->u + x * 0.4f, t->v + z * 0.4f) - 0.5f;
    float fine = noise_at(t->noise->detail, t->v + x * 1.7f, t->u + z * 1.7f) - 0.5f;
    float lit = smooth(0.15f, 0.85f, light + 0.10f * fine);
    float snow = smooth(land->line - 0.07f, land->line + 0.07f, height + 0.16f * rough) *
                 smooth(0.66f, 0.50f, slope + 0.25f * rough + 0.15f * fine);
    struct colour stone = mix(scaled(land->ground, 0.35f), land->ground, lit + 0.3f * fine);
    float wooded = smooth(land->line * 0.75f, land->line * 0.45f, height + 0.15f * rough);
    stone = mix(stone, mix(rgb(0.05f, 0.11f, 0.08f), rgb(0.19f, 0.27f, 0.15f), lit), wooded);
    return mix(stone, mix(land->shadow, land->second, lit), snow);
}

void paint_mountains(struct canvas *canvas, const struct noise *noise, uint64_t seed)
{
    struct random random = {seed};
    float width = canvas_aspect(canvas);
    float dawn = between(&random, -1.6f, 1.0f); /* above zero: the snow glows */
    dawn = clamp01(dawn);
    float horizon = between(&random, 0.62f, 0.76f);
    struct colour haze = mix(rgb(0.72f, 0.82f, 0.92f), rgb(0.88f, 0.72f, 0.74f), dawn);
    brush_sky(canvas, horizon, mix(rgb(0.13f, 0.32f, 0.68f), rgb(0.26f, 0.28f, 0.52f), dawn),
              mix(rgb(0.40f, 0.62f, 0.88f), rgb(0.68f, 0.54f, 0.66f), dawn), haze, 0.55f);
    struct cloud_look clouds = {.stretch = 1.8f,
                                .lit = mix(rgb(1, 1, 1), rgb(1.0f, 0.80f, 0.74f), dawn),
                                .shaded =
                                    mix(rgb(0.76f, 0.80f, 0.87f), rgb(0.62f, 0.54f, 0.66f), dawn)};
    clouds.cover = between(&random, 0.0f, 0.55f);
    clouds.scale = between(&random, 0.7f, 1.1f);
    clouds.u = between(&random, 0, 1);
    clouds.v = between(&random, 0, 1);
    brush_clouds(canvas, noise, horizon, &clouds);
    struct land land = {
        .ground = mix(rgb(0.42f, 0.39f, 0.37f), rgb(0.48f, 0.36f, 0.34f), dawn),
        .second = mix(rgb(0.98f, 0.98f, 1.0f), rgb(1.0f, 0.80f, 0.70f), dawn),
        .shadow = mix(rgb(0.50f, 0.61f, 0.80f), rgb(0.42f, 0.40f, 0.62f), dawn),
        .line = between(&random, 0.06f, 0.28f),
    };
    struct terrain peaks = {
        .noise = noise,
        .eye = 0.30f,
        .near = 1.0f,
        .far = 14.0f,
        .view = 0.55f,
        .horizon = horizon,
        .light_z = 0.35f,
        .haze = haze,
        .haze_from = 4.0f,
        .haze_to = 26.0f,
        .look = &land,
        .height = peak_height,
        .colour = peak_colour,
    };
    peaks.u = between(&random, 0, 1);
    peaks.v = between(&random, 0, 1);
    peaks.relief = between(&random, 3.6f, 4.8f);
    peaks.light_x = between(&random, 0, 1) < 0.5f ? -0.9f : 0.9f;
    brush_terrain(canvas, &peaks);
    float shore = horizon + between(&random, 0.06f, 0.14f);
    if (between(&random, 0, 1) < 0.6f)
        brush_water(canvas, noise, shore, between(&random, 0.06f, 0.3f),
                    mix(rgb(0.08f, 0.24f, 0.34f), rgb(0.16f, 0.16f, 0.30f), dawn), 0.25f, &random);
    else
        shore = 1.02f;
    int trees = (int)(width * between(&random, 3.0f, 16.0f));
    for (int i = 0; i < trees; i++) {
        float x = between(&random, -0.05f, width + 0.05f);
        float near = (float)(i + 1) / (float)trees;
        float height = (0.06f + 0.20f * near * near) * between(&random, 0.7f, 1.2f);
        float base = shore > 1.0f ? 0.90f + 0.14f * near : 1.0f + 0.06f * near;
        if (shore < 1.0f && x > width * 0.30f && x < width * 0.72f)
            continue; /* the view of the lake stays open */
        brush_conifer(canvas, x, base, height, rgb(0.03f, 0.07f, 0.06f), rgb(0.16f, 0.26f, 0.17f),
                      &random);
    }
}
