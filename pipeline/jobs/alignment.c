/* alignment.c: aligns two small grey planes, then looks for blocks and colours that contradict. */
#include "jobs/alignment.h"

#include "base/minmax.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEVELS        4
#define COARSE        12   /* pixels along the shorter side of a level, at least */
#define CROPPED       0.03 /* share of a side by which other fits are offset */
#define UNKNOWNS      8 /* of the map: x = m0 u + m1 v + m2, y = m3 u + m4 v + m5; gain; offset */
#define BLOCK         16
#define BLOCK_SMALL   8    /* for planes up to */
#define SMALL         160  /* this side */
#define BLOCKS        400  /* at most: 8 x 8 in 160 x 160 */
#define TEXTURE       9.0f /* least mean square of a block less row and column means, levels, */
#define FAINT         1.0f /* the same if it agrees */
#define TEXTURE_OF    0.5f /* the same as a share of the mean over all blocks */
#define AGREES        0.5f /* minimum correlation, */
#define BRIGHTENED    1.1
#define ALIKE         0.7f /* and common share of its energy, allowing for clipped colours */
#define CERTAIN       0.6f /* and over all blocks of a certain copy */
#define SURE          0.8f /* A block that correlates less, and has this share of the mean energy */
#define CHANGED       0.12f /* and this multiple of the median left over, may have been changed. */
#define CHANGED_OF    5
#define DARK          25.0f /* difference of block means that no copying causes, grey levels; */
#define DARK_GREY     12.0f /* if only one is grey, unscaled; */
#define DARK_FLAT     2.0f  /* if one has no colours at all, and fewer blocks are textured */
#define FLAT_OF       4u    /* than one in this many; */
#define COLOUR        60.0f /* in colour */
#define GREY          4.0f  /* maximum root mean square of the colour of grey pictures, */
#define COLOURLESS    0.5f  /* and of colourless ones */
#define WHITE         248   /* brighter pixels may be clipped and are no measure of brightness */
#define BEYOND        265   /* brightened to more than white: no content is left */
#define MIDDLE_LOW    20    /* range of block means used to measure the gain */
#define MIDDLE_HIGH   230
#define GAIN_MAX      2.0
#define STRETCH       0.04 /* half the relative difference allowed between the sides of a map */
#define OVERLAP       0.55f
#define BLOCKS_MIN    6
#define CORRELATED    0.9f  /* minimum over all blocks, by energy; */
#define RELATED       0.85f /* if none contradicts; */
#define OUTSIDE       0.95f /* outside a caption */
#define CONTRARY      2u    /* contradicting blocks, at most, */
#define CONTRARY_OF   32u   /* or one in this many */
#define CONTRARY_MOST 12u   /* but no more than one in this many */
#define HOPELESS      0.65f /* not a copy, but so similar that other starts cannot help */
#define PROMISING     0.3f  /* minimum correlation at a quarter, and at half size, to continue */

#define WINDOW      8    /* pixels, of the larger planes; its maximum loss in copying, */
#define LOST        0.1  /* as a share of the energy-weighted mean energy; */
#define LOST_HALVED 0.05 /* if one is so small that the other is halved */
#define LANES       4
#define SAMPLES     ALIGNMENT_FINE
#define ROWS        64 /* approximate number of rows of a level that fits use */
typedef float lanes __attribute__((vector_size(4 * LANES)));
typedef int32_t ints __attribute__((vector_size(4 * LANES)));

/* A level of a pyramid. */
struct level {
    int width, height;
    double across, down; /* picture pixels per pixel */
    float *pixel;
};

struct fit {
    double map[6]; /* from b's pixels to a's, at the current level; pixel centres are integers */
    double gain, offset;
};

/* Works in place, too. */
static void halve(struct level *out, const struct level *of)
{
    const struct level in = *of;
    out->width = in.width / 2;
    out->height = in.height / 2;
    out->across = 2 * in.across;
    out->down = 2 * in.down;
    for (int y = 0; y < out->height; y++) {
        for (int x = 0; x < out->width; x++) {
            const float *p = in.pixel + 2 * y * in.width + 2 * x;
            out->pixel[y * out->width + x] = (p[0] + p[1] + p[in.width] + p[in.width + 1]) * 0.25f;
        }
    }
}

/* Smooths with weights 1, 2, 1 in both directions, in place, to limit effects of interpolation. */
static void blur(struct level *level)
{
    const int width = level->width;
    float above[SAMPLES];
    for (int y = 0; y < level->height; y++) {
        float *p = level->pixel + y * width, before = p[0];
        for (int x = 0; x < width; x++) {
            const float here = p[x];
            p[x] = (before + 2 * here + (x + 1 < width ? p[x + 1] : here)) * 0.25f;
            before = here;
        }
    }
    memcpy(above, level->pixel, (size_t)width * sizeof *above);
    for (int y = 0; y < level->height; y++) {
        float *p = level->pixel + y * width;
        for (int x = 0; x < width; x++) {
            const float here = p[x];
            p[x] = (above[x] + 2 * here + (y + 1 < level->height ? p[x + width] : here)) * 0.25f;
            above[x] = here;
        }
    }
}

/* Halves a plane until it is at most 1.4 times as long as the other. */
static void load(struct level *out, float *memory, const uint8_t *pixel, uint32_t width,
                 uint32_t height, uint32_t other, bool mirrored)
{
    *out = (struct level){(int)width, (int)height, 1.0 / width, 1.0 / height, memory};
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++)
            memory[y * width + x] = pixel[y * width + (mirrored ? width - 1 - x : x)];
    for (uint32_t longer = max_u32(width, height); 10 * longer > 14 * other; longer /= 2)
        halve(out, out);
    blur(out);
}

