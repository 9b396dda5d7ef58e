/* ranked.c: finds the components. */
#include "neighbours/ranked.h"
#include "base/minmax.h"
#include "neighbours/comparable.h"
#include "result/parameters.h"
#include "result/preset_join.h"
#include <math.h>
#include <string.h>

/* Takes the components of a clustering of the same rows that the preset projected. */
static bool find_stored(struct projection *out, struct result *result,
                        const struct matrix_source *rows, const struct preset_join *join)
{
    char content[65];
    struct parameters *parameters = NULL;
    for (unsigned i = 0; i < result->clusters_count && !out->components; i++) {
        const struct result_clusters *clusters = &result->clusters[i];
        double whiten = 0;
        if (strcmp(clusters->feature, RESULT_PRESET) != 0 || clusters->columns != rows->dimension ||
            !clusters->components || strcmp(clusters->space, "euclidean") != 0 ||
            rows->identity(rows->context, content, NULL) != STATUS_OK ||
            strcmp(content, clusters->content) != 0 ||
            parameters_open(&parameters, clusters->parameters, NULL) != STATUS_OK)
            continue;
        parameters_real(parameters, "whiten", &whiten);
        if (parameters_number(parameters, "pca", 0) == join->pca && whiten == join->whiten &&
            result_projection_read(out, result, clusters, NULL) != STATUS_OK)
            projection_clear(out);
        parameters_close(&parameters);
    }
    return out->components;
}

/* Keeps the first ones, scaled to length 1: no whitening. */
static void take_first(struct projection *projection, uint32_t count)
{
    projection->dimension = min_u32(count, projection->dimension);
    for (uint32_t i = 0; i < projection->dimension; i++) {
        float *component = projection->components + (size_t)i * projection->columns;
        double squares = 0;
        for (uint32_t j = 0; j < projection->columns; j++)
            squares += (double)component[j] * component[j];
        for (uint32_t j = 0; j < projection->columns && squares > 0; j++)
            component[j] = (float)(component[j] / sqrt(squares));
    }
}

enum status ranked_open(struct matrix_source *out, const struct matrix_source *rows,
                        struct result *result, const struct result_feature *about, unsigned threads,
                        struct stop *stop, struct error *err)
{
    struct preset_join join;
    struct projection projection = {.columns = 0};
    *out = *rows;
    if (strcmp(about->name, RESULT_PRESET) != 0 || strcmp(about->kind, "joined") != 0 ||
        preset_join_read(&join, result->preset, NULL) != STATUS_OK || join.rank_pca == 0)
        return STATUS_OK;
    const struct pca_config pca = {.space = SPACE_EUCLIDEAN,
                                   .components = min_u32(join.pca, PCA_COMPONENTS_MAX),
                                   .whiten = join.whiten,
                                   .optional = true,
                                   .threads = threads,
                                   .stop = stop};
    const enum status status = find_stored(&projection, result, rows, &join)
                                   ? STATUS_OK
                                   : comparable_fit(&projection, rows, &pca, err);
    if (status == STATUS_OK && projection.components) {
        take_first(&projection, join.rank_pca);
        return projected_open(out, rows, &projection, err);
    }
    projection_clear(&projection);
    if (status != STATUS_OK)
        matrix_close(out);
    return status;
}
