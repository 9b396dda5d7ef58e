/* test_kmeans_reference.h: k-means as docs/clustering.md defines it, simple and slow, for
 * comparison bit by bit; and difficult data. */
#ifndef CLPIPE_TEST_KMEANS_REFERENCE_H
#define CLPIPE_TEST_KMEANS_REFERENCE_H

#include "kmeans/canonical.h"
#include "kmeans/cluster.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct matrix {
    uint32_t n, d;
    float *x;
};

static inline enum status read_matrix(void *context, uint64_t first, uint64_t count, float *rows,
                                      struct error *err)
{
    (void)err;
    const struct matrix *m = context;
    memcpy(rows, m->x + first * m->d, count * m->d * sizeof *rows);
    return STATUS_OK;
}

static inline struct matrix_source matrix_source_of(struct matrix *m)
{
    return (struct matrix_source){
        .rows = m->n, .dimension = m->d, .read = read_matrix, .context = m};
}

/* --- arithmetic ------------------------------------------------------------------------------ */

static inline double ref_distance(const float *x, const float *c, uint32_t d)
{
    double s[16] = {0};
    for (uint32_t j = 0; j < d; j++) {
        double t = (double)x[j] - (double)c[j];
        s[j % 16] = fma(t, t, s[j % 16]);
    }
    for (int h = 8; h > 0; h /= 2)
        for (int l = 0; l < h; l++)
            s[l] += s[l + h];
    return s[0];
}

static inline double ref_block_sum(const double *v, uint32_t count)
{
    double s[256] = {0};
    memcpy(s, v, count * sizeof *v);
    for (int h = 128; h > 0; h /= 2)
        for (int i = 0; i < h; i++)
            s[i] += s[i + h];
    return s[0];
}

static inline double ref_sum(const double *v, uint32_t n)
{
    double total = 0;
    for (uint32_t i = 0; i < n; i += 256)
        total += ref_block_sum(v + i, n - i < 256 ? n - i : 256);
    return total;
}

/* The scale of a column, such that no sum of n values exceeds 62 bits. */
static inline int ref_scale(const struct matrix *m, uint32_t j)
{
    float largest = 0;
    int exponent = 0, bits = 0;
    for (uint32_t i = 0; i < m->n; i++)
        largest = fmaxf(largest, fabsf(m->x[(size_t)i * m->d + j]));
    if (largest > 0)
        frexpf(largest, &exponent);
    while ((1ull << bits) < m->n)
        bits++;
    return 62 - bits - exponent;
}

/* --- Lloyd ----------------------------------------------------------------------------------- */

static inline void ref_assign(int32_t *labels, double *distances, const struct matrix *m,
                              const float *c, uint32_t k)
{
    for (uint32_t i = 0; i < m->n; i++) {
        labels[i] = -1;
        for (uint32_t l = 0; l < k; l++) {
            double t = ref_distance(m->x + (size_t)i * m->d, c + (size_t)l * m->d, m->d);
            if (labels[i] < 0 || t < distances[i]) {
                labels[i] = (int32_t)l;
                distances[i] = t;
            }
        }
    }
}

static inline uint32_t ref_count(const int32_t *labels, uint32_t n, uint32_t label)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++)
        count += labels[i] == (int32_t)label;
    return count;
}

/* Each empty cluster gets the farthest row that is not the only one of its cluster; equal rows are
 * used once. */
static inline bool ref_relocate(int32_t *labels, const double *distances, const struct matrix *m,
                                float *c, uint32_t k)
{
    bool any = false;
    char *used = calloc(m->n, 1);
    for (uint32_t l = 0; l < k; l++) {
        if (ref_count(labels, m->n, l) > 0)
            continue;
        int64_t best = -1;
        for (uint32_t i = 0; i < m->n; i++) {
            bool fits =
                !used[i] && distances[i] > 0 && ref_count(labels, m->n, (uint32_t)labels[i]) > 1;
            for (uint32_t o = 0; o < m->n && fits; o++)
                fits = used[o] != 1 ||
                       ref_distance(m->x + (size_t)i * m->d, m->x + (size_t)o * m->d, m->d) > 0;
            if (fits && (best < 0 || distances[i] > distances[best]))
                best = i;
        }
        if (best < 0)
            break;
        used[best] = 1;
        labels[best] = (int32_t)l;
        memcpy(c + (size_t)l * m->d, m->x + (size_t)best * m->d, m->d * sizeof *c);
        any = true;
    }
    free(used);
    return any;
}