static void build(struct level *levels, float *memory, const struct alignment_plane *plane,
                  const struct alignment_plane *other, bool mirrored)
{
    load(levels, memory, plane->pixel, plane->width, plane->height,
         max_u32(other->width, other->height), mirrored);
    for (int l = 1; l < LEVELS; l++) {
        memory += ALIGNMENT_SIDE * ALIGNMENT_SIDE >> 2 * (l - 1);
        levels[l].pixel = memory;
        halve(&levels[l], &levels[l - 1]);
    }
}

/* Values and slopes of a at the positions of a row of b's pixels. Outside a, those of the nearest
 * position, and `inside` is 0. */
struct samples {
    float value[SAMPLES], dx[SAMPLES], dy[SAMPLES];
    int32_t inside[SAMPLES]; /* all bits set or none */
};

static inline lanes pick(ints mask, lanes yes, lanes no)
{
    return (lanes)((mask & (ints)yes) | (~mask & (ints)no));
}

static inline lanes clamp(lanes x, float most)
{
    const lanes zeros = {0}, mosts = zeros + most;
    x = pick(x > zeros, x, zeros);
    return pick(x < mosts, x, mosts);
}

/* Starts at pixel u0 of row v; also sets a few pixels beyond `count`, which are not inside. */
static void sample_row(struct samples *out, const struct level *a, const double *map, int u0, int v,
                       int count)
{
    const float right = (float)a->width - 1.001f, low = (float)a->height - 1.001f;
    const float x0 = (float)(map[1] * v + map[2]), y0 = (float)(map[4] * v + map[5]);
    const float mx = (float)map[0], my = (float)map[3];
    for (int i = 0; i < count; i += LANES) {
        const lanes u = (lanes){0, 1, 2, 3} + (float)(u0 + i);
        lanes x = mx * u + x0, y = my * u + y0, p[4];
        const ints there = (x > -0.1f) & (y > -0.1f) & (x < right + 0.1f) & (y < low + 0.1f) &
                           ((ints){0, 1, 2, 3} < count - i);
        x = clamp(x, right);
        y = clamp(y, low);
        const ints ix = __builtin_convertvector(x, ints), iy = __builtin_convertvector(y, ints);
        const lanes fx = x - __builtin_convertvector(ix, lanes);
        const lanes fy = y - __builtin_convertvector(iy, lanes);
        for (int k = 0; k < LANES; k++) {
            const float *at = a->pixel + iy[k] * a->width + ix[k];
            p[0][k] = at[0];
            p[1][k] = at[1];
            p[2][k] = at[a->width];
            p[3][k] = at[a->width + 1];
        }
        const lanes across = p[1] - p[0], below = p[3] - p[2];
        const lanes top = p[0] + fx * across, dy = p[2] + fx * below - top;
        const lanes value = top + fy * dy, dx = across + fy * (below - across);
        memcpy(out->value + i, &value, sizeof value);
        memcpy(out->dx + i, &dx, sizeof dx);
        memcpy(out->dy + i, &dy, sizeof dy);
        memcpy(out->inside + i, &there, sizeof there);
    }
}

static int skip(const struct level *b)
{
    return (b->height + ROWS - 1) / ROWS;
}

/* Solves the normal equations in place by Cholesky decomposition. False: singular. */
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

/* Gain and offset by least squares. False: no overlap, or a is flat there. `again`: refines the
 * current values with weights from their residuals; ignores pixels that are white in one plane, if
 * enough are left. */
static bool fit_brightness(struct fit *fit, const struct level *a, const struct level *b,
                           double *scale, bool again)
{
    double sums[2][6] = {{0}}; /* over all pixels; over those that are not white */
    struct samples at;
    for (int v = 0; v < b->height; v += skip(b)) {
        sample_row(&at, a, fit->map, 0, v, b->width);
        for (int u = 0; u < b->width; u++) {
            if (!at.inside[u])
                continue;
            const double va = at.value[u], vb = b->pixel[v * b->width + u];
            const double left = vb - fit->gain * va - fit->offset;
            const double away = again ? 1 + left * left / (*scale * *scale) : 1;
            const double w = 1 / (away * away);
            for (int i = again && va < WHITE && vb < WHITE; i >= 0; i--) {
                sums[i][0] += w;
                sums[i][1] += w * va;
                sums[i][2] += w * vb;
                sums[i][3] += w * va * va;
                sums[i][4] += w * va * vb;
                sums[i][5] += w * fabs(left);
            }
        }
    }
    const double *sum = sums[8 * sums[1][0] > sums[0][0]], n = sum[0];
    const double variance = sum[3] * n - sum[1] * sum[1];
    if (n < 16 || variance <= n * n * 1e-3)
        return false;
    fit->gain = (sum[4] * n - sum[1] * sum[2]) / variance;
    fit->gain = fit->gain < 0.2 ? 0.2 : fit->gain > 5 ? 5 : fit->gain;
    fit->offset = (sum[2] - fit->gain * sum[1]) / n;
    *scale = 2 * sum[5] / n + 1;
    return true;
}

/* Derivatives by the unknowns: horizontal and vertical slopes, brightness, or 1, times powers of x
 * and y. */
