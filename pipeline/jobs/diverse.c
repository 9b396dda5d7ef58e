/* diverse.c: always chooses the image farthest from those already chosen; the first has the lowest
 * random number, ties go to the lowest row. Distances are canonical, so the result is exact. A row
 * is skipped if the new centre is so far from its own that it cannot be nearer (triangle
 * inequality). */
#include "base/held.h"
#include "base/minmax.h"
#include "jobs/row_values.h"
#include "kmeans/canonical.h"
#include <math.h>
#include <stdio.h>

#define CHOSEN (-1.0)
/* Far more than the rounding errors of three distances. */
#define MARGIN (1 + 1e-9)

struct farthest {
    double squared;
    uint64_t index;
};

struct diverse {
    struct selection *selection;
    struct row_values values;
    double *squared;   /* per candidate: to its nearest centre */
    uint32_t *nearest; /* the number of that centre */
    float *centre;     /* count x stride */
    double *between;   /* between the newest centre and each other */
    uint32_t centres;
    struct farthest *part; /* per part: of images that can be chosen */
    uint64_t *taken;       /* per cluster: chosen images; NULL: any number can be */
    /* The block being compared: */
    const float *rows; /* NULL: none of its rows can be nearer to the newest centre */
    uint64_t first, count;
};

static uint64_t parts_of(uint64_t count)
{
    return (count + ROW_VALUES_PART - 1) / ROW_VALUES_PART;
}

static void measure_centres(void *context, uint64_t part)
{
    struct diverse *diverse = context;
    const uint32_t stride = diverse->values.stride;
    const float *newest = diverse->centre + (size_t)(diverse->centres - 1) * stride;
    const uint64_t first = part * ROW_VALUES_PART,
                   last = min_u64(first + ROW_VALUES_PART, diverse->centres);
    for (uint64_t i = first; i < last; i++)
        diverse->between[i] = canonical_distance(diverse->centre + i * stride, newest, stride);
}

/* Squared distances to centres are exact up to a rounding error that MARGIN covers. */
static bool can_be_nearer(const struct diverse *diverse, uint64_t i)
{
    return diverse->between[diverse->nearest[i]] < 4 * MARGIN * diverse->squared[i];
}

/* Whether its cluster has not reached its limit. */
static bool is_open(const struct diverse *diverse, uint64_t i)
{
    const struct selection *selection = diverse->selection;
    return !diverse->taken || diverse->taken[selection->labels[diverse->values.row[i]]] <
                                  selection->config->per_cluster;
}

static void look_at_part(void *context, uint64_t part)
{
    struct diverse *diverse = context;
    const uint32_t stride = diverse->values.stride, newest = diverse->centres - 1;
    const float *centre = diverse->centre + (size_t)newest * stride;
    const uint64_t first = diverse->first + part * ROW_VALUES_PART,
                   last = min_u64(first + ROW_VALUES_PART, diverse->first + diverse->count);
    struct farthest *farthest = &diverse->part[first / ROW_VALUES_PART];
    *farthest = (struct farthest){CHOSEN, first};
    for (uint64_t i = first; i < last; i++) {
        if (diverse->rows && can_be_nearer(diverse, i)) {
            const double squared =
                canonical_distance(diverse->rows + (i - diverse->first) * stride, centre, stride);
            if (squared < diverse->squared[i]) {
                diverse->squared[i] = squared;
                diverse->nearest[i] = newest;
            }
        }
        if (diverse->squared[i] > farthest->squared && is_open(diverse, i))
            *farthest = (struct farthest){diverse->squared[i], i};
    }
}

/* After a new centre: finds the farthest candidate. */
static enum status look_at_all(struct farthest *out, struct diverse *diverse, struct error *err)
{
    struct row_values *values = &diverse->values;
    const uint64_t at_once = values->resident ? values->count : values->block_rows;
    enum status status = stop_check(values->stop, "choosing images", err);
    workers_run(values->workers, measure_centres, diverse, parts_of(diverse->centres));
    for (diverse->first = 0; diverse->first < values->count && status == STATUS_OK;
         diverse->first += diverse->count) {
        uint64_t needed = diverse->first;
        diverse->count = min_u64(at_once, values->count - diverse->first);
        diverse->rows = NULL;
        while (needed < diverse->first + diverse->count && !can_be_nearer(diverse, needed))
            needed++;
        if (needed < diverse->first + diverse->count)
            status = row_values_at(&diverse->rows, values, diverse->first, diverse->count, err);
        if (status == STATUS_OK)
            workers_run(values->workers, look_at_part, diverse, parts_of(diverse->count));
    }
    *out = (struct farthest){CHOSEN, 0};
    for (uint64_t i = 0; i < parts_of(values->count); i++)
        if (diverse->part[i].squared > out->squared)
            *out = diverse->part[i];
    return status;
}

