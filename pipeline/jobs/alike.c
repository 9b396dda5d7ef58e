/* alike.c: compares the images of each cluster, several clusters at a time. */
#include "base/held.h"
#include "base/minmax.h"
#include "base/parse.h"
#include "jobs/row_values.h"
#include "kmeans/canonical.h"
#include "matrix/projected.h"
#include "result/graph.h"
#include <stdlib.h>
#include <string.h>

#define NOT_ALIKE  UINT64_MAX
#define GRAPH_ROWS 4096u

/* An image of a cluster. */
struct member {
    uint64_t index;  /* among the rows with values */
    double order[2]; /* smaller ones come first */
    int32_t label;
    float cosine;
    uint64_t kept; /* index of the similar member, or NOT_ALIKE */
};

struct alike {
    struct selection *selection;
    struct row_values values;
    struct member *member; /* by cluster and order; values.count */
    uint64_t *end;         /* per cluster: the end of its members */
    double most;           /* largest squared distance of similar unit rows */
    const float *rows;     /* of the members starting at `first`, unless all are resident */
    uint64_t first;
    uint32_t cluster; /* the first member being compared */
    struct held held;
};

/* --- in which order ---------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    if (x->label != y->label)
        return x->label < y->label ? -1 : 1;
    for (int i = 0; i < 2; i++)
        if (x->order[i] != y->order[i])
            return x->order[i] < y->order[i] ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static enum status list_members(struct alike *alike, struct error *err)
{
    const struct selection *selection = alike->selection;
    const uint64_t count = alike->values.count;
    struct result_image image;
    enum status status = STATUS_OK;
    alike->member = held_array(&alike->held, count, sizeof *alike->member);
    alike->end = held_array(&alike->held, selection->clusters->k, sizeof *alike->end);
    status = held_check(&alike->held, "images of clusters", err);
    for (uint64_t i = 0; i < count && status == STATUS_OK; i++) {
        const uint64_t row = alike->values.row[i];
        struct member *member = &alike->member[i];
        *member = (struct member){.index = i, .label = selection->labels[row], .kept = NOT_ALIKE};
        alike->end[member->label]++;
        if (selection->config->preference == SELECT_BY_CENTRE) {
            member->order[0] = selection->distances[row];
            continue;
        }
        status = result_image_at(selection->result, row, &image, err);
        member->order[0] = -(double)image.width * image.height;
        member->order[1] = -(double)image.bytes;
    }
    for (uint32_t c = 1; c < selection->clusters->k && status == STATUS_OK; c++)
        alike->end[c] += alike->end[c - 1];
    if (status == STATUS_OK)
        qsort(alike->member, count, sizeof *alike->member, compare);
    return status;
}

/* --- comparing --------------------------------------------------------------------------------- */

static uint64_t begin_of(const struct alike *alike, uint32_t cluster)
{
    return cluster > 0 ? alike->end[cluster - 1] : 0;
}

static const float *row_of(const struct alike *alike, uint64_t i)
{
    return alike->values.resident
               ? alike->values.resident + alike->member[i].index * alike->values.stride
               : alike->rows + (i - alike->first) * alike->values.stride;
}

static void look_at_cluster(void *context, uint64_t part)
{
    struct alike *alike = context;
    const uint32_t cluster = alike->cluster + (uint32_t)part, stride = alike->values.stride;
    struct member *member = alike->member;
    struct stop *stop = alike->values.stop;
    for (uint64_t i = begin_of(alike, cluster); i < alike->end[cluster]; i++) {
        if (stop_requested(stop) != STOP_NONE)
            return;
        for (uint64_t j = begin_of(alike, cluster); j < i && member[i].kept == NOT_ALIKE; j++) {
            if (member[j].kept != NOT_ALIKE)
                continue;
            const double squared = canonical_distance(row_of(alike, i), row_of(alike, j), stride);
            if (squared <= alike->most) {
                member[i].kept = j;
                member[i].cosine = (float)(1 - squared / 2);
            }
        }
    }
}

/* Copies the rows of members [first, last) in order, in one pass over the file. slot: per row. */
static enum status gather(float *to, uint64_t *slot, struct alike *alike, uint64_t first,
                          uint64_t last, struct error *err)
{
    struct row_values *values = &alike->values;
    enum status status = STATUS_OK;
    for (uint64_t i = 0; i < values->count; i++)
        slot[i] = NOT_ALIKE;
    for (uint64_t i = first; i < last; i++)
        slot[alike->member[i].index] = i - first;
    for (uint64_t block = 0, count; block < values->count && status == STATUS_OK; block += count) {
        const float *rows = NULL;
        count = min_u64(values->block_rows, values->count - block);
        for (uint64_t i = 0; i < count && status == STATUS_OK; i++) {
            if (slot[block + i] == NOT_ALIKE)
                continue;
            if (!rows)
                status = row_values_at(&rows, values, block, count, err);
            if (status == STATUS_OK)
                memcpy(to + slot[block + i] * values->stride, rows + i * values->stride,
                       values->stride * sizeof *to);
        }
    }
    return status;
}

