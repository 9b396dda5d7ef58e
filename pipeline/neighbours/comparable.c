/* comparable.c: a matrix of the comparable rows, and results with the numbers of all rows. */
#include "neighbours/comparable.h"
#include "base/compare.h"
#include "base/held.h"
#include "base/log.h"
#include "base/minmax.h"
#include "base/parse.h"
#include <math.h>
#include <stdlib.h>

bool comparable_values(const struct matrix_source *all, const float *row,
                       enum cluster_metric metric)
{
    bool zero = true;
    for (uint32_t i = 0; i < all->dimension; i++) {
        if (!isfinite(row[i]) || (metric == METRIC_HELLINGER && row[i] < 0))
            return false;
        zero &= !(row[i] != 0);
    }
    return (metric != METRIC_COSINE || !zero) && !matrix_is_blank(all, row);
}

struct comparing {
    const struct matrix_source *all;
    enum cluster_metric metric;
    bool *compared; /* per row */
};

static void look_at_rows(void *context, uint64_t first, uint64_t count, const float *rows)
{
    const struct comparing *comparing = context;
    for (uint64_t i = 0; i < count; i++)
        comparing->compared[first + i] = comparable_values(
            comparing->all, rows + (size_t)i * comparing->all->dimension, comparing->metric);
}

enum status comparable_open(struct comparable *out, const struct matrix_source *all,
                            enum cluster_metric metric, unsigned threads, struct stop *stop,
                            struct error *err)
{
    struct comparing comparing = {all, metric, malloc((size_t)all->rows + 1)};
    *out = (struct comparable){.all = all, .row = malloc((size_t)all->rows * sizeof *out->row + 1)};
    out->list = (struct matrix_list){all, out->row};
    matrix_list_source(&out->source, &out->list, 0);
    const enum status status =
        comparing.compared && out->row
            ? matrix_each(all, threads, stop, look_at_rows, &comparing, err)
            : error_memory(err, (size_t)all->rows * sizeof *out->row, "rows to compare");
    for (uint64_t i = 0; status == STATUS_OK && i < all->rows; i++)
        if (comparing.compared[i])
            out->row[out->source.rows++] = i;
    free(comparing.compared);
    return status;
}

void comparable_close(struct comparable *comparable)
{
    free(comparable->row);
    *comparable = (struct comparable){0};
}

void comparable_tell(const struct comparable *comparable, const char *feature)
{
    const uint64_t left = comparable->all->rows - comparable->source.rows;
    if (left > 0)
        log_message(LOG_NOTICE, "notice: %s without values of %s that can be compared: left out",
                    NUMBER_OF(left, "image"), feature);
}

enum status comparable_fit(struct projection *out, const struct matrix_source *all,
                           const struct pca_config *config, struct error *err)
{
    struct comparable comparable;
    enum status status = comparable_open(&comparable, all, (enum cluster_metric)config->space,
                                         config->threads, config->stop, err);
    if (status == STATUS_OK && comparable.source.rows > 1)
        status = pca_fit(out, &comparable.source, config, err);
    comparable_close(&comparable);
    return status;
}

uint64_t comparable_find(const struct comparable *comparable, uint64_t row)
{
    const uint64_t rows = comparable->source.rows,
                   *found = bsearch(&row, comparable->row, rows, sizeof row, compare_u64);
    return found ? (uint64_t)(found - comparable->row) : rows;
}

void comparable_pick(const struct comparable *comparable, void *values)
{
    uint32_t *four = values;
    for (uint64_t i = 0; i < comparable->source.rows; i++)
        four[i] = four[comparable->row[i]];
}

void comparable_spread(const struct comparable *comparable, int32_t *labels, float *distances)
{
    uint64_t left = comparable->source.rows;
    for (uint64_t row = comparable->all->rows; row-- > 0;) {
        const bool compared = left > 0 && comparable->row[left - 1] == row;
        labels[row] = compared ? labels[--left] : -1;
        distances[row] = compared ? distances[left] : NAN;
    }
}

/* Expands a result to `queries`, the i-th searched one being number to[i] (NULL: i), with n
 * neighbours each, numbered as among all rows. */
static enum status spread(struct neighbours *found, const struct comparable *comparable,
                          const uint64_t *to, uint64_t queries, uint32_t n, struct error *err)
{
    const size_t count = (size_t)queries * n;
    int64_t *rows = malloc(count * sizeof *rows);
    double *squared = malloc(count * sizeof *squared);
    if (!rows || !squared) {
        free(rows);
        free(squared);
        return error_memory(err, count * (sizeof *rows + sizeof *squared), "neighbours");
    }
    for (size_t i = 0; i < count; i++) {
        rows[i] = -1;
        squared[i] = (double)NAN;
    }
    for (uint64_t i = 0; i < found->queries; i++)
        for (uint32_t j = 0; j < found->n; j++) {
            const size_t from = (size_t)i * found->n + j, at = (size_t)(to ? to[i] : i) * n + j;
            if (found->rows[from] >= 0)
                rows[at] = (int64_t)comparable->row[found->rows[from]];
            squared[at] = found->squared[from];
        }
    free(found->rows);
    free(found->squared);
    found->rows = rows;
    found->squared = squared;
    found->queries = queries;
    found->n = n;
    return STATUS_OK;
}

enum status comparable_find_neighbours(struct neighbours *out, const struct comparable *comparable,
                                       const struct queries *queries,
                                       const struct neighbours_config *config, struct error *err)
{
    const uint64_t rows = comparable->source.rows;
    struct neighbours_config search = *config;
    struct queries some = {.count = (uint32_t)(rows > 1)};
    const uint64_t *to = queries ? NULL : comparable->row;
    SCOPED_HELD held = {0};
    *out = (struct neighbours){0};
    if (queries)
        some = *queries;
    else
        search.n = (uint32_t)min_u64(config->n, rows > 1 ? rows - 1 : 1);
    if (some.rows) {
        uint64_t *places = held_array(&held, queries->count, sizeof *places);
        uint64_t *numbers = held_array(&held, queries->count, sizeof *numbers);
        some.count = 0;
        for (uint32_t i = 0; !held.failed && i < queries->count; i++) {
            places[some.count] = comparable_find(comparable, queries->rows[i]);
            numbers[some.count] = i;
            some.count += places[some.count] < rows;
        }
        some.rows = places;
        to = numbers;
    }
    enum status status = held_check(&held, "rows", err);
    if (status == STATUS_OK && some.count > 0 && rows > 0)
        status = neighbours_find(out, &comparable->source, queries ? &some : NULL, &search, err);
    if (status == STATUS_OK)
        status = spread(out, comparable, to, queries ? queries->count : comparable->all->rows,
                        config->n, err);
    return status;
}
