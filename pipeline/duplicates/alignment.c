/* alignment.c: aligns two small grey planes and correlates their blocks. */
#include "duplicates/alignment.h"

#include <math.h>
#include <string.h>

#define LEVELS      3
#define UNKNOWNS    8 /* of the map: x = m0 u + m1 v + m2, y = m3 u + m4 v + m5; gain; offset */
#define BLOCK       8
#define TEXTURE     1.6f /* standard deviation that a block needs without its plane, grey levels */
#define CORRELATED  0.7f
#define BLOCKS_MIN  8
#define WHITE       250.0f /* brighter: may be clipped, and says nothing */
#define CLIPPED_MAX 16     /* such pixels of a block */
#define OVERLAP     0.55f

/* A level of a pyramid. */
struct level {
    int width, height;
    float pixel[ALIGNMENT_SIDE * ALIGNMENT_SIDE];
};

struct fit {
    double map
        [6]; /* from b's pixels to a's, at the level that is being fitted; centres are integers */
    double gain, offset;
};

static void halve(struct level *out, const struct level *in)
{
    out->width = in->width / 2;
    out->height = in->height / 2;
    for (int y = 0; y < out->height; y++) {
        for (int x = 0; x < out->width; x++) {
            const float *p = in->pixel + 2 * y * in->width + 2 * x;
            out->pixel[y * out->width + x] =
                (p[0] + p[1] + p[in->width] + p[in->width + 1]) * 0.25f;
        }
    }
}

static void build(struct level *levels, const struct alignment_plane *plane, bool mirrored)
{
    levels[0].width = (int)plane->width;
    levels[0].height = (int)plane->height;
    for (uint32_t y = 0; y < plane->height; y++)
        for (uint32_t x = 0; x < plane->width; x++)
            levels[0].pixel[y * plane->width + x] =
                plane->pixel[y * plane->width + (mirrored ? plane->width - 1 - x : x)];
    for (int l = 1; l < LEVELS; l++)
        halve(&levels[l], &levels[l - 1]);
}

/* Where b's pixel lies in a, with the weights of its four neighbours. False: not inside. */
struct place {
    const float *p;
    float fx, fy;
};
static inline bool find_place(struct place *out, const struct level *a, const double *map, int u,
                              int v)
{
    const float x = (float)(map[0] * u + map[1] * v + map[2]);
    const float y = (float)(map[3] * u + map[4] * v + map[5]);
    if (!(x >= 0 && y >= 0 && x < (float)(a->width - 1) && y < (float)(a->height - 1)))
        return false;
    const int ix = (int)x, iy = (int)y;
    out->p = a->pixel + iy * a->width + ix;
    out->fx = x - (float)ix;
    out->fy = y - (float)iy;
    return true;
}

static inline float value_at(const struct place *at, int width)
{
    const float *p = at->p;
    const float top = p[0] + at->fx * (p[1] - p[0]);
    const float low = p[width] + at->fx * (p[width + 1] - p[width]);
    return top + at->fy * (low - top);
}

/* Solves the normal equations in place by Cholesky's decomposition. False: singular. */
static bool solve(double m[UNKNOWNS][UNKNOWNS], double *b)
{
    for (int i = 0; i < UNKNOWNS; i++) {
        for (int j = 0; j <= i; j++) {
            double sum = m[i][j];
            for (int k = 0; k < j; k++)
                sum -= m[i][k] * m[j][k];
            if (i != j)
                m[i][j] = sum / m[j][j];
            else if (sum <= 1e-9)
                return false;
            else
                m[i][i] = sqrt(sum);
        }
    }
    for (int i = 0; i < UNKNOWNS; i++) {
        for (int k = 0; k < i; k++)
            b[i] -= m[i][k] * b[k];
        b[i] /= m[i][i];
    }
    for (int i = UNKNOWNS - 1; i >= 0; i--) {
        for (int k = i + 1; k < UNKNOWNS; k++)
            b[i] -= m[k][i] * b[k];
        b[i] /= m[i][i];
    }
    return true;
}

/* Gain and offset by least squares. False: a is flat where they overlap, or they do not. */
static bool fit_brightness(struct fit *fit, const struct level *a, const struct level *b)
{
    double n = 0, sa = 0, sb = 0, saa = 0, sab = 0;
    for (int v = 0; v < b->height; v++) {
        for (int u = 0; u < b->width; u++) {
            struct place at;
            if (!find_place(&at, a, fit->map, u, v))
                continue;
            const double va = value_at(&at, a->width), vb = b->pixel[v * b->width + u];
            n += 1;
            sa += va;
            sb += vb;
            saa += va * va;
            sab += va * vb;
        }
    }
    const double variance = saa * n - sa * sa;
    if (n < 16 || variance <= n * n * 1e-3)
        return false;
    fit->gain = (sab * n - sa * sb) / variance;
    fit->gain = fit->gain < 0.2 ? 0.2 : fit->gain > 5 ? 5 : fit->gain;
    fit->offset = (sb - fit->gain * sa) / n;
    return true;
}