static const struct {
    int field, across, down;
} unknown[UNKNOWNS] = {{0, 1, 0}, {0, 0, 1}, {0, 0, 0}, {1, 1, 0},
                       {1, 0, 1}, {1, 0, 0}, {2, 0, 0}, {3, 0, 0}};
/* Index of the first sum of products of two of them, and of residuals, by ascending power of x. */
static const int first_sum[4][5] = {
    {0, 3, 9, 11, 17}, {3, 6, 13, 15, 19}, {9, 13, 21, 22, 24}, {11, 15, 22, 23, 25}};
#define PRODUCTS 26

struct sums {
    double of[PRODUCTS][3]; /* by power of y */
    double residuals, count;
};

static void add_row(struct sums *sums, const struct fit *fit, const struct level *a,
                    const struct level *b, double scale, int v)
{
    struct samples at;
    lanes s[PRODUCTS] = {{0}}, residuals = {0}, count = {0};
    const float gain = (float)fit->gain, offset = (float)fit->offset;
    const float limit = (float)(1.0 / (scale * scale)), cu = (float)b->width * 0.5f;
    const double y = v - (double)b->height * 0.5, powers[3] = {1, y, y * y};
    sample_row(&at, a, fit->map, 0, v, b->width);
    for (int i = 0; i < b->width; i += LANES) {
        lanes value, dx, dy, l;
        ints inside;
        memcpy(&value, at.value + i, sizeof value);
        memcpy(&dx, at.dx + i, sizeof dx);
        memcpy(&dy, at.dy + i, sizeof dy);
        memcpy(&inside, at.inside + i, sizeof inside);
        memcpy(&l, b->pixel + v * b->width + i, sizeof l);
        const lanes zeros = {0}, u = (lanes){0, 1, 2, 3} + ((float)i - cu), t = value - 128;
        l = pick(inside, l - gain * value - offset, zeros);
        const lanes away = 1 + l * l * limit, w = pick(inside, 1 / (away * away), zeros);
        dx *= gain;
        dy *= gain;
        const lanes x = w * dx, z = w * dy, wt = w * t, wl = w * l;
        const lanes squares[3] = {x * dx, x * dy, z * dy};
        const lanes others[6] = {x * t, x, z * t, z, x * l, z * l};
        for (int k = 0; k < 3; k++) {
            s[3 * k] += squares[k];
            s[3 * k + 1] += squares[k] * u;
            s[3 * k + 2] += squares[k] * u * u;
        }
        for (int k = 0; k < 6; k++) {
            s[9 + 2 * k] += others[k];
            s[10 + 2 * k] += others[k] * u;
        }
        s[21] += wt * t;
        s[22] += wt;
        s[23] += w;
        s[24] += wt * l;
        s[25] += wl;
        residuals += pick(l < zeros, -l, l);
        count -= __builtin_convertvector(inside, lanes);
    }
    for (int k = 0; k < PRODUCTS; k++)
        for (int power = 0; power < 3; power++)
            sums->of[k][power] += powers[power] * ((s[k][0] + s[k][1]) + (s[k][2] + s[k][3]));
    sums->residuals += (residuals[0] + residuals[1]) + (residuals[2] + residuals[3]);
    sums->count += (count[0] + count[1]) + (count[2] + count[3]);
}

