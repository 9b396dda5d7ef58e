/* forces.c: a quadtree over points in Morton order (G. Morton 1966; J. Barnes and P. Hut 1986).
 *
 * A node is a range of the sorted points; nodes are stored depth first, each with the index after
 * its subtree, so that traversal needs no stack. Nearby points see nearly the same nodes: the tree
 * is walked once per group of up to 32 of them, using the group's bounding rectangle, which is no
 * farther from any node than its points are. The walk yields a list of masses, which act on four
 * points at a time. */
#include "neighbours/forces.h"
#include "base/held.h"

#include <stdlib.h>
#include <string.h>

#define LEVELS 21u  /* bits of a coordinate */
#define DIGIT  11u  /* bits sorted at a time; 4 digits hold 2 * LEVELS */
#define LEAF   8u   /* most points of an undivided node */
#define GROUP  32u  /* points per walk; a multiple of LANES */
#define LIST   512u /* masses per evaluation */
#define LANES  4u
#define CELLS  2097152.0f /* 2^LEVELS */

/* The lanes of the narrowest vector unit; every unit does the same operations in the same order. */
typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));

struct node {
    float x, y, mass; /* mean of its points, and their number */
    float side;       /* of its cell; 0: counts as one point at any distance */
    uint32_t first, count;
    uint32_t behind; /* index of the next node outside its subtree */
    bool leaf;
};

struct key {
    uint64_t code;
    uint32_t point;
};

struct forces {
    uint64_t points;
    struct key *keys, *spare;
    float *x, *y; /* of the sorted points, plus GROUP zeros */
    struct node *node;
    uint32_t nodes;
    uint32_t *group; /* indices of nodes */
    uint32_t groups;
    double *group_total;
    float extent, theta;
    float *force; /* argument of the call */
    struct held held;
};

enum status forces_open(struct forces **out, uint64_t points, struct error *err)
{
    struct forces *forces = *out = calloc(1, sizeof *forces);
    if (!forces)
        return error_memory(err, sizeof *forces, "a map");
    forces->points = points;
    forces->keys = held_array(&forces->held, points, sizeof *forces->keys);
    forces->spare = held_array(&forces->held, points, sizeof *forces->spare);
    forces->x = held_array(&forces->held, points + GROUP, sizeof *forces->x);
    forces->y = held_array(&forces->held, points + GROUP, sizeof *forces->y);
    forces->node = held_array(&forces->held, 2 * points, sizeof *forces->node);
    forces->group = held_array(&forces->held, points, sizeof *forces->group);
    forces->group_total = held_array(&forces->held, points, sizeof *forces->group_total);
    return held_check(&forces->held, "a map", err);
}

void forces_close(struct forces **out)
{
    struct forces *forces = out ? *out : NULL;
    if (!forces)
        return;
    held_free(&forces->held);
    free(forces);
    *out = NULL;
}

/* --- the tree -------------------------------------------------------------------------------- */

/* Spreads up to 32 bits over the even positions. */
static uint64_t spread(uint64_t bits)
{
    bits = (bits | bits << 16) & 0x0000ffff0000ffffu;
    bits = (bits | bits << 8) & 0x00ff00ff00ff00ffu;
    bits = (bits | bits << 4) & 0x0f0f0f0f0f0f0f0fu;
    bits = (bits | bits << 2) & 0x3333333333333333u;
    return (bits | bits << 1) & 0x5555555555555555u;
}

static uint32_t grid(float at, float least, float scale)
{
    const float cell = (at - least) * scale;
    return cell >= CELLS - 1.0f ? (1u << LEVELS) - 1 : (uint32_t)cell;
}

/* Sorts by code, then point number: a radix sort, which is stable. */
static void sort_keys(struct forces *forces)
{
    const uint64_t points = forces->points;
    for (unsigned shift = 0; shift < 2 * LEVELS; shift += DIGIT) {
        const uint64_t mask = (1u << DIGIT) - 1;
        uint64_t begin[(1u << DIGIT) + 1] = {0};
        for (uint64_t i = 0; i < points; i++)
            begin[(forces->keys[i].code >> shift & mask) + 1]++;
        for (unsigned d = 0; d <= mask; d++)
            begin[d + 1] += begin[d];
        for (uint64_t i = 0; i < points; i++)
            forces->spare[begin[forces->keys[i].code >> shift & mask]++] = forces->keys[i];
        struct key *keys = forces->keys;
        forces->keys = forces->spare;
        forces->spare = keys;
    }
}

