/* map.c: gradient descent with momentum and gains (R. Jacobs 1988), as in t-SNE. */
#include "neighbours/layout.h"

#include "base/minmax.h"
#include "base/workers.h"
#include "neighbours/forces.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Attraction is exaggerated at first, so that clusters form and spread out. */
#define EXAGGERATION      12.0f
#define EARLY_ITERATIONS  250u
#define LATER_ITERATIONS  500u
#define MOMENTUM          0.8f
#define LEAST_RATE        200.0f
#define THETA             0.5f
#define INITIAL_DEVIATION 1e-4 /* of the wider axis */
#define ROWS_PART         1024u

struct descent {
    uint64_t rows;
    struct edges attraction;
    struct forces *forces;
    struct workers *workers;
    float *xy, *next, *repulsion, *velocity, *gain; /* 2 * rows each */
    double total;                                   /* from forces_repel */
    float exaggeration, rate;
};

/* A 64-bit hash (S. Vigna's splitmix64) as a number from -1 to 1. */
static float noise(uint64_t number)
{
    uint64_t z = (number + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (float)((double)(z >> 40) / (double)(1u << 23) - 1);
}

/* Small, with some noise: coincident rows would never separate. */
static void begin(struct descent *descent, const float *initial)
{
    const uint64_t rows = descent->rows;
    double mean[2] = {0, 0}, spread[2] = {0, 0};
    for (uint64_t i = 0; initial && i < 2 * rows; i++)
        mean[i % 2] += initial[i] / (double)rows;
    for (uint64_t i = 0; initial && i < 2 * rows; i++)
        spread[i % 2] += (initial[i] - mean[i % 2]) * (initial[i] - mean[i % 2]) / (double)rows;
    const double widest = sqrt(spread[0] > spread[1] ? spread[0] : spread[1]);
    const bool usable = initial && isfinite(widest) && widest > 0;
    for (uint64_t i = 0; i < 2 * rows; i++) {
        const double at = usable ? (initial[i] - mean[i % 2]) / widest : 0;
        const double aside = noise(i) * (usable ? 0.01 : 1);
        descent->xy[i] = (float)((at + aside) * INITIAL_DEVIATION);
        descent->gain[i] = 1;
        descent->velocity[i] = 0;
    }
}

/* Each row divides equal weights among its neighbours (as good for a neighbour embedding as weights
 * by distance: J. Boehm, P. Berens, D. Kobak 2022). */
static double weigh(const void *context, uint64_t row, uint32_t i)
{
    const struct edges_source *source = context;
    const struct neighbours *nearest = source->nearest;
    uint32_t count = 0;
    (void)i;
    for (uint32_t j = 0; j < source->used; j++)
        count += edges_is_other(nearest->queries, row, nearest->rows[row * nearest->n + j]);
    return (double)(1.0f / (float)count);
}

enum status layout_attract(struct edges *out, const struct neighbours *nearest, struct error *err)
{
    const struct edges_source source = {.nearest = nearest,
                                        .used = min_u32(nearest->n, LAYOUT_NEIGHBOURS),
                                        .weight = weigh,
                                        .context = &source,
                                        .adds = true};
    double total = 0;
    if (edges_open(out, &source, err) != STATUS_OK)
        return err->status;
    for (uint64_t i = 0; i < out->begin[out->rows]; i++)
        total += out->edge[i].weight;
    for (uint64_t i = 0; i < out->begin[out->rows]; i++)
        out->edge[i].weight = (double)(float)(out->edge[i].weight / total);
    return STATUS_OK;
}

static void move_rows(void *context, uint64_t part)
{
    const struct descent *descent = context;
    const struct edges *attraction = &descent->attraction;
    const float *xy = descent->xy, scale = (float)(1 / descent->total);
    const uint64_t last = min_u64((part + 1) * ROWS_PART, descent->rows);
    for (uint64_t i = part * ROWS_PART; i < last; i++) {
        const float x = xy[2 * i], y = xy[2 * i + 1];
        float pull[2] = {0, 0};
        for (uint64_t k = attraction->begin[i]; k < attraction->begin[i + 1]; k++) {
            const struct edge *edge = &attraction->edge[k];
            const float *other = xy + 2 * (size_t)edge->row;
            const float dx = x - other[0], dy = y - other[1];
            const float q = (float)edge->weight / (1 + dx * dx + dy * dy);
            pull[0] += q * dx;
            pull[1] += q * dy;
        }
        for (uint64_t j = 2 * i; j < 2 * i + 2; j++) {
            const float gradient =
                descent->exaggeration * pull[j % 2] - descent->repulsion[j] * scale;
            const bool same = (gradient > 0) == (descent->velocity[j] > 0);
            const float gain = same ? descent->gain[j] * 0.8f : descent->gain[j] + 0.2f;
            descent->gain[j] = gain > 0.01f ? gain : 0.01f;
            descent->velocity[j] =
                MOMENTUM * descent->velocity[j] - descent->rate * descent->gain[j] * gradient;
            descent->next[j] = xy[j] + descent->velocity[j];
        }
    }
}

static enum status descend(struct descent *descent, const struct neighbours_config *config,
                           struct error *err)
{
    const uint32_t iterations = EARLY_ITERATIONS + LATER_ITERATIONS;
    for (uint32_t iteration = 0; iteration < iterations; iteration++) {
        enum status status = watch_check(&config->watch, "computing the map", err);
        if (status != STATUS_OK)
            return status;
        descent->exaggeration = iteration < EARLY_ITERATIONS ? EXAGGERATION : 1;
        descent->rate = (float)descent->rows / EXAGGERATION;
        if (descent->rate < LEAST_RATE)
            descent->rate = LEAST_RATE;
        forces_repel(descent->repulsion, &descent->total, descent->forces, descent->xy, THETA,
                     descent->workers);
        workers_run(descent->workers, move_rows, descent,
                    (descent->rows + ROWS_PART - 1) / ROWS_PART);
        float *xy = descent->xy;
        descent->xy = descent->next;
        descent->next = xy;
        watch_show(&config->watch, "map", iteration + 1, iterations);
    }
    return STATUS_OK;
}

/* Scales to -1 to 1 along the wider axis, centred at 0. */
static void fit(float *out, const float *xy, uint64_t rows)
{
    float least[2] = {xy[0], xy[1]}, most[2] = {xy[0], xy[1]};
    for (uint64_t i = 0; i < 2 * rows; i++) {
        least[i % 2] = xy[i] < least[i % 2] ? xy[i] : least[i % 2];
        most[i % 2] = xy[i] > most[i % 2] ? xy[i] : most[i % 2];
    }
    const float wide = most[0] - least[0], high = most[1] - least[1];
    const float extent = wide > high ? wide : high;
    for (uint64_t i = 0; i < 2 * rows; i++) {
        const float middle = (least[i % 2] + most[i % 2]) / 2;
        out[i] = extent > 0 ? (xy[i] - middle) / (extent / 2) : 0;
    }
}

enum status layout_map(float *xy, const struct neighbours *nearest, const float *initial,
                       const struct neighbours_config *config, struct error *err)
{
    const uint64_t rows = nearest->queries;
    struct descent descent = {.rows = rows};
    if (rows > UINT32_MAX / 2)
        return error_set(err, STATUS_FAILED, "a map has at most %u rows", UINT32_MAX / 2);
    if (rows < 2) {
        memset(xy, 0, 2 * rows * sizeof *xy);
        return STATUS_OK;
    }
    float *buffer = malloc(10 * rows * sizeof *buffer);
    if (!buffer)
        return error_memory(err, 10 * rows * sizeof *buffer, "a map");
    descent.xy = buffer;
    descent.next = buffer + 2 * rows;
    descent.repulsion = buffer + 4 * rows;
    descent.velocity = buffer + 6 * rows;
    descent.gain = buffer + 8 * rows;
    enum status status = layout_attract(&descent.attraction, nearest, err);
    if (status == STATUS_OK)
        status = forces_open(&descent.forces, rows, err);
    if (status == STATUS_OK)
        status = workers_open(&descent.workers, config->threads, err);
    if (status == STATUS_OK) {
        begin(&descent, initial);
        status = descend(&descent, config, err);
    }
    if (status == STATUS_OK)
        fit(xy, descent.xy, rows);
    workers_close(&descent.workers);
    forces_close(&descent.forces);
    edges_close(&descent.attraction);
    free(buffer);
    return status;
}