/* One step; false: it cannot continue. *moved: the longest move of a corner, in pixels. */
static bool step(struct fit *fit, const struct level *a, const struct level *b, double *scale,
                 double *moved)
{
    double m[UNKNOWNS][UNKNOWNS] = {{0}}, r[UNKNOWNS];
    const double cu = (double)b->width * 0.5,
                 cv = (double)b->height * 0.5; /* for good conditioning */
    struct sums sums = {0};
    for (int v = 0; v < b->height; v += skip(b))
        add_row(&sums, fit, a, b, *scale, v);
    for (int i = 0; i < UNKNOWNS; i++) {
        const int *at = first_sum[unknown[i].field];
        for (int k = 0; k <= i; k++)
            m[i][k] = sums.of[at[unknown[k].field] + unknown[i].across + unknown[k].across]
                             [unknown[i].down + unknown[k].down];
        r[i] = sums.of[at[4] + unknown[i].across][unknown[i].down];
    }
    if (sums.count < 32)
        return false;
    for (int i = 0; i < UNKNOWNS; i++)
        m[i][i] = m[i][i] * 1.0001 + 1e-6;
    if (!solve(m, r))
        return false;
    *scale = 2 * sums.residuals / sums.count + 1;
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

/* --- what contradicts ------------------------------------------------------------------------- */

/* A block's energies without row and column means, so that ruled lines do not count. */
struct moments {
    float aa, bb, ab;
    int u, v;
    float apart, tint;    /* difference of the means in brightness, and in colour, levels */
    float mean_a, mean_b; /* unscaled */
    bool blown;           /* brightening turned more than half of it white */
};

static void take_lines_off(float *out, const float *in, int stride, int side)
{
    float row[BLOCK] = {0}, column[BLOCK] = {0}, all = 0;
    for (int i = 0; i < side * side; i++) {
        const float value = in[i / side * stride + i % side];
        row[i / side] += value;
        column[i % side] += value;
        all += value;
    }
    for (int i = 0; i < side * side; i++)
        out[i] = in[i / side * stride + i % side] +
                 (all / (float)side - row[i / side] - column[i % side]) / (float)side;
}

static float clip(double value)
{
    return value < 0 ? 0 : value > 255 ? 255 : (float)value;
}

/* Brightens the darker picture to match the other, and clips it. False: not entirely in both. */
static bool compare_block(struct moments *out, const struct fit *fit, const struct level *a,
                          const struct level *b, int u0, int v0, int side, bool shifts)
{
    float va[(BLOCK + 2) * (BLOCK + 2)], vb[BLOCK * BLOCK], fa[BLOCK * BLOCK], fb[BLOCK * BLOCK];
    const int stride = side + 2;
    float difference = 0, best = -2, mean_a = 0, mean_b = 0;
    int beyond = 0;
    for (int v = -1; v <= side; v++) {
        struct samples at;
        float *row = va + (v + 1) * stride;
        sample_row(&at, a, fit->map, u0 - 1, v0 + v, stride);
        for (int i = 0; i < stride; i++)
            row[i] = fit->gain >= 1 ? clip(fit->gain * at.value[i] + fit->offset) : at.value[i];
        for (int u = 0; u < side && v >= 0 && v < side; u++) {
            if (!at.inside[u + 1])
                return false;
            const float other = b->pixel[(v0 + v) * b->width + u0 + u];
            const double bright = fit->gain >= 1 ? fit->gain * at.value[u + 1] + fit->offset
                                                 : (other - fit->offset) / fit->gain;
            float *value = &vb[v * side + u];
            *value = fit->gain < 1 ? clip(bright) : other;
            beyond += bright > BEYOND;
            mean_a += at.value[u + 1];
            mean_b += other;
            difference += row[u + 1] - *value;
        }
    }
    take_lines_off(fb, vb, side, side);
    /* Slightly warped copies agree after a shift by one pixel. */
    for (int s = 0; s < (shifts ? 9 : 1); s++) {
        const int shift = (s + 4) % 9; /* no shift first */
        struct moments m = {.u = u0, .v = v0, .apart = fabsf(difference) / (float)(side * side)};
        take_lines_off(fa, va + shift / 3 * stride + shift % 3, stride, side);
        for (int i = 0; i < side * side; i++) {
            m.aa += fa[i] * fa[i];
            m.bb += fb[i] * fb[i];
            m.ab += fa[i] * fb[i];
        }
        const float correlation = m.ab / sqrtf(m.aa * m.bb + 1e-3f);
        if (correlation > best)
            *out = m;
        best = correlation > best ? correlation : best;
        if (best > 0.8f)
            break;
    }
    out->mean_a = mean_a / (float)(side * side);
    out->mean_b = mean_b / (float)(side * side);
    out->blown = 2 * beyond > side * side;
    return true;
}

/* Correlation over all blocks, weighted by energy. */
static float correlate(const struct moments *m, int count)
{
    double aa = 0, bb = 0, ab = 0;
    for (int i = 0; i < count; i++) {
        if (m[i].blown)
            continue;
        aa += m[i].aa;
        bb += m[i].bb;
        ab += m[i].ab;
    }
    return (float)(ab / sqrt(aa * bb + 1e-3));
}

/* Compares the blocks of the level that lie in both; returns their number. */
static int compare_blocks(struct moments *m, const struct fit *fit, const struct level *a,
                          const struct level *b, int side, bool shifts)
{
    const int columns = (b->width + side - 1) / side, rows = (b->height + side - 1) / side;
    int count = 0;
    for (int i = 0; i < rows * columns && b->width >= side && b->height >= side; i++) {
        const int u = columns > 1 ? i % columns * (b->width - side) / (columns - 1) : 0;
        const int v = rows > 1 ? i / columns * (b->height - side) / (rows - 1) : 0;
        count += compare_block(&m[count], fit, a, b, u, v, side, shifts);
    }
    return count;
}

/* --- colour ----------------------------------------------------------------------------------- */

/* The two pictures, and what is known about their colours. */
struct pictures {
    const struct alignment_plane *plane_a, *plane_b;
    bool mirrored, grey_a, grey_b;
    bool colourless; /* one of them is colourless */
    struct level a[LEVELS], b[LEVELS];
    struct fit found;  /* of the last verdict, */
    double multiplied; /* and by how much b seems brighter; 0: unknown */
};

/* Red and blue without luma, and luma. */
static void to_chroma(float *chroma, const float *rgb)
{
    chroma[2] = (77 * rgb[0] + 150 * rgb[1] + 29 * rgb[2]) / 256;
    chroma[0] = rgb[0] - chroma[2];
    chroma[1] = rgb[2] - chroma[2];
}

/* Adds the brightened colour at a place, in coordinates from 0 to 1. */
static void add_chroma(float *sum, const struct alignment_plane *plane, double x, double y,
                       double gain, double offset)
{
    const uint32_t width = plane->colour_width, height = plane->colour_height;
    const float cx = fmaxf(0, fminf((float)x * (float)width - 0.5f, (float)width - 1));
    const float cy = fmaxf(0, fminf((float)y * (float)height - 0.5f, (float)height - 1));
    const uint32_t ix = (uint32_t)cx, iy = (uint32_t)cy;
    const uint32_t dx = ix + 1 < width ? 3 : 0, dy = iy + 1 < height ? 3 * width : 0;
    const float fx = cx - (float)ix, fy = cy - (float)iy;
    float rgb[3], chroma[3];
    for (int c = 0; c < 3; c++) {
        const uint8_t *p = plane->colour + 3 * (iy * width + ix) + c;
        const float top = p[0] + fx * (float)(p[dx] - p[0]);
        const float low = p[dy] + fx * (float)(p[dy + dx] - p[dy]);
        rgb[c] = clip(gain * (top + fy * (low - top)) + offset);
    }
    to_chroma(chroma, rgb);
    for (int c = 0; c < 3; c++)
        sum[c] += chroma[c];
}

static bool is_grey(const struct alignment_plane *plane, float most)
{
    const uint32_t count = plane->colour_width * plane->colour_height;
    float sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *p = plane->colour + 3 * (size_t)i;
        const float rgb[3] = {p[0], p[1], p[2]};
        float chroma[3];
        to_chroma(chroma, rgb);
        sum += chroma[0] * chroma[0] + chroma[1] * chroma[1];
    }
    return sum < most * most * (float)count;
}

