/* brush.c: noise tables, soft shapes, clouds, water and the terrain renderer. */
#include "brush.h"
#include <math.h>
#include <stddef.h>

/* Gradient noise with period `period` lattice cells over the whole map, about -1 to 1. */
static float gradient_noise(float x, float y, int period, uint32_t seed)
{
    static const float directions[8][2] = {{1, 0},
                                           {-1, 0},
                                           {0, 1},
                                           {0, -1},
                                           {0.7071f, 0.7071f},
                                           {-0.7071f, 0.7071f},
                                           {0.7071f, -0.7071f},
                                           {-0.7071f, -0.7071f}};
    int ix = (int)x, iy = (int)y;
    float fx = x - (float)ix, fy = y - (float)iy;
    float corner[2][2];
    for (int j = 0; j < 2; j++) {
        for (int i = 0; i < 2; i++) {
            uint32_t h = hash32((uint32_t)((ix + i) % period) * 0x9e3779b1U ^
                                hash32((uint32_t)((iy + j) % period) + seed));
            const float *d = directions[h >> 29];
            corner[j][i] = d[0] * (fx - (float)i) + d[1] * (fy - (float)j);
        }
    }
    float sx = fx * fx * fx * (fx * (fx * 6.0f - 15.0f) + 10.0f);
    float sy = fy * fy * fy * (fy * (fy * 6.0f - 15.0f) + 10.0f);
    float top = corner[0][0] + (corner[0][1] - corner[0][0]) * sx;
    float bottom = corner[1][0] + (corner[1][1] - corner[1][0]) * sx;
    return 1.5f * (top + (bottom - top) * sy);
}

/* Octaves of gradient noise summed, each `gain` times the one before, stretched to 0 to 1. With
 * `ridged` each octave is folded at zero, and weighed by the octave before: crests stay rough and
 * valleys smooth, as in eroded mountains. */
static void fill_map(float *map, int first_period, int octaves, float gain, int ridged,
                     uint32_t seed)
{
    float low = 1e9f, high = -1e9f;
    for (int y = 0; y < NOISE_SIDE; y++) {
        for (int x = 0; x < NOISE_SIDE; x++) {
            float sum = 0.0f, amplitude = 1.0f, weight = 1.0f;
            int period = first_period;
            for (int o = 0; o < octaves; o++) {
                float step = (float)period / NOISE_SIDE;
                float n = gradient_noise((float)x * step, (float)y * step, period,
                                         seed + (uint32_t)o * 77U);
                if (ridged) {
                    n = 1.0f - fabsf(n);
                    n = n * n * weight;
                    weight = clamp01(n * 1.6f);
                }
                sum += n * amplitude;
                amplitude *= gain;
                period *= 2;
            }
            map[y * NOISE_SIDE + x] = sum;
            low = sum < low ? sum : low;
            high = sum > high ? sum : high;
        }
    }
    for (int i = 0; i < NOISE_SIDE * NOISE_SIDE; i++)
        map[i] = (map[i] - low) / (high - low);
}

void noise_fill(struct noise *noise)
{
    fill_map(noise->cloud, 4, 6, 0.5f, 0, 11U);
    fill_map(noise->detail, 8, 5, 0.7f, 0, 23U);
    fill_map(noise->ridge, 4, 6, 0.42f, 1, 37U);
    fill_map(noise->swell, 4, 2, 0.35f, 0, 53U);
}

void canvas_develop(struct canvas *canvas, float grain, uint64_t seed)
{
    float half_w = (float)canvas->width / 2, half_h = (float)canvas->height / 2;
    float *p = canvas->rgb;
    for (unsigned y = 0; y < canvas->height; y++) {
        for (unsigned x = 0; x < canvas->width; x++, p += 3) {
            float dx = ((float)x - half_w) / half_w, dy = ((float)y - half_h) / half_h;
            float vignette = 1.0f - 0.11f * (dx * dx + dy * dy);
            /* Two uniform values make a triangular distribution, near enough to sensor noise. */
            uint32_t h = hash32((uint32_t)seed ^ (y * 0x9e3779b1U + x));
            float n = (float)(h & 0xffff) / 65536.0f + (float)(h >> 16) / 65536.0f - 1.0f;
            for (int c = 0; c < 3; c++)
                p[c] = clamp01(p[c] * vignette + n * grain);
        }
    }
}

