/* class_query.c: finds the class, and ranks all rows. */
#include "cli/class_query.h"
#include "base/minmax.h"
#include "base/path.h"
#include "cli/options.h"
#include "result/class_layer.h"
#include "result/feature_matrix.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NEAREST 3

struct scored {
    float score;
    uint64_t row;
};

static bool has_name(const char *names, const char *name)
{
    const size_t length = strlen(name);
    while (*names) {
        names += strspn(names, " ,/");
        if (strncasecmp(names, name, length) == 0 && strchr(",/", names[length + strspn(names + length, " ")]))
            return true;
        names += strcspn(names, ",/");
    }
    return false;
}

/* How far a class is from what was typed: what contains it is near. */
static unsigned distance_of(const char *class, const char *name)
{
    return strcasestr(class, name) ? 0 : name_edits(name, class);
}

static enum status refuse(const struct class_layer *layer, const char *name, struct error *err)
{
    char shown[120], names[300] = "";
    uint32_t best[NEAREST], count = 0;
    for (uint32_t c = 0; c < layer->count; c++) {
        uint32_t at = count;
        while (at > 0 && distance_of(layer->name[c], name) < distance_of(layer->name[best[at - 1]], name))
            at--;
        if (at == NEAREST)
            continue;
        count = min_u32(count + 1, NEAREST);
        memmove(best + at + 1, best + at, (count - at - 1) * sizeof *best);
        best[at] = c;
    }
    for (uint32_t i = 0; i < count; i++) {
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%.80s", i ? "; " : "", layer->name[best[i]]);
    }
    return error_set(err, STATUS_USAGE, "%s has no class '%s'; the nearest of its %u are: %s",
                     layer->feature, path_for_message(shown, sizeof shown, name), layer->count, names);
}

/* The part of a layer that is meant; it has no names. */
static enum status choose(struct class_layer *out, const struct class_layer *layer, const char *name,
                          struct error *err)
{
    const size_t row = layer->columns * sizeof(float);
    *out = (struct class_layer){.columns = layer->columns,
                                .weights = malloc(layer->count * row),
                                .offset = malloc(layer->count * sizeof(float))};
    if (!out->weights || !out->offset)
        return error_memory(err, layer->count * row, "classes");
    for (int parts = 0; parts < 2 && out->count == 0; parts++)
        for (uint32_t c = 0; c < layer->count; c++) {
            if (parts ? !has_name(layer->name[c], name) : strcasecmp(layer->name[c], name) != 0)
                continue;
            memcpy(out->weights + (size_t)out->count * layer->columns,
                   layer->weights + (size_t)c * layer->columns, row);
            out->offset[out->count++] = layer->offset[c];
        }
    return out->count ? STATUS_OK : refuse(layer, name, err);
}

static int by_score(const void *a, const void *b)
{
    const struct scored *x = a, *y = b;
    return x->score != y->score ? (x->score < y->score) - (x->score > y->score)
                                : (x->row > y->row) - (x->row < y->row);
}

/* Of the rows that say something, in their order; *count of them. */
static enum status score_rows(struct scored *scored, uint64_t *count, const struct class_layer *layer,
                              const struct matrix_source *rows, struct error *err)
{
    const uint64_t step = matrix_rows_at_once(rows);
    float *block = malloc((size_t)(step * rows->dimension) * sizeof *block);
    float *scores = malloc((size_t)(step * layer->count) * sizeof *scores);
    enum status status = block && scores ? STATUS_OK
                                         : error_memory(err, (size_t)(step * rows->dimension) * 4, "rows");
    *count = 0;
    for (uint64_t first = 0, some; first < rows->rows && status == STATUS_OK; first += some) {
        some = min_u64(step, rows->rows - first);
        status = matrix_read(rows, first, some, block, err);
        if (status != STATUS_OK)
            break;
        class_layer_scores(scores, layer, block, some);
        for (uint64_t i = 0; i < some; i++) {
            float best = scores[i * layer->count];
            for (uint32_t c = 1; c < layer->count; c++)
                best = fmaxf(best, scores[i * layer->count + c]);
            if (isfinite(best) && !matrix_is_blank(rows, block + i * rows->dimension))
                scored[(*count)++] = (struct scored){best, first + i};
        }
    }
    free(block);
    free(scores);
    return status;
}

enum status class_query(int64_t *rows, double *scores, uint32_t n, struct result *result,
                        const char *feature, const char *name, struct error *err)
{
    struct class_layer layer, chosen = {.count = 0};
    struct matrix_source matrix = {0};
    struct result_feature about;
    struct scored *scored = NULL;
    uint64_t count = 0;
    char shown[256];
    enum status status = class_layer_read(&layer, result, feature, err);
    if (status == STATUS_END)
        status = error_set(err, STATUS_USAGE,
                           "%s has no classes%s%s: --class needs a feature of a network that has some, as "
                           "--preset semantic makes",
                           path_for_message(shown, sizeof shown, result_path(result)),
                           feature ? " of the feature " : "", feature ? feature : "");
    if (status == STATUS_OK)
        status = choose(&chosen, &layer, name, err);
    if (status == STATUS_OK)
        status = feature_matrix_open(&matrix, &about, result, layer.feature, err);
    if (status == STATUS_OK && !(scored = malloc((size_t)matrix.rows * sizeof *scored + 1)))
        status = error_memory(err, (size_t)matrix.rows * sizeof *scored, "scores");
    if (status == STATUS_OK)
        status = score_rows(scored, &count, &chosen, &matrix, err);
    if (status == STATUS_OK)
        qsort(scored, (size_t)count, sizeof *scored, by_score);
    for (uint32_t i = 0; i < n && status == STATUS_OK; i++) {
        rows[i] = i < count ? (int64_t)scored[i].row : -1;
        scores[i] = i < count ? (double)scored[i].score : (double)NAN;
    }
    free(scored);
    matrix_close(&matrix);
    class_layer_clear(&chosen);
    class_layer_clear(&layer);
    return status;
}