static bool is_brightened(const struct fit *fit)
{
    return fit->gain > BRIGHTENED || fit->gain < 1 / BRIGHTENED;
}

/* If each colour was clipped separately, compares brightness, too. */
static void compare_colours(struct moments *m, const struct pictures *p, const struct fit *fit,
                            int side)
{
    const struct level *a = p->a, *b = p->b;
    const bool brighter = fit->gain >= 1;
    float of_a[3] = {0}, of_b[3] = {0};
    for (int i = 0; i < 16; i++) {
        const double u = m->u + (i % 4 + 0.5) * side / 4 - 0.5,
                     v = m->v + (i / 4 + 0.5) * side / 4 - 0.5;
        const double x = (fit->map[0] * u + fit->map[1] * v + fit->map[2] + 0.5) / a->width;
        const double y = (fit->map[3] * u + fit->map[4] * v + fit->map[5] + 0.5) / a->height;
        const double bx = (u + 0.5) / b->width;
        add_chroma(of_a, p->plane_a, x, y, brighter ? fit->gain : 1, brighter ? fit->offset : 0);
        add_chroma(of_b, p->plane_b, p->mirrored ? 1 - bx : bx, (v + 0.5) / b->height,
                   brighter ? 1 : 1 / fit->gain, brighter ? 0 : -fit->offset / fit->gain);
    }
    const float r = (of_a[0] - of_b[0]) / 16, s = (of_a[1] - of_b[1]) / 16;
    m->tint = sqrtf(r * r + s * s);
    if (is_brightened(fit))
        m->apart = fminf(m->apart, fabsf(of_a[2] - of_b[2]) / 16);
}

/* --- the verdict ------------------------------------------------------------------------------ */

/* Decides by the blocks that count, leaving out a strip of rows or columns at an edge (0 to 3: top,
 * bottom, left, right); `strip` gets the numbers of its blocks that count, and that contradict. */
static void weigh(struct alignment *out, uint32_t *strip, const struct moments *m,
                  const bool *counts, const bool *contrary, int count, const struct level *b,
                  int side, int edge, int depth)
{
    const int size = edge < 2 ? b->height : b->width, last = (size + side - 1) / side - 1;
    uint32_t alike = 0;
    double aa = 0, bb = 0, ab = 0;
    out->blocks = out->contrary = strip[0] = strip[1] = 0;
    for (int i = 0; i < count; i++) {
        const int at = edge < 2 ? m[i].v : m[i].u;
        const int row = last > 0 ? (at * last + size - side - 1) / (size - side) : 0;
        if ((edge % 2 == 0 ? row : last - row) < depth) {
            strip[0] += counts[i];
            strip[1] += contrary[i];
            continue;
        }
        out->blocks += counts[i];
        out->contrary += contrary[i];
        if (m[i].blown)
            continue;
        alike += fmaxf(m[i].aa, m[i].bb) > FAINT * (float)(side * side) &&
                 m[i].ab > SURE * sqrtf(m[i].aa * m[i].bb);
        aa += m[i].aa;
        bb += m[i].bb;
        ab += m[i].ab;
    }
    out->correlation = (float)(ab / sqrt(aa * bb + 1e-3));
    out->same = out->correlation >= (depth > 0           ? OUTSIDE
                                     : out->contrary > 0 ? CORRELATED
                                                         : RELATED) &&
                alike >= BLOCKS_MIN && CONTRARY_MOST * out->contrary <= out->blocks &&
                (out->contrary <= CONTRARY || CONTRARY_OF * out->contrary <= out->blocks) &&
                (depth == 0 || 2 * strip[1] > strip[0]);
}

/* Whether a map, after scaling b's axes by these factors, is not a similarity. */
static bool is_stretched(const struct fit *fit, double across, double down)
{
    const double m0 = fit->map[0] * across, m1 = fit->map[1] * down;
    const double m3 = fit->map[3] * across, m4 = fit->map[4] * down;
    const double alike = (m0 + m4) * (m0 + m4) + (m3 - m1) * (m3 - m1);
    const double apart = (m0 - m4) * (m0 - m4) + (m3 + m1) * (m3 + m1);
    return apart > STRETCH * STRETCH * alike;
}

static int ascending(const void *x, const void *y)
{
    const float a = *(const float *)x, b = *(const float *)y;
    return (a > b) - (a < b);
}

/* The median gain from b to a over blocks that are neither dark nor nearly white. */
static double find_multiplied(const struct moments *m, int count)
{
    float ratio[BLOCKS];
    int found = 0;
    for (int i = 0; i < count; i++) {
        if (fminf(m[i].mean_a, m[i].mean_b) > MIDDLE_LOW &&
            fmaxf(m[i].mean_a, m[i].mean_b) < MIDDLE_HIGH)
            ratio[found++] = m[i].mean_b / m[i].mean_a;
    }
    qsort(ratio, (size_t)found, sizeof *ratio, ascending);
    return found < (int)BLOCKS_MIN ? 0 : ratio[found / 2];
}