/* Pixels that a span of coordinates may touch. */
static int first_pixel(float low, unsigned limit)
{
    return low <= 0.0f ? 0 : low >= (float)limit ? (int)limit : (int)low;
}

static int last_pixel(float high, unsigned limit)
{
    return high < 0.0f ? -1 : high >= (float)limit ? (int)limit - 1 : (int)high;
}

void brush_sky(struct canvas *canvas, float bottom, struct colour top, struct colour middle,
               struct colour low, float at)
{
    for (unsigned y = 0; y < canvas->height; y++) {
        float t = clamp01(((float)y + 0.5f) / (float)canvas->height / bottom);
        struct colour c = t < at ? mix(top, middle, t / at) : mix(middle, low, (t - at) / (1 - at));
        for (unsigned x = 0; x < canvas->width; x++)
            put(canvas, x, y, c);
    }
}

void brush_disc(struct canvas *canvas, float cx, float cy, float rx, float ry, float soft,
                struct colour c, float alpha)
{
    float scale = (float)canvas->height;
    float x0 = cx * scale, y0 = cy * scale, px = rx * scale, py = ry * scale;
    px = px < 0.4f ? 0.4f : px;
    py = py < 0.4f ? 0.4f : py;
    float edge = 1.0f / (px < py ? px : py);
    edge = soft > edge ? soft : edge;
    int top = first_pixel(y0 - py - 1, canvas->height);
    int bottom = last_pixel(y0 + py + 1, canvas->height);
    int left = first_pixel(x0 - px - 1, canvas->width);
    int right = last_pixel(x0 + px + 1, canvas->width);
    for (int y = top; y <= bottom; y++) {
        for (int x = left; x <= right; x++) {
            float dx = ((float)x + 0.5f - x0) / px, dy = ((float)y + 0.5f - y0) / py;
            float r = sqrtf(dx * dx + dy * dy);
            float a = smooth(1.0f + edge / 2, 1.0f - edge, r);
            if (a > 0.0f)
                blend(canvas, x, y, c, a * alpha);
        }
    }
}

void brush_glow(struct canvas *canvas, float cx, float cy, float radius, struct colour c)
{
    float scale = (float)canvas->height;
    float x0 = cx * scale, y0 = cy * scale, r = radius * scale;
    int top = first_pixel(y0 - r, canvas->height), bottom = last_pixel(y0 + r, canvas->height);
    int left = first_pixel(x0 - r, canvas->width), right = last_pixel(x0 + r, canvas->width);
    for (int y = top; y <= bottom; y++) {
        for (int x = left; x <= right; x++) {
            float dx = ((float)x + 0.5f - x0) / r, dy = ((float)y + 0.5f - y0) / r;
            float a = 1.0f - sqrtf(dx * dx + dy * dy);
            if (a <= 0.0f)
                continue;
            a *= a;
            float *p = canvas->rgb + 3 * ((size_t)y * canvas->width + (size_t)x);
            p[0] += c.r * a;
            p[1] += c.g * a;
            p[2] += c.b * a;
        }
    }
}

void brush_stroke(struct canvas *canvas, float x0, float y0, float x1, float y1, float from,
                  float to, struct colour c, float alpha)
{
    float scale = (float)canvas->height;
    float dx = x1 - x0, dy = y1 - y0, length2 = dx * dx + dy * dy;
    float margin = (from > to ? from : to) + 1.0f / scale;
    int top = first_pixel(((y0 < y1 ? y0 : y1) - margin) * scale, canvas->height);
    int bottom = last_pixel(((y0 > y1 ? y0 : y1) + margin) * scale, canvas->height);
    int left = first_pixel(((x0 < x1 ? x0 : x1) - margin) * scale, canvas->width);
    int right = last_pixel(((x0 > x1 ? x0 : x1) + margin) * scale, canvas->width);
    for (int y = top; y <= bottom; y++) {
        for (int x = left; x <= right; x++) {
            float px = ((float)x + 0.5f) / scale - x0, py = ((float)y + 0.5f) / scale - y0;
            float t = length2 > 0.0f ? clamp01((px * dx + py * dy) / length2) : 0.0f;
            float ex = px - dx * t, ey = py - dy * t;
            float thickness = from + (to - from) * t;
            /* Distance beyond the edge, in pixels; lines thinner than a pixel get fainter. */
            float outside = (sqrtf(ex * ex + ey * ey) - thickness / 2) * scale;
            float a = clamp01(0.5f - outside);
            float thin = thickness * scale;
            blend(canvas, x, y, c, alpha * (thin < 1.0f ? a * thin : a));
        }
    }
}