static inline void ref_update(float *c, const int32_t *labels, const struct matrix *m, uint32_t k)
{
    for (uint32_t j = 0; j < m->d; j++) {
        const int scale = ref_scale(m, j);
        for (uint32_t l = 0; l < k; l++) {
            int64_t sum = 0;
            for (uint32_t i = 0; i < m->n; i++)
                if (labels[i] == (int32_t)l)
                    sum += llround(ldexp((double)m->x[(size_t)i * m->d + j], scale));
            uint32_t count = ref_count(labels, m->n, l);
            if (count > 0)
                c[(size_t)l * m->d + j] = (float)((double)sum / (double)count * ldexp(1.0, -scale));
        }
    }
}

struct reference {
    float *c;
    int32_t *labels;
    double *distances, inertia;
    uint32_t iterations;
    bool converged;
};

static inline bool ref_has_empty(const int32_t *labels, uint32_t n, uint32_t k)
{
    for (uint32_t l = 0; l < k; l++)
        if (ref_count(labels, n, l) == 0)
            return true;
    return false;
}

/* Runs Lloyd's iterations from ref->c (k x d). */
static inline void ref_lloyd(struct reference *ref, const struct matrix *m, uint32_t k,
                             uint32_t max_iter)
{
    int32_t *labels = malloc(m->n * sizeof *labels);
    float *before = malloc((size_t)k * m->d * sizeof *before);
    bool settled = false;
    ref->iterations = 0;
    ref->converged = false;
    memset(ref->labels, 255, m->n * sizeof *labels);
    while (ref->iterations < max_iter && !ref->converged) {
        ref->iterations++;
        ref_assign(labels, ref->distances, m, ref->c, k);
        settled = memcmp(labels, ref->labels, m->n * sizeof *labels) == 0;
        memcpy(ref->labels, labels, m->n * sizeof *labels);
        memcpy(before, ref->c, (size_t)k * m->d * sizeof *before);
        bool empty = ref_has_empty(labels, m->n, k);
        if (empty)
            ref_relocate(ref->labels, ref->distances, m, ref->c, k);
        ref_update(ref->c, ref->labels, m, k);
        settled = settled && !empty;
        double shift = 0;
        for (uint32_t l = 0; l < k; l++)
            shift += ref_distance(ref->c + (size_t)l * m->d, before + (size_t)l * m->d, m->d);
        ref->converged = settled || (!empty && shift == 0);
    }
    while (!settled) {
        ref_assign(ref->labels, ref->distances, m, ref->c, k);
        settled = !ref_has_empty(ref->labels, m->n, k);
        if (!settled && !ref_relocate(ref->labels, ref->distances, m, ref->c, k))
            break;
    }
    ref_assign(ref->labels, ref->distances, m, ref->c, k);
    ref->inertia = ref_sum(ref->distances, m->n);
    free(labels);
    free(before);
}

/* --- k-means++ ------------------------------------------------------------------------------- */

static inline uint32_t ref_draw(const double *distances, uint32_t n, double random)
{
    const double target = random * ref_sum(distances, n);
    double upto = 0, reached = 0;
    uint32_t row = 0;
    for (uint32_t b = 0; b < n; b += 256) {
        uint32_t rows = n - b < 256 ? n - b : 256;
        double next = upto + ref_block_sum(distances + b, rows);
        if (next > target) {
            row = b;
            reached = upto;
            for (uint32_t i = b; i < b + rows; i++) {
                row = distances[i] > 0 ? i : row;
                reached += distances[i];
                if (distances[i] > 0 && reached > target)
                    return row;
            }
            return row;
        }
        upto = next;
    }
    return row;
}

