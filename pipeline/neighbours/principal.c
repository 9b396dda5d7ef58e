/* principal.c: the first two principal components of the rows that can be compared. */
#include "neighbours/comparable.h"
#include "neighbours/layout.h"

#include <math.h>

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

struct placing {
    float *xy;
    const struct matrix_source *matrix;
    const struct projection *projection;
};

static void place_rows(void *context, uint64_t first, uint64_t count, const float *rows)
{
    const struct placing *placing = context;
    for (uint64_t i = 0; i < count; i++) {
        const float *row = rows + (size_t)i * placing->matrix->dimension;
        float *to = placing->xy + 2 * (first + i);
        to[0] = to[1] = 0;
        if (placing->projection->components &&
            comparable_values(placing->matrix, row,
                              (enum cluster_metric)placing->projection->space))
            place_row(to, placing->projection, row);
    }
}

enum status layout_principal(float *xy, const struct matrix_source *matrix,
                             const struct neighbours_config *config, struct error *err)
{
    struct projection projection = {.columns = 0};
    const struct pca_config pca = {.space = (enum projection_space)config->metric,
                                   .components = 2,
                                   .optional = true,
                                   .threads = config->threads,
                                   .stop = config->watch.stop};
    enum status status = comparable_fit(&projection, matrix, &pca, err);
    struct placing placing = {xy, matrix, &projection};
    if (status == STATUS_OK)
        status =
            matrix_each(matrix, config->threads, config->watch.stop, place_rows, &placing, err);
    projection_clear(&projection);
    return status;
}