void brush_box(struct canvas *canvas, float x0, float y0, float x1, float y1, struct colour c,
               float alpha)
{
    float scale = (float)canvas->height;
    x0 *= scale, x1 *= scale, y0 *= scale, y1 *= scale;
    int top = first_pixel(y0, canvas->height), bottom = last_pixel(y1, canvas->height);
    int left = first_pixel(x0, canvas->width), right = last_pixel(x1, canvas->width);
    for (int y = top; y <= bottom; y++) {
        float cover_y = clamp01((float)y + 1 - y0) - clamp01((float)y + 1 - y1);
        for (int x = left; x <= right; x++) {
            float cover_x = clamp01((float)x + 1 - x0) - clamp01((float)x + 1 - x1);
            blend(canvas, x, y, c, cover_x * cover_y * alpha);
        }
    }
}

void brush_conifer(struct canvas *canvas, float x, float base, float height, struct colour dark,
                   struct colour light, struct random *random)
{
    float scale = (float)canvas->height;
    uint32_t seed = (uint32_t)(between(random, 0, 1) * 16777216.0f);
    int top = first_pixel((base - height) * scale, canvas->height);
    int bottom = last_pixel(base * scale, canvas->height);
    for (int y = top; y <= bottom; y++) {
        float t = ((float)y + 0.5f) / scale - (base - height);
        t /= height; /* 0 at the tip, 1 at the ground */
        if (t < 0.0f || t > 1.0f)
            continue;
        /* Branches: the outline widens within each tier and steps back at the next. */
        float tier = t * (7.0f + 3.0f * hash_unit(0, 0, seed));
        float within = tier - (float)(int)tier;
        float ragged = hash_unit(y, 1, seed) * 0.25f;
        float half = height * (0.02f + 0.19f * t) * (0.55f + 0.45f * within + ragged);
        if (t > 0.93f)
            half = height * 0.018f;
        int left = first_pixel((x - half) * scale, canvas->width);
        int right = last_pixel((x + half) * scale, canvas->width);
        for (int i = left; i <= right; i++) {
            float side = (((float)i + 0.5f) / scale - x) / half; /* -1 to 1 */
            float a = smooth(1.15f, 0.7f, side < 0 ? -side : side);
            float lit = clamp01(0.45f - 0.5f * side) * (0.4f + 0.6f * hash_unit(i, y, seed));
            blend(canvas, i, y, mix(dark, light, lit), a);
        }
    }
}

void brush_clouds(struct canvas *canvas, const struct noise *noise, float horizon,
                  const struct cloud_look *look)
{
    float scale = 1.0f / (float)canvas->height;
    float middle = (float)canvas->width * scale / 2;
    int bottom = last_pixel(horizon * (float)canvas->height, canvas->height);
    float threshold = 0.72f - 0.42f * look->cover;
    for (int y = 0; y <= bottom; y++) {
        float depth = 1.0f / (horizon - ((float)y + 0.5f) * scale + 0.14f);
        float fade = smooth(0.0f, 0.10f, horizon - (float)y * scale);
        for (int x = 0; x < (int)canvas->width; x++) {
            float across = ((float)x * scale - middle) * depth;
            float u = look->u + across * 0.16f * look->scale / look->stretch;
            float v = look->v + depth * 0.16f * look->scale;
            float n = 0.72f * noise_at(noise->cloud, u, v) +
                      0.28f * noise_at(noise->detail, u * 2.0f + 0.3f, v * 2.0f);
            float density = smooth(threshold, threshold + 0.16f, n);
            if (density <= 0.0f)
                continue;
            /* Thicker towards the light means that this side is in its own shadow. */
            float beyond = noise_at(noise->cloud, u + 0.012f, v - 0.02f);
            float shade = clamp01(0.35f + 2.2f * (n - threshold) + 3.0f * (beyond - n));
            blend(canvas, x, y, mix(look->lit, look->shaded, shade), density * fade);
        }
    }
}

