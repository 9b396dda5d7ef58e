/* principal.c: the first two principal components of the rows that can be compared. */
#include "base/minmax.h"
#include "neighbours/comparable.h"
#include "neighbours/layout.h"

#include <math.h>
#include <stdlib.h>

/* Where a row is along the axes, of which there may be fewer than two. */
static void place_row(float to[2], const struct projection *projection, const float *row)
{
    const uint32_t columns = projection->columns;
    double squares = projection->space == SPACE_COSINE ? 0 : 1, sum[2] = {0, 0};
    for (uint32_t j = 0; j < columns && projection->space == SPACE_COSINE; j++)
        squares += (double)row[j] * row[j];
    const double length = sqrt(squares);
    for (uint32_t j = 0; j < columns; j++) {
        const double value = projection->space == SPACE_HELLINGER ? sqrt(row[j]) : row[j] / length;
        for (uint32_t a = 0; a < projection->dimension; a++)
            sum[a] +=
                projection->components[(size_t)a * columns + j] * (value - projection->mean[j]);
    }
    to[0] = (float)sum[0];
    to[1] = (float)sum[1];
}

static enum status project(float *xy, const struct matrix_source *matrix,
                           const struct projection *projection, enum cluster_metric metric,
                           const struct layout_config *config, struct error *err)
{
    const uint64_t step = matrix_rows_at_once(matrix);
    const uint32_t dimension = matrix->dimension;
    float *rows = malloc((size_t)step * dimension * sizeof *rows);
    enum status status =
        rows ? STATUS_OK : error_memory(err, (size_t)step * dimension * sizeof *rows, "rows");
    for (uint64_t first = 0; first < matrix->rows && status == STATUS_OK; first += step) {
        const uint64_t count = min_u64(step, matrix->rows - first);
        status = watch_check(&config->watch, "computing the map", err);
        if (status == STATUS_OK)
            status = matrix_read(matrix, first, count, rows, err);
        for (uint64_t i = 0; i < count && status == STATUS_OK; i++) {
            const float *row = rows + (size_t)i * dimension;
            float *to = xy + 2 * (first + i);
            to[0] = to[1] = 0;
            if (projection->components && comparable_values(matrix, row, metric))
                place_row(to, projection, row);
        }
    }
    free(rows);
    return status;
}

enum status layout_principal(float *xy, const struct matrix_source *matrix,
                             enum cluster_metric metric, const struct layout_config *config,
                             struct error *err)
{
    struct projection projection = {.columns = 0};
    const struct pca_config pca = {.space = (enum projection_space)metric,
                                   .components = 2,
                                   .optional = true,
                                   .threads = config->threads,
                                   .stop = config->watch.stop};
    enum status status = comparable_fit(&projection, matrix, &pca, err);
    if (status == STATUS_OK)
        status = project(xy, matrix, &projection, metric, config, err);
    projection_clear(&projection);
    return status;
}