/* One step; false: it cannot go on. *moved is by how many pixels the corners move at most. */
static bool step(struct fit *fit, const struct level *a, const struct level *b, double *scale,
                 double *moved)
{
    double m[UNKNOWNS][UNKNOWNS] = {{0}}, r[UNKNOWNS] = {0};
    const double limit = 1.0 / (*scale * *scale);
    double residuals = 0, count = 0;
    const float cu = (float)b->width * 0.5f, cv = (float)b->height * 0.5f;
    for (int v = 0; v < b->height; v++) {
        for (int u = 0; u < b->width; u++) {
            struct place at;
            if (!find_place(&at, a, fit->map, u, v))
                continue;
            const float *p = at.p, *q = at.p + a->width;
            const float value = value_at(&at, a->width);
            const float gain = (float)fit->gain;
            const float dx = gain * ((p[1] - p[0]) * (1 - at.fy) + (q[1] - q[0]) * at.fy);
            const float dy = gain * ((q[0] - p[0]) * (1 - at.fx) + (q[1] - p[1]) * at.fx);
            const float left = b->pixel[v * b->width + u] - gain * value - (float)fit->offset;
            const float away = 1 + left * left * (float)limit;
            const float weight = 1 / (away * away);
            /* Around the centre, which keeps the equations well conditioned. */
            const float x = (float)u - cu, y = (float)v - cv;
            const float j[UNKNOWNS] = {dx * x, dx * y, dx, dy * x, dy * y, dy, value - 128, 1};
            residuals += fabsf(left);
            count += 1;
            for (int i = 0; i < UNKNOWNS; i++) {
                const float wj = weight * j[i];
                r[i] += wj * left;
                for (int k = 0; k <= i; k++)
                    m[i][k] += wj * j[k];
            }
        }
    }
    if (count < 32)
        return false;
    for (int i = 0; i < UNKNOWNS; i++)
        m[i][i] = m[i][i] * 1.0001 + 1e-6;
    if (!solve(m, r))
        return false;
    *scale = 2 * residuals / count + 1;
    fit->map[0] += r[0];
    fit->map[1] += r[1];
    fit->map[2] += r[2] - r[0] * cu - r[1] * cv;
    fit->map[3] += r[3];
    fit->map[4] += r[4];
    fit->map[5] += r[5] - r[3] * cu - r[4] * cv;
    fit->gain += r[6];
    fit->offset += r[7] - 128 * r[6];
    const double mx = fabs(r[2]) + fabs(r[0]) * cu + fabs(r[1]) * cv;
    const double my = fabs(r[5]) + fabs(r[3]) * cu + fabs(r[4]) * cv;
    *moved = mx > my ? mx : my;
    const double det = fit->map[0] * fit->map[4] - fit->map[1] * fit->map[3];
    return fit->gain > 0.1 && fit->gain < 10 && det > 0 && *moved < b->width + b->height;
}

/* --- correlation of blocks ------------------------------------------------------------------- */

/* Takes the best plane off the values of a block whose pixels all count. */
static void flatten(float *value)
{
    float sum = 0, across = 0, down = 0;
    for (int i = 0; i < BLOCK * BLOCK; i++) {
        const float x = (float)(i % BLOCK) - 3.5f, y = (float)(i / BLOCK) - 3.5f;
        sum += value[i];
        across += value[i] * x;
        down += value[i] * y;
    }
    /* Sum of x * x over the block is 8 * 42. */
    for (int i = 0; i < BLOCK * BLOCK; i++) {
        const float x = (float)(i % BLOCK) - 3.5f, y = (float)(i / BLOCK) - 3.5f;
        value[i] -= sum / (BLOCK * BLOCK) + (across * x + down * y) / 336;
    }
}