/* Greedy k-means++; writes k x d centroids to c. */
static inline void ref_plus_plus(float *c, const struct matrix *m, uint32_t k, uint64_t seed)
{
    const uint32_t trials = 2 + (uint32_t)log(k), n = m->n, d = m->d;
    uint64_t counter = 0;
    double *distances = malloc(n * sizeof *distances), *trial = malloc(n * sizeof *trial);
    uint32_t first = (uint32_t)(canonical_random(seed, 0, counter++) * n);
    memcpy(c, m->x + (size_t)first * d, d * sizeof *c);
    for (uint32_t i = 0; i < n; i++)
        distances[i] = ref_distance(m->x + (size_t)i * d, c, d);
    for (uint32_t l = 1; l < k; l++) {
        uint32_t rows[32], best = 0;
        double least = INFINITY;
        for (uint32_t t = 0; t < trials; t++)
            rows[t] = ref_draw(distances, n, canonical_random(seed, 0, counter++));
        for (uint32_t t = 0; t < trials; t++) {
            for (uint32_t i = 0; i < n; i++)
                trial[i] = fmin(distances[i],
                                ref_distance(m->x + (size_t)i * d, m->x + (size_t)rows[t] * d, d));
            if (ref_sum(trial, n) < least) {
                least = ref_sum(trial, n);
                best = rows[t];
            }
        }
        memcpy(c + (size_t)l * d, m->x + (size_t)best * d, d * sizeof *c);
        for (uint32_t i = 0; i < n; i++)
            distances[i] =
                fmin(distances[i], ref_distance(m->x + (size_t)i * d, m->x + (size_t)best * d, d));
    }
    free(distances);
    free(trial);
}

/* --- data ------------------------------------------------------------------------------------ */

static inline uint64_t test_bits(uint64_t *state)
{
    *state += 0x9E3779B97F4A7C15u;
    uint64_t z = *state;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* Approximately normal: mean 0, standard deviation 1. */
static inline float test_normal(uint64_t *state)
{
    double sum = 0;
    for (int i = 0; i < 12; i++)
        sum += (double)(test_bits(state) >> 11) * 0x1p-53;
    return (float)(sum - 6);
}

enum fill {
    FILL_MIXTURE,    /* clusters */
    FILL_NOISE,      /* no clusters */
    FILL_INTEGERS,   /* 0 to 3: distances are often equal */
    FILL_DUPLICATES, /* few distinct rows */
    FILL_OFFSET,     /* integers a million away from the origin */
    FILL_HUGE,       /* around 1e30: float32 squares overflow */
    FILL_TINY,       /* around 1e-30: float32 squares vanish */
    FILL_SUBNORMAL,  /* below the smallest normal float32 */
    FILL_SCALES,     /* columns from 1e-20 to 1e20, and rows likewise scaled */
    FILL_OUTLIER,    /* one row a million times larger than the rest */
    FILL_ROOTS,      /* non-negative rows of length 1, many zeros: histograms */
    FILLS
};

static const char *const fill_names[FILLS] = {"mixture", "noise",   "integers", "duplicates",
                                              "offset",  "huge",    "tiny",     "subnormal",
                                              "scales",  "outlier", "roots"};

static inline void fill_roots(float *row, uint32_t d, uint64_t *state)
{
    double sum = 0;
    for (uint32_t j = 0; j < d; j++) {
        row[j] = (float)(test_bits(state) % 3 == 0 ? test_bits(state) % 100 : 0);
        sum += (double)row[j];
    }
    for (uint32_t j = 0; j < d && sum > 0; j++)
        row[j] = (float)sqrt((double)row[j] / sum);
}

static inline void fill_matrix(struct matrix *m, enum fill fill, uint64_t seed)
{
    uint64_t state = seed * 1000 + fill;
    for (uint32_t i = 0; i < m->n; i++) {
        float *row = m->x + (size_t)i * m->d;
        uint64_t cluster = test_bits(&state) % 9, row_scale = test_bits(&state) % 41;
        for (uint32_t j = 0; j < m->d; j++) {
            uint64_t centre = cluster * 1000 + j;
            float normal = test_normal(&state), integer = (float)(test_bits(&state) % 4);
            switch (fill) {
            case FILL_MIXTURE:
                row[j] = 2 * test_normal(&centre) + normal;
                break;
            case FILL_INTEGERS:
                row[j] = integer;
                break;
            case FILL_DUPLICATES:
                row[j] = (float)(cluster * (j + 1) % 11);
                break;
            case FILL_OFFSET:
                row[j] = 1e6f + integer;
                break;
            case FILL_HUGE:
                row[j] = 1e30f * normal;
                break;
            case FILL_TINY:
                row[j] = 1e-30f * normal;
                break;
            case FILL_SUBNORMAL:
                row[j] = 1e-40f * normal;
                break;
            case FILL_SCALES:
                row[j] =
                    normal * powf(10, (float)((j * 7) % 41) - 20) * (row_scale < 4 ? 1e3f : 1.0f);
                break;
            case FILL_OUTLIER:
                row[j] = normal * (i == m->n / 2 ? 1e6f : 1.0f);
                break;
            default:
                row[j] = normal;
            }
        }
        if (fill == FILL_ROOTS)
            fill_roots(row, m->d, &state);
    }
}

#endif
