/* principal.c: the first two principal components of the rows that can be compared. */
#include "base/minmax.h"
#include "codebook/pca.h"
#include "layout/layout.h"
#include "search/comparable.h"

#include <stdlib.h>

/* Of the rows that the metric defines; components are NULL where these are all alike. */
static enum status fit(struct projection *out, const struct matrix_source *matrix,
                       enum cluster_metric metric, const struct layout_config *config,
                       struct error *err)
{
    const struct neighbours_config comparing = {.metric = metric, .stop = config->stop};
    const struct pca_config pca = {.space = (enum projection_space)metric,
                                   .components = 2,
                                   .optional = true,
                                   .threads = config->threads,
                                   .stop = config->stop};
    struct comparable comparable;
    enum status status = comparable_open(&comparable, matrix, &comparing, err);
    if (status == STATUS_OK && comparable.source.rows > 1)
        status = pca_fit(out, &comparable.source, &pca, err);
    comparable_close(&comparable);
    return status;
}

static enum status project(float *xy, const struct matrix_source *matrix,
                           const struct projection *projection, enum cluster_metric metric,
                           const struct layout_config *config, struct error *err)
{
    const uint64_t step = matrix_rows_at_once(matrix);
    const uint32_t dimension = matrix->dimension;
    float *rows = malloc((size_t)step * dimension * sizeof *rows);
    enum status status = rows ? STATUS_OK
                              : error_memory(err, (size_t)step * dimension * sizeof *rows, "rows");
    for (uint64_t first = 0; first < matrix->rows && status == STATUS_OK; first += step) {
        const uint64_t count = min_u64(step, matrix->rows - first);
        status = stop_check(config->stop, "the map was made", err);
        if (status == STATUS_OK)
            status = matrix_read(matrix, first, count, rows, err);
        for (uint64_t i = 0; i < count && status == STATUS_OK; i++) {
            const float *row = rows + (size_t)i * dimension;
            float *to = xy + 2 * (first + i), of_row[2] = {0, 0};
            if (projection->components && comparable_values(matrix, row, metric))
                projection_rows(projection, of_row, row, 1);
            to[0] = of_row[0];
            to[1] = of_row[1];
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
    enum status status = fit(&projection, matrix, metric, config, err);
    if (status == STATUS_OK)
        status = project(xy, matrix, &projection, metric, config, err);
    projection_clear(&projection);
    return status;
}