static int compare_all(struct moments *m, const struct pictures *p, int side)
{
    const int count = compare_blocks(m, &p->found, &p->a[0], &p->b[0], side, true);
    for (int i = 0; i < count; i++)
        compare_colours(&m[i], p, &p->found, side);
    return count;
}

/* Judges a block relative to the mean energy of all. */
static bool is_textured(const struct moments *m, float mean, int side)
{
    const float most = fmaxf(m->aa, m->bb);
    return most > TEXTURE * (float)(side * side) && most > TEXTURE_OF * mean;
}

static float mean_energy(const struct moments *m, int count)
{
    double aa = 0, bb = 0;
    for (int i = 0; i < count; i++) {
        aa += m[i].blown ? 0 : m[i].aa;
        bb += m[i].blown ? 0 : m[i].bb;
    }
    return (float)sqrt(aa * bb) / (float)count;
}

/* multiplied: how much brighter b is, or 0. */
static struct alignment judge_as(const struct fit *found, struct pictures *p, double multiplied)
{
    struct fit *fit = &p->found;
    double scale = 30;
    const struct level *a = &p->a[0], *b = &p->b[0];
    const int longer = b->width > b->height ? b->width : b->height;
    const int side = longer > SMALL ? BLOCK : BLOCK_SMALL;
    struct moments m[BLOCKS];
    bool counts[BLOCKS] = {0}, contrary[BLOCKS] = {0}, tinted = false, doubtful = false;
    float left[BLOCKS], sorted[BLOCKS];
    p->found = *found;
    p->multiplied = 0;
    fit->offset = multiplied > 0 ? 0 : fit->offset;
    fit->gain = multiplied > 0 ? multiplied : fit->gain;
    for (int again = 0; again < 4 && multiplied == 0; again++)
        if (!fit_brightness(fit, a, b, &scale, true))
            return (struct alignment){0};
    int count = compare_all(m, p, side);
    const bool one_grey = p->grey_a != p->grey_b;
    struct alignment out = {0};
    const double det = fit->map[0] * fit->map[4] - fit->map[1] * fit->map[3];
    const int blocks = ((b->width + side - 1) / side) * ((b->height + side - 1) / side);
    const double of_b = (double)count / blocks;
    const double of_a = of_b * (b->width * b->height) * det / (a->width * a->height);
    out.overlap = (float)(of_a < of_b ? of_a : of_b);
    if (out.overlap < OVERLAP || fit->gain > GAIN_MAX || fit->gain < 1 / GAIN_MAX ||
        (is_stretched(fit, 1, 1) &&
         is_stretched(fit, (double)b->width / a->width, (double)b->height / a->height)))
        return out;
    float mean = mean_energy(m, count);
    uint32_t textures = 0;
    for (int i = 0; i < count; i++) {
        textures += !m[i].blown && is_textured(&m[i], mean, side);
        tinted |= one_grey && m[i].tint > COLOUR;
    }
    /* If only one is grey, colours prove nothing, and if one is flat, shapes prove little; then the
     * brightness must match. */
    const bool flat = p->colourless && FLAT_OF * textures < (uint32_t)count;
    if (tinted || flat) {
        if (fit->gain < 0.9 || fit->gain > 1.1 || fabs(fit->offset) > 16)
            return out;
        fit->gain = 1;
        fit->offset = 0;
        count = compare_all(m, p, side);
        mean = mean_energy(m, count);
    }
    const bool brightened = is_brightened(fit);
    const float dark = flat ? DARK_FLAT : tinted ? DARK_GREY : DARK;
    for (int i = 0; i < count; i++) {
        const float most = fmaxf(m[i].aa, m[i].bb);
        const bool textured = is_textured(&m[i], mean, side), colour = m[i].tint > COLOUR;
        const float product = sqrtf(m[i].aa * m[i].bb);
        const float left_over = most * (1 - m[i].ab / (product + 1e-3f));
        /* Clipped pixels are at least as bright as before. */
        const float dimmed = fit->gain >= 1 ? m[i].mean_a - m[i].mean_b : m[i].mean_b - m[i].mean_a;
        sorted[i] = left_over;
        left[i] = m[i].ab <= SURE * product ? left_over : 0;
        contrary[i] = (colour && !one_grey) ||
                      (m[i].blown ? dimmed > dark
                                  : (textured && m[i].ab <= AGREES * product) ||
                                        (m[i].apart > dark &&
                                         !(brightened && textured && m[i].ab > ALIKE * most)));
        doubtful |= contrary[i] || colour || (textured && m[i].ab <= CERTAIN * product) ||
                    m[i].apart > dark;
        counts[i] = (textured && !m[i].blown) || contrary[i];
    }
    uint32_t strip[2], before[2];
    weigh(&out, strip, m, counts, contrary, count, b, side, 0, 0);
    qsort(sorted, (size_t)count, sizeof *sorted, ascending);
    for (int i = 0; i < count; i++)
        doubtful |= left[i] > CHANGED * mean && left[i] > CHANGED_OF * sorted[count / 2];
    out.certain = out.same && !doubtful && out.blocks >= BLOCKS_MIN;
    /* Something may be drawn over an edge: most blocks of each row but the innermost contradict. */
    for (int edge = 0; edge < 4 && !out.same; edge++) {
        const int across = edge < 2 ? b->height : b->width;
        before[0] = before[1] = 0;
        for (int depth = 1; (depth == 1 || 5 * depth * side <= across) && !out.same; depth++) {
            struct alignment less = out;
            weigh(&less, strip, m, counts, contrary, count, b, side, edge, depth);
            if (less.same)
                out = less;
            if (2 * (strip[1] - before[1]) <= strip[0] - before[0])
                break;
            memcpy(before, strip, sizeof before);
        }
    }
    p->multiplied = tinted || flat ? 0 : find_multiplied(m, count);
    return out;
}