void brush_water(struct canvas *canvas, const struct noise *noise, float line, float roughness,
                 struct colour tint, float opacity, struct random *random)
{
    float rows = (float)canvas->height;
    float u = between(random, 0, 1), v = between(random, 0, 1);
    int first = first_pixel(line * rows, canvas->height);
    for (int y = first; y < (int)canvas->height; y++) {
        float below = ((float)y + 0.5f) / rows - line;
        float depth = 1.0f / (below + 0.02f);
        for (int x = 0; x < (int)canvas->width; x++) {
            float across = ((float)x / rows) * (0.15f + 0.012f * depth);
            float ripple = noise_at(noise->detail, u + across, v + depth * 0.13f) - 0.5f;
            float glint = noise_at(noise->detail, v + across * 2.0f, u + depth * 0.31f) - 0.5f;
            float source = line - below * (1.0f + 0.6f * roughness) -
                           ripple * roughness * (0.10f + below * 0.7f);
            float shift = ripple * roughness * 0.06f * rows;
            int sx = x + (int)(shift < 0 ? shift - 0.5f : shift + 0.5f);
            sx = sx < 0 ? 0 : sx >= (int)canvas->width ? (int)canvas->width - 1 : sx;
            int sy = first_pixel(source * rows, (unsigned)first);
            sy = sy >= first ? first - 1 : sy;
            sy = sy < 0 ? 0 : sy;
            const float *s = canvas->rgb + 3 * ((size_t)sy * canvas->width + (size_t)sx);
            struct colour c = mix(rgb(s[0], s[1], s[2]), tint, opacity + 0.25f * below);
            put(canvas, (unsigned)x, (unsigned)y, scaled(c, 1.0f + glint * roughness * 0.9f));
        }
    }
}

/* Colour of one place, lit and hazed. */
static struct colour terrain_shade(const struct terrain *t, float x, float z, float height)
{
    /* Not below a texel, where interpolation would show as facets. */
    float step = 0.004f * z + 0.03f;
    float slope_x = (t->height(t, x + step, z) - height) * t->relief / step;
    float slope_z = (t->height(t, x, z + step) - height) * t->relief / step;
    float length = sqrtf(slope_x * slope_x + slope_z * slope_z + 1.0f);
    float light_length = sqrtf(t->light_x * t->light_x + t->light_z * t->light_z + 1.0f);
    float light = (1.0f - slope_x * t->light_x - slope_z * t->light_z) / (length * light_length);
    struct colour c = t->colour(t, x, z, height, clamp01(light), 1.0f - 1.0f / length);
    return mix(c, t->haze, smooth(t->haze_from, t->haze_to, z));
}

/* Distances start a little differently in each column, so that they do not show as contour lines.
 * Nearest first: each column remembers the highest row it has reached, and only what rises above
 * that is drawn. Between two distances the colour is interpolated along the rows. */
void brush_terrain(struct canvas *canvas, const struct terrain *t)
{
    float rows = (float)canvas->height;
    for (unsigned column = 0; column < canvas->width; column++) {
        float across = ((float)column + 0.5f - (float)canvas->width / 2) / rows * 2.0f * t->view;
        float reached = rows; /* rows from here down are done */
        struct colour last = {0};
        int have_last = 0;
        float start = t->near * (1.0f + 1.7f / rows * hash_unit((int)column, 0, 5U));
        for (float z = start; z < t->far; z *= 1.0f + 1.7f / rows) {
            float height = t->height(t, across * z, z);
            float y = (t->horizon + (t->eye - height * t->relief) / (z * 2.0f * t->view)) * rows;
            if (y >= reached)
                continue;
            struct colour c = terrain_shade(t, across * z, z, height);
            if (!have_last)
                last = c;
            have_last = 1;
            float span = reached - y;
            int bottom = last_pixel(reached, canvas->height);
            for (int row = bottom; row >= 0 && (float)row + 1 > y; row--) {
                float middle = (float)row + 0.5f;
                float cover = clamp01((float)row + 1 - y) - clamp01((float)row + 1 - reached);
                blend(canvas, (int)column, row, mix(last, c, clamp01((reached - middle) / span)),
                      cover >= 0.999f ? 1.0f : cover);
            }
            last = c;
            reached = y;
            if (reached <= 0.0f)
                break;
        }
    }
}