/* Compares as many clusters at a time as fit in memory. */
static enum status compare_all(struct alike *alike, struct error *err)
{
    const struct select_config *config = alike->selection->config;
    const struct watch *watch = &config->machine.watch;
    struct row_values *values = &alike->values;
    const uint64_t room = config->machine.memory / (values->stride * sizeof(float));
    const uint32_t k = alike->selection->clusters->k;
    SCOPED_HELD held = {0};
    float *rows = values->resident ? NULL : held_array(&held, room * values->stride, sizeof *rows);
    uint64_t *slot = values->resident ? NULL : held_array(&held, values->count, sizeof *slot);
    enum status status = held_check(&held, "rows of clusters", err);
    for (uint32_t c = 0, next; c < k && status == STATUS_OK; c = next) {
        alike->cluster = c;
        alike->first = begin_of(alike, c);
        for (next = c; next < k && (values->resident || alike->end[next] - alike->first <= room);
             next++)
            ;
        if (next == c) {
            const char *bytes = BYTES_TEXT((alike->end[c] - alike->first) * values->stride * 4);
            status =
                error_set(err, STATUS_FAILED,
                          "cluster %u of %s takes %s to compare: more --memory, or more clusters",
                          c, alike->selection->clusters->name, bytes);
        } else if (!values->resident) {
            status = gather(rows, slot, alike, alike->first, alike->end[next - 1], err);
        }
        alike->rows = rows;
        if (status == STATUS_OK)
            workers_run(values->workers, look_at_cluster, alike, next - c);
        if (status == STATUS_OK)
            status = stop_check(values->stop, "comparing images", err);
        watch_show(watch, "comparing images", next, k);
    }
    return status;
}

/* --- what is left ------------------------------------------------------------------------------ */

static enum status take_answer(struct alike *alike, uint8_t *is_out, struct error *err)
{
    struct selection *selection = alike->selection;
    const uint64_t count = alike->values.count;
    uint64_t *place = held_array(&alike->held, count, sizeof *place), omitted = 0, kept = 0;
    for (uint64_t i = 0; i < count && place; i++) {
        place[alike->member[i].index] = i;
        omitted += alike->member[i].kept != NOT_ALIKE;
    }
    selection->omitted = held_array(&selection->held, omitted, sizeof *selection->omitted);
    selection->kept = held_array(&selection->held, omitted, sizeof *selection->kept);
    selection->cosine = held_array(&selection->held, omitted, sizeof *selection->cosine);
    if (held_check(&alike->held, "images that are alike", err) != STATUS_OK ||
        held_check(&selection->held, "images that are alike", err) != STATUS_OK)
        return STATUS_FAILED;
    for (uint64_t i = 0; i < count; i++) {
        const struct member *member = &alike->member[place[i]];
        if (member->kept == NOT_ALIKE)
            continue;
        const uint64_t n = selection->omitted_count++;
        selection->omitted[n] = (int64_t)alike->values.row[i];
        selection->kept[n] = (int64_t)alike->values.row[alike->member[member->kept].index];
        selection->cosine[n] = member->cosine;
        is_out[alike->values.row[i]] = 1;
    }
    for (uint64_t i = 0; i < selection->candidates; i++)
        if (!is_out[selection->candidate[i].row])
            selection->candidate[kept++] = selection->candidate[i];
    selection->candidates = kept;
    return STATUS_OK;
}

/* Counts kept images with an equally similar kept neighbour in another cluster. is_out: per row. */
static enum status count_hidden(struct alike *alike, const uint8_t *is_out, struct error *err)
{
    struct selection *selection = alike->selection;
    const struct result_feature *about = &alike->values.input.about;
    struct graph graph;
    if (graph_open(&graph, selection->result, about->name, NULL) != STATUS_OK)
        return STATUS_OK;
    SCOPED_HELD held = {0};
    int64_t *rows = held_array(&held, GRAPH_ROWS * (uint64_t)graph.n, sizeof *rows);
    float *squared = held_array(&held, GRAPH_ROWS * (uint64_t)graph.n, sizeof *squared);
    enum status status = held_check(&held, "neighbours", err);
    selection->hidden_known = strcmp(graph.metric, metric_names[METRIC_COSINE]) == 0;
    for (uint64_t first = 0, count;
         first < graph.rows && status == STATUS_OK && selection->hidden_known; first += count) {
        count = min_u64(GRAPH_ROWS, graph.rows - first);
        status = graph_read(&graph, first, count, rows, squared, err);
        for (uint64_t i = 0; i < count && status == STATUS_OK; i++) {
            bool hides = false;
            for (uint32_t j = 0; j < graph.n && !is_out[first + i]; j++) {
                const int64_t other = rows[i * graph.n + j];
                hides |= other >= 0 && (uint64_t)other < graph.rows &&
                         squared[i * graph.n + j] <= alike->most && !is_out[other] &&
                         selection->labels[other] != selection->labels[first + i];
            }
            selection->hidden += hides;
        }
    }
    graph_close(&graph);
    return status;
}

enum status alike_leave_out(struct selection *selection, struct error *err)
{
    struct alike alike = {.selection = selection, .most = 2 - 2 * selection->config->alike};
    const uint64_t images = result_images(selection->result);
    uint8_t *is_out = held_array(&alike.held, images, 1);
    enum status status = held_check(&alike.held, "images", err);
    if (status == STATUS_OK)
        status = row_values_open(&alike.values, selection, METRIC_COSINE, err);
    if (status == STATUS_OK) {
        memset(is_out, 1, images);
        for (uint64_t i = 0; i < selection->candidates; i++)
            is_out[selection->candidate[i].row] = 0;
        status = list_members(&alike, err);
    }
    if (status == STATUS_OK)
        status = compare_all(&alike, err);
    if (status == STATUS_OK)
        status = take_answer(&alike, is_out, err);
    if (status == STATUS_OK)
        status = count_hidden(&alike, is_out, err);
    row_values_close(&alike.values);
    held_free(&alike.held);
    return status;
}