static uint64_t first_index(const struct diverse *diverse)
{
    uint64_t first = 0;
    double least = 1;
    for (uint64_t i = 0; i < diverse->values.count; i++) {
        const double key = canonical_random(diverse->selection->config->seed, SELECT_ROW_STREAM,
                                            diverse->values.row[i]);
        if (key < least) {
            least = key;
            first = i;
        }
    }
    return first;
}

static enum status choose(struct diverse *diverse, uint32_t most, struct error *err)
{
    struct selection *selection = diverse->selection;
    struct farthest next = {INFINITY, first_index(diverse)};
    const struct watch *watch = &selection->config->machine.watch;
    enum status status = STATUS_OK;
    for (uint64_t i = 0; i < diverse->values.count; i++)
        diverse->squared[i] = INFINITY;
    while (diverse->centres < most && next.squared >= 0 && status == STATUS_OK) {
        const uint64_t row = diverse->values.row[next.index];
        selection->candidate[diverse->centres] =
            (struct candidate){.row = row, .key = sqrt(next.squared)};
        status =
            row_values_copy(diverse->centre + (size_t)diverse->centres * diverse->values.stride,
                            &diverse->values, next.index, err);
        diverse->centres++;
        diverse->squared[next.index] = CHOSEN;
        if (diverse->taken)
            diverse->taken[selection->labels[row]]++;
        if (status == STATUS_OK)
            status = look_at_all(&next, diverse, err);
        watch_show(watch, "choosing images", diverse->centres, most);
    }
    selection->radius = 0;
    for (uint64_t i = 0; i < diverse->values.count; i++)
        if (diverse->squared[i] > selection->radius)
            selection->radius = diverse->squared[i];
    selection->radius = sqrt(selection->radius);
    return status;
}

enum status order_diverse(struct selection *selection, struct error *err)
{
    struct diverse diverse = {.selection = selection};
    SCOPED_HELD held = {0};
    const struct select_config *config = selection->config;
    enum status status = row_values_open(&diverse.values, selection, config->metric, err);
    const uint64_t rows = diverse.values.count,
                   most = config->count ? min_u64(config->count, rows) : rows;
    if (status == STATUS_OK && most > UINT32_MAX)
        status = error_set(err, STATUS_USAGE, "diverse chooses at most %u images", UINT32_MAX);
    if (status == STATUS_OK) {
        diverse.squared = held_array(&held, rows, sizeof *diverse.squared);
        diverse.nearest = held_array(&held, rows, sizeof *diverse.nearest);
        diverse.between = held_array(&held, most, sizeof *diverse.between);
        diverse.centre = held_array(&held, most * diverse.values.stride, sizeof *diverse.centre);
        diverse.part = held_array(&held, rows / ROW_VALUES_PART + 1, sizeof *diverse.part);
        if (config->per_cluster > 0)
            diverse.taken = held_array(&held, selection->clusters->k, sizeof *diverse.taken);
        status = held_check(&held, "distances of images", err);
    }
    selection->incomparable = selection->candidates - rows;
    selection->candidates = rows;
    if (status == STATUS_OK && rows > 0)
        status = choose(&diverse, (uint32_t)most, err);
    selection->chosen = diverse.centres;
    row_values_close(&diverse.values);
    return status;
}

void reason_diverse(const void *context, uint64_t i, char text[SELECTION_REASON])
{
    const struct selection *selection = context;
    if (i == 0)
        snprintf(text, SELECTION_REASON, "first");
    else
        snprintf(text, SELECTION_REASON, "%.6g from those before", selection->candidate[i].key);
}