static void sort_points(struct forces *forces, const float *xy)
{
    float least[2] = {xy[0], xy[1]}, most[2] = {xy[0], xy[1]};
    for (uint64_t i = 0; i < 2 * forces->points; i++) {
        least[i % 2] = xy[i] < least[i % 2] ? xy[i] : least[i % 2];
        most[i % 2] = xy[i] > most[i % 2] ? xy[i] : most[i % 2];
    }
    const float wide = most[0] - least[0], high = most[1] - least[1];
    forces->extent = wide > high ? wide : high;
    const float scale = forces->extent > 0 ? CELLS / forces->extent : 0;
    for (uint64_t i = 0; i < forces->points; i++) {
        const uint64_t code = spread(grid(xy[2 * i], least[0], scale)) |
                              spread(grid(xy[2 * i + 1], least[1], scale)) << 1;
        forces->keys[i] = (struct key){code, (uint32_t)i};
    }
    sort_keys(forces);
    for (uint64_t i = 0; i < forces->points; i++) {
        forces->x[i] = xy[2 * (size_t)forces->keys[i].point];
        forces->y[i] = xy[2 * (size_t)forces->keys[i].point + 1];
    }
}

/* The first of [first, end) whose digit at this level is at least `quarter`. */
static uint32_t find_quarter(const struct forces *forces, uint32_t first, uint32_t end,
                             unsigned level, uint32_t quarter)
{
    while (first < end) {
        const uint32_t middle = first + (end - first) / 2;
        if ((forces->keys[middle].code >> 2 * (level - 1) & 3) < quarter)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

/* Builds the node of sorted points [first, end), whose codes agree above `level`. in_group: an
 * ancestor walks for its points. */
static void build(struct forces *forces, uint32_t first, uint32_t end, unsigned level,
                  bool in_group)
{
    const uint32_t count = end - first, here = forces->nodes++;
    struct node *node = &forces->node[here];
    uint32_t bound[5] = {first, first, first, first, end};
    *node = (struct node){.first = first, .count = count, .mass = (float)count};
    bool divided = false;
    /* Skips levels at which all points are in one quarter. */
    for (; count > LEAF && level > 0 && !divided; level--) {
        for (unsigned q = 1; q < 4; q++)
            bound[q] = find_quarter(forces, bound[q - 1], end, level, q);
        divided = forces->keys[first].code >> 2 * (level - 1) !=
                  forces->keys[end - 1].code >> 2 * (level - 1);
    }
    /* `level` is now that of the children. */
    node->leaf = !divided;
    node->side = level == 0 && !divided
                     ? 0
                     : forces->extent * (float)(divided ? 2 : 1) * (float)(1u << level) / CELLS;
    if (count <= GROUP && !in_group) {
        forces->group[forces->groups++] = here;
        in_group = true;
    } else if (node->leaf && !in_group) { /* many coincident points */
        forces->group[forces->groups++] = here;
    }
    double x = 0, y = 0;
    if (divided) {
        for (unsigned q = 0; q < 4; q++) {
            const uint32_t child = forces->nodes;
            if (bound[q] == bound[q + 1])
                continue;
            build(forces, bound[q], bound[q + 1], level, in_group);
            x += (double)forces->node[child].x * forces->node[child].mass;
            y += (double)forces->node[child].y * forces->node[child].mass;
        }
    } else {
        for (uint32_t i = first; i < end; i++) {
            x += forces->x[i];
            y += forces->y[i];
        }
    }
    node->x = (float)(x / count);
    node->y = (float)(y / count);
    node->behind = forces->nodes;
}

/* --- the walk -------------------------------------------------------------------------------- */

struct walk {
    float x[LIST], y[LIST], mass[LIST];
    unsigned length;
    uint32_t first, count; /* points */
    lanes px[GROUP / LANES], py[GROUP / LANES];
    lanes fx[GROUP / LANES], fy[GROUP / LANES], sum[GROUP / LANES];
};

static void evaluate(struct walk *walk)
{
    for (uint32_t v = 0; v * LANES < walk->count; v++) {
        const lanes px = walk->px[v], py = walk->py[v];
        lanes fx = walk->fx[v], fy = walk->fy[v], sum = walk->sum[v];
        for (unsigned k = 0; k < walk->length; k++) {
            const lanes dx = px - walk->x[k], dy = py - walk->y[k];
            const lanes q = 1.0f / (1.0f + dx * dx + dy * dy);
            const lanes mass = q * walk->mass[k], pull = mass * q;
            sum += mass;
            fx += pull * dx;
            fy += pull * dy;
        }
        walk->fx[v] = fx;
        walk->fy[v] = fy;
        walk->sum[v] = sum;
    }
    walk->length = 0;
}

static void put(struct walk *walk, float x, float y, float mass)
{
    if (walk->length == LIST)
        evaluate(walk);
    walk->x[walk->length] = x;
    walk->y[walk->length] = y;
    walk->mass[walk->length++] = mass;
}

/* Walks for up to GROUP sorted points. Returns the sum of their q. */
static double walk_points(struct forces *forces, uint32_t first, uint32_t count)
{
    struct walk walk = {.first = first, .count = count};
    /* Each point meets itself, with q = 1: subtracting that first keeps the digits of small
     * sums. */
    for (unsigned v = 0; v < GROUP / LANES; v++)
        walk.sum[v] -= 1.0f;
    const float *x = forces->x + first, *y = forces->y + first;
    memcpy(walk.px, x, sizeof walk.px);
    memcpy(walk.py, y, sizeof walk.py);
    float left = x[0], right = x[0], bottom = y[0], top = y[0];
    for (uint32_t i = 1; i < count; i++) {
        left = x[i] < left ? x[i] : left;
        right = x[i] > right ? x[i] : right;
        bottom = y[i] < bottom ? y[i] : bottom;
        top = y[i] > top ? y[i] : top;
    }
    const float theta = forces->theta * forces->theta;
    for (uint32_t n = 0; n < forces->nodes;) {
        const struct node *node = &forces->node[n];
        const float dx = node->x < left ? left - node->x : node->x > right ? node->x - right : 0;
        const float dy = node->y < bottom ? bottom - node->y : node->y > top ? node->y - top : 0;
        if (node->side * node->side < theta * (dx * dx + dy * dy) || node->side == 0) {
            put(&walk, node->x, node->y, node->mass);
        } else if (node->leaf) {
            for (uint32_t i = node->first; i < node->first + node->count; i++)
                put(&walk, forces->x[i], forces->y[i], 1);
        } else {
            n++;
            continue;
        }
        n = node->behind;
    }
    evaluate(&walk);
    double total = 0;
    for (uint32_t i = 0; i < count; i++) {
        float *force = forces->force + 2 * (size_t)forces->keys[first + i].point;
        force[0] = walk.fx[i / LANES][i % LANES];
        force[1] = walk.fy[i / LANES][i % LANES];
        total += walk.sum[i / LANES][i % LANES];
    }
    return total;
}

static void walk_group(void *context, uint64_t group)
{
    struct forces *forces = context;
    const struct node *node = &forces->node[forces->group[group]];
    double total = 0;
    for (uint32_t done = 0; done < node->count; done += GROUP)
        total += walk_points(forces, node->first + done,
                             node->count - done < GROUP ? node->count - done : GROUP);
    forces->group_total[group] = total;
}

void forces_repel(float *force, double *total, struct forces *forces, const float *xy, float theta,
                  struct workers *workers)
{
    forces->force = force;
    forces->theta = theta;
    forces->nodes = forces->groups = 0;
    sort_points(forces, xy);
    build(forces, 0, (uint32_t)forces->points, LEVELS, false);
    workers_run(workers, walk_group, forces, forces->groups);
    *total = 0;
    for (uint32_t g = 0; g < forces->groups; g++)
        *total += forces->group_total[g];
}