static struct alignment correlate(const struct fit *fit, const struct level *a,
                                  const struct level *b)
{
    struct alignment out = {0};
    uint32_t inside = 0;
    for (int v0 = 0; v0 + BLOCK <= b->height; v0 += BLOCK) {
        for (int u0 = 0; u0 + BLOCK <= b->width; u0 += BLOCK) {
            float va[BLOCK * BLOCK], vb[BLOCK * BLOCK];
            int count = 0, clipped = 0;
            for (int i = 0; i < BLOCK * BLOCK; i++) {
                const int u = u0 + i % BLOCK, v = v0 + i / BLOCK;
                struct place at;
                if (!find_place(&at, a, fit->map, u, v))
                    continue;
                count++;
                va[i] = value_at(&at, a->width);
                vb[i] = b->pixel[v * b->width + u];
                clipped += va[i] > WHITE || vb[i] > WHITE;
            }
            inside += (uint32_t)count;
            if (count < BLOCK * BLOCK || clipped > CLIPPED_MAX)
                continue;
            flatten(va);
            flatten(vb);
            float aa = 0, bb = 0, ab = 0;
            for (int i = 0; i < BLOCK * BLOCK; i++) {
                aa += va[i] * va[i];
                bb += vb[i] * vb[i];
                ab += va[i] * vb[i];
            }
            const float gain = (float)fit->gain, least = TEXTURE * TEXTURE * BLOCK * BLOCK;
            if (aa * gain * gain < least && bb < least)
                continue;
            out.blocks++;
            out.matching += ab > 0 && ab * ab >= CORRELATED * CORRELATED * aa * bb;
        }
    }
    const double det = fit->map[0] * fit->map[4] - fit->map[1] * fit->map[3];
    const float blocks_b = (float)(b->width / BLOCK * BLOCK) * (float)(b->height / BLOCK * BLOCK);
    const float of_b = blocks_b > 0 ? (float)inside / blocks_b : 0;
    const float of_a =
        of_b * (float)(b->width * b->height) * (float)det / (float)(a->width * a->height);
    out.overlap = of_a < of_b ? of_a : of_b;
    out.same =
        out.overlap >= OVERLAP && out.blocks >= BLOCKS_MIN && 5 * out.matching >= 3 * out.blocks;
    return out;
}

/* --- from coarse to fine --------------------------------------------------------------------- */

/* A map between whole planes at a level, from one in which both are 1 wide and 1 high. */
static void place_map(double *map, const struct level *a, const struct level *b, double left,
                      double top, double across, double down)
{
    map[0] = across * a->width / b->width;
    map[1] = 0;
    map[2] = left * a->width + 0.5 * map[0] - 0.5;
    map[3] = 0;
    map[4] = down * a->height / b->height;
    map[5] = top * a->height + 0.5 * map[4] - 0.5;
}

/* Pixel centres of the next finer level: u' = 2 u + 1/2, unless odd sizes lost a column or row. */
static void refine_map(double *map)
{
    const double x = 2 * map[2] + 0.5 - 0.5 * (map[0] + map[1]);
    const double y = 2 * map[5] + 0.5 - 0.5 * (map[3] + map[4]);
    map[2] = x;
    map[5] = y;
}

static struct alignment compare_from(const struct level *a, const struct level *b, double left,
                                     double top, double across, double down)
{
    static const int steps[LEVELS] = {5, 8, 14};
    struct fit fit = {.gain = 1};
    place_map(fit.map, &a[LEVELS - 1], &b[LEVELS - 1], left, top, across, down);
    if (!fit_brightness(&fit, &a[LEVELS - 1], &b[LEVELS - 1]))
        return (struct alignment){0};
    for (int l = LEVELS - 1; l >= 0; l--) {
        double scale = 30, moved = 1;
        for (int s = 0; s < steps[l] && moved > 0.02; s++)
            if (!step(&fit, &a[l], &b[l], &scale, &moved))
                return (struct alignment){0};
        if (l == 0)
            break;
        /* Most pairs that are no copies end here, before the level that takes most of the time. */
        if (l == 1) {
            const struct alignment rough = correlate(&fit, &a[1], &b[1]);
            if (4 * rough.matching < rough.blocks)
                return (struct alignment){.blocks = rough.blocks, .matching = rough.matching};
        }
        refine_map(fit.map);
    }
    return correlate(&fit, &a[0], &b[0]);
}

struct alignment alignment_compare(const struct alignment_plane *pa,
                                   const struct alignment_plane *pb, bool mirrored)
{
    struct level a[LEVELS], b[LEVELS];
    if (pa->width < 4 * BLOCK || pa->height < 4 * BLOCK || pb->width < 4 * BLOCK ||
        pb->height < 4 * BLOCK)
        return (struct alignment){0};
    build(a, pa, false);
    build(b, pb, mirrored);
    struct fit whole = {.gain = 1};
    place_map(whole.map, &a[0], &b[0], 0, 0, 1, 1);
    struct alignment best = {0};
    if (fit_brightness(&whole, &a[0], &b[0]))
        best = correlate(&whole, &a[0], &b[0]);
    if (best.same)
        return best;
    best = compare_from(a, b, 0, 0, 1, 1);
    /* Of other shapes, one may be cropped at a side: then they have the other sides in common. */
    const double shape = (double)b->width * a->height / ((double)b->height * a->width);
    if (best.same || (shape > 0.99 && shape < 1.01))
        return best;
    for (int end = 0; end < 2 && !best.same; end++) {
        struct alignment other = shape < 1
                                     ? compare_from(a, b, end * (1 - shape), 0, shape, 1)
                                     : compare_from(a, b, 0, end * (1 - 1 / shape), 1, 1 / shape);
        if (other.same || other.matching > best.matching)
            best = other;
    }
    return best;
}