/* If much is clipped, the brightness fit may miss the gain of a picture. */
static struct alignment judge(const struct fit *found, struct pictures *p)
{
    struct alignment out = judge_as(found, p, 0);
    if (!out.same && out.correlation >= HOPELESS && p->multiplied > 0 &&
        fabs(p->multiplied - p->found.gain) + fabs(p->found.offset) / 128 > 0.03) {
        const struct alignment other = judge_as(found, p, p->multiplied);
        out = other.same ? other : out;
    }
    return out;
}

/* --- from coarse to fine --------------------------------------------------------------------- */

/* The map of whole planes at a level, from a map in coordinates from 0 to 1. */
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

/* Converts a map to other levels of the same pictures. */
static void move_map(double *map, const struct level *a, const struct level *b,
                     const struct level *to_a, const struct level *to_b)
{
    const double u = to_b->across / b->across, v = to_b->down / b->down;
    const double x = a->across / to_a->across, y = a->down / to_a->down;
    const double m[6] = {map[0], map[1], map[2], map[3], map[4], map[5]};
    map[0] = m[0] * u * x;
    map[1] = m[1] * v * x;
    map[2] = ((m[0] * (u - 1) + m[1] * (v - 1) + 1) * 0.5 + m[2]) * x - 0.5;
    map[3] = m[3] * u * y;
    map[4] = m[4] * v * y;
    map[5] = ((m[3] * (u - 1) + m[4] * (v - 1) + 1) * 0.5 + m[5]) * y - 0.5;
}

/* Ends most comparisons of different pictures at a coarse level, before the expensive ones. */
static bool is_promising(const struct fit *fit, const struct pictures *p, int l)
{
    struct moments m[BLOCKS];
    const int count = l > 2 ? 0 : compare_blocks(m, fit, &p->a[l], &p->b[l], BLOCK_SMALL, false);
    return l > 2 || correlate(m, count) >= PROMISING;
}

static struct alignment compare_from(struct pictures *p, double left, double top, double across,
                                     double down)
{
    static const int steps[LEVELS] = {6, 10, 8, 5};
    struct fit fit = {.gain = 1};
    int l = LEVELS - 1;
    while (l > 1 && (p->a[l].width < COARSE || p->a[l].height < COARSE || p->b[l].width < COARSE ||
                     p->b[l].height < COARSE))
        l--;
    place_map(fit.map, &p->a[l], &p->b[l], left, top, across, down);
    double scale = 30, moved = 1;
    if (!fit_brightness(&fit, &p->a[l], &p->b[l], &scale, false))
        return (struct alignment){0};
    for (; l >= 0; l--) {
        scale = 30;
        moved = 1;
        for (int s = 0; s < steps[l] && moved > 0.02; s++)
            if (!step(&fit, &p->a[l], &p->b[l], &scale, &moved) ||
                (l == 1 && s == 2 && !is_promising(&fit, p, l)))
                return (struct alignment){0};
        if (l == 0)
            break;
        if (!is_promising(&fit, p, l))
            return (struct alignment){0};
        move_map(fit.map, &p->a[l], &p->b[l], &p->a[l - 1], &p->b[l - 1]);
    }
    return judge(&fit, p);
}

static void better(struct alignment *best, struct pictures *p, double left, double top,
                   double across, double down)
{
    const struct fit found = p->found;
    if (best->correlation >= (best->same ? CORRELATED : HOPELESS))
        return;
    const struct alignment other = compare_from(p, left, top, across, down);
    if (other.same ? !best->same || other.correlation > best->correlation
                   : !best->same && other.overlap > 0)
        *best = other;
    else
        p->found = found;
}

/* --- in detail -------------------------------------------------------------------------------- */

/* For a window: the larger energy per pixel, and the part of it missing in the other. */
struct window {
    float energy, left;
};

static struct window look(const float *a, const float *b, int stride)
{
    float aa = 0, bb = 0, ab = 0, sum_a = 0, sum_b = 0;
    for (int i = 0; i < WINDOW * WINDOW; i++) {
        const int at = i / WINDOW * stride + i % WINDOW;
        sum_a += a[at];
        sum_b += b[at];
        aa += a[at] * a[at];
        bb += b[at] * b[at];
        ab += a[at] * b[at];
    }
    const float n = WINDOW * WINDOW;
    aa = fmaxf(aa / n - sum_a / n * (sum_a / n), 0);
    bb = fmaxf(bb / n - sum_b / n * (sum_b / n), 0);
    ab = ab / n - sum_a / n * (sum_b / n);
    const float most = fmaxf(aa, bb);
    return (struct window){most, most * (1 - ab / sqrtf(aa * bb + 1e-3f))};
}

/* Renders a as b shows it, NaN outside a. The darker one is brightened to match the other. */
static void warp(float *out, const struct level *a, struct level *b, const struct fit *fit)
{
    struct samples at;
    for (int v = 0; v < b->height; v++) {
        sample_row(&at, a, fit->map, 0, v, b->width);
        for (int u = 0; u < b->width; u++) {
            float *to = &out[v * b->width + u], *other = &b->pixel[v * b->width + u];
            *to = !at.inside[u]    ? NAN
                  : fit->gain >= 1 ? clip(fit->gain * at.value[u] + fit->offset)
                                   : at.value[u];
            if (fit->gain < 1)
                *other = clip((*other - fit->offset) / fit->gain);
        }
    }
}

/* Whether no window of WINDOW pixels of the larger planes has lost so much that a letter or digit
 * may have changed. */
static bool is_unchanged(struct pictures *p, float *memory)
{
    const struct alignment_plane *plane_a = p->plane_a, *plane_b = p->plane_b;
    struct level a, b;
    struct fit *fit = &p->found;
    float *warped = memory + 2 * ALIGNMENT_FINE * ALIGNMENT_FINE;
    double scale = 30, moved = 1, energy = 0, squares = 0;
    load(&a, memory, plane_a->fine, plane_a->fine_width, plane_a->fine_height,
         max_u32(plane_b->fine_width, plane_b->fine_height), false);
    load(&b, memory + ALIGNMENT_FINE * ALIGNMENT_FINE, plane_b->fine, plane_b->fine_width,
         plane_b->fine_height, max_u32(plane_a->fine_width, plane_a->fine_height), p->mirrored);
    move_map(fit->map, &p->a[0], &p->b[0], &a, &b);
    for (int s = 0; s < 4 && moved > 0.02; s++)
        if (!step(fit, &a, &b, &scale, &moved))
            return false;
    if (!fit_brightness(fit, &a, &b, &scale, true))
        return false;
    warp(warped, &a, &b, fit);
    const bool halved = a.width != (int)plane_a->fine_width || b.width != (int)plane_b->fine_width;
    for (int again = 0; again < 2; again++) {
        const double most = (halved ? LOST_HALVED : LOST) * squares / energy;
        for (int v = 1; v + WINDOW < b.height; v += WINDOW / 2) {
            for (int u = 1; u + WINDOW < b.width; u += WINDOW / 2) {
                const float *in_a = warped + v * b.width + u, *in_b = b.pixel + v * b.width + u;
                struct window w = look(in_a, in_b, b.width);
                if (again) {
                    for (int s = 0; s < 9 && w.left > most; s++)
                        w.left = fminf(
                            w.left,
                            look(in_a + (s / 3 - 1) * b.width + s % 3 - 1, in_b, b.width).left);
                    if (w.left > most)
                        return false;
                } else if (isfinite(w.left)) {
                    energy += w.energy;
                    squares += w.energy * w.energy;
                }
            }
        }
    }
    return energy > 0;
}

/* --- all of it -------------------------------------------------------------------------------- */

struct alignment alignment_compare(const struct alignment_plane *a, const struct alignment_plane *b,
                                   bool mirrored, struct alignment_scratch *scratch)
{
    struct pictures p = {.plane_a = a, .plane_b = b, .mirrored = mirrored};
    struct fit whole = {.gain = 1};
    struct alignment best = {0};
    double scale;
    if (a->width < ALIGNMENT_LEAST || a->height < ALIGNMENT_LEAST || b->width < ALIGNMENT_LEAST ||
        b->height < ALIGNMENT_LEAST)
        return best;
    p.grey_a = is_grey(a, GREY);
    p.grey_b = is_grey(b, GREY);
    p.colourless = is_grey(a, COLOURLESS) || is_grey(b, COLOURLESS);
    build(p.a, scratch->a, a, b, false);
    build(p.b, scratch->b, b, a, mirrored);
    /* Starts from unscaled brightness, too: a caption misleads least squares. */
    for (int as_is = 0; as_is < 2 && !best.same; as_is++) {
        whole.gain = 1;
        whole.offset = 0;
        place_map(whole.map, &p.a[1], &p.b[1], 0, 0, 1, 1);
        if ((as_is || fit_brightness(&whole, &p.a[1], &p.b[1], &scale, false)) &&
            is_promising(&whole, &p, 1)) {
            move_map(whole.map, &p.a[1], &p.b[1], &p.a[0], &p.b[0]);
            best = judge(&whole, &p);
            best.correlation = best.same ? best.correlation : 0; /* it was not fitted */
        }
    }
    better(&best, &p, 0, 0, 1, 1);
    /* If the shapes differ, one may be cropped along one axis: then they share the other sides. */
    const double shape = (double)b->width * a->height / ((double)b->height * a->width);
    for (int end = 0; end < 2 && (shape < 0.99 || shape > 1.01); end++) {
        better(&best, &p, end * (1 - shape), 0, shape, 1);
        better(&best, &p, 0, end * (1 - 1 / shape), 1, 1 / shape);
    }
    /* Or cropped on all sides: from farther away, lines of text are fitted to their neighbours. */
    better(&best, &p, CROPPED / 2, CROPPED / 2, 1 - CROPPED, 1 - CROPPED);
    better(&best, &p, -CROPPED / 2, -CROPPED / 2, 1 + CROPPED, 1 + CROPPED);
    if (best.certain && a->fine && b->fine)
        best.certain = is_unchanged(&p, scratch->fine);
    return best;
}
